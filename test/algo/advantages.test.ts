/** The whole of `estimate` against a second computation that shares no code with it, straight from the turns. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Extras, estimate, scores } from '../../src/algo/advantages.ts';
import type { Truncation } from '../../src/algo/estimator.ts';
import { type EstimatorConfig, estimatorOf } from '../../src/algo/estimators.ts';
import type { Group, Trajectory } from '../../src/core/trajectory.ts';
import { group, type TrajectorySpec } from '../support/trajectories.ts';

const aggregation = { type: 'token-mean' } as const;
const real = fc.double({ min: -2, max: 2, noNaN: true });
const unit = fc.double({ min: 0, max: 1, noNaN: true });
const truncation = fc.constantFrom<Truncation>('terminal', 'bootstrap', 'mask');

const turnSpec = fc.record({
  reward: fc.oneof(fc.constant(0), real),
  value: real,
  tokens: fc.constantFrom(-1, 0, 0, 1, 3), // a scripted turn now and then
  observation: fc.constantFrom('a', 'b', 'c'),
});
const spec: fc.Arbitrary<TrajectorySpec> = fc.record({
  turns: fc.array(turnSpec, { minLength: 1, maxLength: 6 }),
  end: fc.constantFrom('terminated' as const, 'truncated' as const),
});
const batch = fc
  .array(fc.array(spec, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 3 })
  .map((groups) => groups.map((specs, number) => group(specs, number)));

const credit = fc.constantFrom('trajectory' as const, 'turn' as const);
const base = { gamma: unit, truncation, aggregation: fc.constant(aggregation) };
const anyConfig: fc.Arbitrary<EstimatorConfig> = fc.oneof(
  fc.record({ ...base, algorithm: fc.constant('grpo' as const), credit, std: fc.boolean() }),
  fc.record({ ...base, algorithm: fc.constant('dr_grpo' as const), credit }),
  fc.record({ ...base, algorithm: fc.constant('rloo' as const), credit }),
  fc.record({
    ...base,
    algorithm: fc.constant('reinforce_pp' as const),
    baseline: fc.constantFrom('none' as const, 'group' as const),
  }),
  fc.record({ ...base, algorithm: fc.constant('ppo' as const), lambda: unit, whiten: fc.boolean() }),
  fc.record({ ...base, algorithm: fc.constant('agent_evol' as const), threshold: fc.constantFrom(-0.3137, 0.2071) }),
  fc.record({ ...base, algorithm: fc.constant('gigpo' as const), std: fc.boolean(), stepWeight: unit }),
  fc.record({
    ...base,
    algorithm: fc.constant('hgpo' as const),
    std: fc.boolean(),
    history: fc.constantFrom(0, 1, 2),
    alpha: fc.constantFrom(0, 1, 2.5),
  }),
  fc.record({ ...base, algorithm: fc.constant('max_rl' as const) }),
  fc.record({
    ...base,
    algorithm: fc.constant('pass_at_k' as const),
    k: fc.constantFrom(1, 2),
    threshold: fc.constantFrom(-0.3137, 0.2071),
  }),
);

/** Ways to choose k of n members. */
function subsetsOf(n: number, k: number): number[][] {
  if (k === 0) return [[]];
  return Array.from({ length: n }, (_, last) => last).flatMap((last) =>
    subsetsOf(last, k - 1).map((rest) => [...rest, last]),
  );
}

/** A final value and a penalty that depend on the trajectory alone. */
function extrasOf(one: Trajectory): Extras {
  const D = one.turns.filter((turn) => turn.decision).length;
  return { finalValue: (one.episode % 7) / 3 - 1, penalty: Array.from({ length: D }, (_, d) => ((d + 1) % 3) / 10) };
}

interface Naive {
  advantages: number[];
  returns: number[];
  trained: boolean[];
}

