/** SciWorld as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { SciWorld } from './env.ts';
import { rulesOf } from './options.ts';
import { oracle } from './oracle.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { SciWorld, SciWorldSession } from './env.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export { view } from './view.ts';

/**
 * @param options `fidelity`: `corrected` (default) or `original`; `tasks`: `agentgym` (default) or `scienceworld`; `failure`: `keeps` (default) or `forfeits`;
 * `simplifications`: a list of ScienceWorld's, see README.md
 * @throws {UserError} BAD_CONFIG for an unknown option or value
 */
export function createEnv(options: EnvOptions = {}): SciWorld {
  return new SciWorld(rulesOf(options));
}

/** The scripted solver under these options. */
export function createOracle(options: EnvOptions = {}): Oracle {
  return oracle(createEnv(options));
}
