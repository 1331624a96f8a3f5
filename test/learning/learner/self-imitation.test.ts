/** Self-imitation: what is remembered, what is drawn, and that its gradient is −∇ log π · (R − V)₊. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import { type DecoderKind, logprobsGraph } from '../../../src/compute/model/programs.ts';
import { Rng } from '../../../src/core/rng.ts';
import type { Group, Trajectory } from '../../../src/core/trajectory.ts';
import { measure } from '../../../src/learning/learner/measure.ts';
import {
  drawRemembered,
  plainMemory,
  type Remembered,
  reviveMemory,
  surplusOf,
  updateMemory,
} from '../../../src/learning/learner/self-imitation.ts';
import { Trainer, type TrainerOptions, type TrainerStart } from '../../../src/learning/learner/trainer.ts';
import { trainUnits } from '../../../src/learning/learner/training-batch.ts';
import { toJson } from '../../../src/storage/trace.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';
import { trajectory } from '../../support/trajectories.ts';

const codec = new ViewCodec(view);
const GAMMA = 0.9;
const WIDE = 1e6;

function optionsOf(decoder: DecoderKind, change: Partial<TrainerOptions> = {}): TrainerOptions {
  return {
    model: smallModel(codec.vocabSize, {
      hiddenSize: 8,
      layers: 1,
      maxPositions: 64,
      choiceHead: decoder === 'choice',
      valueHead: true,
    }),
    codec,
    decoder,
    estimator: {
      algorithm: 'ppo',
      lambda: 1,
      whiten: false,
      gamma: GAMMA,
      truncation: 'terminal',
      aggregation: { type: 'token-mean' },
    },
    epochs: 1,
    minibatches: 1,
    coefficients: { clipLow: WIDE, clipHigh: WIDE, entropyCoef: 0.01, valueCoef: 0, valueClip: 1 },
    offPolicy: { type: 'ratio' },
    learningRate: { peak: 0.01, warmupSteps: 0, decay: 'none', final: 1 },
    maxGradNorm: 1e9,
    adamW: defaultAdamW,
    filterGroups: false,
    seed: 1,
    ...change,
  };
}

function episodes(decoder: DecoderKind, seed = 7): Trajectory[] {
  const groups = toyGroups({ world: 'chain', codec, decoder, groups: 4, size: 3, horizon: 6, seed });
  return groups.flatMap(({ trajectories }) => trajectories);
}

const alone = (trajectory: Trajectory): Group => ({
  group: trajectory.group,
  task: trajectory.task,
  horizon: trajectory.horizon,
  trajectories: [trajectory],
});

/** The episode with every reward raised, so that all of it earned more than any critic expects. */
function paid(trajectory: Trajectory, more: number): Trajectory {
  return { ...trajectory, turns: trajectory.turns.map((turn) => ({ ...turn, reward: turn.reward + more })) };
}

async function updated(
  decoder: DecoderKind,
  options: Partial<TrainerOptions>,
  start: Partial<TrainerStart>,
  groups: Group[],
) {
  const engine = await openEngine({ name: 'reference' });
  const all = optionsOf(decoder, options);
  const trainer = await Trainer.create(engine, all, { params: initialParams(all.model, 1), ...start });
  const result = await trainer.update(groups, 0);
  expect(result.broken).toBeUndefined();
  return { trainer, result, gradient: trainer.moments.m };
}

/** The episode as the weights that start a trainer would have recorded it. */
async function asDecidedNow(decoder: DecoderKind, trajectory: Trajectory): Promise<Trajectory> {
  const engine = await openEngine({ name: 'reference' });
  const { model } = optionsOf(decoder);
  const program = await engine.compile(logprobsGraph(model, { decoder, masked: true }));
  const units = trainUnits(codec, [trajectory], 0);
  const { logprobs, values } = await measure({ model, codec, decoder, program }, initialParams(model, 1), units);
  let at = 0;
  const turns = trajectory.turns.map((turn) => {
    const decision = turn.decision!;
    const value = values[at]!;
    if (decision.kind === 'choice') return { ...turn, decision: { ...decision, value, logprob: logprobs[at++]! } };
    const own = decision.logprobs.map(() => logprobs[at++]!);
    return { ...turn, decision: { ...decision, value, logprobs: own } };
  });
  return { ...trajectory, turns };
}

const selfImitation = { episodes: 1, capacity: 4, weight: 1 };

