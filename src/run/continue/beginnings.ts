/** Beginnings of a saved episode: its recorded actions taken again in the world, and held to the recording turn by turn. */
import type { Env, EnvStep, Session } from '../../core/env.ts';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { shorten } from '../../core/printable.ts';
import { taskName } from '../../core/task.ts';
import type { EpisodeBeginning } from '../../core/ticket.ts';
import type { Turn } from '../../core/trajectory.ts';
import type { TraceLine } from '../../storage/trace.ts';

/**
 * Replays an episode as far as the last turn that is asked for.
 * @param turns numbers of recorded turns that a beginning keeps, ascending, each in [0, turns.length)
 * @returns the beginning of each
 * @throws {UserError} BAD_ARGUMENT for a world whose actions must not be taken again
 * @throws {LongplayError} ENV_BROKEN naming the first turn at which the world answers otherwise than recorded
 */
export async function replayBeginnings(
  env: Env,
  episode: TraceLine,
  turns: readonly number[],
): Promise<ReadonlyMap<number, EpisodeBeginning>> {
  if (env.replay === 'never') {
    const why = 'its actions have effects outside, and are not taken again (replay: never)';
    throw new UserError('BAD_ARGUMENT', `replay: ${env.id} cannot be brought back to a turn: ${why}`);
  }
  let turn = 0;
  let session: Session | undefined;
  try {
    session = await env.open(episode.task, { horizon: episode.horizon });
    return await replaySession(session, episode, turns, (at) => {
      turn = at;
    });
  } catch (thrown) {
    if (thrown instanceof LongplayError) throw thrown;
    throw createDifference(episode, turn, `the env threw: ${messageOf(thrown)}`);
  } finally {
    await session?.close();
  }
}

async function replaySession(
  session: Session,
  episode: TraceLine,
  asked: readonly number[],
  onTurn: (turn: number) => void,
): Promise<ReadonlyMap<number, EpisodeBeginning>> {
  const beginnings = new Map<number, EpisodeBeginning>();
  const table = new Map<string, number>();
  const past: Turn[] = [];
  let { observation } = session.first;
  for (let t = 0; ; t++) {
    const recorded = episode.turns[t]!;
    if (observation !== recorded.observation) {
      throw createDifference(episode, t, describePair('observation', recorded.observation, observation));
    }
    if (asked.includes(t)) beginnings.set(t, { turns: [...past], observation });
    if (t >= asked.at(-1)!) return beginnings;
    const actions = listActions(session, table);
    checkListed(episode, t, [...table.keys()], actions);
    onTurn(t + 1);
    const step = await session.step(recorded.action);
    checkStep(episode, t, step);
    const { decision: _, advantage: __, ...turn } = recorded;
    past.push({ ...turn, actions });
    observation = step.observation;
  }
}

/** Actions that are listed now, as indices into the episode's table. */
function listActions(session: Session, table: Map<string, number>): Int32Array {
  return Int32Array.from(session.actions(), (text) => {
    const known = table.get(text);
    if (known !== undefined) return known;
    table.set(text, table.size);
    return table.size - 1;
  });
}

/** Holds the list to the recorded one; a policy that reads no list has recorded none. */
function checkListed(episode: TraceLine, t: number, table: readonly string[], actions: Int32Array): void {
  const { actions: listed } = episode.turns[t]!;
  if (listed.length === 0) return;
  const before = Array.from(listed, (index) => episode.actionTable[index]!).join('\n');
  const now = Array.from(actions, (index) => table[index]!).join('\n');
  if (before !== now) throw createDifference(episode, t, describePair('list of actions', before, now));
}

function checkStep(episode: TraceLine, t: number, step: EnvStep): void {
  const { reward, partial = false } = episode.turns[t]!;
  if (step.kind === 'terminated') throw createDifference(episode, t + 1, 'the episode has ended here, and had not');
  if (step.reward !== reward) {
    throw createDifference(episode, t + 1, describePair('reward', String(reward), String(step.reward)));
  }
  if ((step.partial ?? false) !== partial) {
    throw createDifference(episode, t + 1, 'a whole action was a stage of one, or the other way round');
  }
}

/** Characters of a text that are shown. */
const SHOWN_CHARS = 300;

function describePair(what: string, recorded: string, now: string): string {
  const show = (text: string) => shorten(JSON.stringify(text), SHOWN_CHARS);
  return `another ${what}: recorded ${show(recorded)}, now ${show(now)}`;
}

function createDifference({ episode, task }: TraceLine, turn: number, what: string): LongplayError {
  const cure = `longplay replay <trace> --episode ${episode} --check compares all of it`;
  return new LongplayError(
    'ENV_BROKEN',
    `episode ${episode} (${taskName(task)}) does not repeat itself: behind ${turn} actions ${what}; ${cure}`,
  );
}
