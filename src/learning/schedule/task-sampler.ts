/**
 * Task samplers choose the next task. A sampler is a function of its seed and of the results it was given: no clock, no
 * global random. Its state is plain JSON for the checkpoint, and the same tasks follow from it.
 */

import { describeValue } from '../../core/describe-value.ts';
import { LongplayError, UserError } from '../../core/errors.ts';
import { Rng, type RngState, seedFrom } from '../../core/rng.ts';
import type { Task } from '../../core/task.ts';

/** Uniform sampling: every draw is independent of the others. */
export interface UniformSampling {
  readonly type: 'uniform';
  /** Draw a label (sub-task) first, each as likely, then a task of it; default false: labels in proportion to their tasks. */
  readonly balanced?: boolean;
}

/** Epoch sampling: every task once per epoch, in an order of the epoch's own. */
export interface EpochSampling {
  readonly type: 'epoch';
}

/**
 * Learnable sampling: in proportion to p(1 − p) + floor, where p is a running estimate of the task's success rate: p ←
 * p + smoothing·(observed − p). A task that always or never succeeds teaches a group-relative method nothing; its floor
 * keeps it coming back to be looked at again. A task not yet seen counts as p = `prior`.
 */
export interface LearnableSampling {
  readonly type: 'learnable';
  /**
   * Draw a label first, then a task of it: `true`, each label as likely; `failing`, in proportion to 1 − p + 0.1, where p is
   * the mean estimate of its tasks that were observed (0 before the first), so that labels that are learnt leave their
   * episodes to those that are not; `learnable`, in proportion to p(1 − p) + floor of that mean, however few its tasks are.
   * Default false: labels in proportion to their tasks' weights.
   */
  readonly balanced?: boolean | 'failing' | 'learnable';
  /** In (0, 1]; default 0.3. */
  readonly smoothing?: number;
  /** > 0; default 0.03. */
  readonly floor?: number;
  /** In [0, 1]; default 0.5, which tries what is new first. */
  readonly prior?: number;
}

export type TaskSampling = UniformSampling | EpochSampling | LearnableSampling;

/** State of a sampler; plain JSON, kept in the checkpoint. */
export interface TaskSamplerState {
  readonly format: 1;
  readonly type: TaskSampling['type'];
  /** Tasks drawn so far. */
  readonly draws: number;
  readonly rng: RngState;
  /** Hash of what the sampler was built from; a state fits no other. */
  readonly fits: number;
  /** Success estimates by task index, for tasks that were observed. */
  readonly estimates: readonly (readonly [index: number, p: number])[];
}

/**
 * Draws tasks of one env.
 *
 * The task seed of a draw is a function of (sampler seed, number of the draw), so two draws of one index open
 * different episodes where the env has anything random, and a resumed run opens the same ones.
 */
export class TaskSampler {
  readonly #env: string;
  readonly #indices: readonly number[];
  readonly #seed: number;
  readonly #sampling: TaskSampling;
  readonly #fits: number;
  readonly #position = new Map<number, number>();
  readonly #estimates: Float64Array; // NaN until observed
  /** Positions to draw among: one list for all, or one a label. */
  readonly #pools: readonly (readonly number[])[];
  #rng: Rng;
  #draws = 0;
  #order: { readonly epoch: number; readonly indices: readonly number[] } | undefined;

