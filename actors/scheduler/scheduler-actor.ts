/**
 * Scheduler actor: decides what is played and keeps the accounts. It starts as many training groups as admission allows
 * (maxLag), under the horizon of its schedule and with tasks of its sampler. It hands finished ones to the learner,
 * evaluates, ends training when the stop condition holds, and gives checkpoints the state of the run. After every
 * update each launched episode is accounted for. The rollouts play; a result counts only if its group is outstanding.
 *
 * Update and horizon change together, in one handler: no episode can start under the horizon of another update. What
 * each command may do now is up to the phase (phase.ts).
 */
import { type Filtering, isInformative } from '../../src/algo/dynamic-sampling.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { createLabels } from '../../src/core/task.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { Group } from '../../src/core/trajectory.ts';
import { WaitingTickets } from '../../src/learning/schedule/waiting-tickets.ts';
import type { Mixture } from '../../src/learning/schedule/world-sampler.ts';
import { summarizeConsumed } from '../../src/metrics/group-facts.ts';
import type { RolloutTotals, RunStatus } from '../../src/metrics/run-status.ts';
import type { BehaviorFactory, Context, ReplyTo } from '../../src/runtime/actor.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';
import type { RolloutState } from '../rollout/protocol.ts';
import { Effects, type SchedulerPaths } from './effects.ts';
import { Evaluations } from './evaluations.ts';
import { LaunchedGroups } from './groups.ts';
import { Journaling, type SchedulerJournal } from './journaling.ts';
import { Launcher, trainingTicket } from './launcher.ts';
import {
  handsOver,
  isQuiet,
  isTraining,
  mayLaunch,
  nextPhase,
  type Phase,
  type PhaseEffect,
  type PhaseEvent,
  START,
} from './phase.ts';
import { Progress } from './progress.ts';
import type {
  Captured,
  Evaluate,
  EvaluationPlan,
  GaveUp,
  Played,
  PlayedGroup,
  SchedulerCommand,
  SchedulerSnapshot,
  SchedulerState,
  TrainEnded,
} from './protocol.ts';
import { ResultQueue, reviveGroup } from './result-queue.ts';
import type { ScheduledWorld } from './worlds.ts';

export interface SchedulerInit extends Pick<RunConfig, 'seed' | 'stop'> {
  readonly worlds: readonly ScheduledWorld[];
  /** Draw of the next group's world, of several. */
  readonly mixture: Mixture;
  readonly rollout: Pick<RunConfig['rollout'], 'groupSize' | 'concurrentGroups'>;
  readonly learner: Pick<
    RunConfig['learner'],
    'groupsPerUpdate' | 'oversampling' | 'maxLag' | 'estimator' | 'filterGroups' | 'kl'
  > &
    Pick<Filtering, 'worlds'>;
  readonly start: {
    readonly version: number;
    readonly state: SchedulerState | undefined;
    /** Number of the first group, without a state. */
    readonly group: number;
  };
  /** True where a checkpoint is a barrier (serial mode). */
  readonly barrier: boolean;
  /** Evaluations made while training goes on. */
  readonly evaluation: {
    /** Updates between two evaluations; 0: none. */
    readonly everyUpdates: number;
    readonly plans: readonly EvaluationPlan[];
  };
  /** Journal, where the run keeps one. */
  readonly journal?: SchedulerJournal | undefined;
  readonly paths: SchedulerPaths;
}

/** Milliseconds of silence before training resumes after a barrier: longer than any timer of an actor. */
const QUIET_MS = 100;

/** Milliseconds until a journal that could not be written is tried again. */
const JOURNAL_MS = 1000;

/** Internal: the end of the silence, and the next try at the journal. No other actor can send them. */
type Internal = SchedulerCommand | { readonly type: 'resume' } | { readonly type: 'writeJournal' };

export function schedulerActor(init: SchedulerInit): BehaviorFactory<Internal> {
  return (ctx) => {
    const scheduler = new Scheduler(ctx, init);
    return {
      handlers: {
        train: ({ replyTo }) => scheduler.train(replyTo),
        halt: () => scheduler.end('halted'),
        evaluate: (evaluate) => scheduler.evaluate(evaluate),
        status: ({ replyTo }) => ctx.reply(replyTo, scheduler.status()),
        updated: ({ report }) => scheduler.updated(report),
        dropped: ({ stale }) => scheduler.dropped(stale),
        snapshot: ({ replyTo }) => scheduler.snapshot(replyTo),
        saved: ({ report }) => scheduler.saved(report),
        played: (played) => scheduler.played(played),
        progressed: ({ totals }) => scheduler.progressed(totals),
        captured: (captured) => scheduler.captured(captured),
        resume: () => scheduler.on({ type: 'resume' }),
        writeJournal: () => scheduler.writeJournal(),
      },
    };
  };
}

