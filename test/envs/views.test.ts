import { afterAll, describe, expect, it } from 'vitest';
import { registry } from '../../envs/registry.ts';
import { Rng } from '../../src/core/rng.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import type { Transcript } from '../../src/text/reading/transcript.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';
import { loadWorld, openWorld } from '../../src/world/open-world.ts';

/** What the local policy reads of each world is made of whole words: a text spelt in bytes would cost several times more. */
const worlds = await Promise.all(
  Object.entries(registry).map(async ([id, url]) => ({ id, world: await loadWorld(localUrl(url), id) })),
);
// Worlds of tools are read through one view for any tools, which cannot know their words.
const viewed = worlds.filter(({ world }) => world.view && world.createEnv && !world.tools);
const opened = await Promise.all(
  viewed.map(async ({ id, world }) => ({ id, view: world.view, ...(await openWorld(world, id, {}, 'views')) })),
);
afterAll(() => Promise.all(opened.map(({ dispose }) => dispose())));

describe.each(opened)('the view of $id', ({ id, env, view }) => {
  const codec = new ViewCodec(view!);
  const inBytes = (ids: Iterable<number>) => [...ids].filter((id) => id >= 4 && id < 260);
  const expectWords = (text: string, ids: Iterable<number>) => expect([text, ...inBytes(ids)]).toEqual([text]);

  it('spells nothing in bytes that a random player meets', async () => {
    const rng = Rng.fromSeed(5);
    for (let n = 0; n < 40; n++) {
      const session = await env.open({ env: id, index: rng.pick(env.tasks.split('train')), seed: n });
      let transcript: Transcript | undefined;
      const texts = new Set<string>();
      for (let t = 0; t < 15; t++) {
        const actions = session.actions();
        const listed = { actions: Int32Array.from(actions, (_, i) => i), newActions: actions };
        transcript ??= codec.open({ observation: session.first.observation, ...listed });
        for (const text of actions) texts.add(transcript.candidate(text));
        const action = rng.pick(actions);
        const step = await session.step(action);
        if (step.kind === 'terminated') break;
        transcript.observe(action, { observation: step.observation, ...listed });
        const { tokens } = transcript.prompt;
        expectWords(codec.decode(tokens), tokens);
      }
      for (const text of texts) expectWords(text, codec.spell(text));
    }
  });
});
