/**
 * Published episodes (AgentTraj) played again in their world. The files hold the messages but no lists of
 * actions; played again they have both, in the words that the configured world uses.
 */
import type { PublishedEpisode, PublishedEpisodes } from '../../core/agentgym.ts';
import { messageOf } from '../../core/errors.ts';
import type { DemonstratedTurn, Demonstration } from './demonstrations.ts';

export interface PlayAgainOptions {
  /** A reply that is not among the listed actions is context of what follows, and not learnt. */
  readonly onlyListed: boolean;
  /** Gets each episode that is left out, with the reason, and the counts at the end. */
  readonly onNotice: (message: string) => void;
}

/**
 * Plays demonstrations without a trace again; traces stay as they are. Episodes that do not go as published are left out,
 * and so are replies after the world has ended an episode as solved. The score becomes that of the world.
 */
export async function playAgain(
  demonstrations: readonly Demonstration[],
  published: PublishedEpisodes,
  { onlyListed, onNotice }: PlayAgainOptions,
): Promise<Demonstration[]> {
  const kept: Demonstration[] = [];
  let asked = 0;
  let leftOut = 0;
  let replies = 0;
  let unlisted = 0;
  for (const one of demonstrations) {
    if (one.trajectory) {
      kept.push(one);
      continue;
    }
    asked++;
    try {
      const { demonstration, missing } = await playPublished(one, published, onlyListed);
      kept.push(demonstration);
      replies += demonstration.turns.length;
      unlisted += missing;
    } catch (thrown) {
      leftOut++;
      onNotice(`${one.source}: left out: ${messageOf(thrown)}`);
    }
  }
  if (asked > 0) onNotice(`${asked - leftOut} of ${asked} published episodes played again, ${leftOut} left out`);
  if (unlisted > 0) {
    onNotice(`${unlisted} of their ${replies} replies are not among the listed actions: context, not learnt`);
  }
  return kept;
}

interface Played {
  readonly demonstration: Demonstration;
  /** Replies that are not among the listed actions. */
  readonly missing: number;
}

/** @throws {Error} with the reason why it does not go as published */
async function playPublished(one: Demonstration, published: PublishedEpisodes, onlyListed: boolean): Promise<Played> {
  const [first] = one.turns;
  if (!first) throw new Error('it has no turns');
  const number = /_(\d+)$/.exec(one.task)?.[1];
  const opened = published.open(number === undefined ? undefined : Number(number), first.observation);
  try {
    return await follow(one, opened, onlyListed);
  } finally {
    await opened.session.close();
  }
}

async function follow(
  one: Demonstration,
  { session, index, action: named, agrees }: PublishedEpisode,
  onlyListed: boolean,
): Promise<Played> {
  const turns: DemonstratedTurn[] = [];
  let observation = session.first.observation;
  let score = 0;
  let missing = 0;
  for (const [t, { observation: published, action: reply, reply: whole, untrained }] of one.turns.entries()) {
    if (!agrees(observation, published)) {
      throw new Error(`observation ${t} was ${excerpt(published)}; the world answers ${excerpt(observation)}`);
    }
    const actions = [...session.actions()];
    const action = named(reply);
    const step = await session.step(reply);
    if (action !== undefined) {
      const listed = actions.includes(action);
      if (!listed) missing++;
      const context = untrained || (onlyListed && !listed);
      const turn = { observation, action, actions, ...(whole === undefined ? {} : { reply: whole }) };
      turns.push(context ? { ...turn, untrained: true } : turn);
    }
    observation = step.observation;
    score += step.reward;
    if (step.kind !== 'terminated') continue;
    if (!step.success) throw new Error(`the world ends it as failed after ${t + 1} of its ${one.turns.length} replies`);
    break;
  }
  if (turns.every(({ untrained }) => untrained)) {
    throw new Error(`none of its ${turns.length} replies can be learnt: none has loss and is among the listed actions`);
  }
  const { source, world, task } = one;
  const demonstration: Demonstration = {
    source,
    ...(world === undefined ? {} : { world }),
    ...(index === undefined ? {} : { index }),
    task,
    turns,
    finalObservation: observation,
    score,
  };
  return { demonstration, missing };
}

/** The start of a text, in quotes and on one line. */
function excerpt(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
