/** TextCraft as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { TextCraft } from './env.ts';
import { oracle } from './oracle.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { TextCraft, TextCraftSession } from './env.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export type { Start } from './text.ts';
export { view } from './view.ts';

/**
 * @param options `fidelity`: `corrected` (default) or `original`, see README.md
 * @throws {UserError} for an option or a value that is none of these
 */
export function createEnv(options: EnvOptions = {}): TextCraft {
  for (const key of Object.keys(options)) {
    if (key !== 'fidelity') throw new UserError('BAD_CONFIG', `textcraft has no option "${key}"; it has: fidelity`);
  }
  const { fidelity = 'corrected' } = options;
  if (fidelity !== 'corrected' && fidelity !== 'original') {
    const got = JSON.stringify(fidelity);
    throw new UserError('BAD_CONFIG', `textcraft: fidelity must be "corrected" or "original", got ${got}`);
  }
  return new TextCraft(fidelity);
}

/** The scripted solver; the same for every option. */
export function createOracle(_options?: EnvOptions): Oracle {
  return oracle;
}
