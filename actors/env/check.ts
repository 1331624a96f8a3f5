/** Whether what an env returned keeps its contract. An env is somebody else's code: nothing it returns is trusted. */
import type { Env, EnvStep, First } from '../../src/core/env.ts';
import type { FailureCause } from '../../src/core/failure.ts';

/** The contract broken, as a failure's cause and words. */
export class BrokenContract extends Error {
  readonly failureCause: FailureCause;
  constructor(failureCause: FailureCause, message: string) {
    super(message);
    this.failureCause = failureCause;
  }
}

const KEYS: ReadonlySet<string> = new Set(['kind', 'observation', 'reward', 'success']);

/** @throws {BrokenContract} unless `step` is what an env may answer to `open` (`opening`) or to an action */
export function checkStep(env: Env, step: First | EnvStep, opening: boolean): void {
  if (typeof step !== 'object' || step === null) throw broken(step, `expected a time step, got ${typeof step}`);
  const { kind, observation } = step;
  if (typeof observation !== 'string') throw broken(step, `observation must be a string, got ${typeof observation}`);
  if (observation.length > env.maxObservationChars) {
    const message = `observation has ${observation.length} characters, the env states at most ${env.maxObservationChars}`;
    throw new BrokenContract('oversized', message);
  }
  for (const key in step) if (!KEYS.has(key)) checkClonable(step);
  if (opening ? kind !== 'first' : kind !== 'mid' && kind !== 'terminated') {
    throw new BrokenContract(
      'protocol',
      `an env must not answer ${opening ? 'open' : 'an action'} with ${String(kind)}`,
    );
  }
  if (step.kind === 'first') return;
  const { reward } = step;
  const [least, most] = env.rewardRange;
  if (!(reward >= least && reward <= most)) {
    throw new BrokenContract('protocol', `reward ${String(reward)} lies outside [${least}, ${most}]`);
  }
  if (step.kind === 'terminated' && typeof step.success !== 'boolean') {
    throw new BrokenContract('protocol', 'terminated without a boolean `success`');
  }
}

function checkClonable(value: unknown): void {
  try {
    structuredClone(value);
  } catch (error) {
    throw new BrokenContract('unclonable', (error as Error).message);
  }
}

function broken(value: unknown, message: string): BrokenContract {
  try {
    checkClonable(value);
  } catch (error) {
    return error as BrokenContract;
  }
  return new BrokenContract('protocol', message);
}
