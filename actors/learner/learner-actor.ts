/**
 * Learner actor: consumes finished groups, waits until an update's worth is there, trains, publishes the weights,
 * reports. Groups without a signal may be put aside until enough others have come (dynamic sampling); the update
 * consumes them too.
 *
 * Order after an update: weights go to the inference actor, then the report goes to the scheduler (so an episode
 * that starts after the report acts under the new weights), then a due checkpoint is written, which therefore
 * holds the run as it is after the update. Groups with a decision older than `maxLag` are dropped as stale, never
 * trained on. An update in which anything was not finite is taken back and its batch quarantined; after several in a
 * row the weights of the last good checkpoint are restored, and go on with a smaller step.
 */

import { isInformative, nextBatch } from '../../src/algo/dynamic-sampling.ts';
import { fullDisk } from '../../src/chaos/full-disk.ts';
import { diskFault } from '../../src/chaos/injector.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { ParamSet } from '../../src/compute/model/parameters.ts';
import type { ChatModel } from '../../src/core/chat-model.ts';
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import { Judge } from '../../src/core/judge.ts';
import { episodeReturn, type Group } from '../../src/core/trajectory.ts';
import { quarantine } from '../../src/learning/learner/quarantine.ts';
import { type RankingOptions, rankGroup } from '../../src/learning/learner/ranking.ts';
import { checkpointContent } from '../../src/learning/learner/run-state.ts';
import { type Breakage, type Moments, Trainer, type UpdateResult } from '../../src/learning/learner/trainer.ts';
import { digestOf, encodeWeights } from '../../src/learning/learner/weights-file.ts';
import { groupWithinLag, lagOfTokens } from '../../src/learning/schedule/admission.ts';
import type { HorizonStats, UpdateStats } from '../../src/learning/schedule/horizon-schedule.ts';
import { openChatModel } from '../../src/policy/remote/chat-model.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import { saveCheckpoint } from '../../src/storage/checkpoint.ts';
import { codecOf } from '../../src/text/reading/codec-of.ts';
import { loadReading } from '../../src/world/open-world.ts';
import type { WeightsCommand } from '../cluster/protocol.ts';
import type { InferenceCommand } from '../inference/protocol.ts';
import type { SchedulerCommand, SchedulerSnapshot } from '../scheduler/protocol.ts';
import type {
  BrokenUpdate,
  GroupFinished,
  GroupRanked,
  LearnerCommand,
  LearnerInit,
  SaveReport,
  UpdateReport,
} from './protocol.ts';

type RankingConfig = NonNullable<LearnerInit['ranking']>;

/** Milliseconds that the scheduler may take to send the state of the run for a checkpoint. */
const SNAPSHOT_MS = 30_000;
/** Attempts at a request to the judge of groups: some minutes, since an outage must not end a run. */
const RANKING_ATTEMPTS = 30;
const NO_BYTES = new Uint8Array();
/** Updates in a row, taken back, after which the last good weights are restored: a bad batch is one, not three. */
const ROLLBACK_AFTER = 3;
/** Factor on the learning rate whenever that happens. */
const ROLLBACK_SHRINK = 0.5;

export default function learnerActor(init: LearnerInit): BehaviorFactory<LearnerCommand> {
  return async (ctx) => {
    const engine = await openEngine(init.engine);
    const options = { ...init.trainer, codec: codecOf(await loadReading(new URL(init.envModule)), init.chat) };
    const { state, ...weights } = init.start;
    const trainer = await Trainer.create(engine, options, { ...weights, state: state?.trainer });
    const learner = new Learner(ctx, init, trainer);
    const ranker = init.ranking && new Ranker(ctx, init.ranking);
    return {
      handlers: {
        group: (finished) => (ranker ? ranker.rank(finished) : learner.accept(finished)),
        ranked({ result }) {
          if (!('failure' in result)) return learner.accept(result);
          if (!learner.isDone) throw new LongplayError('REMOTE_FAILED', result.failure);
        },
        async save({ replyTo }) {
          ranker?.close(); // training has ended: groups that a judge still has are not trained on
          ctx.reply(replyTo, await learner.save());
        },
        weights: ({ replyTo }) => ctx.reply(replyTo, trainer.params),
      },
      async stopped() {
        ranker?.close();
        await trainer.dispose();
        await engine.dispose();
      },
    };
  };
}

/** Gets the rewards of a judge for groups: many at once, handed on in the order in which the groups came. */
class Ranker {
  readonly #ctx: Context<LearnerCommand>;
  readonly #model: ChatModel;
  readonly #judge: Judge;
  readonly #options: RankingOptions;
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(ctx: Context<LearnerCommand>, { votes, criterion, maxChars, ...model }: RankingConfig) {
    this.#ctx = ctx;
    this.#model = openChatModel({ ...model, attempts: RANKING_ATTEMPTS });
    this.#judge = new Judge(this.#model, { votes });
    this.#options = { criterion, maxChars };
  }

