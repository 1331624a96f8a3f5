/**
 * Every row of the table of equivalents: the same batch in the conventions of verl, TRL or prime-rl, written here from their
 * documented formulas, and through our configuration. The gradients are compared.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { estimate } from '../../src/algo/advantages.ts';
import { importance } from '../../src/algo/importance.ts';
import { EQUIVALENTS } from '../../src/config/equivalents.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import { Rng } from '../../src/core/rng.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { computePolicyLoss, slopesOf } from '../support/policy-loss.ts';
import { group } from '../support/trajectories.ts';

/** Six episodes of two tasks, one turn each; tokens are listed episode by episode. */
interface Sample {
  readonly rewards: readonly number[];
  readonly lengths: readonly number[];
  /** log π now, at the start of the update, and of the engine that sampled. */
  readonly x: readonly number[];
  readonly old: readonly number[];
  readonly rollout: readonly number[];
}
const SIZE = 3;

function draw(seed: number): Sample {
  const rng = Rng.fromSeed(seed);
  const lengths = Array.from({ length: 2 * SIZE }, () => 1 + rng.int(5));
  const tokens = lengths.reduce((a, b) => a + b);
  const rollout = Array.from({ length: tokens }, () => -0.2 - 2 * rng.float());
  const old = rollout.map((logprob) => Math.min(-0.01, logprob + 0.7 * (rng.float() - 0.5)));
  const x = old.map((logprob) => Math.min(-0.01, logprob + 1.2 * (rng.float() - 0.5)));
  return { rewards: lengths.map(() => rng.int(8) / 7), lengths, x, old, rollout };
}

const sum = (xs: readonly number[]) => xs.reduce((a, b) => a + b, 0);
const mean = (xs: readonly number[]) => sum(xs) / xs.length;
const episodeOf = ({ lengths }: Sample) => lengths.flatMap((length, i) => new Array<number>(length).fill(i));
const groupOf = ({ rewards }: Sample, i: number) =>
  rewards.slice(Math.floor(i / SIZE) * SIZE, (Math.floor(i / SIZE) + 1) * SIZE);

/** Advantage of an episode. */
type Advantage = (sample: Sample, i: number) => number;
const std = (xs: readonly number[]) => Math.sqrt(sum(xs.map((x) => (x - mean(xs)) ** 2)) / (xs.length - 1)); // torch.std
const byStd =
  (epsilon: number): Advantage =>
  (sample, i) =>
    (sample.rewards[i]! - mean(groupOf(sample, i))) / (std(groupOf(sample, i)) + epsilon);
const lessMean: Advantage = (sample, i) => sample.rewards[i]! - mean(groupOf(sample, i));
const lessOthers: Advantage = (sample, i) => {
  const own = groupOf(sample, i);
  return sample.rewards[i]! - (sum(own) - sample.rewards[i]!) / (own.length - 1);
};
const overMean: Advantage = (sample, i) => lessMean(sample, i) / mean(groupOf(sample, i));

/** Loss of token t; `held` stands where a library detaches. */
type TokenLoss = (sample: Sample, t: number, x: readonly number[], held: readonly number[], A: number) => number;
const clamp = (r: number, low: number, high: number) => Math.min(Math.max(r, low), high);
const clipped = (r: number, A: number, low: number, high: number) => Math.max(-A * r, -A * clamp(r, 1 - low, 1 + high));
const vanilla =
  (low: number, high: number): TokenLoss =>
  ({ old }, t, x, _, A) =>
    clipped(Math.exp(x[t]! - old[t]!), A, low, high);
/** verl's vanilla: dual clip. */
const dualClip: TokenLoss = (sample, t, x, held, A) => {
  const loss = vanilla(0.2, 0.2)(sample, t, x, held, A);
  return A < 0 ? Math.min(-A * 3, loss) : loss;
};
const meanLogRatio = (sample: Sample, t: number, x: readonly number[]) => {
  const episodes = episodeOf(sample);
  return mean(x.flatMap((at, j) => (episodes[j] === episodes[t] ? [at - sample.old[j]!] : [])));
};
/** verl's: the value of the sequence's ratio, the slope of the token's. */
const tokenGspo: TokenLoss = (sample, t, x, held, A) =>
  clipped(Math.exp(x[t]! - held[t]! + meanLogRatio(sample, t, held)), A, 3e-4, 4e-4);
