/**
 * Owns every running episode. Env hosts and batcher work side by side: an episode waits for one of them at a time, so
 * the number of messages in flight is bounded by the number of episodes, and that by `concurrentGroups`.
 *
 * Starts as many training groups as admission allows (maxLag), hands finished ones to the learner, and checks after
 * every update that every launched episode is accounted for. A failed episode is issued again under the same task
 * (a new attempt, a new sampling seed); after `maxAttempts` its group is dropped and the task quarantined. No failure
 * becomes a reward. `maxFailures` failed episodes in a row, none finished in between, mean that the environment, or the
 * server that the policy is behind, is broken: the actor crashes with one error that says so, and the run ends.
 *
 * A checkpoint keeps every episode in flight. In serial mode it is a barrier too: training holds its breath until each
 * episode waits for the policy, the policy forgets what it has read, and all goes on as a resumed run would, in an
 * order that follows from the seed and the version. That makes a resumed serial run equal to one never stopped.
 */
import { LongplayError } from '../../src/core/errors.ts';
import type { Failure } from '../../src/core/failure.ts';
import { seedFrom } from '../../src/core/rng.ts';
import { type Task, taskName } from '../../src/core/task.ts';
import type { Group, Trajectory } from '../../src/core/trajectory.ts';
import { packActed, packRequests, unpackActed } from '../../src/policy/turn-batch.ts';
import { type ConsumedFacts, consumedFacts } from '../../src/record/group-facts.ts';
import type { BehaviorFactory, Context, ReplyTo } from '../../src/runtime/actor.ts';
import { groupsToStart } from '../../src/schedule/admission.ts';
import { progressOf, type StopCondition, stopReached, type TrainedSoFar } from '../../src/schedule/stop.ts';
import type { TaskSampler } from '../../src/schedule/task-sampler.ts';
import type { EnvCommand, EnvEvent } from '../env/protocol.ts';
import type { ActedEvent, InferenceCommand } from '../inference/protocol.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';
import type { TaskQuarantined } from '../recorder/protocol.ts';
import { Deliveries, revived } from './deliveries.ts';
import {
  act,
  type EpisodeRun,
  type GroupRun,
  observe,
  openEpisode,
  openGroup,
  type Purpose,
  reopenEpisode,
  requestFor,
  savedGroup,
} from './episode-run.ts';
import { Evaluations } from './evaluations.ts';
import { Ledger } from './ledger.ts';
import type {
  EpisodesRecorded,
  EvaluationPlan,
  EvaluationRecord,
  GroupFinished,
  RolloutCommand,
  RolloutState,
  RolloutStatus,
  TrainEnded,
} from './protocol.ts';
import { SlotTimer } from './slot-time.ts';

/** Where commands to environments go; the env pool. */
export interface EnvHosts {
  tell(command: EnvCommand): void;
}

export interface RolloutInit {
  readonly envs: EnvHosts;
  readonly sampler: TaskSampler;
  readonly seed: number;
  /** Id of the view the policy reads through, for the record. */
  readonly view: string | undefined;
  readonly groupSize: number;
  readonly concurrentGroups: number;
  /** The policy has a thread of its own: what is sent there is packed. Default false. */
  readonly policyInThread?: boolean;
  readonly envThreads: number;
  readonly groupsPerUpdate: number;
  /** Another group takes the place of one that the learner will not train on; absent: it stays empty. */
  readonly dynamicSampling?: {
    /** Most groups that one update consumes. */
    readonly mostPerUpdate: number;
    readonly informative: (group: Group) => boolean;
  };
  readonly maxLag: number;
  readonly maxAttempts: number;
  /** Failed episodes in a row that end the run. */
  readonly maxFailures: number;
  readonly stop: StopCondition;
  readonly start: {
    readonly version: number;
    readonly horizon: number;
    readonly state: RolloutState | undefined;
    readonly episode?: number | undefined;
  };
  readonly paths: { readonly inference: string; readonly learner: string | undefined; readonly recorder: string };
  /** Serial mode: a checkpoint is a barrier. */
  readonly barrier?: boolean;
  /** Evaluations made while training goes on. */
  readonly evaluation?: {
    /** 0: none. */
    readonly everyUpdates: number;
    readonly plans: readonly EvaluationPlan[];
    readonly onRecord: (version: number, record: EvaluationRecord) => void;
  };
  /** Tells what happened, for metrics; called after every update. */
  readonly onUpdate: (report: UpdateReport, status: RolloutStatus, consumed: ConsumedFacts) => void;
  /** Tells how far things are, between updates too; called at most every `PROGRESS_MS`. */
  readonly onProgress?: (status: RolloutStatus) => void;
  /** Sub-task of a task index. */
  readonly labelOf: (index: number) => string;
  /** Told of every failed episode. */
  readonly onFailure: (failure: Failure, task: Task) => void;
  readonly onSaved?: (report: SaveReport) => void;
}

