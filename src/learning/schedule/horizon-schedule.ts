/**
 * Horizon schedules: how many turns an episode may take as training goes on. Pure state machines; the actor that owns
 * one only carries the state. The state holds everything (the config included), is plain JSON, and belongs in the
 * checkpoint: a resumed run has exactly the horizons of one that was never stopped.
 *
 * Steps are updates. Step k (1-based) is the one that leads to policy version k, so the episodes of a run that has
 * seen `updates` updates belong to step k = updates + 1.
 *
 * @see ScalingInter-RL: Xi et al. 2025, §3.3. https://arxiv.org/abs/2509.08755
 */

import { describeValue } from '../../core/describe-value.ts';
import { LongplayError, UserError } from '../../core/errors.ts';

/** Fixed schedule: one horizon for the whole run. */
export interface FixedHorizon {
  readonly type: 'fixed';
  /** Turns, ≥ 1. */
  readonly rounds: number;
}

/**
 * ScalingInter-RL: step k uses `rounds[min(floor((k − 1) / steps_scaling_inter), last)]`.
 *
 * Differs from the original's code on resume alone. Its scheduler compares the step count again after a load; it then
 * runs one phase ahead (at a phase boundary) or one step behind.
 */
export interface StepwiseHorizon {
  readonly type: 'scaling_inter_stepwise';
  /** Turns of each phase, each ≥ 1; the last holds for ever. */
  readonly rounds: readonly number[];
  /** Updates per phase, ≥ 1. */
  readonly steps_scaling_inter: number;
}

/**
 * Linear schedule: the same phases without the jumps, from `rounds[i]` at step i·S + 1 to `rounds[i + 1]` at step (i +
 * 1)·S + 1 in a straight line, rounded down.
 *
 * With two rounds it is the curriculum of TCOD-F2B for on-policy distillation, k = min(k_start + ⌊n/η⌋, k_max) after n updates:
 * `rounds: [k_start, k_max]`, `steps_scaling_inter: η·(k_max − k_start)`. Its other order, B2F, plays the student behind a prefix
 * of a teacher's recorded episode; there is no such thing here.
 * @see Wang et al. 2026 (TCOD). https://arxiv.org/abs/2604.24005
 */
export interface LinearHorizon {
  readonly type: 'linear';
  readonly rounds: readonly number[];
  /** Updates from one entry of `rounds` to the next, ≥ 1. */
  readonly steps_scaling_inter: number;
}

/**
 * Adaptive schedule: climbs the ladder `rounds` when the horizon binds and steps down when the policy collapses.
 * Decided from success and truncation rates of episodes that ran under the present horizon, smoothed over updates:
 *
 *   x̄ ← x̄ + smoothing·(x − x̄)
 *
 * from 0 at the start of the run, so that one lucky first update is no record. A new rung goes on from the success
 * rate of the one before (with more turns the same policy cannot do worse) and sees truncation afresh from 0.
 *
 * - *binds*: truncation x̄ ≥ `growTruncation`, so episodes end because they were cut;
 * - *settled*: success x̄ ≥ `growSuccess`, or no gain of `minGain` over the rung's best for `patience` updates;
 * - up one rung when both have held for `patience` updates in a row and at least `cooldown` updates were seen here;
 * - *collapse*: success x̄ < `collapse` · (the rung's best) where that best was at least `minGain`; down one rung
 *   after `patience` such updates in a row.
 *
 * Hysteresis: the two thresholds lie apart, and both moves need `patience`. Once a rung had to be left downwards, the
 * one below is left upwards only when success is back at `recover` · (its own earlier best). A rung entered from below
 * is judged against the success it was entered with.
 */
export interface AdaptiveHorizon {
  readonly type: 'adaptive';
  /** The ladder: turns, strictly ascending. */
  readonly rounds: readonly number[];
  /** Weight of the newest update in the running means, in (0, 1]; default 0.2. */
  readonly smoothing?: number;
  /** Share of truncated episodes, in [0, 1]; default 0.2. */
  readonly growTruncation?: number;
  /** Success rate that counts as settled at once, in [0, 1]; default 0.7. */
  readonly growSuccess?: number;
  /** Gain in success rate that counts as progress, in (0, 1]; default 0.02. */
  readonly minGain?: number;
  /** Updates in a row, ≥ 1; default 10. */
  readonly patience?: number;
  /** Fewest updates on a rung before the next one up, ≥ 0; default 20. */
  readonly cooldown?: number;
  /** Share of the rung's best success below which the policy has collapsed, in [0, 1); default 0.5. */
  readonly collapse?: number;
  /** Share of its earlier best that a rung must regain after a collapse, in (collapse, 1]; default 0.8. */
  readonly recover?: number;
}

