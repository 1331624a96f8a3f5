/** τ²-bench as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { Tau2 } from './env.ts';
import { readOptions } from './options.ts';
import { oracle } from './oracle.ts';

export { Tau2 } from './env.ts';
export { parity } from './parity.ts';
export { view } from './view.ts';

/** A world of tools: its observations are model calls, its actions replies. */
export const tools = true;

/**
 * Creates the world.
 * @param options `domain`, `user`, `split`, `maxSteps`, `maxErrors`, `userTurns`: see README.md
 * @throws {UserError} for an unknown option or value
 */
export function createEnv(options: EnvOptions = {}): Tau2 {
  return new Tau2(readOptions(options));
}

/** Creates the scripted solver, which makes the task's gold actions. */
export function createOracle(options: EnvOptions = {}): Oracle {
  return oracle(readOptions(options));
}
