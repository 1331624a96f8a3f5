/** World prompt: instructions of a world for language models. */
import type { EnvOptions } from '../../core/env.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { World } from '../../core/world.ts';

/**
 * Prompt of a world under its options; of a world without one, made from its description.
 * @param description of the env, one sentence
 */
export function worldPrompt(
  { prompt, tools }: Pick<World, 'prompt' | 'tools'>,
  options: EnvOptions,
  description: string,
): WorldPrompt {
  const own = typeof prompt === 'function' ? prompt(options) : prompt;
  return { ...(own ?? { role: description, forms: [], hints: [], format: 'react' }), ...(tools ? { tools } : {}) };
}