/** TRL's: the sequence's ratio itself, for each of its tokens. */
const sequenceRatio: TokenLoss = (sample, t, x, _, A) => clipped(Math.exp(meanLogRatio(sample, t, x)), A, 3e-4, 4e-4);
const cispo =
  (low: number, high: number): TokenLoss =>
  ({ old }, t, x, held, A) =>
    -clamp(Math.exp(held[t]! - old[t]!), low, high) * A * x[t]!;
const sapo: TokenLoss = ({ old }, t, x, _, A) => {
  const tau = A > 0 ? 1 : 1.05;
  return (-A * 4) / tau / (1 + Math.exp(-tau * (Math.exp(x[t]! - old[t]!) - 1)));
};
const dppo =
  (isValid: (p: number, old: number, A: number) => boolean): TokenLoss =>
  ({ old }, t, x, held, A) =>
    isValid(Math.exp(held[t]!), Math.exp(old[t]!), A) ? -A * Math.min(Math.exp(held[t]! - old[t]!), 20) * x[t]! : 0;
const validTv = (p: number, old: number, A: number) => (A > 0 ? p - old <= 0.2 : p - old >= -0.2);
const validKl = (p: number, old: number, A: number) => {
  const kl = old * Math.log(old / p) + (1 - old) * Math.log((1 - old + 1e-8) / (1 - p + 1e-8));
  return kl <= 0.05 || (A > 0 ? p <= old : p >= old);
};

/** Losses of the tokens of each episode to one number. */
type Aggregate = (losses: readonly (readonly number[])[]) => number;
const tokenMean: Aggregate = (losses) => mean(losses.flat());
const sequenceMean: Aggregate = (losses) => mean(losses.map(mean));
const tokenSum: Aggregate = (losses) => mean(losses.map(sum));
const fixedLength: Aggregate = (losses) => sum(losses.flat()) / (losses.length * 24);

/** Weight of a token for the engine that sampled, a constant. */
type Weight = (sample: Sample, t: number) => number;
const tokenRatio: Weight = ({ old, rollout }, t) => Math.exp(old[t]! - rollout[t]!);
const truncate: Weight = (sample, t) => Math.min(tokenRatio(sample, t), 2);
const icePop: Weight = (sample, t) => {
  const ratio = tokenRatio(sample, t);
  return ratio >= 0.5 && ratio <= 5 ? ratio : 0;
};
const sequenceMask: Weight = (sample, t) => {
  const episodes = episodeOf(sample);
  const ratio = Math.exp(sum(sample.old.map((at, j) => (episodes[j] === episodes[t] ? at - sample.rollout[j]! : 0))));
  return ratio <= 3 ? ratio : 0;
};

interface Theirs {
  readonly advantage: Advantage;
  readonly loss: TokenLoss;
  readonly aggregate: Aggregate;
  readonly weight?: Weight;
  /** Relative; 1e-6 where absent. */
  readonly tolerance?: number;
}
const verl: Theirs = { advantage: byStd(1e-6), loss: dualClip, aggregate: tokenMean };
const trl: Theirs = { advantage: byStd(1e-4), loss: vanilla(0.2, 0.2), aggregate: sequenceMean, tolerance: 2e-3 };
const trlPlain: Theirs = { advantage: lessMean, loss: vanilla(0.2, 0.2), aggregate: tokenMean };
const primeRl: Theirs = { advantage: lessMean, loss: dppo(validTv), aggregate: tokenMean };

