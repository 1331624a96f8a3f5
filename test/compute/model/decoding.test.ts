import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { promptFeeds } from '../../../src/compute/model/feeds.ts';
import { forwardLogits } from '../../../src/compute/model/forward.ts';
import type { ParamSet } from '../../../src/compute/model/parameters.ts';
import { forwardGraph } from '../../../src/compute/model/programs.ts';
import { Rng } from '../../../src/core/rng.ts';
import { Decoder, type Piece, type Sequence } from './decoder.ts';
import { optionsConfig, plainConfig, randomParams, slidingConfig, VOCABULARY, weightFeeds } from './episodes.ts';
import { plainHidden, plainLogits } from './plain-model.ts';

const long = process.env.LONGPLAY_LONG === '1';

function randomSequences(seed: number, groups: number, members: number): Sequence[] {
  const rng = Rng.fromSeed(seed);
  const token = () => 4 + rng.int(VOCABULARY - 4);
  return Array.from({ length: groups }, () => ({
    prompt: Int32Array.from({ length: 1 + rng.int(9) }, token),
    focus: new Set([token(), token()]),
    members: Array.from({ length: 1 + rng.int(members) }, () => Array.from({ length: 1 + rng.int(8) }, token)),
  }));
}

describe.each([
  ['a public checkpoint', plainConfig],
  ['the local policy', optionsConfig],
  ['sliding windows and soft caps', slidingConfig],
  ['grouped queries', { ...optionsConfig, heads: 4, kvHeads: 2 }],
] as const)('decoding, %s', (_, config: ModelConfig) => {
  let engine: Engine;
  let decoder: Decoder;
  const params: ParamSet = randomParams(config, 5);
  beforeAll(async () => {
    engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    decoder = await Decoder.create(engine, config, params);
  });
  afterAll(() => engine.dispose());

  it('prefill and n decode steps give the logits of one forward pass, whatever shares the batch', {
    timeout: 120_000,
  }, async () => {
    const sample = fc.record({
      seed: fc.nat(),
      groups: fc.integer({ min: 1, max: 4 }),
      members: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(sample, async ({ seed, groups, members }) => {
        const sequences = randomSequences(seed, groups, members);
        const rng = Rng.fromSeed(seed + 1);
        const batch = await decoder.open(sequences);
        for (;;) {
          const pieces: Piece[] = [];
          sequences.forEach(({ members: all }, group) => {
            all.forEach((tokens, member) => {
              const left = tokens.length - batch.read(group, member);
              if (left > 0 && rng.float() < 0.7) pieces.push({ group, member, count: 1 + rng.int(Math.min(3, left)) });
            });
          });
          if (pieces.length === 0) {
            const unfinished = sequences.some((s, g) => s.members.some((t, m) => batch.read(g, m) < t.length));
            if (unfinished) continue;
            break;
          }
          const logits = await batch.step(pieces);
          pieces.forEach(({ group, member }, i) => {
            const { prompt, focus, members: all } = sequences[group]!;
            const tokens = [...prompt, ...all[member]!.slice(0, batch.read(group, member))];
            const hidden = plainHidden(config, params.values, { tokens, promptLength: prompt.length, focus });
            const want = plainLogits(config, params.values, hidden.at(-1)!);
            want.forEach((logit, id) => {
              if (!(Math.abs(logits[i]![id]! - logit) <= 1e-4))
                expect.fail(`logit ${logits[i]![id]}, expected ${logit}`);
            });
          });
        }
      }),
      { numRuns: long ? 60 : 6 },
    );
  });

  it('gives the same greedy tokens alone and inside a batch, near ties apart', { timeout: 120_000 }, async () => {
    const groups = long ? 24 : 6;
    const starts = randomSequences(11, groups, 1).map((s) => ({ ...s, members: [[s.prompt[0]!]] }));
    const decode = async (sequences: Sequence[], length: number): Promise<{ near: boolean[][] }> => {
      const batch = await decoder.open(sequences);
      const near: boolean[][] = sequences.map(() => []);
      for (let t = 0; t < length; t++) {
        const logits = await batch.step(sequences.map((_, group) => ({ group, member: 0, count: 1 })));
        logits.forEach((row, g) => {
          const order = [...row.keys()].sort((a, b) => row[b]! - row[a]!);
          near[g]!.push(row[order[0]!]! - row[order[1]!]! < 1e-5);
          sequences[g]!.members[0]!.push(order[0]!);
        });
      }
      return { near };
    };
    const together = starts.map((s) => ({ ...s, members: [[...s.members[0]!]] }));
    const { near } = await decode(together, 16);
    let ties = 0;
    for (const [g, start] of starts.entries()) {
      const alone = [{ ...start, members: [[...start.members[0]!]] }];
      await decode(alone, 16);
      const differs = alone[0]!.members[0]!.findIndex((id, t) => id !== together[g]!.members[0]![t]);
      if (differs === -1) continue;
      ties++;
      expect(near[g]![differs - 1], `sequence ${g} parts at token ${differs} without a tie`).toBe(true);
    }
    console.log(`greedy decoding: ${groups} sequences of 16 tokens, ${ties} parted at a near tie`);
  });
});

it('the forward program gives the logits of a plain computation', async () => {
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  for (const config of [plainConfig, optionsConfig, slidingConfig]) {
    const params = randomParams(config, 3);
    const sequences = randomSequences(3, 3, 1);
    const readings = sequences.map(({ prompt, focus }) => ({ tokens: prompt, focus }));
    const program = await engine.compile(forwardGraph(config));
    const feeds = promptFeeds(config, readings, Math.max(...readings.map(({ tokens }) => tokens.length)));
    const { logits } = await program.run({ ...weightFeeds(config, params), ...feeds });
    const want = sequences.flatMap(({ prompt, focus }) =>
      plainHidden(config, params.values, { tokens: [...prompt], promptLength: prompt.length, focus }).flatMap((h) =>
        plainLogits(config, params.values, h),
      ),
    );
    expect(logits!.data.length).toBe(want.length);
    for (const [i, logit] of want.entries()) expect(logits!.data[i]).toBeCloseTo(logit, 4);
    const apart = readings.map((reading) => promptFeeds(config, [reading], reading.tokens.length));
    const joined = await forwardLogits(program, weightFeeds(config, params), apart);
    expect(joined.shape).toEqual(logits!.shape);
    for (const [i, logit] of want.entries()) expect(joined.data[i]).toBeCloseTo(logit, 4);
  }
  await engine.dispose();
});