describe('the surplus (R − V)₊', () => {
  const made = trajectory({
    turns: [
      { reward: 0, value: 0.5 },
      { reward: 1, value: 3 },
      { reward: 2, value: -1 },
    ],
  });

  it('is what the episode earned beyond the critic, by hand', () => {
    // γ = 0.9: R = [0 + 0.9·2.8, 1 + 0.9·2, 2] = [2.52, 2.8, 2]
    const { returns, surplus, mean } = surplusOf(made, 0.9);
    [2.52, 2.8, 2].forEach((value, d) => expect(returns[d]).toBeCloseTo(value, 12));
    [2.02, 0, 3].forEach((value, d) => expect(surplus[d]).toBeCloseTo(value, 12));
    expect(mean).toBeCloseTo(5.02 / 3, 12);
  });

  it('is taken against the values that are given, where some are', () => {
    const { surplus } = surplusOf(made, 0.9, [2, 2.8, 2.5]);
    [0.52, 0, 0].forEach((value, d) => expect(surplus[d]).toBeCloseTo(value, 12));
  });

  it('decides what is remembered: the better critic leaves less to imitate', () => {
    const expected = trajectory({ turns: [{ reward: 1, value: 1 }] }, 1);
    const surprising = trajectory({ turns: [{ reward: 1, value: 0.25 }] }, 2);
    const memory = (played: Trajectory) => updateMemory([], [], [played], { episodes: 1, capacity: 4, weight: 1 }, 0.9);
    expect(memory(expected)).toEqual([]);
    expect(memory(surprising)).toEqual([{ trajectory: surprising, priority: 0.75 }]);
  });
});

describe('self-imitation', () => {
  it.each(['choice', 'tokens'] as const)('has the gradient −∇ log π · (R − V)₊, by %s', async (decoder) => {
    const episode = paid(episodes(decoder)[0]!, 2);
    const state = { rateScale: 1, memory: plainMemory([{ trajectory: episode, priority: 1 }]) };
    const imitated = await updated(decoder, { selfImitation }, { state }, []);
    // Monte Carlo PPO on the same episode, as if the present weights had played it: its advantages are R − V, all above 0.
    const played = await updated(decoder, {}, {}, [alone(await asDecidedNow(decoder, episode))]);
    expect(imitated.result.stats).toMatchObject({ imitatedEpisodes: 1 });
    for (const [name, values] of Object.entries(played.gradient)) {
      const found = imitated.gradient[name]!;
      const scale = Math.max(...values.map(Math.abs), 1e-9);
      values.forEach((value, i) => expect(Math.abs(found[i]! - value) / scale, name).toBeLessThan(1e-3));
    }
    expect(Math.max(...Object.values(played.gradient).flatMap((values) => [...values.map(Math.abs)]))).toBeGreaterThan(
      0,
    );
  });

  it('is weighed by its factor', async () => {
    const trajectory = paid(episodes('choice')[0]!, 2);
    const state = { rateScale: 1, memory: plainMemory([{ trajectory, priority: 1 }]) };
    const coefficients = { ...optionsOf('choice').coefficients, entropyCoef: 0 };
    const run = (weight: number) =>
      updated('choice', { selfImitation: { ...selfImitation, weight }, coefficients }, { state }, []);
    const [once, thrice] = [(await run(1)).gradient, (await run(3)).gradient];
    for (const [name, values] of Object.entries(once)) {
      const scale = Math.max(...values.map(Math.abs), 1e-9);
      values.forEach((value, i) => expect(Math.abs(thrice[name]![i]! / 3 - value) / scale, name).toBeLessThan(1e-3));
    }
  });

  it('teaches the critic nothing', async () => {
    const trajectory = paid(episodes('choice')[0]!, 2);
    const state = { rateScale: 1, memory: plainMemory([{ trajectory, priority: 1 }]) };
    const coefficients = { ...optionsOf('choice').coefficients, entropyCoef: 0 };
    const run = (valueCoef: number) =>
      updated('choice', { selfImitation, coefficients: { ...coefficients, valueCoef } }, { state }, []);
    expect((await run(0.5)).gradient).toEqual((await run(0)).gradient);
  });

  it('learns nothing from what the critic expected', async () => {
    const trajectory = paid(episodes('choice')[0]!, -5);
    const state = { rateScale: 1, memory: plainMemory([{ trajectory, priority: 1 }]) };
    const { result, trainer } = await updated('choice', { selfImitation }, { state }, []);
    expect(result.optimizerSteps).toBe(0);
    expect(trainer.state.memory).toEqual([]); // measured anew, it is worth nothing
  });

  it('remembers what an update played, and trains on it in the next', async () => {
    const groups = episodes('choice').map((one) => alone(paid(one, 2)));
    const { trainer } = await updated('choice', { selfImitation }, {}, groups);
    expect(trainer.state.memory!.length).toBe(4); // four tasks
    const { stats, decisions } = await trainer.update([], 0);
    expect(stats.imitatedEpisodes).toBe(1);
    expect(decisions).toBeGreaterThan(0);
  });

  it('needs a critic, and nothing that imitates already', async () => {
    const engine = await openEngine({ name: 'reference' });
    const create = (change: Partial<TrainerOptions>) => {
      const all = optionsOf('choice', { selfImitation, ...change });
      return Trainer.create(engine, all, { params: initialParams(all.model, 1) });
    };
    const { estimator, model } = optionsOf('choice');
    const { gamma, truncation, aggregation } = estimator;
    const grpo = { algorithm: 'grpo', std: true, credit: 'trajectory', gamma, truncation, aggregation } as const;
    await expect(create({ estimator: grpo, model: { ...model, valueHead: false } })).rejects.toThrow(
      'selfImitation needs a critic',
    );
    const evol = { algorithm: 'agent_evol', threshold: 0, gamma, truncation, aggregation } as const;
    await expect(create({ estimator: evol })).rejects.toThrow('imitates already');
  });
});

