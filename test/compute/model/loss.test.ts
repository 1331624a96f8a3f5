import { describe, expect, it } from 'vitest';
import { bindFeeds } from '../../../src/compute/engine/feeds.ts';
import { interpret } from '../../../src/compute/engine/reference.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { type DecoderKind, gradientGraph, logprobsGraph } from '../../../src/compute/model/programs.ts';
import type { Graph } from '../../../src/compute/tensor/graph.ts';
import type { NdArray } from '../../../src/compute/tensor/ndarray.ts';
import { Rng } from '../../../src/core/rng.ts';
import { decisionsOf, type TrainGroup } from '../../../src/learning/learner/training-batch.ts';
import {
  coefficients,
  type Estimated,
  episodeFeeds,
  letters,
  meanOver,
  optionsConfig,
  plainConfig,
  randomGroups,
  randomParams,
  weightFeeds,
} from './episodes.ts';
import { linear, plainEmbedding, plainHidden, plainLogits, plainSoftmax, silu, type Weights } from './plain-model.ts';

const cases: readonly (readonly [DecoderKind, string, ModelConfig])[] = [
  ['tokens', 'a public checkpoint', plainConfig],
  ['tokens', 'the local policy', optionsConfig],
  ['choice', 'the local policy', optionsConfig],
];

interface Decided {
  readonly logprob: number;
  readonly entropy: number;
  readonly value: number;
}

/** Scores of a group's actions at one hidden state, from the definition. */
function plainScores(
  config: ModelConfig,
  w: Weights,
  group: TrainGroup,
  hidden: number[],
  prompt: number[][],
): number[] {
  const { hiddenSize: d } = config;
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
  const query = (name: string) => linear(w[`choice_head.${name}.weight`]!, hidden).map((v) => v / Math.sqrt(d));
  return group.candidates.map(({ action, read }) => {
    const ids = letters.spell(read);
    const bag = Array<number>(d).fill(0);
    ids.forEach((id, t) => {
      const x = plainEmbedding(config, w, [id, ids[t - 1] ?? 0, ids[t - 2] ?? 0], group.prompt.focus.has(id));
      const inner = linear(w['choice_head.bag_in.weight']!, x, w['choice_head.bag_in.bias']).map(silu);
      linear(w['choice_head.bag_out.weight']!, inner).forEach((v, i) => {
        bag[i]! += 0.3 * (v + x[i]!);
      });
    });
    const pointers = group.prompt
      .mentions(action)
      .map((at) => dot(query('pointer_query'), linear(w['choice_head.pointer_key.weight']!, prompt[at]!)));
    return dot(query('bag_query'), bag) + Math.log(pointers.reduce((sum, s) => sum + Math.exp(s), 0));
  });
}

/** Terms of every decision, episode by episode, in the order of the batch. */
function plainDecisions(
  config: ModelConfig,
  w: Weights,
  decoder: DecoderKind,
  groups: readonly TrainGroup[],
): Decided[] {
  return groups.flatMap((group) =>
    group.members.flatMap(({ tokens, decisions }) => {
      const promptLength = group.prompt.tokens.length;
      const sequence = { tokens: [...group.prompt.tokens, ...tokens], promptLength, focus: group.prompt.focus };
      const hidden = plainHidden(config, w, sequence);
      return decisions.map(({ at, allowed, chosen }): Decided => {
        const h = hidden[promptLength + at]!;
        const all = decoder === 'choice' ? plainScores(config, w, group, h, hidden) : plainLogits(config, w, h);
        const possible = allowed ?? all.map((_, id) => id).filter((id) => id >= letters.end);
        const probabilities = plainSoftmax(possible.map((id) => all[id]!));
        return {
          logprob: Math.log(probabilities[possible.indexOf(chosen)]!),
          entropy: -probabilities.reduce((sum, p) => sum + p * Math.log(p), 0),
          value: linear(w['value_head.weight']!, h, w['value_head.bias'])[0]!,
        };
      });
    }),
  );
}