/** Forward sums only, one trajectory at a time, no recursion. */
function naive(groups: readonly Group[], config: EstimatorConfig): Naive[] {
  const { gamma } = config;
  const mean = (xs: number[]) => xs.reduce((a, b) => a + b, 0) / xs.length;
  const centred = (x: number, xs: number[], std: boolean) => {
    if (xs.every((other) => other === xs[0])) return 0;
    const m = mean(xs);
    return (x - m) / (std ? Math.sqrt(xs.reduce((a, b) => a + (b - m) ** 2, 0) / (xs.length - 1)) + 1e-6 : 1);
  };
  const out: Naive[] = [];
  for (const { trajectories } of groups) {
    const looked = trajectories.map((one) => {
      const at = one.turns.flatMap((turn, t) => (turn.decision ? [t] : []));
      const { finalValue = 0, penalty = [] } = extrasOf(one);
      const cut = one.end === 'truncated';
      const final = cut && config.truncation === 'bootstrap' ? finalValue : 0;
      // Reward of a turn, with what is taken off the decision there.
      const reward = (t: number) => one.turns[t]!.reward - (at.includes(t) ? penalty[at.indexOf(t)]! : 0);
      const sum = (from: number, to: number) => {
        let total = 0;
        for (let t = from; t < to; t++) total += gamma ** (t - from) * reward(t);
        return total;
      };
      const T = one.turns.length;
      const G = at.map((t) => sum(t, T) + gamma ** (T - t) * final);
      const masked = cut && config.truncation === 'mask';
      const imitated = config.algorithm !== 'agent_evol' || (G[0] ?? 0) > config.threshold;
      const trained = at.map((_, d) => imitated && (!masked || (config.algorithm === 'ppo' && d < at.length - 1)));
      // Everything it was rewarded with from its first decision on, undiscounted.
      let total = at.length === 0 ? 0 : final;
      if (at.length > 0) for (let t = at[0]!; t < T; t++) total += reward(t);
      return { one, at, sum, G, T, final, masked, trained, total };
    });
    for (const [i, { one, at, sum, G, T, final, masked, trained }] of looked.entries()) {
      const scored = looked.map((other) => (config.algorithm === 'gigpo' ? other.total : (other.G[0] ?? 0)));
      const others = (xs: number[]) => mean(xs.filter((_, j) => j !== i));
      let advantages: number[];
      let returns = G;
      if (config.algorithm === 'ppo') {
        const v = at.map((t) => one.turns[t]!.decision!.value);
        const last = masked ? at.length - 1 : at.length; // decisions whose outcome is known
        const end = masked && last >= 0 ? at[last]! : T;
        const after = masked ? v[last]! : final;
        advantages = at.map((_, d) => {
          // λ-return as a mixture of n-step returns: (1 − λ) Σ λⁿ⁻¹ Gⁿ + λᴺ⁻¹ Gᴺ
          const N = last - d;
          if (N <= 0) return 0;
          let mixed = 0;
          for (let n = 1; n <= N; n++) {
            const until = n < N ? at[d + n]! : end;
            const tail = n < N ? v[d + n]! : after;
            const nStep = sum(at[d]!, until) + gamma ** (until - at[d]!) * tail;
            mixed += (n < N ? 1 - config.lambda : 1) * config.lambda ** (n - 1) * nStep;
          }
          return mixed - v[d]!;
        });
        returns = advantages.map((a, d) => a + v[d]!);
      } else if (config.algorithm === 'reinforce_pp') {
        const b = mean(looked.filter((other) => other.trained.some(Boolean)).map((other) => other.total));
        const last = at.at(-1) ?? 0;
        advantages = G.map((g, d) => g - (config.baseline === 'group' ? b * gamma ** (last - at[d]!) : 0));
      } else if (config.algorithm === 'agent_evol') {
        advantages = G.map(() => 1);
      } else if (config.algorithm === 'gigpo') {
        const same = (t: number) =>
          looked.flatMap((other) =>
            other.G.filter((_, d) => other.one.turns[other.at[d]!]!.observation === one.turns[t]!.observation),
          );
        const episode = centred(scored[i]!, scored, config.std);
        advantages = G.map((g, d) => episode + (config.stepWeight ?? 1) * centred(g, same(at[d]!), config.std));
      } else if (config.algorithm === 'hgpo') {
        // Named by the observations of the decisions before and at it, the nearest last.
        const seen = looked.map((other) => other.at.map((t) => other.one.turns[t]!.observation));
        advantages = G.map((g, d) => {
          let [sum, weights] = [0, 0];
          for (let k = 0; k <= config.history && k <= d; k++) {
            const company = looked.flatMap((other, j) =>
              other.G.filter((_, e) => {
                for (let back = 0; back <= k; back++) if (seen[j]![e - back] !== seen[i]![d - back]) return false;
                return true;
              }),
            );
            if (company.length === 1) continue;
            sum += (k + 1) ** config.alpha * centred(g, company, config.std);
            weights += (k + 1) ** config.alpha;
          }
          return weights === 0 ? 0 : sum / weights;
        });
      } else if (config.algorithm === 'max_rl') {
        const m = mean(scored);
        const same = scored.every((x) => x === scored[0]);
        advantages = G.map(() => (same || m <= 0 ? 0 : scored[i]! / m - 1));
      } else if (config.algorithm === 'pass_at_k') {
        // Every group of k is drawn: its reward is shared by its members.
        const draws = subsetsOf(scored.length, config.k);
        const solved = draws.map((members) => (members.some((j) => scored[j]! > config.threshold) ? 1 : 0));
        const m = mean(solved);
        const spread = Math.sqrt(mean(solved.map((x) => (x - m) ** 2)));
        const own = solved.filter((_, n) => draws[n]!.includes(i)).map((x) => (x - m) / (spread + 1e-6));
        advantages = G.map(() => mean(own));
      } else {
        const std = config.algorithm === 'grpo' && config.std;
        advantages = at.map((_, d) => {
          const xs = config.credit === 'turn' ? looked.map((other) => other.G[d] ?? 0) : scored;
          if (config.algorithm !== 'rloo') return centred(xs[i]!, xs, std);
          return xs.every((x) => x === xs[0]) ? 0 : xs[i]! - others(xs);
        });
      }
      out.push({ advantages, returns, trained });
    }
  }
  if (config.algorithm === 'reinforce_pp' || (config.algorithm === 'ppo' && config.whiten)) {
    const flat = out.flatMap((one) => one.advantages.filter((_, d) => one.trained[d]));
    const m = mean(flat);
    const std = Math.sqrt(mean(flat.map((a) => (a - m) ** 2))) + 1e-8;
    for (const one of out) {
      one.advantages = one.advantages.map((a, d) => (one.trained[d] ? (a - m) / std : 0));
    }
  }
  return out;
}

