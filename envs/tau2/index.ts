/** τ²-bench as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import type { StartContext } from '../../src/core/world.ts';
import { Tau2 } from './env.ts';
import { readOptions } from './options.ts';
import { oracle } from './oracle.ts';
import { openResources, type Tau2Resources } from './resources.ts';

export { Tau2 } from './env.ts';
export { parity } from './parity.ts';
export { view } from './view.ts';

/** A world of tools: its observations are model calls, its actions replies. */
export const tools = true;

/**
 * Creates the world.
 * @param options `domain`, `user`, `judge`, `split`, `maxSteps`, `maxErrors`, `userTurns`: see README.md
 * @param resources models of the user and the judge, where the options name some
 * @throws {UserError} for an unknown option or value
 */
export function createEnv(options: EnvOptions = {}, resources?: Tau2Resources): Tau2 {
  return new Tau2(readOptions(options), resources);
}

/** Opens the models of the user and the judge. @throws {UserError} BAD_CONFIG where they cannot be reached from here */
export function start(options: EnvOptions, context: StartContext): Promise<Tau2Resources> {
  return openResources(readOptions(options), context);
}

/** Creates the scripted solver, which makes the task's gold actions. */
export function createOracle(options: EnvOptions = {}): Oracle {
  return oracle(readOptions(options));
}