/** The clipped surrogate with value loss, entropy bonus and KL, from its definition. */
function plainLoss(decided: readonly Decided[], groups: readonly TrainGroup[]): number {
  const { policy, value: valueCount } = meanOver(groups);
  const { clipLow, clipHigh, entropyCoef, valueCoef, valueClip } = coefficients;
  const decisions = decisionsOf(groups) as Estimated[];
  let loss = 0;
  decisions.forEach(({ logprob, value, estimate, trainsValue }, i) => {
    const now = decided[i]!;
    const ratio = Math.exp(now.logprob - logprob);
    const clipped = Math.min(Math.max(ratio, 1 - clipLow), 1 + clipHigh);
    const surrogate = -Math.min(ratio * estimate.advantage, clipped * estimate.advantage);
    const toReference = logprob - now.logprob; // the behaviour policy stands in for the reference
    const kl = Math.exp(toReference) - toReference - 1;
    loss += (estimate.weight / policy) * (surrogate - entropyCoef * now.entropy + coefficients.klCoef3 * kl);
    const near = Math.min(Math.max(now.value, value - valueClip), value + valueClip);
    const worst = Math.max((now.value - estimate.return) ** 2, (near - estimate.return) ** 2);
    if (trainsValue) loss += (valueCoef * 0.5 * worst) / valueCount;
  });
  return loss;
}

function float64(feeds: ReturnType<typeof episodeFeeds>): Map<string, NdArray> {
  return new Map(
    Object.entries(feeds).map(([name, { shape, data }]) => [name, { shape, data: Float64Array.from(data) }]),
  );
}

const run = (graph: Graph, feeds: ReturnType<typeof episodeFeeds>, values = float64(feeds)) =>
  interpret(graph, values, bindFeeds([...graph.inputs, ...graph.parameters], feeds));

describe.each(cases)('%s decoder of %s', (decoder, _, config) => {
  const batch = { groups: 2, members: 2, prompt: 4, tokens: 5 };

  it('gives the log-probabilities, entropies, values and loss of a plain computation', () => {
    for (const seed of [1, 2, 3]) {
      const params = randomParams(config, seed);
      const groups = randomGroups(decoder, batch, seed);
      const feeds = { ...episodeFeeds(config, decoder, groups), ...weightFeeds(config, params) };
      const want = plainDecisions(config, params.values, decoder, groups);
      const got = run(logprobsGraph(config, { decoder }), feeds);
      const index = feeds['decisions.index']!.data;
      const rows = [...index.keys()].filter((row) => index[row] !== -1);
      for (const key of ['logprob', 'entropy', 'value'] as const) {
        for (const [i, row] of rows.entries()) {
          expect(got.get(key)!.data[row], `${key} ${i}`).toBeCloseTo(want[i]![key], 6);
        }
      }
      const { loss } = Object.fromEntries(run(gradientGraph(config, { decoder, objective: 'policy' }), feeds));
      expect(loss!.data[0]).toBeCloseTo(plainLoss(want, groups), 6);
    }
  });

  it.each(['policy', 'likelihood'] as const)('has the %s gradient of central differences', (objective) => {
    const params = randomParams(config, 7);
    const groups = randomGroups(decoder, batch, 7);
    const feeds = { ...episodeFeeds(config, decoder, groups), ...weightFeeds(config, params) };
    const graph = gradientGraph(config, { decoder, objective });
    const values = float64(feeds);
    const results = run(graph, feeds, values);
    const rng = Rng.fromSeed(3);
    for (const { name } of graph.parameters) {
      const { shape, data } = values.get(name)!;
      const direction = data.map(() => rng.normal());
      const lossAt = (h: number) => {
        const moved = new Map(values).set(name, { shape, data: data.map((v, i) => v + h * direction[i]!) });
        return run(graph, feeds, moved).get('loss')!.data[0]!;
      };
      const slope = (lossAt(1e-6) - lossAt(-1e-6)) / 2e-6;
      const along = results.get(`d/${name}`)!.data.reduce((sum, g, i) => sum + g * direction[i]!, 0);
      expect(Math.abs(along - slope), name).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
    }
  });
});