  /**
   * @param indices task indices to draw from, each once; a split of the env's task table
   * @param seed uint32
   * @param labelOf label of an index; balanced sampling needs it, since another's labels draw other tasks
   * @throws {UserError} BAD_CONFIG for an empty or repeating list, or a sampling parameter out of range
   * @throws {TypeError} for balanced sampling without `labelOf`
   */
  constructor(
    env: string,
    indices: readonly number[],
    seed: number,
    sampling: TaskSampling,
    labelOf?: (index: number) => string,
  ) {
    check(env, indices, sampling);
    this.#env = env;
    this.#indices = indices;
    this.#seed = seed;
    this.#sampling = sampling;
    const balanced = sampling.type !== 'epoch' && sampling.balanced;
    if (balanced && !labelOf) throw new TypeError('balanced sampling draws by labels: expected labelOf, got none');
    const way = `${sampling.type}${balanced ? ' balanced' : ''}${balanced === 'failing' ? ' failing' : ''}`;
    this.#fits = seedFrom(env, seed, way, indices.join());
    this.#pools = pools(indices, balanced && labelOf ? labelOf : () => '');
    for (const [at, index] of indices.entries()) this.#position.set(index, at);
    this.#estimates = new Float64Array(indices.length).fill(Number.NaN);
    this.#rng = Rng.fromSeed(seed).split('task-sampler');
  }

