/** TextCraft as the framework loads it. */

import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { TextCraft, type TextCraftOptions } from './env.ts';
import { oracle } from './oracle.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { TextCraft, TextCraftSession } from './env.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export type { Start } from './text.ts';
export { view } from './view.ts';

/** Values that each option may have, the default first. */
const CHOICES: { readonly [K in keyof TextCraftOptions]: readonly TextCraftOptions[K][] } = {
  fidelity: ['corrected', 'original'],
  order: ['sorted', 'agenttraj'],
  names: ['true', 'permuted'],
  recipes: ['true', 'recombined', 'mixed'],
  amounts: ['named', 'powers'],
  listInventory: [true, false],
};

/**
 * Creates the world.
 * @param options `fidelity`, `order`, `names`, `recipes`, `amounts`, `listInventory`: see README.md
 * @throws {UserError} for an unknown option or value
 */
export function createEnv(options: EnvOptions = {}): TextCraft {
  return new TextCraft(checkOptions(options));
}

function checkOptions(options: EnvOptions): Partial<TextCraftOptions> {
  for (const [key, value] of Object.entries(options)) {
    const choices: readonly unknown[] | undefined = Object.hasOwn(CHOICES, key)
      ? CHOICES[key as keyof TextCraftOptions]
      : undefined;
    if (!choices) {
      const known = Object.keys(CHOICES).join(', ');
      throw new UserError('BAD_CONFIG', `textcraft has no option "${key}"; it has: ${known}`);
    }
    if (choices.includes(value)) continue;
    const expected = choices.map((choice) => JSON.stringify(choice)).join(' or ');
    throw new UserError('BAD_CONFIG', `textcraft: ${key} must be ${expected}, got ${describeValue(value)}`);
  }
  return options as Partial<TextCraftOptions>;
}

/** Creates the scripted solver, which knows the rule book that holds under the task's seed. */
export function createOracle(options: EnvOptions = {}): Oracle {
  const env = createEnv(options);
  return oracle((seed) => env.treeUnder(seed), env.amounts);
}
