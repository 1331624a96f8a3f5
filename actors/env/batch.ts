/**
 * Batches in columns. A message costs about 15 µs however little it holds, and an object inside it about 2 µs. So a
 * step of 1 µs must not be an object of its own. Numbers go in typed arrays, texts in one array each. A few steps go as
 * one plain array instead: cloning a typed array costs as much as the rest of a small message.
 */
import type { EnvStep, First } from '../../src/core/env.ts';
import { FAILURE_CAUSES } from '../../src/core/failure.ts';
import type { Close, EnvCommand, EnvEvent, Failed, Open, Step } from './protocol.ts';

/** Batch of commands to a host, in order. */
export type CommandBatch = CommandColumns | FewSteps;
/** Batch of events from a host, in order. */
export type EventBatch = EventColumns | FewObservations;

/** Few steps as one plain array; of each step: episode, turn, action. */
type FewSteps = readonly (number | string)[];
/**
 * Few observations as one plain array; of each event without actions: kind, episode, turn, reward, envMs, observation.
 */
type FewObservations = readonly (number | string)[];

/** Most steps or events of a message that goes as a plain array. */
const FEW = 8;

/** Columns of commands; the few `open`s stay objects. */
interface CommandColumns {
  /** [N, 3]: kind (0 open, 1 step, 2 close), episode, turn */
  readonly heads: Int32Array;
  /** Actions of the steps, in order. */
  readonly actions: readonly string[];
  readonly opens: readonly Open[];
}

interface EventColumns {
  /** [N, 5]: kind (`kinds`), episode, turn, number of actions, number of new actions */
  readonly heads: Int32Array;
  /** [N, 2]: reward, envMs */
  readonly numbers: Float64Array;
  readonly observations: readonly string[];
  /** Action indices of all events, one after the other. */
  readonly actions: Int32Array;
  readonly newActions: readonly string[];
  readonly failures: readonly Failed[];
}

const OPEN = 0;
const STEP = 1;
const CLOSE = 2;

export function packCommands(commands: readonly EnvCommand[]): CommandBatch {
  if (commands.length <= FEW) {
    const few = packFewSteps(commands);
    if (few) return few;
  }
  const heads = new Int32Array(3 * commands.length);
  const actions: string[] = [];
  const opens: Open[] = [];
  let at = 0;
  for (const command of commands) {
    heads[at + 1] = command.episode;
    if (command.type === 'step') {
      heads[at] = STEP;
      heads[at + 2] = command.turn;
      actions.push(command.action);
    } else if (command.type === 'open') {
      heads[at] = OPEN;
      opens.push(command);
    } else heads[at] = CLOSE;
    at += 3;
  }
  return { heads, actions, opens };
}

export function unpackCommands(batch: CommandBatch): EnvCommand[] {
  const out: EnvCommand[] = [];
  if (isPlain(batch)) {
    for (let at = 0; at < batch.length; at += 3) {
      const [episode, turn] = [batch[at] as number, batch[at + 1] as number];
      out.push({ type: 'step', episode, turn, action: batch[at + 2] as string });
    }
    return out;
  }
  const { heads, actions, opens } = batch;
  let action = 0;
  let open = 0;
  for (let at = 0; at < heads.length; at += 3) {
    const kind = heads[at]!;
    const episode = heads[at + 1]!;
    if (kind === STEP)
      out.push({ type: 'step', episode, turn: heads[at + 2]!, action: actions[action++]! } satisfies Step);
    else if (kind === OPEN) out.push(opens[open++]!);
    else out.push({ type: 'close', episode } satisfies Close);
  }
  return out;
}

const FIRST = 0;
const MID = 1;
const UNSOLVED = 2;
const SOLVED = 3;
const FAILED = 4;
const PARTIAL = 5;
const UNDELIVERED = 6;
const UNSOLVED_UNDELIVERED = 7;
const SOLVED_UNDELIVERED = 8;
const NONE = new Int32Array(0);
const NO_TEXTS: readonly string[] = [];