  rank(finished: GroupFinished): void {
    const ranked = rankGroup(finished.group, this.#judge, this.#options).then(
      (group): GroupRanked['result'] => ({ ...finished, group }),
      (thrown: unknown) => ({ failure: `learner.ranking: ${messageOf(thrown)}` }),
    );
    const before = this.#last;
    const handOn = async () => {
      const result = await ranked;
      await before;
      if (!this.#isClosed) await this.#ctx.self.tell({ type: 'ranked', result });
    };
    this.#last = this.#ctx.outside(handOn());
  }

  close(): void {
    this.#isClosed = true;
    this.#model.close();
  }
}

class Learner {
  readonly #ctx: Context<LearnerCommand>;
  readonly #init: LearnerInit;
  readonly #trainer: Trainer;
  #waiting: Group[] = [];
  /** Number of checkpoints that were barriers: groups handed over before the last one come again. */
  #barriers = 0;
  #lastEnd: number;
  #brokenInARow: number;
  /** True when the last checkpoint could not be written: the next update tries again. */
  #saveAgain = false;
  /** Weights and moments of the last good checkpoint. */
  #good: { readonly update: number; readonly values: ParamSet['values']; readonly moments: Moments };

  constructor(ctx: Context<LearnerCommand>, init: LearnerInit, trainer: Trainer) {
    this.#ctx = ctx;
    this.#init = init;
    this.#trainer = trainer;
    this.#lastEnd = ctx.clock.now();
    this.#brokenInARow = init.start.state?.brokenInARow ?? 0;
    this.#good = { update: trainer.params.version, values: trainer.params.values, moments: trainer.moments };
  }

  /** True once all updates of the run are made: groups that arrive are kept, not trained on. */
  get isDone(): boolean {
    const { maxUpdates } = this.#init;
    return maxUpdates !== undefined && this.#trainer.params.version >= maxUpdates;
  }