/** Milliseconds between two calls of `onProgress`. */
const PROGRESS_MS = 250;

/** Milliseconds of silence before a run goes on after a barrier: longer than any timer of an actor. */
const QUIET_MS = 100;

/** The tick is private: no other actor can send it. */
type Internal = RolloutCommand | { readonly type: 'goOn' };

/** Redraws from the sampler before giving up on finding a task that is not quarantined. */
const MAX_REDRAWS = 1000;

/** Said in the policy's name when it lost its memory. */
const NOBODY = packActed([]);

export function rolloutActor(init: RolloutInit): BehaviorFactory<Internal> {
  return (ctx) => {
    const rollouts = new Rollouts(ctx, init);
    return {
      handlers: {
        train: ({ replyTo }) => rollouts.train(replyTo),
        halt: () => rollouts.end('halted'),
        evaluate: ({ plan, replyTo }) => rollouts.evaluate(plan, replyTo),
        snapshot: ({ replyTo }) => rollouts.snapshot(replyTo),
        saved: ({ report }) => rollouts.saved(report),
        goOn: () => rollouts.goOn(),
        status: ({ replyTo }) => ctx.reply(replyTo, rollouts.status()),
        advance: ({ report, horizon }) => rollouts.advance(report, horizon),
        dropped: ({ stale }) => rollouts.drop(stale),
        acted: (event) => rollouts.acted(event),
        observed: ({ events }) => rollouts.observed(events),
      },
    };
  };
}

class Rollouts {
  readonly #ctx: Context<Internal>;
  readonly #init: RolloutInit;
  readonly #ledger: Ledger;
  readonly #episodes = new Map<number, EpisodeRun>();
  readonly #groups = new Map<number, GroupRun>();
  readonly #deliveries: Deliveries;
  readonly #quarantined: Set<number>;
  readonly #evaluations = new Evaluations();
  #training: ReplyTo<TrainEnded> | undefined;
  /** What a resumed run takes up when training starts. */
  #saved: RolloutState | undefined;
  /** Training waits: nothing is launched, asked or handed over. */
  #held = false;
  /** Episodes of a checkpoint are being brought back. */
  #takingUp = false;
  /** Waits for every episode to wait. */
  #snapshot: ReplyTo<RolloutState> | undefined;
  #era = 0;
  /** Goes up whenever the policy has lost its memory. */
  #policyLife = 0;
  #version: number;
  #horizon: number;
  #nextGroup: number;
  #nextEpisode: number;
  #envSteps: number;
  #finishedEpisodes: number;
  /** Failed since an episode was finished. */
  #failedInRow = 0;
  #elapsedBefore: number;
  #startedAt: number | undefined;
  readonly #timer: SlotTimer;
  /** Finished episodes whose group has not finished. */
  #gathered = 0;
  #progressAt = 0;
  #tokens = 0;
  #tokensSeen = 0;
  #calls = 0;
  #decidedTurns = 0;

  constructor(ctx: Context<Internal>, init: RolloutInit) {
    this.#ctx = ctx;
    this.#init = init;
    const { version, horizon, state, episode = 0 } = init.start;
    this.#version = version;
    this.#horizon = horizon;
    this.#ledger = new Ledger(state?.accounting);
    this.#deliveries = new Deliveries(init.labelOf, init.dynamicSampling?.informative ?? (() => true));
    this.#nextGroup = state?.nextGroup ?? episode;
    this.#nextEpisode = state?.nextEpisode ?? episode;
    this.#envSteps = state?.envSteps ?? 0;
    this.#elapsedBefore = state?.elapsedMs ?? 0;
    this.#finishedEpisodes = state?.episodes ?? 0;
    this.#saved = state;
    this.#timer = new SlotTimer(ctx.clock.now(), init.concurrentGroups * init.groupSize, init.envThreads);
    this.#quarantined = new Set(state?.quarantined);
    if (state) init.sampler.restore(state.sampler);
    ctx.watch({ path: init.paths.inference }, () => ({ type: 'acted', turns: NOBODY, tokens: 0 }));
  }

