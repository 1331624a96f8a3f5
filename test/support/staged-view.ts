/** The staged world as a toy, with an append view of its own: what is painted, in few tokens. */
import type { Env, EnvOptions } from '../../src/core/env.ts';
import type { AppendView } from '../../src/core/view.ts';
import { createEnv as createStaged, type Paint, start } from './staged-env.ts';

export { start };

export function createEnv(options: EnvOptions = {}, resources?: Paint): Env {
  return { ...createStaged(options, resources), id: 'toy' };
}

const painted = (observation: string) => observation.replace(/^painted: (.*), by .*$/, '$1');

export const view: AppendView = {
  id: 'staged@1',
  mode: 'append',
  lexicon: [],
  words: ['paint', 'press', 'wait', 'door', 'wall', 'roof', 'nothing'],
  prompt: ({ observation }) => ({ segments: [painted(observation)], focus: '', mentions: () => [] }),
  turn: ({ observation }) => painted(observation),
};
