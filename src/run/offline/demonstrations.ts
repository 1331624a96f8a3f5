/**
 * Demonstrations: recorded episodes to learn from. Read are our own traces, AgentTraj, ShareGPT, and message logs of
 * OpenAI's form (chat-logs.ts). Pure but for the files that are read.
 */
import { UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import { episodeReturn, type Trajectory, type Turn } from '../../core/trajectory.ts';
import { isCallRecord, joinCalls } from '../../serve/call-record.ts';
import { isEvaluation } from '../../storage/trace.ts';
import { describeLoss, TraceStore } from '../../storage/trace-store.ts';
import { readReply } from '../../text/prompts/formats.ts';
import { convertAgentLog } from './agent-logs.ts';
import { conversationsOf, convertChatLog, describeRecords, isChatLog, parseRecords } from './chat-logs.ts';

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
  /** The whole answer as it was written, thought included; absent where it is the action alone. A language model learns it. */
  readonly reply?: string;
  /** Actions listed then; absent where the source does not list them. */
  readonly actions?: readonly string[];
  /** True for context of later turns that is not to be learnt: a reply without loss. */
  readonly untrained?: true;
}

/** World whose answers are read where nothing is known of it. */
const NO_FORMS: WorldPrompt = { role: '', forms: [], hints: [], format: 'react' };

/**
 * Reads the episodes of a file: AgentTraj, ShareGPT or messages, as JSON or JSON lines; anything else as traces: a file, a
 * `traces` folder or a run. Episodes of evaluations are left out: their tasks are held out. Answers that could not be read as
 * an action stay in their episode as context.
 * @param onNotice gets a line about what was left out
 * @param world by whose action forms answers are read
 * @param isAgent true where the world is an agent's: calls of tools are read as they are
 * @throws {UserError} BAD_TRACE naming the file and what is wrong with it
 */
export function readDemonstrations(
  path: string,
  onNotice: (message: string) => void = () => {},
  world: WorldPrompt = NO_FORMS,
  isAgent = false,
): Demonstration[] {
  const parsed = parseRecords(path);
  // What a gateway has kept and not joined yet.
  const records = isCallRecord(parsed) ? [...joinCalls(parsed as readonly unknown[])] : parsed;
  if (records) {
    if (isChatLog(records)) {
      return isAgent ? convertAgentLog(conversationsOf(records), path) : convertChatLog(records, path, world);
    }
    return convertAgentTraj(records, path, world);
  }
  const store = TraceStore.open(path);
  for (const loss of store.losses) onNotice(describeLoss(loss));
  const played = store.episodes.filter(({ purpose }) => !isEvaluation(purpose));
  const evaluated = store.size - played.length;
  if (evaluated > 0) onNotice(`${path}: ${evaluated} episodes of evaluations are left out`);
  const episodes = played.map(({ at, file }) => convertTrajectory(store.read(at), file));
  const unread = episodes.reduce((sum, { turns }) => sum + turns.filter(({ untrained }) => untrained).length, 0);
  if (unread > 0) onNotice(`${path}: ${unread} answers that could not be read are context, and not learnt`);
  // An episode of nothing else has nothing to learn from.
  return episodes.filter(({ turns }) => turns.length === 0 || turns.some(({ untrained }) => !untrained));
}

function convertTrajectory(trajectory: Trajectory, path: string): Demonstration {
  const { task, turns, actionTable, finalObservation, episode } = trajectory;
  return {
    source: `${path}, episode ${episode}`,
    world: task.env,
    task: `${task.env}/${task.index}#${task.seed}`,
    index: task.index,
    turns: turns.map(({ observation, action, actions, response, untrained }) => ({
      observation,
      action,
      ...(response ? { reply: response.text } : {}),
      actions: Array.from(actions, (index) => actionTable[index]!),
      ...(untrained || response?.formatError !== undefined ? { untrained: true as const } : {}),
    })),
    finalObservation,
    score: episodeReturn(trajectory),
    trajectory: { ...trajectory, turns: turns.map(leaveOutUnread) },
  };
}

/** Turn as it is learnt: an answer that could not be read as an action is not. */
function leaveOutUnread(turn: Turn): Turn {
  return turn.response?.formatError === undefined ? turn : { ...turn, untrained: true };
}

/**
 * AgentTraj: `[{ item_id, conversations: [{ from: 'human' | 'gpt', loss, value }] }]`. Only the replies of `gpt` under
 * `loss: true` are learnt; other replies stay in the episode as context of what follows. A first exchange without loss is
 * the instruction and its acknowledgement, which are no part of the episode. The action of a reply is what follows its last
 * `Action:`, or what another format of ours reads in it. `longplay export` adds a `reward`; an `item_id` like `<world>_12` names
 * the world.
 * @param where names the source in messages
 * @param prompt by whose action forms replies are read
 * @throws {UserError} BAD_TRACE
 */
export function convertAgentTraj(parsed: unknown, where: string, prompt: WorldPrompt = NO_FORMS): Demonstration[] {
  const bad = (at: string, expected: string) =>
    new UserError(
      'BAD_TRACE',
      `${where}: ${at}: expected ${expected}; AgentTraj is [{ item_id, conversations: [{ from, loss, value }] }]; it seems to be ${describeRecords(parsed)}`,
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
          const { action } = readReply(value, prompt);
          const turn = action === value.trim() ? { observation, action } : { observation, action, reply: value };
          turns.push(loss === true && action !== '' ? turn : { ...turn, untrained: true });
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