export function packEvents(events: readonly EnvEvent[]): EventBatch {
  if (events.length <= FEW) {
    const few = packFewObservations(events);
    if (few) return few;
  }
  const heads = new Int32Array(5 * events.length);
  const numbers = new Float64Array(2 * events.length);
  const observations: string[] = [];
  const newActions: string[] = [];
  const failures: Failed[] = [];
  let total = 0;
  for (const event of events) if (event.type === 'observed') total += event.actions.length;
  const actions = total === 0 ? NONE : new Int32Array(total);
  let filled = 0;
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const at = 5 * i;
    heads[at + 1] = event.episode;
    if (event.type === 'failed') {
      heads[at] = FAILED;
      failures.push(event);
      continue;
    }
    const { step } = event;
    heads[at] = kindOf(step);
    heads[at + 2] = event.turn;
    heads[at + 3] = event.actions.length;
    heads[at + 4] = event.newActions.length;
    numbers[2 * i] = step.kind === 'first' ? 0 : step.reward;
    numbers[2 * i + 1] = event.envMs;
    observations.push(step.observation);
    actions.set(event.actions, filled);
    filled += event.actions.length;
    for (const text of event.newActions) newActions.push(text);
  }
  return { heads, numbers, observations, actions, newActions, failures };
}

export function unpackEvents(batch: EventBatch): EnvEvent[] {
  const out: EnvEvent[] = [];
  if (isPlain(batch)) {
    for (let at = 0; at < batch.length; at += 6) {
      const number = (i: number) => batch[at + i] as number;
      const step = stepOf(number(0), batch[at + 5] as string, number(3));
      const [episode, turn, envMs] = [number(1), number(2), number(4)];
      out.push({ type: 'observed', episode, turn, step, actions: NONE, newActions: NO_TEXTS, envMs });
    }
    return out;
  }
  const { heads, numbers, observations, actions, newActions, failures } = batch;
  let observation = 0;
  let action = 0;
  let text = 0;
  let failure = 0;
  for (let at = 0, i = 0; at < heads.length; at += 5, i++) {
    const kind = heads[at]!;
    if (kind === FAILED) {
      out.push(failures[failure++]!);
      continue;
    }
    const listed = heads[at + 3]!;
    const added = heads[at + 4]!;
    out.push({
      type: 'observed',
      episode: heads[at + 1]!,
      turn: heads[at + 2]!,
      step: stepOf(kind, observations[observation++]!, numbers[2 * i]!),
      // A copy: a view would carry the whole batch along wherever it is sent next.
      actions: listed === 0 ? NONE : actions.slice(action, (action += listed)),
      newActions: added === 0 ? [] : newActions.slice(text, (text += added)),
      envMs: numbers[2 * i + 1]!,
    });
  }
  return out;
}

/** Characters of observations and new actions up to which events travel as one message. */
const CHARS_PER_MESSAGE = 2 ** 22;
/** Most events of one message. */
const EVENTS_PER_MESSAGE = 2 ** 14;

/** Cuts events, in order, into messages of a size that `readEvents` takes. One long event is a message of its own. */
export function* portions(events: readonly EnvEvent[]): Generator<readonly EnvEvent[]> {
  let from = 0;
  let chars = 0;
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    if (event.type === 'observed') {
      chars += event.step.observation.length;
      for (const text of event.newActions) chars += text.length;
    }
    if (chars < CHARS_PER_MESSAGE && i - from < EVENTS_PER_MESSAGE - 1) continue;
    yield events.slice(from, i + 1);
    from = i + 1;
    chars = 0;
  }
  if (from === 0) yield events;
  else if (from < events.length) yield events.slice(from);
}

/**
 * Reads a batch that came out of a host, trusting nothing: env code shares its process. What an event means for its
 * episode (bounds of the world, indices into the table of actions) is checked where the episode is known.
 * @returns undefined for anything but a batch of well-formed events
 */
export function readEvents(batch: unknown): EnvEvent[] | undefined {
  try {
    if (!isBatch(batch)) return undefined;
    const events = unpackEvents(batch);
    return events.every(isEvent) ? events.map(plain) : undefined;
  } catch {
    return undefined;
  }
}

