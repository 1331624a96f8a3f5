import { describe, expect, it } from 'vitest';
import { registry } from '../../envs/registry.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Rendered, SeenTurn } from '../../src/core/view.ts';
import { readRendered } from '../../src/policy/reading.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import { localUrl } from '../../src/runtime/thread.ts';
import { loadWorld } from '../../src/world/open-world.ts';

/** What the small policy reads of each world is made of whole words: a text spelt in bytes would cost several times more. */
const worlds = await Promise.all(
  Object.entries(registry).map(async ([id, url]) => ({ id, ...(await loadWorld(localUrl(url), id)) })),
);

describe.each(worlds.filter(({ view }) => view))('the view of $id', ({ id, createEnv, view: own }) => {
  const view = own!;
  const env = createEnv!();
  const tokenizer = new Tokenizer(view);
  const spelt = (rendered: Rendered) =>
    [...readRendered(tokenizer, rendered).tokens].filter((token) => token >= 4 && token < 260);

  it('spells nothing in bytes that a random player meets', async () => {
    const rng = Rng.fromSeed(5);
    for (let n = 0; n < 40; n++) {
      const session = await env.open({ env: id, index: rng.pick(env.tasks.split('train')), seed: n });
      const turns: SeenTurn[] = [];
      const texts = new Set<string>();
      if (view.mode === 'append') expect(spelt(view.prompt(session.first))).toEqual([]);
      for (let t = 0; t < 15; t++) {
        const actions = session.actions();
        for (const text of actions) texts.add(text);
        const action = rng.pick(actions);
        const step = await session.step(action);
        turns.push({ action, observation: step.observation });
        if (step.kind === 'terminated') break;
        if (view.mode === 'window') {
          const rendered = view.render(session.first, turns);
          expect([tokenizer.decode(readRendered(tokenizer, rendered).tokens), ...spelt(rendered)]).toHaveLength(1);
        }
      }
      for (const text of texts)
        expect([text, ...tokenizer.encode(text)].filter((x) => typeof x === 'number' && x < 260)).toEqual([]);
    }
  });
});