class Scheduler {
  readonly #ctx: Context<Internal>;
  readonly #init: SchedulerInit;
  readonly #groups: LaunchedGroups;
  readonly #evaluations = new Evaluations();
  readonly #launcher: Launcher;
  readonly #progress: Progress;
  readonly #journal: Journaling;
  /** Groups of the journal that were launched under weights which the learner has yet to make again. */
  readonly #waiting = new WaitingTickets();
  readonly #out: Effects;
  #phase: Phase = START;
  /** Checkpoint that a resumed run begins with, until it has gone on from there. */
  #checkpoint: SchedulerState | undefined;
  #training: ReplyTo<TrainEnded> | undefined;
  #snapshot: ReplyTo<SchedulerSnapshot> | undefined;
  #cancelQuiet = () => {};
  #version: number;

  constructor(ctx: Context<Internal>, init: SchedulerInit) {
    this.#ctx = ctx;
    this.#init = init;
    const { version, state } = init.start;
    const { learner } = init;
    const informative = (one: Group) => learner.oversampling <= 1 || isInformative(one, learner);
    this.#groups = new LaunchedGroups(new ResultQueue(createLabels(init.worlds), informative), state?.accounting);
    this.#launcher = new Launcher(init, this.#groups, this.#evaluations);
    this.#progress = new Progress(ctx.clock, init.stop, state);
    this.#out = new Effects((path) => ctx.resolve(path), init.paths);
    this.#journal = new Journaling(
      init.journal,
      () => void ctx.sendAfter(JOURNAL_MS, { type: 'writeJournal' }),
      (text) => this.#out.sendToRecorder({ type: 'noticed', text }),
    );
    this.#checkpoint = state;
    this.#version = version;
  }

  // --- what others ask for ----------------------------------------------------------------------------------------

  train(replyTo: ReplyTo<TrainEnded>): void {
    if (this.#phase.name !== 'idle') {
      this.#ctx.replyError(replyTo, new LongplayError('BAD_ARGUMENT', `a run trains once; it is ${this.#phase.name}`));
      return;
    }
    this.#training = replyTo;
    this.#progress.start();
    const why = this.#progress.stopReached(this.#version);
    this.on({ type: 'train', checkpoint: this.#checkpoint !== undefined, done: why !== undefined });
    if (why) this.#answerTrain(why);
  }

  end(why: TrainEnded['why']): void {
    if (!isTraining(this.#phase)) return;
    this.on({ type: 'end' });
    this.#answerTrain(why);
  }

  evaluate({ plan, replyTo }: Evaluate): void {
    // Training is over and its checkpoint written: what was kept for it makes room.
    if (this.#phase.name === 'ended') {
      const groups = this.#groups.abandonTraining();
      if (groups.length > 0) this.#out.sendToRollouts({ type: 'abandon', groups });
    }
    this.#evaluations.open(plan, (record) => this.#ctx.reply(replyTo, record));
    this.#launch();
    this.#evaluations.settle();
  }

  status(): RunStatus {
    return {
      ...this.#progress.totals,
      version: this.#version,
      horizon: this.#launcher.worlds.horizon,
      ...this.#worldStatus(),
      elapsedMs: this.#progress.elapsedMs,
      progress: this.#progress.share(this.#version),
      accounting: this.#groups.accounting,
    };
  }

  #worldStatus(): Pick<RunStatus, 'worlds'> {
    const worlds = this.#launcher.worlds.status(this.#version);
    return worlds ? { worlds } : {};
  }

  snapshot(replyTo: ReplyTo<SchedulerSnapshot>): void {
    this.#snapshot = replyTo;
    this.on({ type: 'snapshot', checkpoint: this.#checkpoint !== undefined });
  }

  // --- messages of the learner ------------------------------------------------------------------------------------

  updated(report: UpdateReport): void {
    this.#version = report.version;
    this.#launcher.worlds.advance(report.consumed);
    const facts = this.#groups.deliveries.factsOf([...report.trained, ...report.filtered]);
    this.#groups.recordConsumed(report);
    this.#journal.recordUpdate(report);
    this.#out.sendToRecorder({ type: 'updated', report, status: this.status(), consumed: summarizeConsumed(facts) });
    if (this.#endIfDone()) return;
    const { everyUpdates, plans } = this.#init.evaluation;
    if (everyUpdates > 0 && this.#version % everyUpdates === 0) {
      const version = this.#version;
      for (const plan of plans) {
        const named = { ...plan, name: `${plan.name} @${version}` };
        this.#evaluations.open(named, (record) => this.#out.sendToRecorder({ type: 'evaluated', version, record }));
      }
    }
    this.#launch();
  }

  dropped(stale: readonly number[]): void {
    this.#groups.recordConsumed({ trained: [], filtered: [], stale });
    this.#launch();
  }

  saved(report: SaveReport): void {
    this.#out.sendToRecorder({ type: 'saved', report });
    if (this.#init.barrier) this.#out.barriers++;
    if (report.ok) this.#journal.trim();
    this.on({ type: 'saved' });
  }

  // --- messages of the rollouts -----------------------------------------------------------------------------------

  played(played: Played): void {
    const { groups, gaveUp, failed, totals } = played;
    this.#progress.totals = totals;
    // Once: the learner gets with a group what the journal holds.
    const shares = groups.map(({ envSteps }) => this.#progress.share(this.#version, envSteps));
    if (!isTraining(this.#phase)) {
      this.#book(played, shares);
      return;
    }
    const { elapsedMs } = this.#progress;
    const createJournalEntries = () => groups.map((group, i) => ({ ...group, progress: shares[i]! }));
    this.#journal.record(
      () => ({ type: 'played', groups: createJournalEntries(), gaveUp, failed, elapsedMs }),
      () => this.#book(played, shares),
    );
  }

  writeJournal(): void {
    this.#journal.flush();
    if (!this.#journal.isBehind) this.#launch();
  }

  #book({ groups, gaveUp, failed }: Played, shares: readonly number[]): void {
    for (const { group, failure } of failed) {
      const ticket = this.#groups.recordFailed(group, failure.cause);
      if (ticket) this.#out.sendToRecorder({ type: 'failed', task: ticket.task, failure });
    }
    for (const [i, group] of groups.entries()) this.#handleFinished(group, shares[i]!);
    for (const group of gaveUp) this.#handleGivenUp(group);
    this.#evaluations.settle();
    if (!this.#endIfDone() || this.#evaluations.size > 0) this.#launch();
    this.#out.sendToRecorder({ type: 'progressed', status: this.status() });
  }

  progressed(totals: RolloutTotals): void {
    this.#progress.totals = totals;
    this.#out.sendToRecorder({ type: 'progressed', status: this.status() });
  }

  captured({ id, state }: Captured): void {
    if (id !== this.#out.captures) return; // of a checkpoint that was given up meanwhile
    this.#progress.totals = state.totals;
    this.on({ type: 'captured', evaluating: this.#evaluations.size > 0 }, state);
  }

  #handleFinished({ group, trajectories }: PlayedGroup, progress: number): void {
    const ticket = this.#groups.recordFinished(group, trajectories.length);
    if (!ticket) return; // abandoned meanwhile
    const { task, horizon, size, purpose } = ticket;
    this.#out.sendToRecorder({ type: 'episodes', trajectories, purpose: purpose.name });
    if (this.#evaluations.recordFinished(purpose.name, trajectories)) {
      this.#groups.filter(size);
      return;
    }
    const isBack = this.#launcher.worlds.observe(task, trajectories.filter(({ success }) => success).length / size);
    if (isBack)
      this.#out.sendToRecorder({ type: 'noticed', text: `${task.env} answers again: it gets its share of the groups` });
    if (this.#init.paths.learner === undefined) {
      this.#groups.filter(size);
      return;
    }
    const finished: Group = { group, task, horizon, trajectories };
    this.#groups.deliveries.add(finished, progress);
    if (handsOver(this.#phase)) this.#out.handOver([{ group: finished, progress }]);
  }

  #handleGivenUp({ group, failure, attempts }: GaveUp): void {
    const ticket = this.#groups.recordGivenUp(group, failure.cause);
    if (!ticket) return;
    const { task, size, purpose } = ticket;
    this.#out.sendToRecorder({ type: 'failed', task, failure });
    if (this.#evaluations.recordGivenUp(purpose.name, size, failure)) return;
    const { quarantined, down } = this.#launcher.worlds.giveUp(task, failure.cause);
    if (down) {
      const text = `${task.env} does not answer (${failure.message}): its share of the groups goes to the other worlds, and it is tried now and then`;
      this.#out.sendToRecorder({ type: 'noticed', text });
    }
    if (!quarantined) return;
    this.#out.sendToRecorder({ type: 'quarantined', task, failure, attempts });
  }

  // --- phases -----------------------------------------------------------------------------------------------------

  /**
   * Applies an event of the phase.
   * @param state of the rollouts, where they have just reported it
   */
  on(event: PhaseEvent, state?: RolloutState): void {
    const { phase, effects } = nextPhase(this.#phase, event, this.#init.barrier);
    this.#phase = phase;
    if (!isQuiet(phase)) this.#cancelQuiet();
    for (const effect of effects) this.#carryOut(effect, state);
  }

  #carryOut(effect: PhaseEffect, state: RolloutState | undefined): void {
    const carriers: Record<PhaseEffect, () => void> = {
      restore: () => this.#restore(this.#checkpoint!),
      pause: () => this.#out.sendToRollouts({ type: 'pause', ended: false }),
      end: () => this.#out.sendToRollouts({ type: 'pause', ended: true }),
      capture: () => {
        this.#out.capture(this.#init.barrier || this.#phase.name === 'restoring');
      },
      answer: () => this.#answerSnapshot(this.#state(state!)),
      answerCheckpoint: () => this.#answerSnapshot(this.#checkpoint!),
      awaitQuiet: () => {
        this.#cancelQuiet();
        this.#cancelQuiet = this.#ctx.sendAfter(QUIET_MS, { type: 'resume' });
      },
      resume: () => {
        this.#checkpoint = undefined;
        this.#ctx.system.reorder(this.#version);
        this.#out.sendToRollouts({ type: 'resume' });
      },
      handOver: () => this.#out.handOver(this.#groups.deliveries.list()),
      launch: () => this.#launch(),
    };
    carriers[effect]();
  }

  /** State of the run, as a checkpoint keeps it. */
  #state({ running, nextEpisode, elsewhere, totals: { envSteps, episodes } }: RolloutState): SchedulerState {
    const position = this.#journal.checkpoint(this.#version);
    const away = new Set(elsewhere);
    return {
      format: 2,
      ...this.#launcher.saved,
      nextEpisode,
      envSteps,
      episodes,
      elapsedMs: this.#progress.elapsedMs,
      ...this.#groups.snapshot(
        running,
        (group) => away.has(group) || this.#waiting.has(group) || this.#journal.holds(group),
      ),
      ...(position === undefined ? {} : { journal: position }),
    };
  }

  /** Restores a checkpoint: sends its episodes to the rollouts; training goes on when each is back at its last turn. */
  #restore({ delivered, running, tickets = [] }: SchedulerState): void {
    this.#groups.restoring();
    for (const ticket of tickets) {
      this.#groups.restore(ticket);
      this.#waiting.add(ticket);
    }
    for (const { group, progress } of delivered) this.#groups.deliveries.add(reviveGroup(group), progress);
    const groups = running.map((saved) => {
      const ticket = trainingTicket(this.#init, saved.group, saved.task, saved.horizon, this.#version);
      this.#groups.restore(ticket);
      return { ticket, saved };
    });
    this.#out.sendToRollouts({ type: 'restore', groups });
  }

  #answerSnapshot(run: SchedulerState): void {
    if (this.#snapshot) this.#ctx.reply(this.#snapshot, { run, horizon: this.#launcher.worlds.firstHorizon });
    this.#snapshot = undefined;
  }

  #endIfDone(): boolean {
    const why = isTraining(this.#phase) && this.#progress.stopReached(this.#version);
    if (why) this.end(why);
    return !isTraining(this.#phase);
  }

  #answerTrain(why: TrainEnded['why']): void {
    const status = this.status();
    this.#progress.end();
    this.#ctx.reply(this.#training!, { why, status });
  }

  // --- groups and addresses -----------------------------------------------------------------------------------------

  #launch(): void {
    if (this.#journal.isBehind) return; // `writeJournal` launches
    const due = mayLaunch(this.#phase) ? this.#waiting.take(this.#version) : [];
    const tickets = this.#launcher.launch(this.#phase, this.#version);
    const play = (groups: readonly GroupTicket[]) => {
      if (groups.length > 0) this.#out.sendToRollouts({ type: 'play', groups });
    };
    play(due);
    if (tickets.length === 0) return;
    if (isTraining(this.#phase)) {
      this.#journal.record(
        () => ({ type: 'launched', tickets }),
        () => play(tickets),
      );
    } else play(tickets);
  }
}
