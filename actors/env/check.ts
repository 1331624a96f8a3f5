/**
 * Checks an environment's answers at the boundary. An env is foreign code: each value is read once, its type checked
 * with `typeof`, and copied into a plain one; everything behind works on the copy.
 */
import { ACTION_LIMITS, type Env, type EnvStep, type First, MAX_PARTIAL_STEPS } from '../../src/core/env.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { isUnanswered } from '../../src/http/retry.ts';
import type { Observed } from './protocol.ts';

/** Breach of the environment's contract, with the cause and message of the failure. */
export class BrokenContract extends Error {
  readonly failureCause: FailureCause;
  constructor(failureCause: FailureCause, message: string) {
    super(message);
    this.failureCause = failureCause;
  }
}

/** Bounds that an env states of itself, read once when it is loaded. */
export interface StepBounds {
  readonly minReward: number;
  readonly maxReward: number;
  readonly maxObservationChars: number;
}

/**
 * Bounds that the env states.
 * @throws {BrokenContract} where it states none
 */
export function boundsOf(env: Env): StepBounds {
  const [minReward, maxReward] = env.rewardRange;
  const { maxObservationChars } = env;
  for (const bound of [minReward, maxReward, maxObservationChars]) {
    if (typeof bound === 'number' && Number.isFinite(bound)) continue;
    throw new BrokenContract('protocol', 'an env must state finite `rewardRange` and `maxObservationChars`');
  }
  return { minReward, maxReward, maxObservationChars };
}

/** Bounds that the env states; undefined where it states none, which is reported when it is opened. */
export function readStatedBounds(env: Env): StepBounds | undefined {
  try {
    return boundsOf(env);
  } catch {
    return undefined;
  }
}

/** True for bounds as `boundsOf` makes them; of any value. */
export function isBounds(value: unknown): value is StepBounds {
  const { minReward, maxReward, maxObservationChars } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return [minReward, maxReward, maxObservationChars].every(Number.isFinite);
}

/**
 * Copies an env's answer to `open` (`opening`) or to an action. What else the answer holds is not looked at.
 * @throws {BrokenContract} unless it is such an answer
 */
export function copyStep(bounds: StepBounds, step: unknown, opening: boolean): First | EnvStep {
  if (typeof step !== 'object' || step === null)
    throw createContractError(step, `expected a time step, got ${typeof step}`);
  const { kind, observation: text, reward, success, partial, undelivered } = step as Readonly<Record<string, unknown>>;
  if (typeof text !== 'string') throw createContractError(step, `observation must be a string, got ${typeof text}`);
  const observation = text.toWellFormed(); // half a surrogate pair is a text in no encoding
  if (observation.length > bounds.maxObservationChars) {
    const message = `observation has ${observation.length} characters, the env states at most ${bounds.maxObservationChars}`;
    throw new BrokenContract('oversized', message);
  }
  if (opening ? kind !== 'first' : kind !== 'mid' && kind !== 'terminated') {
    const got = typeof kind === 'string' ? kind.slice(0, 40) : typeof kind;
    throw new BrokenContract('protocol', `an env must not answer ${opening ? 'open' : 'an action'} with ${got}`);
  }
  if (kind === 'first') return { kind, observation };
  if (typeof reward !== 'number') {
    throw new BrokenContract('protocol', `reward must be a number, got ${reward === null ? 'null' : typeof reward}`);
  }
  if (!(reward >= bounds.minReward && reward <= bounds.maxReward)) {
    const range = `[${bounds.minReward}, ${bounds.maxReward}]`;
    throw new BrokenContract('protocol', `reward ${reward} lies outside ${range}`);
  }
  if (partial !== undefined && partial !== true) {
    throw new BrokenContract('protocol', `partial must be true or absent, got ${typeof partial}`);
  }
  if (undelivered !== undefined && undelivered !== true) {
    throw new BrokenContract('protocol', `undelivered must be true or absent, got ${typeof undelivered}`);
  }
  if (kind === 'mid') {
    if (!partial) {
      if (undelivered)
        throw new BrokenContract('protocol', 'an undelivered action has moved nothing: it is partial too');
      return { kind, observation, reward };
    }
    if (reward !== 0) throw new BrokenContract('protocol', `a partial step must pay 0, got ${reward}`);
    return undelivered ? { kind, observation, reward, partial, undelivered } : { kind, observation, reward, partial };
  }
  if (partial) throw new BrokenContract('protocol', 'a partial step must not end the episode');
  if (typeof success !== 'boolean') {
    throw new BrokenContract('protocol', 'terminated without a boolean `success`');
  }
  return undelivered
    ? { kind: 'terminated', observation, reward, success, undelivered }
    : { kind: 'terminated', observation, reward, success };
}

