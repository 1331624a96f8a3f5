/** An episode under new weights, and one taken up in the middle: both read what was, as it was. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../src/compute/model/programs.ts';
import { logprobsGraph } from '../../src/compute/model/programs.ts';
import { measure } from '../../src/learning/learner/measure.ts';
import { decisionsOf, trainUnits } from '../../src/learning/learner/training-batch.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';
import { view } from '../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const config = smallModel(codec.vocabSize, { layers: 2, hiddenSize: 16 });
const before = initialParams(config, 3);
const after = { ...initialParams(config, 4), version: 1 };
const table = ['left', 'right', 'stop'];
const observations = ['at 0', 'at 1', 'which red', 'over at 0'];
let engine: Engine;

beforeAll(async () => {
  engine = await openEngine({ name: 'reference' });
});
afterAll(() => engine.dispose());

interface Setting {
  readonly decoder: DecoderKind;
  readonly masked: boolean;
  readonly cacheOnUpdate?: 'keep' | 'recompute';
}

function policyOf({ decoder, masked, cacheOnUpdate = 'keep' }: Setting, params = before): Promise<CachedPolicy> {
  const options = { config, codec, decoder, masked, maxTokens: 3, maxBatch: 4, cacheOnUpdate };
  return CachedPolicy.create(engine, options, params);
}

function request(turn: number, turns: readonly Acted[]): ActRequest {
  const last = turns.at(-1);
  return {
    episode: 1,
    group: 1,
    member: 0,
    groupSize: 1,
    turn,
    observation: observations[turn]!,
    ...(last ? { lastAction: last.action } : {}),
    actions: Int32Array.of(0, 1, 2),
    newActions: turn === 0 ? table : [],
    samplingSeed: 9,
    temperature: 1,
  };
}

/** The same turn for a policy that has not seen the episode. */
function recalled(turn: number, turns: readonly Acted[]): ActRequest {
  const history = turns.map(({ action, decision }, t) => ({
    observation: observations[t]!,
    action,
    ...(decision ? { decision } : {}),
  }));
  return { ...request(turn, turns), newActions: table, history };
}

async function decide(policy: CachedPolicy, request: ActRequest): Promise<Acted> {
  policy.submit([request]);
  for (;;) {
    const [acted] = await policy.step();
    if (acted) return acted;
  }
}

/** Three turns under the first weights. */
async function begun(policy: CachedPolicy): Promise<Acted[]> {
  const turns: Acted[] = [];
  for (let turn = 0; turn < 3; turn++) turns.push(await decide(policy, request(turn, turns)));
  return turns;
}

/** Log π and V, compared to the last bits that a batch's make-up moves. */
function numbers({ decision }: Acted): number[] {
  const logprobs = decision!.kind === 'choice' ? [decision!.logprob] : [...decision!.logprobs];
  return [...logprobs, decision!.value];
}

const settings: readonly (readonly [string, Setting])[] = [
  ['choices', { decoder: 'choice', masked: true }],
  ['runs under the trie', { decoder: 'tokens', masked: true }],
  ['free runs', { decoder: 'tokens', masked: false }],
];

describe.each(settings)('%s', (_, setting) => {
  it('an episode taken up in the middle goes on as if it had never stopped', async () => {
    const policy = await policyOf(setting);
    const turns = await begun(policy);
    const whole = await decide(policy, request(3, turns));
    const taken = await decide(await policyOf(setting), recalled(3, turns));
    expect(taken.action).toBe(whole.action);
    expect(numbers(taken)).toHaveLength(numbers(whole).length);
    numbers(taken).forEach((value, i) => {
      expect(value).toBeCloseTo(numbers(whole)[i]!, 9);
    });
  });

  it('under `recompute` an episode reads on as new weights would have read it from its start', async () => {
    const policy = await policyOf({ ...setting, cacheOnUpdate: 'recompute' });
    const turns = await begun(policy);
    policy.load(after);
    const next = await decide(policy, request(3, turns));
    const anew = await decide(await policyOf(setting, after), recalled(3, turns));
    expect(next.decision!.version).toBe(1);
    expect(next.action).toBe(anew.action);
    numbers(next).forEach((value, i) => {
      expect(value).toBeCloseTo(numbers(anew)[i]!, 9);
    });
  });

  it('under `keep` it goes on from what the old weights made of its past', async () => {
    const policy = await policyOf({ ...setting, cacheOnUpdate: 'keep' });
    const turns = await begun(policy);
    policy.load(after);
    const next = await decide(policy, request(3, turns));
    const anew = await decide(await policyOf(setting, after), recalled(3, turns));
    expect(next.decision!.version).toBe(1);
    expect(Math.abs(numbers(next)[0]! - numbers(anew)[0]!)).toBeGreaterThan(1e-6);
  });
});

it('free runs of random weights are not spelt as the codec would spell their text', async () => {
  const turns = await begun(await policyOf({ decoder: 'tokens', masked: false }));
  const spelt = turns.map(({ action }) => [...codec.spell(action)].join());
  const sampled = turns.map(({ decision }) => (decision!.kind === 'tokens' ? [...decision!.tokens].join() : ''));
  expect(sampled).not.toEqual(spelt); // or taking them up again from text would pass too
});