export type HorizonConfig = FixedHorizon | StepwiseHorizon | LinearHorizon | AdaptiveHorizon;

/** Statistics of the episodes that one update consumed, split by the horizon they ran under. */
export interface UpdateStats {
  readonly byHorizon: readonly HorizonStats[];
}

export interface HorizonStats {
  /** World of the episodes (`Task.env`); read where a run has several. */
  readonly world?: string;
  readonly horizon: number;
  readonly episodes: number;
  readonly successes: number;
  readonly truncated: number;
}

/** State of a schedule; plain JSON, kept in the checkpoint. */
export interface HorizonState {
  readonly format: 1;
  readonly config: HorizonConfig;
  /** Updates seen. */
  readonly updates: number;
  /** Ladder state of `adaptive`; absent for others. */
  readonly ladder?: LadderState;
}

export interface LadderState {
  /** Index into `rounds`. */
  readonly rung: number;
  /** Updates with episodes of this rung since it was entered. */
  readonly seen: number;
  /** Running means, in [0, 1]. */
  readonly success: number;
  readonly truncation: number;
  /** Best running success of each rung that was visited, else 0. */
  readonly best: readonly number[];
  /** Updates since the running success last gained `minGain` on the best. */
  readonly sinceGain: number;
  /** Updates in a row for which the rung was ready to be left, upwards and downwards. */
  readonly ready: number;
  readonly collapsed: number;
  /** Success that must be regained before the next step up; 0 unless a collapse led here. */
  readonly regain: number;
}

/** Starts a schedule. @throws {UserError} BAD_CONFIG naming the key, what was expected and what came */
export function create(config: HorizonConfig): HorizonState {
  check(config);
  const state = { format: 1, config, updates: 0 } as const;
  return config.type === 'adaptive'
    ? { ...state, ladder: enter(0, 0, 0, new Array(config.rounds.length).fill(0)) }
    : state;
}

/**
 * Restores a state from a checkpoint.
 * @throws {UserError} BAD_CONFIG when the run was started under another schedule: its past would not fit
 * @throws {LongplayError} BAD_CHECKPOINT when `saved` is not a state of this format
 */
export function restore(config: HorizonConfig, saved: unknown): HorizonState {
  const state = saved as HorizonState;
  if (state?.format !== 1 || !isCount(state.updates, 0) || (config.type === 'adaptive') !== Boolean(state.ladder)) {
    throw new LongplayError('BAD_CHECKPOINT', 'horizon schedule: the saved state is not one of format 1');
  }
  if (canonical(state.config) !== canonical(config)) {
    throw new UserError(
      'BAD_CONFIG',
      `horizon: the run was started with ${canonical(state.config)}, the configuration now has ${canonical(config)}; ` +
        'resume with the run’s own configuration or start a new run',
    );
  }
  return state;
}

/** The horizon, in turns, of an episode that starts now. */
export function horizon(state: HorizonState): number {
  const { config, updates } = state;
  if (config.type === 'fixed') return config.rounds;
  if (config.type === 'adaptive') return config.rounds[state.ladder!.rung]!;
  const { rounds, steps_scaling_inter: S } = config;
  const last = rounds.length - 1;
  const phase = Math.min(Math.floor(updates / S), last);
  if (config.type === 'scaling_inter_stepwise' || phase === last) return rounds[phase]!;
  return Math.floor((rounds[phase]! * (S - (updates % S)) + rounds[phase + 1]! * (updates % S)) / S);
}

/** Advances the schedule by one update. Only `adaptive` reads `stats`. */
export function next(state: HorizonState, stats: UpdateStats): HorizonState {
  const updates = state.updates + 1;
  if (state.config.type !== 'adaptive') return { ...state, updates };
  const here = horizon(state);
  let episodes = 0;
  let successes = 0;
  let truncated = 0;
  for (const part of stats.byHorizon) {
    if (part.horizon !== here) continue; // episodes of an earlier rung, still arriving: they show nothing of this one
    episodes += part.episodes;
    successes += part.successes;
    truncated += part.truncated;
  }
  if (episodes === 0) return { ...state, updates };
  return { ...state, updates, ladder: climb(state.config, state.ladder!, successes / episodes, truncated / episodes) };
}