/** Checks sizes before anything is made of them: an array may state a length of four billion and hold nothing. */
function isBatch(batch: unknown): batch is EventBatch {
  if (Array.isArray(batch)) {
    if (batch.length === 0 || batch.length % 6 !== 0 || batch.length > 6 * FEW) return false;
    return batch.every((kind, at) => at % 6 !== 0 || (isKind(kind) && kind !== FAILED));
  }
  const { heads, numbers, observations, actions, newActions, failures } = batch as EventColumns;
  if (!(heads instanceof Int32Array && numbers instanceof Float64Array && actions instanceof Int32Array)) return false;
  const count = heads.length / 5;
  if (!Number.isInteger(count) || count > EVENTS_PER_MESSAGE || numbers.length !== 2 * count) return false;
  if (!(isDense(failures, 'object') && isDense(observations, 'string') && isDense(newActions, 'string'))) return false;
  let [failed, listed, added] = [0, 0, 0];
  for (let at = 0; at < heads.length; at += 5) {
    if (!isKind(heads[at])) return false;
    if (heads[at] === FAILED) {
      failed++;
      continue;
    }
    const [some, more] = [heads[at + 3]!, heads[at + 4]!];
    if (some < 0 || more < 0) return false;
    listed += some;
    added += more;
  }
  if (failures.length !== failed || observations.length !== count - failed) return false;
  return listed === actions.length && added === newActions.length;
}

function isKind(kind: unknown): boolean {
  return typeof kind === 'number' && Number.isInteger(kind) && kind >= FIRST && kind <= SOLVED_UNDELIVERED;
}

function isDense(list: readonly unknown[], type: 'string' | 'object'): boolean {
  if (!Array.isArray(list)) return false;
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== type) return false; // a hole ends it at once
  return true;
}

/** Characters of a failure's message that a host may send; `messageOf` keeps fewer. */
const MAX_MESSAGE = 10_000;

function isEvent(event: EnvEvent): boolean {
  if (event.type === 'failed') {
    const { episode, failure } = event;
    const { cause, where, message } = failure;
    const isDescribed =
      typeof where === 'string' && typeof message === 'string' && where.length + message.length < MAX_MESSAGE;
    return Number.isInteger(episode) && FAILURE_CAUSES.includes(cause) && isDescribed;
  }
  const { episode, turn, step, envMs } = event;
  return (
    event.type === 'observed' &&
    Number.isInteger(episode) &&
    Number.isInteger(turn) &&
    Number.isFinite(envMs) &&
    typeof step.observation === 'string' &&
    (step.kind === 'first' || Number.isFinite(step.reward))
  );
}

/** Failure without what else the host may have put there. */
function plain(event: EnvEvent): EnvEvent {
  if (event.type === 'observed') return event;
  const { episode, failure } = event;
  const { cause, where, message } = failure;
  return { type: 'failed', episode, failure: { cause, where, message } };
}

function isPlain(batch: CommandBatch | EventBatch): batch is readonly (number | string)[] {
  return Array.isArray(batch);
}

/**
 * Packs steps as a plain array.
 * @returns undefined where there are other commands than steps
 */
function packFewSteps(commands: readonly EnvCommand[]): FewSteps | undefined {
  const out: (number | string)[] = [];
  for (const command of commands) {
    if (command.type !== 'step') return undefined;
    out.push(command.episode, command.turn, command.action);
  }
  return out;
}

/**
 * Packs observations as a plain array.
 * @returns undefined where an episode failed or an event lists actions
 */
function packFewObservations(events: readonly EnvEvent[]): FewObservations | undefined {
  const out: (number | string)[] = [];
  for (const event of events) {
    if (event.type === 'failed' || event.actions.length > 0 || event.newActions.length > 0) return undefined;
    const { step } = event;
    const reward = step.kind === 'first' ? 0 : step.reward;
    out.push(kindOf(step), event.episode, event.turn, reward, event.envMs, step.observation);
  }
  return out;
}

function kindOf(step: First | EnvStep): number {
  if (step.kind === 'first') return FIRST;
  const { undelivered } = step;
  if (step.kind === 'mid') return undelivered ? UNDELIVERED : step.partial ? PARTIAL : MID;
  if (undelivered) return step.success ? SOLVED_UNDELIVERED : UNSOLVED_UNDELIVERED;
  return step.success ? SOLVED : UNSOLVED;
}

function stepOf(kind: number, observation: string, reward: number): First | EnvStep {
  if (kind === FIRST) return { kind: 'first', observation };
  if (kind === MID) return { kind: 'mid', observation, reward };
  if (kind === PARTIAL) return { kind: 'mid', observation, reward, partial: true };
  if (kind === UNDELIVERED) return { kind: 'mid', observation, reward, partial: true, undelivered: true };
  if (kind === SOLVED_UNDELIVERED || kind === UNSOLVED_UNDELIVERED) {
    return { kind: 'terminated', observation, reward, success: kind === SOLVED_UNDELIVERED, undelivered: true };
  }
  return { kind: 'terminated', observation, reward, success: kind === SOLVED };
}