  /** Draws the next task. */
  next(): Task {
    const draw = this.#draws++;
    return {
      env: this.#env,
      index: this.#indices[this.#drawPosition(draw)]!,
      seed: seedFrom(this.#seed, 'task', draw),
    };
  }

  /**
   * Records the results of a task's episodes; `learnable` remembers them, the others need not.
   * @param success share of the group's episodes that solved the task, in [0, 1]
   */
  observe(index: number, success: number): void {
    const at = this.#position.get(index);
    if (at === undefined || this.#sampling.type !== 'learnable' || !(success >= 0 && success <= 1)) return;
    const { smoothing = 0.3, prior = PRIOR } = this.#sampling;
    const p = Number.isNaN(this.#estimates[at]!) ? prior : this.#estimates[at]!;
    this.#estimates[at] = p + smoothing * (success - p);
  }

  /** Success estimate of a task, or `undefined` when it was never observed. */
  estimate(index: number): number | undefined {
    const p = this.#estimates[this.#position.get(index) ?? -1];
    return p === undefined || Number.isNaN(p) ? undefined : p;
  }

  get state(): TaskSamplerState {
    const estimates: [number, number][] = [];
    for (const [at, p] of this.#estimates.entries()) if (!Number.isNaN(p)) estimates.push([this.#indices[at]!, p]);
    return {
      format: 1,
      type: this.#sampling.type,
      draws: this.#draws,
      rng: this.#rng.state,
      fits: this.#fits,
      estimates,
    };
  }

  /**
   * Resumes where `saved` was taken.
   * @throws {LongplayError} BAD_CHECKPOINT when it belongs to another seed, env, task list or way of sampling
   */
  restore(saved: unknown): void {
    const state = saved as TaskSamplerState;
    if (state?.format !== 1 || state.fits !== this.#fits) {
      throw new LongplayError(
        'BAD_CHECKPOINT',
        'task sampler: the saved state belongs to another seed, env, task list or way of sampling',
      );
    }
    const unknown = state.estimates.find(([index]) => !this.#position.has(index));
    if (unknown) {
      throw new LongplayError(
        'BAD_CHECKPOINT',
        `task sampler: the saved state knows task ${unknown[0]}, which is not drawn from`,
      );
    }
    this.#draws = state.draws;
    this.#rng = Rng.fromState(state.rng);
    this.#estimates.fill(Number.NaN);
    for (const [index, p] of state.estimates) this.#estimates[this.#position.get(index)!] = p;
  }

  #drawPosition(draw: number): number {
    const n = this.#indices.length;
    if (this.#sampling.type === 'epoch') return this.#epochOrder(Math.floor(draw / n))[draw % n]!;
    const pool = this.#drawPool();
    if (this.#sampling.type === 'uniform') return pool[this.#rng.int(pool.length)]!;
    const { floor = FLOOR, prior = PRIOR } = this.#sampling;
    const weight = (p: number): number => {
      const known = Number.isNaN(p) ? prior : p;
      return known * (1 - known) + floor;
    };
    // Summed anew for every draw, in index order: a running total would depend on the history of its rounding.
    let total = 0;
    for (const at of pool) total += weight(this.#estimates[at]!);
    let left = this.#rng.float() * total;
    for (const at of pool) {
      left -= weight(this.#estimates[at]!);
      if (left < 0) return at;
    }
    return pool.at(-1)!;
  }

  /** Draws a label's positions. One pool takes no random number, so what is not balanced draws as if there were no pools. */
  #drawPool(): readonly number[] {
    if (this.#pools.length === 1) return this.#pools[0]!;
    if (this.#sampling.type !== 'learnable' || this.#sampling.balanced === true) {
      return this.#pools[this.#rng.int(this.#pools.length)]!;
    }
    const { balanced, floor = FLOOR, prior = PRIOR } = this.#sampling;
    const weights = this.#pools.map((pool) => {
      if (balanced === 'failing') return 1 - meanKnown(pool, this.#estimates, 0) + SOLVED_FLOOR;
      const p = meanKnown(pool, this.#estimates, prior);
      return p * (1 - p) + floor;
    });
    let left = this.#rng.float() * weights.reduce((sum, weight) => sum + weight, 0);
    for (const [i, weight] of weights.entries()) {
      left -= weight;
      if (left < 0) return this.#pools[i]!;
    }
    return this.#pools.at(-1)!;
  }

  /** Positions in the order of an epoch; a function of (seed, epoch), so nothing of it need be saved. */
  #epochOrder(epoch: number): readonly number[] {
    if (this.#order?.epoch !== epoch) {
      const positions = this.#indices.map((_, at) => at);
      this.#order = { epoch, indices: Rng.fromSeed(this.#seed).split('epoch').split(epoch).shuffle(positions) };
    }
    return this.#order.indices;
  }
}

/** Weight of a task that always or never succeeds, unless configured. */
const FLOOR = 0.03;
/** Success assumed of what was never observed, unless configured. */
const PRIOR = 0.5;

/** Weight of a label whose tasks are all solved: it keeps being looked at. */
const SOLVED_FLOOR = 0.1;

/** Mean estimate of the observed among some positions, `unknown` where none is. */
function meanKnown(pool: readonly number[], estimates: Float64Array, unknown: number): number {
  let [sum, known] = [0, 0];
  for (const at of pool) {
    const p = estimates[at]!;
    if (Number.isNaN(p)) continue;
    sum += p;
    known++;
  }
  return known === 0 ? unknown : sum / known;
}

/** Positions of the indices by label, labels in the order of their first index. */
function pools(indices: readonly number[], labelOf: (index: number) => string): number[][] {
  const byLabel = new Map<string, number[]>();
  for (const [at, index] of indices.entries()) {
    const label = labelOf(index);
    const pool = byLabel.get(label);
    if (pool) pool.push(at);
    else byLabel.set(label, [at]);
  }
  return [...byLabel.values()];
}

function check(env: string, indices: readonly number[], sampling: TaskSampling): void {
  const need = (ok: boolean, key: string, expected: string, got: unknown): void => {
    if (!ok) throw new UserError('BAD_CONFIG', `tasks.${key}: expected ${expected}, got ${describeValue(got)}`);
  };
  need(indices.length > 0, 'indices', `at least one task of ${env}`, indices);
  need(new Set(indices).size === indices.length, 'indices', 'every task once', 'a repeating list');
  const { type } = sampling;
  need(type === 'uniform' || type === 'epoch' || type === 'learnable', 'type', 'uniform, epoch or learnable', type);
  if (type !== 'learnable') return;
  const { smoothing = 0.3, floor = 0.03, prior = 0.5 } = sampling;
  need(smoothing > 0 && smoothing <= 1, 'smoothing', 'in (0, 1]', smoothing);
  need(floor > 0 && Number.isFinite(floor), 'floor', 'a number > 0', floor);
  need(prior >= 0 && prior <= 1, 'prior', 'in [0, 1]', prior);
}
