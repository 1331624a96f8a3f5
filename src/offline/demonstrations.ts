/**
 * Recorded episodes to learn from: AgentTraj-style JSON, and our own traces. Pure but for the file that is read.
 */
import { readFileSync } from 'node:fs';
import { messageOf, UserError } from '../core/errors.ts';
import { episodeReturn, type Trajectory } from '../core/trajectory.ts';
import { readTrace } from '../record/trace.ts';

/** An episode as text. */
export interface Demonstration {
  /** Where it is from, for messages. */
  readonly source: string;
  /** What episodes of one task have in common; pairs are made within it. */
  readonly task: string;
  readonly turns: readonly DemonstratedTurn[];
  readonly finalObservation: string;
  /** Sum of rewards; 1 for demonstrations that come without (they are given as good ones). */
  readonly score: number;
  /** The recorded episode, where the source is a trace. */
  readonly trajectory?: Trajectory;
}

export interface DemonstratedTurn {
  readonly observation: string;
  readonly action: string;
  /** What could be done then; absent where the source does not say. */
  readonly actions?: readonly string[];
}

/**
 * Reads one file: `.jsonl` is a trace, `.json` AgentTraj-style.
 * @throws {UserError} BAD_TRACE naming the file and what is wrong with it
 */
export function readDemonstrations(path: string): Demonstration[] {
  if (path.endsWith('.jsonl')) return readTrace(path).episodes.map((one) => ofTrajectory(one, path));
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (thrown) {
    throw new UserError('BAD_TRACE', `cannot read ${path}: ${messageOf(thrown)}`);
  }
  return ofAgentTraj(parsed, path);
}

function ofTrajectory(trajectory: Trajectory, path: string): Demonstration {
  const { task, turns, actionTable, finalObservation, episode } = trajectory;
  return {
    source: `${path}, episode ${episode}`,
    task: `${task.env}/${task.index}#${task.seed}`,
    turns: turns.map(({ observation, action, actions }) => ({
      observation,
      action,
      actions: Array.from(actions, (index) => actionTable[index]!),
    })),
    finalObservation,
    score: episodeReturn(trajectory),
    trajectory,
  };
}

/**
 * AgentTraj: `[{ item_id, conversations: [{ from: 'human' | 'gpt', loss, value }] }]`. Only what `gpt` says under
 * `loss: true` is learnt; the instruction and the acknowledgement before it carry no loss and are left out. A reply
 * in ReAct form is cut to what follows its last `Action:`.
 * @param where names the source in messages
 * @throws {UserError} BAD_TRACE
 */
export function ofAgentTraj(parsed: unknown, where: string): Demonstration[] {
  const bad = (at: string, expected: string) =>
    new UserError(
      'BAD_TRACE',
      `${where}: ${at}: expected ${expected}; AgentTraj is [{ item_id, conversations: [{ from, loss, value }] }]`,
    );
  if (!Array.isArray(parsed)) throw bad('the file', 'a list of conversations');
  return parsed.map((item: { item_id?: unknown; conversations?: unknown }, i) => {
    const at = `item ${i}`;
    if (!Array.isArray(item?.conversations)) throw bad(at, 'conversations');
    const turns: DemonstratedTurn[] = [];
    let heard: string | undefined;
    for (const [j, message] of item.conversations.entries()) {
      const { from, loss, value } = (message ?? {}) as { from?: unknown; loss?: unknown; value?: unknown };
      if (typeof value !== 'string') throw bad(`${at}, message ${j}`, 'a value');
      if (from === 'human') heard = value;
      else if (from !== 'gpt') throw bad(`${at}, message ${j}`, "from 'human' or 'gpt'");
      else if (loss === true) {
        if (heard === undefined) throw bad(`${at}, message ${j}`, 'an observation before it');
        turns.push({ observation: heard, action: actionIn(value) });
        heard = undefined;
      } else heard = undefined;
    }
    const task = typeof item.item_id === 'string' ? item.item_id : at;
    return { source: `${where}, ${task}`, task, turns, finalObservation: heard ?? '', score: 1 };
  });
}

function actionIn(reply: string): string {
  const at = reply.lastIndexOf('Action:');
  return (at < 0 ? reply : reply.slice(at + 'Action:'.length)).trim();
}
