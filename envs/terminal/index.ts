/** Terminal as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import type { Resources } from '../../src/core/world.ts';
import { Terminal } from './env.ts';
import { loadJustBash } from './just-bash.ts';
import { readOptions } from './options.ts';
import { oracle } from './oracle.ts';

export { Terminal } from './env.ts';
export { view } from './view.ts';

/** A world of tools: its observations are model calls, its actions replies. */
export const tools = true;

/**
 * Loads the shell, once a host.
 * @throws {UserError} MISSING_ENGINE where just-bash is not installed, or in another version
 */
export function start(): Resources {
  loadJustBash();
  return { dispose() {} };
}

/**
 * Creates the world.
 * @param options `tools`, `heldOut`, `maxLevel`, `maxCalls`, `folder`: see README.md
 * @throws {UserError} for an unknown option or value
 */
export function createEnv(options: EnvOptions = {}): Terminal {
  return new Terminal(readOptions(options));
}

/** Creates the scripted solver, which makes the calls of each task's solution. */
export function createOracle(options: EnvOptions = {}): Oracle {
  return oracle(readOptions(options));
}
