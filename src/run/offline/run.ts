/** Offline training of a run's policy from recorded episodes, as `longplay sft` and `longplay dpo` do it. */
import { join } from 'node:path';
import { openEngine } from '../../compute/engine/open.ts';
import { defaultAdamW } from '../../compute/model/optimizer.ts';
import type { ParamSet } from '../../compute/model/parameters.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { LongplayError, UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import type { Group } from '../../core/trajectory.ts';
import type { View } from '../../core/view.ts';
import { cut } from '../../learning/learner/measure.ts';
import { passOptions } from '../../learning/learner/options.ts';
import { loadNewestOf } from '../../learning/learner/run-checkpoint.ts';
import { checkpointContent, type Identity } from '../../learning/learner/run-state.ts';
import { Trainer } from '../../learning/learner/trainer.ts';
import type { Moments } from '../../learning/learner/weights.ts';
import { setUpPolicy } from '../../policy/setup.ts';
import { saveCheckpoint } from '../../storage/checkpoint.ts';
import { readIdentity } from '../../storage/run-identity.ts';
import type { Demonstration } from './demonstrations.ts';
import { type PreferenceEpoch, pairUp, trainOnPairs } from './preference.ts';
import type { OfflineStep } from './step.ts';
import { fromDemonstration } from './teach.ts';

export interface OfflineRequest {
  readonly config: RunConfig;
  /** Folder of the run; a checkpoint is left in it. */
  readonly dir: string;
  readonly view: View | undefined;
  /** Instructions for a language model. */
  readonly prompt: WorldPrompt;
  readonly demonstrations: readonly Demonstration[];
  readonly epochs: number;
  /** Episodes (or pairs) of one optimiser step. */
  readonly batch: number;
  /** Learns whole answers, thoughts included, and not the action alone. Default true. */
  readonly thoughts?: boolean | undefined;
  /** Called after each optimiser step. */
  readonly onStep?: (step: OfflineStep) => void;
}

export interface SupervisedEpoch {
  /** Mean negative log-likelihood per trained token (or choice), nats. */
  readonly nll: number;
}

/**
 * Supervised fine-tuning: the learner imitates every demonstration.
 * @throws {UserError} BAD_TRACE when a demonstration does not fit the policy
 */
export async function superviseRun(request: OfflineRequest, onEpoch: (epoch: SupervisedEpoch) => void): Promise<void> {
  const { config, demonstrations, epochs, batch } = request;
  const setup = setUp(request);
  const groups = demonstrations.map((one, i): Group => {
    const trajectory = fromDemonstration(setup.reader, one, i, i);
    return { group: i, task: trajectory.task, horizon: trajectory.horizon, trajectories: [trajectory] };
  });
  need(groups.length > 0, 'no demonstrations');
  const engine = await openEngine(setup.engine);
  const trainer = await Trainer.create(
    engine,
    {
      ...setup.training,
      estimator: {
        algorithm: 'agent_evol',
        threshold: Number.NEGATIVE_INFINITY,
        gamma: 1,
        truncation: 'terminal',
        aggregation: config.learner.estimator.aggregation,
      },
      epochs: 1,
      minibatches: 1,
      coefficients: { clipLow: 0, clipHigh: 0, entropyCoef: 0, valueCoef: 0, valueClip: 1 },
      offPolicy: { type: 'ratio' },
      filterGroups: false,
    },
    { params: setup.params },
  );
  try {
    const rng = Rng.fromSeed(seedFrom(config.seed, 'supervised'));
    const steps = Math.ceil(groups.length / batch);
    for (let epoch = 0; epoch < epochs; epoch++) {
      let nll = 0;
      for (const [s, part] of cut(rng.shuffle(groups), steps).entries()) {
        const result = await trainer.update(part, (epoch * steps + s) / (epochs * steps));
        if (result.broken) throw createBrokenError(result.broken.where, result.broken.message);
        nll += result.stats.nll! / steps;
        request.onStep?.({ done: epoch * steps + s + 1, total: epochs * steps, loss: result.stats.nll! });
      }
      onEpoch({ nll });
    }
    save(request, setup.identity, trainer.params, trainer.moments);
  } finally {
    await trainer.dispose();
    await engine.dispose();
  }
}

/** DPO from pairs of episodes of one task whose scores differ. @returns how many pairs there were */
export async function preferRun(
  request: OfflineRequest & { readonly beta: number },
  onEpoch: (epoch: PreferenceEpoch) => void,
): Promise<number> {
  const { demonstrations, epochs, batch, beta } = request;
  const setup = setUp(request);
  const opening = ({ turns }: Demonstration) => turns[0]?.observation;
  const pairs = pairUp(demonstrations, (a, b) => opening(a) === opening(b)).map(({ chosen, rejected }, i) => ({
    chosen: fromDemonstration(setup.reader, chosen, 2 * i, i),
    rejected: fromDemonstration(setup.reader, rejected, 2 * i + 1, i),
  }));
  need(pairs.length > 0, 'no two episodes of one task with different scores');
  const engine = await openEngine(setup.engine);
  try {
    const { onStep } = request;
    const options = { ...setup.training, beta, epochs, pairsPerStep: batch, ...(onStep ? { onStep } : {}) };
    const result = await trainOnPairs(engine, options, setup.params, pairs, onEpoch);
    if ('broken' in result) throw createBrokenError(result.broken.where, result.broken.message);
    save(request, setup.identity, result.params, result.moments);
    return pairs.length;
  } finally {
    await engine.dispose();
  }
}

function setUp({ config, view, prompt, dir, thoughts }: OfflineRequest) {
  const { init, decoder, masked } = config.policy;
  const checkpoint = init === undefined ? undefined : loadNewestOf(init);
  const setup = setUpPolicy(config, { view, prompt }, dir, undefined, checkpoint);
  if (!setup) throw new UserError('BAD_CONFIG', `policy.kind: '${config.policy.kind}' has no weights to train`);
  const { model, identity, params, codec } = setup;
  const reader = { codec, decoder, masked, thoughts };
  const { learner, engine, seed } = config;
  const { learningRate: peak, warmupSteps, decay, finalRate: final, maxGradNorm } = learner;
  return {
    reader,
    identity,
    params,
    engine: { name: engine.name, device: engine.device, packing: engine.packing, threads: engine.learnerThreads },
    training: {
      ...reader,
      ...passOptions(config, model),
      model,
      learningRate: { peak, warmupSteps, decay, final },
      maxGradNorm,
      adamW: defaultAdamW,
      seed,
    },
  };
}

function save({ config, dir }: OfflineRequest, identity: Identity, params: ParamSet, moments: Moments): void {
  const learner = { trainer: { rateScale: 1 }, brokenInARow: 0 };
  const run = readIdentity(dir);
  const content = checkpointContent({ run, identity, params, moments, learner, rollout: null, horizon: null });
  const saved = saveCheckpoint(join(dir, 'checkpoints'), params.version, content, { keep: config.checkpoint.keep });
  if (!saved.ok) throw new LongplayError('NO_PERMISSION', `${saved.code}: ${saved.message}`);
}

function need(ok: boolean, what: string): void {
  if (!ok) throw new UserError('BAD_TRACE', `there is nothing to learn from: ${what}`);
}

function createBrokenError(where: string, message: string): LongplayError {
  return new LongplayError('BAD_WEIGHTS', `not finite: ${where}: ${message}; try a smaller learner.learningRate`);
}