/**
 * Counts partial steps in a row, `step` included.
 * @param inRow before it
 * @throws {BrokenContract} for one too many
 */
export function countPartial(inRow: number, step: First | EnvStep): number {
  if (step.kind !== 'mid' || !step.partial) return 0;
  if (step.undelivered) return inRow; // no stage: a client left
  if (inRow < MAX_PARTIAL_STEPS) return inRow + 1;
  const message = `more than ${MAX_PARTIAL_STEPS} stages of an action in a row: the world does not move`;
  throw new BrokenContract('protocol', message);
}

/**
 * Copies a list of actions.
 * @throws {BrokenContract} unless it is an array of strings within `ACTION_LIMITS`
 */
export function copyActions(listed: unknown): readonly string[] {
  if (!Array.isArray(listed)) throw new BrokenContract('protocol', 'actions() must return an array');
  const { length } = listed;
  const { count, chars, totalChars } = ACTION_LIMITS;
  if (!(Number.isInteger(length) && length >= 0 && length <= count)) {
    throw new BrokenContract('oversized', `actions() listed ${messageOf(length)} texts, at most ${count} are taken`);
  }
  const copy: string[] = new Array(length);
  let total = 0;
  for (let i = 0; i < length; i++) {
    const text: unknown = listed[i];
    if (typeof text !== 'string') throw new BrokenContract('protocol', `action ${i} is not a string`);
    total += text.length;
    if (text.length > chars || total > totalChars) {
      const much = text.length > chars ? `action ${i} has ${text.length} characters` : `${total} characters in all`;
      throw new BrokenContract('oversized', `actions(): ${much}; at most ${chars} each and ${totalChars} in all`);
    }
    copy[i] = text.toWellFormed();
  }
  return copy;
}

/**
 * Checks an answer once more where its host cannot be believed, which shares its process with env code.
 * @param listed texts in the episode's action table so far
 * @param bounds of the env, where it states any
 * @returns false for an answer that `copyStep` and `copyActions` would not have let pass
 */
export function isWithin({ step, actions, newActions }: Observed, listed: number, bounds?: StepBounds): boolean {
  const texts = listed + newActions.length;
  if (actions.length > ACTION_LIMITS.count) return false;
  for (const index of actions) if (!(index >= 0 && index < texts)) return false;
  for (const { length } of newActions) if (length > ACTION_LIMITS.chars) return false;
  if (!bounds) return true;
  const { minReward, maxReward, maxObservationChars } = bounds;
  if (step.observation.length > maxObservationChars) return false;
  return step.kind === 'first' || (step.reward >= minReward && step.reward <= maxReward);
}

/** Failure that something thrown by an env stands for; of any value, and without throwing itself. */
export function failureOf(thrown: unknown): readonly [cause: FailureCause, message: string] {
  try {
    if (thrown instanceof BrokenContract) return [thrown.failureCause, messageOf(thrown)];
    if (isUnanswered(thrown)) return ['unreachable', messageOf(thrown)];
  } catch {} // a proxy need not reveal its prototype
  return ['threw', messageOf(thrown)];
}

function checkClonable(value: unknown): void {
  try {
    structuredClone(value);
  } catch (error) {
    throw new BrokenContract('unclonable', messageOf(error));
  }
}

function createContractError(value: unknown, message: string): BrokenContract {
  try {
    checkClonable(value);
  } catch (error) {
    return error as BrokenContract;
  }
  return new BrokenContract('protocol', message);
}