  async accept({ group, progress, barrier }: GroupFinished): Promise<void> {
    if (barrier < this.#barriers) return; // comes again after the barrier
    this.#waiting.push(group);
    if (this.isDone) return;
    const { maxLag, trainer } = this.#init;
    const { version } = this.#trainer.params;
    const stale = this.#waiting.filter((one) => !groupWithinLag(one, version, maxLag));
    this.#waiting = this.#waiting.filter((one) => !stale.includes(one));
    const batch = nextBatch(this.#waiting, this.#init, (one) => isInformative(one, trainer));
    if (!batch) {
      if (stale.length > 0) {
        await this.#scheduler().tell({ type: 'dropped', stale: stale.map((one) => one.group) });
      }
      return;
    }
    const start = this.#ctx.clock.now();
    this.#waiting = this.#waiting.slice(batch.length);
    const result = await this.#ctx.outside(this.#trainer.update(batch, progress));
    const broken = result.broken && this.#breakDown(result.broken, batch);
    if (!broken) this.#brokenInARow = 0;
    const end = this.#ctx.clock.now();
    const times = { busyMs: end - start, idleMs: start - this.#lastEnd };
    this.#lastEnd = end;
    const { ranking } = this.#init;
    const report = updateReport(
      this.#trainer.params.version,
      batch,
      stale,
      result,
      broken,
      times,
      ranking !== undefined,
    );
    const { epochs, minibatches } = trainer;
    const digest = await this.publish();
    await this.#scheduler().tell({
      type: 'updated',
      report: { ...report, skipped: broken ? epochs * minibatches : 0, ...(digest ? { digest } : {}) },
    });
    const due = report.version % this.#init.checkpoint.everyUpdates === 0 || this.#saveAgain;
    if (due && !broken) await this.save(); // broken: the last good one stays the newest
  }

  #breakDown(broken: Breakage, batch: readonly Group[]): BrokenUpdate {
    const { rollbackAfter = ROLLBACK_AFTER, shrink = ROLLBACK_SHRINK, dir } = this.#init.breaker;
    const inARow = ++this.#brokenInARow;
    const file = quarantine(dir, this.#trainer.params.version, broken, batch);
    if (inARow < rollbackAfter) return { ...broken, quarantine: file, inARow };
    const { update, values, moments } = this.#good;
    this.#trainer.rollBack(values, moments, shrink);
    this.#brokenInARow = 0;
    const rolledBack = { toUpdate: update, rateScale: this.#trainer.state.rateScale };
    return { ...broken, quarantine: file, inARow, rolledBack };
  }

  /** Publishes the weights. @returns their digest, where it is asked for */
  async publish(): Promise<string | undefined> {
    const { paths, digests, trainer, publishBytes } = this.#init;
    const { params } = this.#trainer;
    await this.#ctx.resolve<InferenceCommand>(paths.inference).tell({ type: 'loadWeights', params });
    if (!digests) return undefined;
    const bytes = encodeWeights(trainer.model, params);
    const digest = digestOf(bytes);
    if (paths.weights !== undefined) {
      const { version } = params;
      const sent = publishBytes ? bytes : NO_BYTES;
      await this.#ctx.resolve<WeightsCommand>(paths.weights).tell({ type: 'publish', version, digest, bytes: sent });
    }
    return digest;
  }

  /**
   * Saves a checkpoint. A full or failing disk throws nothing: training goes on, the failure is reported, and the next
   * update tries again.
   */
  async save(): Promise<SaveReport> {
    const { checkpoint } = this.#init;
    const { params, moments, reference, average, state } = this.#trainer;
    const update = params.version;
    let report: SaveReport;
    try {
      const { run, horizon } = await this.#ctx.ask<SchedulerSnapshot, SchedulerCommand>(
        this.#scheduler(),
        (replyTo) => ({ type: 'snapshot', replyTo }),
        { deadlineMs: SNAPSHOT_MS },
      );
      const content = checkpointContent({
        run: checkpoint.run,
        identity: checkpoint.identity,
        params,
        moments,
        reference,
        average,
        learner: { trainer: state, brokenInARow: this.#brokenInARow },
        rollout: run,
        horizon,
      });
      const full = checkpoint.chaos !== undefined && diskFault(checkpoint.chaos, update);
      const saved = saveCheckpoint(checkpoint.dir, update, content, {
        keep: checkpoint.keep,
        disk: full ? fullDisk() : undefined,
      });
      report = { ok: saved.ok, update, message: saved.ok ? saved.path : `${saved.code}: ${saved.message}` };
    } catch (thrown) {
      report = { ok: false, update, message: messageOf(thrown) };
    }
    this.#saveAgain = !report.ok;
    if (report.ok && this.#brokenInARow === 0) this.#good = { update, values: params.values, moments };
    if (checkpoint.barrier) {
      this.#waiting = [];
      this.#barriers++;
    }
    await this.#scheduler().tell({ type: 'saved', report });
    return report;
  }

  #scheduler() {
    return this.#ctx.resolve<SchedulerCommand>(this.#init.paths.scheduler);
  }
}

function updateReport(
  version: number,
  batch: readonly Group[],
  stale: readonly Group[],
  result: UpdateResult,
  broken: BrokenUpdate | undefined,
  times: { readonly busyMs: number; readonly idleMs: number },
  isRanked: boolean,
): UpdateReport {
  const filtered = new Set(broken ? batch.map(({ group }) => group) : result.filtered);
  return {
    version,
    stats: { ...result.stats, ...(isRanked ? { judgeScore: meanReturn(batch) } : {}) },
    consumed: summarizeConsumed(batch),
    trained: batch.map(({ group }) => group).filter((group) => !filtered.has(group)),
    filtered: [...filtered],
    stale: stale.map(({ group }) => group),
    lag: lagOfTokens(
      batch.filter(({ group }) => !filtered.has(group)),
      version - 1,
    ),
    decisions: result.decisions,
    tokens: result.tokens,
    skipped: 0,
    credit: result.credit,
    broken,
    ...times,
  };
}

/** Mean return of the episodes of some groups. */
function meanReturn(groups: readonly Group[]): number {
  const episodes = groups.flatMap(({ trajectories }) => trajectories);
  return episodes.reduce((sum, one) => sum + episodeReturn(one), 0) / episodes.length;
}

/** Sums under construction. */
type HorizonSums = { -readonly [K in keyof HorizonStats]: HorizonStats[K] };

/** Facts of an update for the schedule: everything it consumed, groups without a signal included. */
function summarizeConsumed(groups: readonly Group[]): UpdateStats {
  const byHorizon = new Map<string, HorizonSums>();
  for (const { task, horizon, trajectories } of groups) {
    const key = `${horizon} ${task.env}`;
    const sums = byHorizon.get(key) ?? { world: task.env, horizon, episodes: 0, successes: 0, truncated: 0 };
    for (const { success, end } of trajectories) {
      sums.episodes++;
      if (success) sums.successes++;
      if (end === 'truncated') sums.truncated++;
    }
    byHorizon.set(key, sums);
  }
  return { byHorizon: [...byHorizon.values()] };
}