describe('a memory of episodes', () => {
  const task = (trajectory: Trajectory, index: number): Trajectory => ({
    ...trajectory,
    task: { ...trajectory.task, index },
  });
  const some = episodes('choice');

  it('keeps the best of each task, by falling priority, up to its capacity', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ index: fc.nat(5), more: fc.double({ min: -2, max: 2, noNaN: true }), before: fc.boolean() }),
        ),
        fc.integer({ min: 1, max: 4 }),
        (made, capacity) => {
          const all = made.map(({ index, more }) => task(paid(some[0]!, more), index));
          const priorityOf = (one: Trajectory) => surplusOf(one, GAMMA).mean;
          const before = all
            .filter((one, i) => made[i]!.before && priorityOf(one) > 0)
            .map((trajectory): Remembered => ({ trajectory, priority: priorityOf(trajectory) }));
          const played = all.filter((_, i) => !made[i]!.before);
          const kept = updateMemory(before, [], played, { episodes: 1, capacity, weight: 1 }, GAMMA);
          const best = new Map<number, number>();
          for (const one of all) best.set(one.task.index, Math.max(best.get(one.task.index) ?? 0, priorityOf(one)));
          const wanted = [...best.values()].filter((priority) => priority > 0).sort((a, b) => b - a);
          expect(kept.map(({ priority }) => priority)).toEqual(wanted.slice(0, capacity));
          expect(new Set(kept.map(({ trajectory }) => trajectory.task.index)).size).toBe(kept.length);
        },
      ),
    );
  });

  it('leaves out what the policy did not decide throughout', () => {
    const won = paid(some[0]!, 2);
    const scripted = {
      ...won,
      turns: won.turns.map(({ decision: _, ...turn }, t) => (t === 0 ? turn : won.turns[t]!)),
    };
    const untrained = { ...won, turns: won.turns.map((turn) => ({ ...turn, untrained: true as const })) };
    const options = { episodes: 1, capacity: 9, weight: 1 };
    expect(updateMemory([], [], [scripted, untrained], options, GAMMA)).toEqual([]);
    expect(updateMemory([], [], [won], options, GAMMA)).toHaveLength(1);
  });

  it('draws by priority, none twice', () => {
    const memory = some
      .slice(0, 3)
      .map((one, i): Remembered => ({ trajectory: task(one, i), priority: [1, 2, 6][i]! }));
    const rng = Rng.fromSeed(3);
    const first = [0, 0, 0];
    for (let n = 0; n < 9000; n++) {
      const picked = drawRemembered(memory, 2, rng);
      expect(new Set(picked).size).toBe(2);
      first[picked[0]!.trajectory.task.index]!++;
    }
    for (const [i, share] of [1 / 9, 2 / 9, 6 / 9].entries()) expect(first[i]! / 9000).toBeCloseTo(share, 1);
    expect(drawRemembered(memory, 9, rng)).toHaveLength(3);
    expect(drawRemembered([], 9, rng)).toEqual([]);
  });

  it('comes back from a checkpoint without what is read otherwise now, and without impossible earnings', () => {
    const memory = some
      .slice(0, 3)
      .map((one, i): Remembered => ({ trajectory: task(paid(one, 1), i), priority: i + 1 }));
    const [first, second, third] = toJson(plainMemory(memory)) as unknown as [Remembered, Remembered, Remembered];
    const turns = second.trajectory.turns.map((turn) => ({
      ...turn,
      observation: `${turn.observation} and more words`,
    }));
    const other = { ...second, trajectory: { ...second.trajectory, turns } };
    const rich = { ...third, trajectory: paid(third.trajectory, 1e300) };
    expect(reviveMemory([first, other, rich], codec, GAMMA)).toEqual([memory[0]]);
  });
});
