/**
 * Training step: the compiled programs of one optimiser step. Either one program does forward, backward and AdamW, or a
 * gradient program runs over several passes, shared with replicas in other threads, and AdamW takes the summed gradients
 * (`learner.maxTokens`, and models that are trained layer by layer). It keeps no weights.
 */
import { estimatorOf } from '../../algo/estimators.ts';
import { sharesRatio } from '../../algo/policy-loss.ts';
import type { Engine, HostTensor, Program } from '../../compute/engine/engine.ts';
import { compileAdamW, compileGradients, runsByLayers } from '../../compute/model/compile.ts';
import { trainGraph } from '../../compute/model/programs.ts';
import { microBatches, sumPasses } from './micro-batches.ts';
import { auxiliaryLosses, type TrainerOptions } from './options.ts';
import { openReplicas, type Replica } from './replica.ts';
import {
  countWorldTokens,
  type DecisionFeed,
  type TrainDecision,
  type TrainGroup,
  trainingFeeds,
} from './training-batch.ts';

type Feeds = Readonly<Record<string, HostTensor>>;

/** Programs of an optimiser step. */
export class TrainingStep {
  readonly #options: TrainerOptions;
  /** Forward, backward and AdamW; or forward and backward alone, where passes are summed up. */
  readonly #program: Program;
  /** Replicas that passes are shared with. */
  readonly #replicas: readonly Replica[];
  /** AdamW over summed gradients. */
  readonly #optimizer: Program | undefined;

  private constructor(
    options: TrainerOptions,
    program: Program,
    replicas: readonly Replica[],
    optimizer: Program | undefined,
  ) {
    this.#options = options;
    this.#program = program;
    this.#replicas = replicas;
    this.#optimizer = optimizer;
  }

  /** Compiles the programs, here and in the replicas. */
  static async create(engine: Engine, options: TrainerOptions): Promise<TrainingStep> {
    const { decoder, adamW, model, estimator, masked, chunks, recompute, maxTokens } = options;
    const { objective } = estimatorOf(estimator);
    const decoding = { decoder, masked, chunks, recompute };
    const loss = { objective, policyLoss: options.policyLoss?.type, ...auxiliaryLosses(options) };
    const inOne = maxTokens === undefined && !runsByLayers(engine, model);
    const program = inOne
      ? await engine.compile(trainGraph(model, { ...decoding, ...loss, adamW }))
      : await compileGradients(engine, model, { ...decoding, ...loss });
    const optimizer = inOne ? undefined : await compileAdamW(engine, model, adamW);
    const more = maxTokens === undefined ? 0 : (options.replicas ?? 1) - 1;
    const replicas = await openReplicas(more, engine, { model, options: { ...decoding, ...loss } });
    return new TrainingStep(options, program, replicas, optimizer);
  }

  /**
   * Runs the step, in one pass or summed up over several.
   * @param feeds of each decision
   * @param weights weights, moments and coefficients of the loss
   * @param rates coefficients of AdamW
   * @returns new weights and moments, the loss and its statistics
   */
  async run(
    groups: readonly TrainGroup[],
    feeds: (decision: TrainDecision) => DecisionFeed,
    weights: Feeds,
    rates: Feeds,
  ): Promise<Feeds> {
    const { model, codec, maxTokens, observationCoef } = this.#options;
    // The mean over all of the world's tokens of the minibatch, of which a pass may hold a part.
    const share = observationCoef === undefined ? undefined : 1 / Math.max(1, countWorldTokens(groups));
    const pass = (part: readonly TrainGroup[]) => trainingFeeds(model, codec, this.#options, part, feeds, share).feeds;
    if (!this.#optimizer) return this.#program.run({ ...pass(groups), ...weights, ...rates });
    const passes =
      maxTokens === undefined ? [groups] : microBatches(groups, maxTokens, sharesRatio(this.#options.policyLoss));
    const parts = passes.map((part) => () => pass(part));
    const sums = await sumPasses({ program: this.#program, replicas: this.#replicas }, weights, parts);
    const step = await this.#optimizer.run({ ...sums, ...weights, ...rates });
    return { ...Object.fromEntries(Object.entries(sums).filter(([, { shape }]) => shape.length === 0)), ...step };
  }

  async dispose(): Promise<void> {
    for (const replica of this.#replicas) await replica.dispose();
    await this.#program.dispose();
    await this.#optimizer?.dispose();
  }
}