function climb(config: AdaptiveHorizon, at: LadderState, successRate: number, truncationRate: number): LadderState {
  const { smoothing, growTruncation, growSuccess, minGain, patience, cooldown, collapse, recover } = {
    ...ADAPTIVE_DEFAULTS,
    ...config,
  };
  const success = at.success + smoothing * (successRate - at.success);
  const truncation = at.truncation + smoothing * (truncationRate - at.truncation);
  const seen = at.seen + 1;
  const before = at.best[at.rung]!;
  const gained = success >= before + minGain;
  const sinceGain = gained ? 0 : at.sinceGain + 1;
  const best = gained ? at.best.with(at.rung, success) : at.best;

  const settled = success >= growSuccess || sinceGain >= patience;
  const ready = truncation >= growTruncation && settled && success >= at.regain ? at.ready + 1 : 0;
  const collapsed = before >= minGain && success < collapse * before ? at.collapsed + 1 : 0;

  if (collapsed >= patience && at.rung > 0) {
    return enter(at.rung - 1, success, recover * best[at.rung - 1]!, best);
  }
  if (collapsed === 0 && ready >= patience && seen >= cooldown && at.rung < config.rounds.length - 1) {
    return enter(at.rung + 1, success, 0, best.with(at.rung + 1, success));
  }
  return { ...at, success, truncation, seen, best, sinceGain, ready, collapsed };
}

/** @param regain success to reach before leaving upwards */
function enter(rung: number, success: number, regain: number, best: readonly number[]): LadderState {
  return { rung, seen: 0, success, truncation: 0, best, sinceGain: 0, ready: 0, collapsed: 0, regain };
}

/** Defaults of `adaptive` for keys that are not given. */
const ADAPTIVE_DEFAULTS = {
  smoothing: 0.2,
  growTruncation: 0.2,
  growSuccess: 0.7,
  minGain: 0.02,
  patience: 10,
  cooldown: 20,
  collapse: 0.5,
  recover: 0.8,
} as const;

function check(config: HorizonConfig): void {
  const { type } = config;
  const known = ['fixed', 'scaling_inter_stepwise', 'linear', 'adaptive'].includes(type);
  need('type', 'fixed, scaling_inter_stepwise, linear or adaptive', type, known);
  const { rounds } = config;
  if (config.type === 'fixed') {
    need('rounds', 'a whole number of turns ≥ 1', rounds, isCount(rounds, 1));
    return;
  }
  const list = Array.isArray(rounds) && rounds.length > 0 && rounds.every((turns) => isCount(turns, 1));
  need('rounds', 'a list of whole numbers of turns ≥ 1', rounds, list);
  if (config.type !== 'adaptive') {
    const S = config.steps_scaling_inter;
    need('steps_scaling_inter', 'a whole number of updates ≥ 1', S, isCount(S, 1));
    return;
  }
  const ascending = config.rounds.every((turns, i) => i === 0 || turns > config.rounds[i - 1]!);
  need('rounds', 'a strictly ascending list', rounds, ascending);
  const c = { ...ADAPTIVE_DEFAULTS, ...config };
  need('smoothing', 'in (0, 1]', c.smoothing, c.smoothing > 0 && c.smoothing <= 1);
  need('growTruncation', 'in [0, 1]', c.growTruncation, c.growTruncation >= 0 && c.growTruncation <= 1);
  need('growSuccess', 'in [0, 1]', c.growSuccess, c.growSuccess >= 0 && c.growSuccess <= 1);
  need('minGain', 'in (0, 1]', c.minGain, c.minGain > 0 && c.minGain <= 1);
  need('patience', 'a whole number of updates ≥ 1', c.patience, isCount(c.patience, 1));
  need('cooldown', 'a whole number of updates ≥ 0', c.cooldown, isCount(c.cooldown, 0));
  need('collapse', 'in [0, 1)', c.collapse, c.collapse >= 0 && c.collapse < 1);
  need('recover', `in (collapse = ${c.collapse}, 1]`, c.recover, c.recover > c.collapse && c.recover <= 1);
}

function need(key: string, expected: string, got: unknown, ok: boolean): void {
  if (!ok) throw new UserError('BAD_CONFIG', `horizon.${key}: expected ${expected}, got ${describeValue(got)}`);
}

function isCount(value: unknown, least: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

/** Configuration as text. The order of its keys and defaults given or left out make no difference. */
function canonical(config: HorizonConfig): string {
  const defaults: Readonly<Record<string, unknown>> = config.type === 'adaptive' ? ADAPTIVE_DEFAULTS : {};
  const given = Object.entries(config).filter(([key, value]) => value !== defaults[key]);
  return JSON.stringify(Object.fromEntries(given.sort(([a], [b]) => (a < b ? -1 : 1))));
}