/** Spellings that can go on in two ways at each of their tokens. */
const branching: ActRequest = {
  ...request(0, []),
  newActions: ['at', 'left', 'left at', 'left right', 'left right at', 'left right stop', 'left right stop on'],
  actions: Int32Array.of(0, 1, 2, 3, 4, 5, 6),
};

it('a run of tokens that an update comes into keeps the version of each of its tokens', async () => {
  const policy = await policyOf({ decoder: 'tokens', masked: true });
  const calls = async (n: number) => {
    for (let i = 0; i < n; i++) {
      const [acted] = await policy.step();
      if (acted) return acted.decision!;
    }
    return undefined;
  };
  policy.submit([branching]);
  expect(await calls(2)).toBeUndefined();
  policy.load(after); // version 1
  expect(await calls(1)).toBeUndefined();
  policy.load({ ...after, version: 5 });
  const decision = await calls(9);
  if (decision?.kind !== 'tokens') throw new Error('expected a run of tokens');
  const length = decision.tokens.length;
  expect(decision.version).toBe(0);
  expect(decision.versions).toEqual(Int32Array.of(0, 2, 1, 1, 5, length - 3));
});

it('what a spelling forces takes no call, and has log-probability 0', async () => {
  const policy = await policyOf({ decoder: 'tokens', masked: true });
  const newActions = ['left right stop on', 'left right red at', 'which'];
  policy.submit([{ ...request(0, []), actions: Int32Array.of(0, 1), newActions }]);
  // Both begin with `left right`: the first call draws what is forced too, the second chooses between stop and red.
  expect(await policy.step()).toEqual([]);
  const [acted] = await policy.step();
  if (acted?.decision?.kind !== 'tokens') throw new Error('expected a run of tokens');
  const { tokens, logprobs } = acted.decision;
  const spelt = [...codec.spell(acted.action), codec.end];
  expect([...tokens]).toEqual(spelt);
  expect([...logprobs].map((logprob) => logprob < 0)).toEqual(spelt.map((_, i) => i === 2));
  policy.submit([{ ...request(1, [acted]), actions: Int32Array.of(2) }]);
  expect((await policy.step())[0]?.action).toBe('which');
});

describe.each(settings)('what the learner computes again of %s', (_, setting) => {
  it('is what the policy reported, under a view with a focus too', async () => {
    const focused = new ViewCodec({
      ...view,
      id: 'toy-focus@1',
      prompt: ({ observation }) => ({ segments: [observation], focus: 'red', mentions: () => [] }),
    });
    const options = { config, codec: focused, maxTokens: 3, maxBatch: 4, cacheOnUpdate: 'keep', ...setting } as const;
    // A new value head knows nothing: its weights are drawn here.
    const head = before.values['value_head.weight']!.map((_, i) => Math.sin(i + 1));
    const params = { ...before, values: { ...before.values, 'value_head.weight': head } };
    const policy = await CachedPolicy.create(engine, options, params);
    const turns: Acted[] = [];
    // Red comes at turn 2, and turn 1 is read in several calls.
    const long = observations.with(1, 'left right '.repeat(40));
    for (const [turn, observation] of long.entries()) {
      turns.push(await decide(policy, { ...request(turn, turns), observation }));
    }
    const made = turns.map(({ action, decision }, t) => ({
      ...{ observation: long[t]!, actions: Int32Array.of(0, 1, 2), action, decision: decision!, reward: 0 },
      ...{ actMs: 0, envMs: 0 },
    }));
    const record = { episode: 1, group: 1, task: { env: 'toy', index: 0, seed: 0 }, horizon: 4, attempt: 1 };
    const rest = {
      actionTable: table,
      turns: made,
      finalObservation: 'over',
      end: 'truncated',
      success: false,
    } as const;
    const units = trainUnits(focused, [{ ...record, ...rest, view: focused.id }], 0);
    const { decoder } = setting;
    const program = await engine.compile(logprobsGraph(config, { decoder }));
    const measured = await measure({ model: config, codec: focused, decoder, program }, params, units);
    const decisions = decisionsOf(units.flat());
    expect(decisions.length).toBe(measured.logprobs.length);
    decisions.forEach(({ logprob, value, token }, i) => {
      expect(measured.logprobs[i]).toBeCloseTo(logprob, 6);
      // A run has one value, V where its first token was decided.
      if (token === 0) expect(measured.values[i]).toBeCloseTo(value, 6);
    });
    expect(decisions.some(({ value }) => value !== 0)).toBe(true);
  });
});

it('a run that is given up is no longer under way', async () => {
  const policy = await policyOf({ decoder: 'tokens', masked: true });
  policy.submit([branching]);
  await policy.step();
  expect(policy.complete).toBe(true);
  policy.release([1]);
  expect([policy.complete, policy.waiting]).toEqual([false, 0]);
});
