/**
 * Batches in columns: a message costs about 15 µs however little it holds, and an object inside it about 2 µs, so a
 * step of 1 µs must not be an object of its own. Numbers go in typed arrays, texts in one array each.
 */
import type { EnvStep, First } from '../../src/core/env.ts';
import type { Close, EnvCommand, EnvEvent, Failed, Open, Step } from './protocol.ts';

/** Commands in order. `open`s are few and stay objects. */
export interface CommandBatch {
  /** [N, 3]: kind (0 open, 1 step, 2 close), episode, turn */
  readonly heads: Int32Array;
  /** Actions of the steps, in order. */
  readonly actions: readonly string[];
  readonly opens: readonly Open[];
}

/** Events in order. */
export interface EventBatch {
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

export function unpackCommands({ heads, actions, opens }: CommandBatch): EnvCommand[] {
  const out: EnvCommand[] = [];
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
const NONE = new Int32Array(0);

export function packEvents(events: readonly EnvEvent[]): EventBatch {
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
    heads[at] = step.kind === 'first' ? FIRST : step.kind === 'mid' ? MID : step.success ? SOLVED : UNSOLVED;
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
  const { heads, numbers, observations, actions, newActions, failures } = batch;
  const out: EnvEvent[] = [];
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

function stepOf(kind: number, observation: string, reward: number): First | EnvStep {
  if (kind === FIRST) return { kind: 'first', observation };
  if (kind === MID) return { kind: 'mid', observation, reward };
  return { kind: 'terminated', observation, reward, success: kind === SOLVED };
}
