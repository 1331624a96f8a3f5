/** Reading of several worlds: each by its own view, in one vocabulary that has the words of all. */
import { describe, expect, it } from 'vitest';
import * as babyai from '../../../envs/babyai/index.ts';
import * as sciworld from '../../../envs/sciworld/index.ts';
import * as searchqa from '../../../envs/searchqa/index.ts';
import * as textcraft from '../../../envs/textcraft/index.ts';
import type { View } from '../../../src/core/view.ts';
import { codecOf } from '../../../src/text/reading/codec-of.ts';
import { defaultView } from '../../../src/text/reading/default-view.ts';
import { advanceTranscript, replayTurns } from '../../../src/text/reading/replay-turns.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { loadReading, modulesOf, urlOfWorlds } from '../../../src/world/open-world.ts';
import { trajectoryOf } from '../../support/traces.ts';

const views = new Map<string, View>([
  ['textcraft', textcraft.view],
  ['babyai', babyai.view],
  ['sciworld', sciworld.view],
  ['searchqa', searchqa.view],
]);
const all = new ViewCodec(views);

const toy = (name: string, words: readonly string[], mode: 'append' | 'window' = 'append'): View => {
  const base = { id: `${name}@1`, lexicon: [], words };
  return mode === 'append'
    ? {
        ...base,
        mode,
        prompt: ({ observation }) => ({ segments: [name, ` ${observation}`], focus: name, mentions: () => [0] }),
        turn: ({ action }) => ` ${action} ${name}`,
        candidate: (action) => `${name} ${action}`,
      }
    : {
        ...base,
        mode,
        render: (_, turns) => ({ segments: [`${name} ${turns.length}`], focus: '', mentions: () => [] }),
      };
};

describe('a codec of several worlds', () => {
  it('has the words of every world, once each, and reads what each of them spells', () => {
    const alone = [...views.values()].map((view) => new ViewCodec(view));
    expect(all.vocabSize).toBeGreaterThan(Math.max(...alone.map(({ vocabSize }) => vocabSize)));
    expect(all.vocabSize).toBeLessThan(alone.reduce((sum, { vocabSize }) => sum + vocabSize, 0));
    for (const view of views.values()) {
      for (const phrase of [...view.lexicon, ...view.words]) {
        expect(all.spell(phrase), phrase).toHaveLength(1);
        expect(all.decode(all.spell(phrase))).toBe(phrase);
      }
    }
    expect(all.id).toBe([...views].map(([name, { id }]) => `${name}=${id}`).join(' '));
  });

  it('reads every episode by the view of its own world: a swap of two is seen', () => {
    const codec = new ViewCodec(
      new Map([
        ['a', toy('left', ['left', 'look', 'go'])],
        ['b', toy('right', ['right'])],
      ]),
    );
    const swapped = new ViewCodec(
      new Map([
        ['a', toy('right', ['right'])],
        ['b', toy('left', ['left', 'look', 'go'])],
      ]),
    );
    const read = (one: ViewCodec, env: string) => {
      const transcript = replayTurns(one, trajectoryOf({ env, actions: ['look', 'go'], observation: 'here' }));
      return [one.decode(transcript.prompt.tokens), one.decode(transcript.tokens), transcript.candidate('go')];
    };
    expect(read(codec, 'a')).toEqual(['left here', ' look left go left', 'left go']);
    expect(read(codec, 'b')).toEqual(['right here', ' look right go right', 'right go']);
    expect(read(swapped, 'a')).not.toEqual(read(codec, 'a'));
    // Prompts are kept by their opening: that of one world is not another's.
    expect(read(codec, 'a')).toEqual(['left here', ' look left go left', 'left go']);
  });

  it('a running episode is opened by its world, with and without a history', () => {
    const codec = new ViewCodec(
      new Map([
        ['a', toy('left', ['left'])],
        ['b', toy('right', ['right'])],
      ]),
    );
    const now = { turn: 0, observation: 'x', actions: new Int32Array(0), newActions: [] };
    expect(codec.decode(advanceTranscript(codec, undefined, { ...now, world: 'b' }).prompt.tokens)).toBe('right x');
    const history = [{ observation: 'x', action: 'go' }];
    const again = advanceTranscript(codec, undefined, { ...now, turn: 1, history, lastAction: 'go', world: 'a' });
    expect(codec.decode(again.prompt.tokens)).toBe('left x');
    expect(() => advanceTranscript(codec, undefined, now)).toThrow(/no world named among a, b/);
    expect(() => codec.open(now, 'c')).toThrow(/no world c among a, b/);
  });

  it('is rendered anew only where every view is', () => {
    const of = (...modes: ('append' | 'window')[]) =>
      new ViewCodec(new Map(modes.map((mode, i) => [`w${i}`, toy(`w${i}`, [], mode)]))).rendersAnew;
    expect([of('window', 'window'), of('append', 'window'), of('append', 'append')]).toEqual([true, false, false]);
  });

  it('is the same in every thread: opened from the URL of the modules', async () => {
    const modules = new Map(
      ['textcraft', 'babyai', 'sciworld', 'searchqa'].map((name) => [
        name,
        new URL(`../../../envs/${name}/index.ts`, import.meta.url),
      ]),
    );
    const url = new URL(urlOfWorlds(modules).href);
    expect(modulesOf(url)).toEqual(modules);
    const codec = codecOf(await loadReading(url));
    expect([codec.id, codec.hash, codec.vocabSize]).toEqual([all.id, all.hash, all.vocabSize]);
    expect(modulesOf(new URL('file:///a.js'))).toBeUndefined();
  });

  it('a world without a view has the default one', () => {
    const codec = codecOf({
      views: new Map([
        ['a', undefined],
        ['b', babyai.view],
      ]),
    });
    expect(codec.id).toBe(`a=${defaultView.id} b=${babyai.view.id}`);
  });

  it('of one view it is what it was', () => {
    const view = toy('left', ['left', 'here']);
    const one = new ViewCodec(view);
    expect([one.id, one.vocabSize]).toEqual([view.id, codecOf({ view }).vocabSize]);
    const first = { observation: 'here', actions: new Int32Array(0), newActions: [] };
    expect([...one.open(first, 'whatever').prompt.tokens]).toEqual([...one.open(first).prompt.tokens]);
  });
});
