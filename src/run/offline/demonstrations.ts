/**
 * Demonstrations: recorded episodes to learn from, AgentTraj-style JSON, and our own traces. Pure but for the files
 * that are read.
 */
import { MAX_DATA_BYTES, readJsonFile } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { episodeReturn, type Trajectory } from '../../core/trajectory.ts';
import { TraceStore } from '../../storage/trace-store.ts';

/** Demonstration: an episode as text. */
export interface Demonstration {
  /** Origin, for messages. */
  readonly source: string;
  /** Env id of the world it was played in; absent where the source does not name it. */
  readonly world?: string;
  /** Key that episodes of one task have in common; pairs are made within it. */
  readonly task: string;
  /** Task of the configured world that was played; absent where it is not known. */
  readonly index?: number;
  readonly turns: readonly DemonstratedTurn[];
  readonly finalObservation: string;
  /** Sum of rewards; 1 for demonstrations that come without one (they are given as good ones). */
  readonly score: number;
  /** Trajectory of the recorded episode, where the source is a trace. */
  readonly trajectory?: Trajectory;
}

export interface DemonstratedTurn {
  readonly observation: string;
  readonly action: string;
  /** Actions listed then; absent where the source does not list them. */
  readonly actions?: readonly string[];
  /** True for context of later turns that is not to be learnt: a reply without loss. */
  readonly untrained?: true;
}

/** Purposes whose episodes may be learnt from: those of evaluations may not. */
const LEARNT = ['train', 'rollout'];

/**
 * Reads a `.json` file as AgentTraj; anything else as traces: a file, a `traces` folder or a run. Episodes of evaluations
 * are left out: their tasks are held out.
 * @param onNotice gets a line about what was left out
 * @throws {UserError} BAD_TRACE naming the file and what is wrong with it
 */
export function readDemonstrations(path: string, onNotice: (message: string) => void = () => {}): Demonstration[] {
  if (path.endsWith('.json')) return convertAgentTraj(parseFile(path), path);
  const store = TraceStore.open(path);
  for (const file of store.unfinished) onNotice(`${file}: its last line is cut off and left out`);
  const played = store.episodes.filter(({ purpose }) => LEARNT.includes(purpose));
  const evaluated = store.size - played.length;
  if (evaluated > 0) onNotice(`${path}: ${evaluated} episodes of evaluations are left out`);
  return played.map(({ at, file }) => convertTrajectory(store.read(at), file));
}

function parseFile(path: string): unknown {
  try {
    return readJsonFile(path, MAX_DATA_BYTES);
  } catch (thrown) {
    throw new UserError('BAD_TRACE', `cannot read ${messageOf(thrown)}`);
  }
}

function convertTrajectory(trajectory: Trajectory, path: string): Demonstration {
  const { task, turns, actionTable, finalObservation, episode } = trajectory;
  return {
    source: `${path}, episode ${episode}`,
    world: task.env,
    task: `${task.env}/${task.index}#${task.seed}`,
    index: task.index,
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
 * AgentTraj: `[{ item_id, conversations: [{ from: 'human' | 'gpt', loss, value }] }]`. Only the replies of `gpt` under
 * `loss: true` are learnt; other replies stay in the episode as context of what follows. A first exchange without loss is
 * the instruction and its acknowledgement, which are no part of the episode. A reply in ReAct form is cut to what follows
 * its last `Action:`. `longplay export` adds a `reward`; an `item_id` like `<world>_12` names the world.
 * @param where names the source in messages
 * @throws {UserError} BAD_TRACE
 */
export function convertAgentTraj(parsed: unknown, where: string): Demonstration[] {
  const bad = (at: string, expected: string) =>
    new UserError(
      'BAD_TRACE',
      `${where}: ${at}: expected ${expected}; AgentTraj is [{ item_id, conversations: [{ from, loss, value }] }]`,
    );
  if (!Array.isArray(parsed)) throw bad('the file', 'a list of conversations');
  return parsed.map((item: { item_id?: unknown; conversations?: unknown; reward?: unknown }, i) => {
    const at = `item ${i}`;
    if (!Array.isArray(item?.conversations)) throw bad(at, 'conversations');
    const turns: DemonstratedTurn[] = [];
    let observation: string | undefined;
    let replies = 0;
    for (const [j, message] of item.conversations.entries()) {
      const { from, loss, value } = (message ?? {}) as { from?: unknown; loss?: unknown; value?: unknown };
      if (typeof value !== 'string') throw bad(`${at}, message ${j}`, 'a value');
      if (from === 'human') observation = value;
      else if (from !== 'gpt') throw bad(`${at}, message ${j}`, "from 'human' or 'gpt'");
      else {
        const acknowledged = loss !== true && replies === 0;
        replies++;
        if (!acknowledged) {
          if (observation === undefined) throw bad(`${at}, message ${j}`, 'an observation before it');
          const turn = { observation, action: actionIn(value) };
          turns.push(loss === true ? turn : { ...turn, untrained: true });
        }
        observation = undefined;
      }
    }
    const task = typeof item.item_id === 'string' ? item.item_id : at;
    const world = /^([a-z]+)_\d+$/.exec(task)?.[1];
    return {
      source: `${where}, ${task}`,
      ...(world === undefined ? {} : { world }),
      task,
      turns,
      finalObservation: observation ?? '',
      score: typeof item.reward === 'number' ? item.reward : 1,
    };
  });
}

function actionIn(reply: string): string {
  const at = reply.lastIndexOf('Action:');
  return (at < 0 ? reply : reply.slice(at + 'Action:'.length)).trim();
}