/** In the order of the table. */
const THEIRS: readonly Theirs[] = [
  verl,
  { ...verl, aggregate: sequenceMean },
  { ...verl, aggregate: tokenSum },
  { ...verl, advantage: lessMean, aggregate: fixedLength },
  { ...verl, advantage: lessOthers },
  { ...verl, loss: tokenGspo, aggregate: sequenceMean },
  { ...verl, loss: cispo(0.8, 1.28) },
  { ...verl, loss: sapo },
  { ...verl, loss: dppo(validTv) },
  { ...verl, loss: dppo(validKl) },
  { ...verl, weight: truncate },
  { ...verl, weight: icePop },
  trl,
  { ...trl, loss: vanilla(0.2, 0.28), aggregate: tokenMean },
  { ...trlPlain, aggregate: fixedLength },
  { ...trl, loss: sequenceRatio },
  { ...trlPlain, loss: cispo(0, 5) },
  { ...trlPlain, loss: sapo, aggregate: sequenceMean },
  { ...trlPlain, weight: truncate },
  { ...trlPlain, weight: sequenceMask },
  primeRl,
  { ...primeRl, advantage: overMean },
];

/** Gradient by log-probabilities, in their convention. */
function theirGradient({ advantage, loss, aggregate, weight = () => 1 }: Theirs, sample: Sample): number[] {
  const episodes = episodeOf(sample);
  const at = (x: readonly number[]) =>
    aggregate(
      sample.lengths.map((_, i) =>
        x.flatMap((_x, t) =>
          episodes[t] === i ? [weight(sample, t) * loss(sample, t, x, sample.x, advantage(sample, i))] : [],
        ),
      ),
    );
  return slopesOf(at, sample.x);
}

const quickstart = readFileSync(new URL('experiments/quickstart.yaml', packageRoot), 'utf8');

/** Gradient by log-probabilities, through our configuration. */
function ourGradient(settings: readonly string[], sample: Sample): number[] {
  const { learner } = loadRunConfig(quickstart, 'quickstart.yaml', ['learner={}', ...settings]);
  const { rewards, lengths, x, old, rollout } = sample;
  const groups = [0, 1].map((g) =>
    group(
      rewards
        .slice(g * SIZE, (g + 1) * SIZE)
        .map((reward, i) => ({ turns: [{ reward, tokens: lengths[g * SIZE + i]! }] })),
      g,
    ),
  );
  const estimates = estimate(groups, learner.estimator);
  const sequence = episodeOf(sample);
  const { offPolicy } = learner;
  let weights = new Float64Array(x.length).fill(1);
  if ('per' in offPolicy) {
    const segments = offPolicy.per === 'token' ? undefined : lengths;
    const bounds = offPolicy.type === 'masked' ? { low: offPolicy.low, mask: true } : {};
    weights = Float64Array.from(importance(old, rollout, offPolicy.cap, segments, bounds).weights);
  }
  const batch = {
    logprob: x,
    old,
    advantage: sequence.map((i, t) => estimates[i]!.advantages[0]! * weights[t]!),
    weight: sequence.map((i) => estimates[i]!.weights[0]!),
    sequence,
  };
  return computePolicyLoss(batch, learner.policyLoss ?? { type: 'ppo_clip' }, learner).slopes;
}

describe('the same gradient of the same batch', () => {
  it('has a convention for each row', () => {
    expect(THEIRS).toHaveLength(EQUIVALENTS.length);
  });
  for (const [row, { library, theirs, ours }] of EQUIVALENTS.entries()) {
    it(`${library}: ${theirs}`, () => {
      const { tolerance = 1e-6 } = THEIRS[row]!;
      let slopes = 0;
      for (let seed = 1; seed <= 12; seed++) {
        const sample = draw(seed);
        const [got, want] = [ourGradient(ours, sample), theirGradient(THEIRS[row]!, sample)];
        const size = Math.max(...want.map(Math.abs));
        for (const [t, slope] of want.entries()) {
          expect(Math.abs(got[t]! - slope), `seed ${seed}, token ${t}`).toBeLessThanOrEqual(tolerance * size + 1e-9);
          if (slope !== 0) slopes++;
        }
      }
      expect(slopes).toBeGreaterThan(20);
    });
  }
  it('would notice another convention', () => {
    const sample = draw(1);
    const [got, want] = [ourGradient(EQUIVALENTS[0]!.ours, sample), theirGradient(THEIRS[1]!, sample)];
    expect(Math.max(...got.map((g, t) => Math.abs(g - want[t]!)))).toBeGreaterThan(1e-3);
  });
});
