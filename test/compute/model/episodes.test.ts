import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, Program } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { type DecoderKind, gradientGraph, logprobsGraph } from '../../../src/compute/model/programs.ts';
import { Rng } from '../../../src/core/rng.ts';
import type { TrainGroup } from '../../../src/learning/learner/training-batch.ts';
import {
  episodeFeeds,
  optionsConfig,
  plainConfig,
  randomGroups,
  randomParams,
  slidingConfig,
  VOCABULARY,
  weightFeeds,
} from './episodes.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 100 : 10;
const shape = { groups: 3, members: 3, prompt: 7, tokens: 8 };

describe.each([
  ['tokens', plainConfig],
  ['tokens', optionsConfig],
  ['tokens', slidingConfig],
  ['choice', optionsConfig],
] as const)('episodes, %s decoder', (decoder: DecoderKind, config: ModelConfig) => {
  let engine: Engine;
  let logprobs: Program;
  let gradients: Program;
  const weights = weightFeeds(config, randomParams(config, 2));
  beforeAll(async () => {
    engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    logprobs = await engine.compile(logprobsGraph(config, { decoder }));
    gradients = await engine.compile(gradientGraph(config, { decoder, objective: 'policy' }));
  });
  afterAll(() => engine.dispose());

  /** Log-probability of each decision, member by member. */
  async function decided(groups: readonly TrainGroup[]): Promise<number[][][]> {
    const feeds = episodeFeeds(config, decoder, groups);
    const out = await logprobs.run({ ...weights, ...feeds });
    const index = feeds['decisions.index']!.data;
    const rows = [...index.keys()].filter((row) => index[row] !== -1);
    let next = 0;
    return groups.map(({ members }) =>
      members.map(({ decisions }) => decisions.map(() => out.logprob!.data[rows[next++]!]!)),
    );
  }

  it('no token of one episode sees another’s: whatever the others hold, the numbers are bit-identical', {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const groups = randomGroups(decoder, shape, seed);
        const rng = Rng.fromSeed(seed);
        const [g, k] = [rng.int(groups.length), rng.int(groups.at(-1)!.members.length)];
        const [ours, others] = [groups[g]!, Rng.fromSeed(seed + 1)];
        const token = () => 4 + others.int(VOCABULARY - 4);
        const member = Math.min(k, ours.members.length - 1);
        // Every other member of the group answers something else, and every other group reads something else as well.
        const changed = groups.map((group): TrainGroup => {
          const tokens = group === ours ? group.prompt.tokens : group.prompt.tokens.map(token);
          return {
            ...group,
            prompt: { ...group.prompt, tokens },
            members: group.members.map((m, i) =>
              group === ours && i === member ? m : { ...m, tokens: m.tokens.map(token) },
            ),
          };
        });
        expect((await decided(changed))[g]![member]).toEqual((await decided(groups))[g]![member]);
      }),
      { numRuns: runs },
    );
  });

  it('a later token changes nothing before it', async () => {
    const groups = randomGroups(decoder, shape, 4);
    const last = groups.map(
      (group): TrainGroup => ({
        ...group,
        members: group.members.map((m) => ({ ...m, tokens: m.tokens.with(-1, 4 + ((m.tokens.at(-1)! - 3) % 20)) })),
      }),
    );
    const [before, after] = [await decided(groups), await decided(last)];
    let changed = 0;
    before.forEach((members, g) => {
      members.forEach((values, k) => {
        expect(after[g]![k]!.slice(0, -1)).toEqual(values.slice(0, -1));
        if (after[g]![k]!.at(-1) !== values.at(-1)) changed++;
      });
    });
    expect(changed).toBeGreaterThan(0); // else nothing was looked at
  });

  it('a shared prompt gives the numbers and gradients of separate prompts', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const groups = randomGroups(decoder, shape, seed);
        const separate = groups.flatMap(({ prompt, candidates, members }) =>
          members.map((member) => ({ prompt, candidates, members: [member] })),
        );
        const [a, b] = [(await decided(groups)).flat(2), (await decided(separate)).flat(2)];
        for (const [i, value] of a.entries()) expect(value).toBeCloseTo(b[i]!, 4);
        const [x, y] = [
          await gradients.run({ ...weights, ...episodeFeeds(config, decoder, groups) }),
          await gradients.run({ ...weights, ...episodeFeeds(config, decoder, separate) }),
        ];
        for (const { name } of gradients.outputs) {
          const scale = Math.max(1, ...y[name]!.data.map(Math.abs));
          x[name]!.data.forEach((value, i) => {
            if (!(Math.abs(value - y[name]!.data[i]!) <= 1e-4 * scale)) {
              expect.fail(`${name}[${i}] is ${value}, separately ${y[name]!.data[i]}`);
            }
          });
        }
      }),
      { numRuns: Math.ceil(runs / 3) },
    );
  });
});
