/** The toy worlds read through a window: every turn shows the opening and the last turn anew. */
import type { WindowView } from '../../src/core/view.ts';
import { view as append } from './toy-worlds.ts';

export { createEnv } from './toy-worlds.ts';

export const view: WindowView = {
  id: 'toy-window@1',
  mode: 'window',
  lexicon: append.lexicon,
  words: append.words,
  render(first, turns) {
    const last = turns.at(-1);
    return { segments: [first.observation, ...(last ? [` ${last.observation}`] : [])], focus: '', mentions: () => [] };
  },
};