/** Dividing by a spread of rounding errors magnifies them without bound: such batches prove nothing either way. */
function wellConditioned(groups: readonly Group[], config: EstimatorConfig): boolean {
  const spreads = (xs: number[]) => {
    const sorted = [...xs].sort((a, b) => a - b);
    return sorted.every((x, i) => i === 0 || x === sorted[i - 1] || x - sorted[i - 1]! > 1e-4);
  };
  if (config.algorithm === 'ppo' || config.algorithm === 'reinforce_pp') {
    const raw = naive(groups, config.algorithm === 'ppo' ? { ...config, whiten: false } : config);
    const flat = raw.flatMap((one) => one.advantages.filter((_, d) => one.trained[d]));
    if (config.algorithm === 'ppo' && !config.whiten) return true;
    const all = groups.flatMap((g) => estimate([g], config, extrasOf)).flatMap((e) => Array.from(e.returns));
    return flat.length > 1 && spreads(flat) && spreads(all) && new Set(all).size > 1;
  }
  return groups.every((g) => {
    if (config.algorithm === 'max_rl') {
      const starts = naive([g], config).map((one) => one.returns[0] ?? 0);
      if (Math.abs(starts.reduce((a, b) => a + b, 0)) < 1e-2) return false; // it divides by their mean
    }
    const returns = naive([g], config).flatMap((one) => one.returns);
    return spreads([...returns, 0]);
  });
}