  // --- training ---------------------------------------------------------------------------------------------------

  train(replyTo: ReplyTo<TrainEnded>): void {
    this.#pass();
    this.#training = replyTo;
    this.#startedAt = this.#ctx.clock.now();
    if (this.#saved) this.#takeUp(this.#saved);
    if (!this.#endIfDone() && !this.#held) this.#launch();
    this.#settle();
  }

  advance(report: UpdateReport, horizon: number): void {
    this.#version = report.version;
    this.#horizon = horizon;
    this.#pass();
    const consumed = this.#deliveries.factsOf([...report.trained, ...report.filtered]);
    for (const group of report.trained) this.#ledger.train(this.#deliveries.collect(group));
    for (const group of report.filtered) this.#ledger.filter(this.#deliveries.collect(group));
    for (const group of report.stale) this.#ledger.drop(this.#deliveries.collect(group));
    this.#ledger.check(this.#inFlight());
    this.#init.onUpdate(report, this.status(), consumedFacts(consumed));
    if (this.#endIfDone()) return;
    const { everyUpdates, plans, onRecord } = this.#init.evaluation ?? { everyUpdates: 0, plans: [], onRecord() {} };
    if (everyUpdates > 0 && this.#version % everyUpdates === 0) {
      const version = this.#version;
      for (const plan of plans) {
        this.#evaluations.open({ ...plan, name: `${plan.name} @${version}` }, (record) => onRecord(version, record));
      }
    }
    this.#launch();
  }

  drop(stale: readonly number[]): void {
    for (const group of stale) this.#ledger.drop(this.#deliveries.collect(group));
    this.#launch();
  }

  /**
   * Training is over and this episode was part of it: it stays as it was at the end. So a checkpoint keeps just that,
   * whenever it is written, and a repeated run ends with the same episodes recorded. A barrier brings the episodes to
   * rest instead.
   */
  #isOver({ group }: EpisodeRun): boolean {
    return this.#training === undefined && !this.#init.barrier && isTraining(group);
  }

  /** Training ends; what is in flight is held, so that a checkpoint keeps it. */
  end(why: TrainEnded['why']): void {
    const replyTo = this.#training;
    if (!replyTo) return;
    this.#pass();
    const status = this.status();
    this.#training = undefined;
    this.#held = true;
    this.#elapsedBefore += this.#ctx.clock.now() - this.#startedAt!;
    this.#startedAt = undefined;
    this.#ctx.reply(replyTo, { why, status });
  }

  snapshot(replyTo: ReplyTo<RolloutState>): void {
    if (!this.#init.barrier) {
      this.#ctx.reply(replyTo, this.#state());
      return;
    }
    this.#held = true;
    this.#snapshot = replyTo;
    this.#settle();
  }

  saved(report: SaveReport): void {
    this.#init.onSaved?.(report);
    if (this.#init.barrier && this.#training) this.#ctx.after(QUIET_MS, { type: 'goOn' });
  }

  /** The end of a barrier, or of taking a run up: from here a resumed run and one never stopped do the same. */
  goOn(): void {
    if (!this.#training) return;
    this.#held = false;
    this.#snapshot = undefined;
    this.#era++;
    this.#ctx.system.reorder(this.#version);
    this.#policyLife++;
    void this.#inference().tell({ type: 'forget' });
    for (const { group, progress } of this.#deliveries.all()) this.#handOver(group, progress);
    const waiting = [...this.#episodes.values()].filter(({ request }) => request);
    // What a barrier took is nobody's time; a resumed run has none of it.
    for (const run of waiting) run.since = this.#ctx.clock.now();
    this.#ask(waiting);
    this.#launch();
  }

  /** Opens the episodes of a checkpoint again; training goes on when each has been brought back to its last turn. */
  #takeUp(state: RolloutState): void {
    this.#saved = undefined;
    this.#held = this.#takingUp = true;
    const now = this.#ctx.clock.now();
    for (const { group, progress } of state.delivered) {
      this.#deliveries.add({ ...group, trajectories: group.trajectories.map(revived) }, progress);
    }
    for (const { group, task, horizon, finished, running } of state.running) {
      const run = openGroup(group, task, horizon, this.#init.groupSize, this.#trainingPurpose(group));
      for (const { member, trajectory } of finished) run.finished[member] = revived(trajectory);
      this.#gathered += finished.length;
      this.#groups.set(group, run);
      for (const saved of running) {
        const episode = reopenEpisode(run, saved, now);
        this.#episodes.set(episode.episode, episode);
        const replay = saved.turns.map(({ action }) => action);
        this.#init.envs.tell({ type: 'open', episode: saved.episode, attempt: saved.attempt, task, replay });
      }
    }
  }

  /** Answers a waiting snapshot, or goes on with a run taken up, once nothing moves. */
  #settle(): void {
    if (!this.#held || this.#evaluations.size > 0) return;
    for (const { request, asked } of this.#episodes.values()) if (!request || asked) return;
    if (this.#takingUp) {
      this.#takingUp = false;
      this.#ctx.after(QUIET_MS, { type: 'goOn' });
    }
    if (this.#snapshot) {
      this.#ctx.reply(this.#snapshot, this.#state());
      this.#snapshot = undefined;
    }
  }

  #state(): RolloutState {
    if (this.#saved) return this.#saved; // nothing was taken up yet
    const running = [...this.#groups.values()].filter(isTraining);
    let inFlight = this.#deliveries.episodes;
    for (const group of running) inFlight += group.size;
    // Evaluations under way are not kept: a resumed run has lost their episodes.
    const accounting = this.#ledger.account(this.#inFlight());
    const elsewhere = accounting.inFlight - inFlight;
    return {
      format: 2,
      sampler: this.#init.sampler.state,
      nextGroup: this.#nextGroup,
      nextEpisode: this.#nextEpisode,
      envSteps: this.#envSteps,
      episodes: this.#finishedEpisodes,
      elapsedMs: this.#elapsed(),
      accounting: { ...accounting, filtered: accounting.filtered + elsewhere, inFlight },
      running: running.map(savedGroup),
      delivered: this.#deliveries.saved(),
      quarantined: [...this.#quarantined],
    };
  }

  status(): RolloutStatus {
    return {
      version: this.#version,
      horizon: this.#horizon,
      envSteps: this.#envSteps,
      episodes: this.#finishedEpisodes,
      elapsedMs: this.#elapsed(),
      progress: this.#progress(),
      runningEpisodes: this.#episodes.size,
      accounting: this.#ledger.account(this.#inFlight()),
      tokens: this.#tokens,
      calls: this.#calls,
      decidedTurns: this.#decidedTurns,
      time: this.#timer.totals,
    };
  }

  #endIfDone(): boolean {
    const why = this.#training && stopReached(this.#init.stop, this.#soFar());
    if (why) this.end(why);
    return this.#training === undefined;
  }

  /** Starts what admission allows. */
  #launch(): void {
    this.#launchEvaluations();
    if (!this.#training || this.#held) return;
    const { groupsPerUpdate, maxLag, concurrentGroups, dynamicSampling } = this.#init;
    const running = [...this.#groups.values()].filter(isTraining).length;
    let start = groupsToStart({
      maxLag,
      version: this.#version,
      groupsPerUpdate,
      accepted: this.#version * groupsPerUpdate + this.#deliveries.size,
      running,
      uninformative: this.#deliveries.uninformative,
      mostPerUpdate: dynamicSampling?.mostPerUpdate ?? groupsPerUpdate,
      maxRunning: concurrentGroups,
    });
    for (; start > 0; start--) {
      const { groupSize } = this.#init;
      this.#startGroup(
        openGroup(
          this.#nextGroup,
          this.#nextTask(),
          this.#horizon,
          groupSize,
          this.#trainingPurpose(this.#nextGroup++),
        ),
      );
    }
  }

  #trainingPurpose(group: number): Purpose {
    return { name: 'train', temperature: 1, seed: seedFrom(this.#init.seed, 'group', group) };
  }

  #nextTask(): Task {
    for (let i = 0; i < MAX_REDRAWS; i++) {
      const task = this.#init.sampler.next();
      if (!this.#quarantined.has(task.index)) return task;
    }
    throw new LongplayError(
      'ENV_BROKEN',
      `every task drawn is quarantined (${this.#quarantined.size} tasks failed ${this.#init.maxAttempts} times each); the environment is broken: run \`longplay check-env\``,
    );
  }

  // --- evaluation -------------------------------------------------------------------------------------------------

  evaluate(plan: EvaluationPlan, replyTo: ReplyTo<EvaluationRecord>): void {
    // Training is over and its checkpoint written: what was held for it makes room.
    if (!this.#training) for (const group of [...this.#groups.values()]) if (isTraining(group)) this.#abandon(group);
    this.#evaluations.open(plan, (record) => this.#ctx.reply(replyTo, record));
    this.#launch();
    this.#evaluations.settle();
  }

  #launchEvaluations(): void {
    while (this.#groups.size < this.#init.concurrentGroups) {
      const next = this.#evaluations.next();
      if (!next) return;
      const { plan, task, purpose } = next;
      this.#startGroup(openGroup(this.#nextGroup++, task, plan.horizon, plan.episodes, purpose));
    }
  }

  // --- episodes ---------------------------------------------------------------------------------------------------

  observed(events: readonly EnvEvent[]): void {
    const requests: EpisodeRun[] = [];
    const ended: number[] = [];
    const now = this.#pass();
    let batchMs = 0;
    for (const event of events) if (event.type === 'observed') batchMs += event.envMs;
    for (const event of events) {
      const run = this.#episodes.get(event.episode);
      if (!run || this.#isOver(run)) continue; // abandoned meanwhile
      if (event.type === 'failed') {
        ended.push(event.episode);
        this.#fail(run, event.failure);
        continue;
      }
      if (event.step.kind !== 'first' && !run.restoring && isTraining(run.group)) this.#envSteps++;
      this.#timer.stepped(now - (run.pending?.sentAt ?? run.since), event.envMs, batchMs);
      const next = observe(run, event, this.#init.view, now);
      if ('request' in next) requests.push(run);
      else {
        ended.push(event.episode);
        if ('broken' in next) this.#fail(run, { ...next.broken, where: this.#ctx.path });
        else this.#finish(run, next.trajectory); // at once: what still comes of it is too late
      }
    }
    if (ended.length > 0) void this.#inference().tell({ type: 'release', episodes: ended });
    const asking = requests.filter(({ group }) => !this.#held || !isTraining(group));
    this.#ask(asking);
    if (ended.length > 0) {
      this.#evaluations.settle();
      if (!this.#endIfDone() || this.#evaluations.size > 0) this.#launch();
    }
    if (this.#init.onProgress && now - this.#progressAt >= PROGRESS_MS) {
      this.#progressAt = now;
      this.#init.onProgress(this.status());
    }
    this.#settle();
  }

  #ask(runs: readonly EpisodeRun[]): void {
    if (runs.length === 0) return;
    const requests = runs.map((run) => requestFor(run, this.#policyLife));
    const { policyInThread } = this.#init;
    void this.#inference().tell({ type: 'act', requests: policyInThread ? packRequests(requests) : requests });
  }

  #inference() {
    return this.#ctx.resolve<InferenceCommand>(this.#init.paths.inference);
  }

  acted({ turns: batch, tokens }: ActedEvent): void {
    const turns = unpackActed(batch);
    if (turns.length === 0) {
      this.#tokensSeen = 0; // a new incarnation counts from zero
      // It lost its memory: every waiting turn is sent again, with its history. An episode that is with its env now
      // comes with its history when that has answered.
      this.#policyLife++;
      this.#ask([...this.#episodes.values()].filter(({ asked }) => asked));
      return;
    }
    const now = this.#pass();
    this.#tokens += Math.max(0, tokens - this.#tokensSeen);
    this.#tokensSeen = tokens;
    this.#calls++;
    this.#decidedTurns += turns.length;
    for (const answer of turns) {
      const run = this.#episodes.get(answer.episode);
      const action = run && !this.#isOver(run) ? act(run, answer, now) : undefined;
      if (action === undefined) continue;
      this.#timer.acted(run!.pending!.actMs, answer.stages);
      this.#init.envs.tell({ type: 'step', episode: answer.episode, turn: run!.turns.length + 1, action });
    }
    this.#settle();
  }

  #startGroup(group: GroupRun): void {
    this.#groups.set(group.group, group);
    for (let member = 0; member < group.size; member++) this.#startEpisode(group, member, 1);
  }

  #startEpisode(group: GroupRun, member: number, attempt: number): void {
    const run = openEpisode(group, member, this.#nextEpisode++, attempt, this.#ctx.clock.now());
    this.#episodes.set(run.episode, run);
    this.#ledger.launch();
    this.#init.envs.tell({ type: 'open', episode: run.episode, attempt, task: group.task });
  }

  #finish(run: EpisodeRun, trajectory: Trajectory): void {
    const { group } = run;
    this.#close(run);
    group.finished[run.member] = trajectory;
    this.#gathered++;
    this.#finishedEpisodes++;
    this.#failedInRow = 0;
    const trajectories = group.finished.filter((one) => one !== undefined);
    if (trajectories.length < group.size) return;
    this.#groups.delete(group.group);
    this.#gathered -= group.size;
    this.#record(trajectories, group.purpose.name);
    if (this.#evaluations.finished(group.purpose.name, trajectories)) {
      this.#ledger.filter(group.size);
      return;
    }
    const { task, horizon } = group;
    this.#init.sampler.observe(task.index, trajectories.filter(({ success }) => success).length / group.size);
    if (!this.#init.paths.learner) {
      this.#ledger.filter(group.size);
      return;
    }
    const finished: Group = { group: group.group, task, horizon, trajectories };
    const progress = this.#progress();
    this.#deliveries.add(finished, progress);
    if (!this.#held) this.#handOver(finished, progress);
  }

  #handOver(group: Group, progress: number): void {
    const learner = this.#ctx.resolve<GroupFinished>(this.#init.paths.learner!);
    void learner.tell({ type: 'group', group, progress, era: this.#era });
  }

  #fail(run: EpisodeRun, failure: Failure): void {
    const { group, member, attempt } = run;
    this.#close(run);
    this.#ledger.fail(failure.cause);
    this.#init.onFailure(failure, group.task);
    if (++this.#failedInRow >= this.#init.maxFailures) {
      const last = `${failure.cause} on ${taskName(group.task)} at ${failure.where}: ${failure.message}`;
      const message = `is broken: ${this.#failedInRow} episodes in a row failed (the last: ${last})`;
      if (failure.cause === 'policy') throw new LongplayError('REMOTE_FAILED', `the policy's server ${message}`);
      throw new LongplayError('ENV_BROKEN', `the environment ${message}; run \`longplay check-env\``);
    }
    if (attempt < this.#init.maxAttempts) {
      this.#startEpisode(group, member, attempt + 1);
      return;
    }
    const evaluated = this.#evaluations.gaveUp(group.purpose.name, group.size);
    if (!evaluated && !this.#quarantined.has(group.task.index)) {
      this.#quarantined.add(group.task.index);
      const recorder = this.#ctx.resolve<TaskQuarantined>(this.#init.paths.recorder);
      void recorder.tell({ type: 'quarantined', task: group.task, failure, attempts: attempt });
    }
    this.#abandon(group);
  }

  /** Ends a group whose episodes are no longer wanted; they count as filtered. */
  #abandon(group: GroupRun): void {
    this.#groups.delete(group.group);
    const running = [...group.running.values()];
    for (const run of running) this.#close(run);
    const done = group.finished.filter((one) => one !== undefined).length;
    this.#gathered -= done;
    this.#ledger.filter(running.length + done);
    void this.#inference().tell({ type: 'release', episodes: running.map(({ episode }) => episode) });
  }

  #close(run: EpisodeRun): void {
    this.#episodes.delete(run.episode);
    run.group.running.delete(run.member);
    this.#init.envs.tell({ type: 'close', episode: run.episode });
  }

  #record(trajectories: readonly Trajectory[], purpose: string): void {
    const recorder = this.#ctx.resolve<EpisodesRecorded>(this.#init.paths.recorder);
    void recorder.tell({ type: 'episodes', trajectories, purpose });
  }

  #inFlight(): number {
    let count = this.#episodes.size + this.#deliveries.episodes;
    for (const { finished } of this.#groups.values()) for (const one of finished) if (one) count++;
    return count;
  }

  /** Books the time since the last call, under the counts that held until now. */
  #pass(): number {
    const now = this.#ctx.clock.now();
    this.#timer.pass(now, this.#episodes.size, this.#gathered, this.#training !== undefined);
    return now;
  }

  #elapsed(): number {
    return this.#elapsedBefore + (this.#startedAt === undefined ? 0 : this.#ctx.clock.now() - this.#startedAt);
  }

  #soFar(): TrainedSoFar {
    return { updates: this.#version, envSteps: this.#envSteps, elapsedMs: this.#elapsed() };
  }

  #progress(): number {
    return progressOf(this.#init.stop, this.#soFar());
  }
}

function isTraining({ purpose }: GroupRun): boolean {
  return purpose.name === 'train';
}