describe('estimate', () => {
  it('equals the naive twin for every algorithm, way of crediting and end', { timeout: 120_000 }, () => {
    let compared = 0;
    fc.assert(
      fc.property(batch, anyConfig, (groups, config) => {
        fc.pre(wellConditioned(groups, config));
        const got = estimate(groups, config, extrasOf);
        const want = naive(groups, config);
        expect(got.map((one) => one.trajectory)).toEqual(groups.flatMap((g) => g.trajectories));
        const tokens = got.map((one) => one.tokens.reduce((sum, n, d) => sum + (one.trained[d] ? n : 0), 0));
        const trainedTokens = tokens.reduce((a, b) => a + b, 0);
        for (const [i, one] of want.entries()) {
          expect(Array.from(got[i]!.trained, Boolean)).toEqual(one.trained);
          for (let d = 0; d < one.trained.length; d++) {
            expect(got[i]!.returns[d]).toBeCloseTo(one.returns[d]!, 8);
            expect(got[i]!.advantages[d], `${config.algorithm} ${i} ${d}`).toBeCloseTo(one.advantages[d]!, 5);
            expect(got[i]!.weights[d]).toBeCloseTo(one.trained[d] ? 1 / trainedTokens : 0, 12);
            compared++;
          }
        }
      }),
      { numRuns: process.env.LONGPLAY_LONG === '1' ? 5000 : 500 },
    );
    expect(compared).toBeGreaterThan(1000);
  });

  const two = group([
    { turns: [{ value: 0.5 }, { reward: 1, value: 0.25 }] },
    { turns: [{ value: 0.5 }, { reward: 0, value: 0.75 }], end: 'truncated' },
  ]);
  const common = { gamma: 1, truncation: 'terminal', aggregation } as const;
  const rows = (groups: Group[], config: EstimatorConfig, extras?: (one: Trajectory) => Extras) =>
    estimate(groups, config, extras).map((one) => Array.from(one.advantages));

  it('a group of two, by hand, every algorithm', () => {
    const half = Math.SQRT1_2 / (1 + 1e-6 * Math.SQRT2); // ε = 1e-6 beside a std of 1/√2
    const trajectory = { ...common, credit: 'trajectory' } as const;
    expect(rows([two], { ...trajectory, algorithm: 'dr_grpo' })).toEqual([
      [0.5, 0.5],
      [-0.5, -0.5],
    ]);
    expect(rows([two], { ...trajectory, algorithm: 'rloo' })).toEqual([
      [1, 1],
      [-1, -1],
    ]);
    for (const row of rows([two], { ...trajectory, algorithm: 'grpo', std: true })) {
      expect(Math.abs(row[0]!)).toBeCloseTo(half, 9);
    }
    expect(rows([two], { ...common, algorithm: 'ppo', lambda: 1, whiten: false })).toEqual([
      [0.5, 0.75],
      [-0.5, -0.75],
    ]);
    expect(rows([two], { ...common, algorithm: 'ppo', lambda: 0, whiten: false })).toEqual([
      [-0.25, 0.75],
      [0.25, -0.75],
    ]);
    const pp = rows([two], { ...common, algorithm: 'reinforce_pp', baseline: 'none' }).flat();
    expect(pp.map((a) => Math.round(a * 1e6) / 1e6)).toEqual([1, 1, -1, -1]);
    // All observations are '': one anchor state with returns 1, 1, 0, 0.
    expect(rows([two], { ...common, algorithm: 'gigpo', std: false, stepWeight: 2 })).toEqual([
      [1.5, 1.5],
      [-1.5, -1.5],
    ]);
  });

  it('GiGPO by hand: γ distinguishes steps, not trajectories', () => {
    const three = group([
      { turns: [{ observation: 's' }, { observation: 'a', reward: 1 }] },
      { turns: [{ observation: 's' }, { observation: 'b' }] },
      { turns: [{ observation: 's' }, { observation: 'b' }, { observation: 'a', reward: 1 }] },
    ]);
    // Scores 1, 0, 1 have mean 2/3: A^E = 1/3, −2/3, 1/3. Rewards-to-go under γ = ½: s 1/2, 0, 1/4; a 1, 1; b 0, 1/2.
    const want = [
      [1 / 3 + (1 / 2 - 1 / 4), 1 / 3],
      [-2 / 3 + (0 - 1 / 4), -2 / 3 - 1 / 4],
      [1 / 3 + (1 / 4 - 1 / 4), 1 / 3 + 1 / 4, 1 / 3],
    ];
    const config = { ...common, algorithm: 'gigpo', gamma: 0.5, std: false, stepWeight: 1 } as const;
    rows([three], config).forEach((row, i) => {
      row.forEach((a, d) => {
        expect(a, `${i} ${d}`).toBeCloseTo(want[i]![d]!, 12);
      });
    });
    expect([...scores(three, config)]).toEqual([1, 0, 1]);
  });

  it('REINFORCE++ with a group baseline by hand: the outcome less the mean, then discounted, then whitened', () => {
    const config = { ...common, algorithm: 'reinforce_pp', baseline: 'group', gamma: 0.5 } as const;
    const pair = [{ turns: [{}, { reward: 1 }] }, { turns: [{}, {}] }];
    // Outcomes 1 and 0, mean ½: ±½ at the end, ±¼ one turn before; variance (2·1/16 + 2·1/4)/4 = 5/32.
    const std = Math.sqrt(5 / 32);
    const want = [0.25 / std, 0.5 / std, -0.25 / std, -0.5 / std];
    rows([group(pair)], config)
      .flat()
      .forEach((a, i) => {
        expect(a).toBeCloseTo(want[i]!, 6);
      });
    // A masked member has no part in the mean, however much it scored.
    const cut = { turns: [{ reward: 9 }], end: 'truncated' as const };
    rows([group([...pair, cut])], { ...config, truncation: 'mask' })
      .flat()
      .forEach((a, i) => {
        expect(a).toBeCloseTo(want[i] ?? 0, 6);
      });
    // Without discount every decision has R − mean(R), as in the paper.
    const plain = rows([group(pair)], { ...config, gamma: 1 }).flat();
    [1, 1, -1, -1].forEach((a, i) => {
      expect(plain[i]).toBeCloseTo(a, 6);
    });
  });

  it('the three meanings of a cut, by hand', () => {
    const ppo = { ...common, algorithm: 'ppo', lambda: 1, whiten: false } as const;
    const cut = (how: Truncation) => estimate([two], { ...ppo, truncation: how }, () => ({ finalValue: 2 }))[1]!;
    expect(Array.from(cut('terminal').advantages)).toEqual([-0.5, -0.75]);
    expect(Array.from(cut('bootstrap').advantages)).toEqual([1.5, 1.25]);
    expect(Array.from(cut('bootstrap').returns)).toEqual([2, 2]);
    expect(Array.from(cut('mask').advantages)).toEqual([0.25, 0]); // V(last) = 0.75 stands in
    expect(Array.from(cut('mask').weights)).toEqual([1 / 3, 0]);

    const grpo = { ...common, algorithm: 'dr_grpo', credit: 'trajectory', truncation: 'mask' } as const;
    const [won, masked] = estimate([two], grpo);
    expect(Array.from(won!.advantages)).toEqual([0.5, 0.5]); // still compared with the masked one
    expect(Array.from(won!.weights)).toEqual([0.5, 0.5]);
    expect(Array.from(masked!.weights)).toEqual([0, 0]);
  });

  it('bootstrap without a final value is an error that names the episode', () => {
    const config = { ...common, algorithm: 'ppo', lambda: 1, whiten: false, truncation: 'bootstrap' } as const;
    expect(() => estimate([two], config)).toThrow(/final observation of episode 1/);
  });

  it('all rewards equal: no advantage at all for the group-relative ones', () => {
    const same = group([{ turns: [{ reward: 0.1 }] }, { turns: [{ reward: 0.1 }] }, { turns: [{ reward: 0.1 }] }]);
    for (const config of [
      { ...common, algorithm: 'grpo', std: true, credit: 'trajectory' },
      { ...common, algorithm: 'dr_grpo', credit: 'turn' },
      { ...common, algorithm: 'rloo', credit: 'trajectory' },
      { ...common, algorithm: 'gigpo', std: true, stepWeight: 1 },
      { ...common, algorithm: 'reinforce_pp', baseline: 'none' },
    ] satisfies EstimatorConfig[]) {
      expect(rows([same], config).flat()).toEqual([0, 0, 0]);
    }
  });

  it('the terminal reward reaches PPO and REINFORCE++ whatever follows the last decision', () => {
    const scripted = group([
      { turns: [{ tokens: 2 }, { tokens: -1, reward: 1 }] },
      { turns: [{ tokens: 2 }, { tokens: -1 }] },
    ]);
    expect(rows([scripted], { ...common, algorithm: 'ppo', lambda: 1, whiten: false })).toEqual([[1], [0]]);
    expect(
      rows([scripted], { ...common, algorithm: 'reinforce_pp', baseline: 'none' }).map(([a]) => Math.sign(a!)),
    ).toEqual([1, -1]);
  });

  it('GiGPO compares undiscounted sums, rewards of scripted turns too', () => {
    const scripted = group([
      { turns: [{}, { tokens: -1 }, { tokens: -1, reward: 1 }] },
      { turns: [{ reward: 0.75 }, {}, {}] },
    ]);
    const config = { ...common, algorithm: 'gigpo', gamma: 0.5, std: false, stepWeight: 0 } as const;
    expect([...scores(scripted, config)]).toEqual([1, 0.75]);
    expect(rows([scripted], config).map(([first]) => first)).toEqual([0.125, -0.125]);
  });

  it('an estimator that looks at states says so', () => {
    const pair = group([{ turns: [{ reward: 1 }, {}] }, { turns: [{}, { reward: 0.5 }] }]);
    fc.assert(
      fc.property(anyConfig, (config) => {
        const advantages = (anchorOf?: (one: Trajectory, turn: number) => string) =>
          estimate([pair], config, extrasOf, anchorOf).map((one) => [...one.advantages]);
        const { needsAnchors } = estimatorOf(config);
        const apart = advantages(({ episode }, turn) => `${episode} ${turn}`);
        if (!needsAnchors) expect(apart).toEqual(advantages(() => 'same'));
      }),
    );
    expect(estimatorOf({ ...common, algorithm: 'gigpo', std: false, stepWeight: 1 })).toMatchObject({
      needsAnchors: true,
      needsGroup: true,
    });
  });

  it('a reward that is not finite is never hidden', () => {
    const bad = group([{ turns: [{ reward: Number.NaN }] }, { turns: [{ reward: 1 }] }]);
    fc.assert(
      fc.property(anyConfig, (config) => {
        const unmasked = { ...config, truncation: 'terminal' as const, gamma: 1 };
        expect(
          rows([bad], unmasked)
            .flat()
            .some((a) => !Number.isFinite(a)),
        ).toBe(true);
      }),
    );
  });

  it('AgentEvol imitates what scored above the threshold, not what just meets it', () => {
    const config = { ...common, algorithm: 'agent_evol', threshold: 0.5 } as const;
    const three = group([{ turns: [{ reward: 0.5 }] }, { turns: [{ reward: 0.75 }] }, { turns: [{ reward: 0.25 }] }]);
    expect(estimate([three], config).map(({ trained }) => [...trained])).toEqual([[0], [1], [0]]);
  });

  it('a decision that is context only weighs nothing and enters no mean', () => {
    const config = { ...common, algorithm: 'dr_grpo', credit: 'trajectory' } as const;
    const [first, second] = two.trajectories;
    const turns = first!.turns.map((turn, t) => (t === 0 ? { ...turn, untrained: true as const } : turn));
    const [partly] = estimate([{ ...two, trajectories: [{ ...first!, turns }, second!] }], config);
    expect([...partly!.trained]).toEqual([0, 1]);
    expect([...partly!.weights]).toEqual([0, 1 / 3]);
  });

  it('scores are what the group-relative estimators compare', () => {
    const config = { ...common, algorithm: 'rloo', credit: 'trajectory', gamma: 0.5 } as const;
    expect(scores(two, config)).toEqual(Float64Array.of(0.5, 0));
  });

  it('names a parameter out of range', () => {
    const ppo = { ...common, algorithm: 'ppo', lambda: 1, whiten: false } as const;
    expect(() => estimate([], { ...ppo, gamma: 1.01 })).toThrow('ppo.gamma');
    expect(() => estimate([], { ...ppo, lambda: -1 })).toThrow('ppo.lambda');
    expect(() => estimate([], { ...ppo, truncation: 'ignore' as Truncation })).toThrow('ppo.truncation');
    expect(() => estimate([], { ...common, algorithm: 'gigpo', std: true, stepWeight: -1 })).toThrow(
      'gigpo.stepWeight',
    );
  });
});
