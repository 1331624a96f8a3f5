/**
 * Rollout actor: plays groups. It opens their episodes on the env hosts, sends turns to the policy and actions to the
 * hosts, and reports outcomes to the scheduler. It knows neither learner nor admission. Hosts and policy work side by
 * side. An episode waits for one of them at a time, so the number of episodes bounds the number of messages in flight.
 *
 * A failed episode is attempted again (retry.ts) under the same task (a new episode number, a new sampling seed); after
 * `maxAttempts` its group is given up. No failure becomes a reward. `maxFailures` failed episodes in a row, none
 * finished in between, mean that the environment or the policy's server is broken, and so does an environment's server
 * that answers no episode for `maxOutageMs`. The actor then crashes with one error that names the cause, and the run ends.
 */
import type { Failure } from '../../src/core/failure.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { packRequests, unpackActed } from '../../src/policy/turn-batch.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import { reviveTrajectory } from '../../src/storage/trace.ts';
import type { EnvEvent } from '../env/protocol.ts';
import type { ActedEvent, InferenceCommand } from '../inference/protocol.ts';
import type { Captured, FailedAttempt, GaveUp, Played, PlayedGroup, Progressed } from '../scheduler/protocol.ts';
import {
  act,
  type EpisodeRun,
  type GroupRun,
  isTraining,
  listFinished,
  moves,
  observe,
  openEpisode,
  openGroup,
  reopenEpisode,
  requestFor,
  saveGroup,
  truncate,
  usesTurn,
} from './episode-run.ts';
import { Outages } from './outages.ts';
import { Outbox } from './outbox.ts';
import type { Capture, GroupTicket, Pause, Restore, RolloutCommand, RolloutInit } from './protocol.ts';
import { type FailureRow, nextAttempt } from './retry.ts';
import { Totals } from './totals.ts';

/** Internal: the end of an incarnation of the policy, whose memory is lost with it; and the tick of reports. */
type Internal = RolloutCommand | { readonly type: 'policyEnded' } | { readonly type: 'report' };

/** Milliseconds from an event to its report, where no episode ended. */
const REPORT_MS = 250;

/** Outcomes of episodes since the last report. */
interface Outcomes {
  readonly groups: PlayedGroup[];
  readonly gaveUp: GaveUp[];
  readonly failed: FailedAttempt[];
  ended: boolean;
}

const createOutcomes = (): Outcomes => ({ groups: [], gaveUp: [], failed: [], ended: false });

/** Rollout actor; the module's default export, so that it can live in a thread. */
export default function rolloutActor(init: RolloutInit): BehaviorFactory<Internal> {
  return (ctx) => {
    const rollouts = new Rollouts(ctx, init);
    ctx.watch({ path: init.paths.inference }, () => ({ type: 'policyEnded' }));
    return {
      handlers: {
        play: ({ groups }) => rollouts.play(groups),
        abandon: ({ groups }) => rollouts.abandon(groups),
        restore: (restore) => rollouts.restore(restore),
        pause: (pause) => rollouts.pause(pause),
        resume: () => rollouts.resume(),
        capture: (capture) => rollouts.capture(capture),
        acted: (event) => rollouts.acted(event),
        observed: ({ events }) => rollouts.observed(events),
        truncated: ({ episodes }) => rollouts.truncated(episodes),
        policyEnded: () => rollouts.policyEnded(),
        report: () => rollouts.report(),
      },
    };
  };
}

class Rollouts {
  readonly #ctx: Context<Internal>;
  readonly #init: RolloutInit;
  readonly #episodes = new Map<number, EpisodeRun>();
  readonly #groups = new Map<number, GroupRun>();
  readonly #totals: Totals;
  /** Training: not begun, played, paused until `resume`, or paused for good. */
  #training: 'none' | 'on' | 'paused' | 'ended' = 'none';
  #capture: Capture | undefined;
  /** Incarnations of the policy, counting a cleared cache as one: each begins without history. */
  #policyIncarnation = 0;
  #nextEpisode: number;
  #failedInRow = 0;
  readonly #outages: Outages;
  /** Finished episodes whose group has not finished. */
  #gathered = 0;
  #outcomes = createOutcomes();
  /** True when a report is due: something happened since the last one. */
  #ticking = false;
  readonly #out: Outbox;

  constructor(ctx: Context<Internal>, init: RolloutInit) {
    this.#ctx = ctx;
    this.#init = init;
    this.#out = new Outbox((path) => ctx.resolve(path), init.paths.envs);
    this.#nextEpisode = init.start.nextEpisode;
    this.#totals = new Totals(ctx.clock.now(), init);
    this.#outages = new Outages(init.worlds, init.maxOutageMs);
  }

  play(tickets: readonly GroupTicket[]) {
    this.#chargeTime();
    for (const ticket of tickets) {
      const group = openGroup(ticket);
      if (this.#training === 'none' && isTraining(group)) this.#training = 'on';
      this.#groups.set(group.group, group);
      for (let member = 0; member < group.size; member++) this.#startEpisode(group, member, 1);
    }
    return this.#flush();
  }

  abandon(groups: readonly number[]) {
    this.#chargeTime();
    for (const group of groups) this.#drop(this.#groups.get(group));
    return this.#flush();
  }

  restore({ groups }: Restore) {
    const now = this.#chargeTime();
    this.#training = 'paused';
    for (const { ticket, saved } of groups) {
      const group = openGroup(ticket);
      for (const { member, trajectory } of saved.finished) group.finished[member] = reviveTrajectory(trajectory);
      this.#gathered += saved.finished.length;
      this.#groups.set(group.group, group);
      for (const one of saved.running) {
        const { episode, attempt, turns } = one;
        this.#episodes.set(episode, reopenEpisode(group, one, now));
        const replay = turns.map(({ action }) => action);
        this.#out.command({ type: 'open', episode, attempt, task: group.task, horizon: group.horizon, replay });
      }
    }
    return this.#flush();
  }

  pause({ ended }: Pause) {
    this.#chargeTime();
    this.#training = ended ? 'ended' : 'paused';
    return this.#flush();
  }

  resume() {
    this.#training = 'on';
    this.#policyIncarnation++;
    this.#out.send<InferenceCommand>(this.#init.paths.inference, { type: 'forget' });
    const waiting = [...this.#episodes.values()].filter(({ request }) => request);
    // Time spent at rest is charged to no turn; a resumed run has none of it.
    for (const run of waiting) run.since = this.#ctx.clock.now();
    this.#ask(waiting);
    return this.#flush();
  }

  capture(capture: Capture) {
    this.#capture = capture;
    return this.#flush();
  }

  observed(events: readonly EnvEvent[]) {
    const now = this.#chargeTime();
    const requests: EpisodeRun[] = [];
    const ended: number[] = [];
    let batchMs = 0;
    for (const event of events) {
      if (event.type !== 'observed') continue;
      batchMs += event.envMs;
      this.#outages.recordAnswer(this.#episodes.get(event.episode)?.group.task.env, now);
    }
    for (const event of events) {
      const run = this.#episodes.get(event.episode);
      if (!run || this.#isFrozen(run)) continue; // abandoned meanwhile, or over
      if (event.type === 'failed') {
        ended.push(event.episode);
        this.#fail(run, event.failure);
        continue;
      }
      const counts = usesTurn(event.step) && !run.restoring && isTraining(run.group);
      this.#totals.countStep(counts, now - (run.pending?.sentAt ?? run.since), event.envMs, batchMs);
      const next = observe(run, event, this.#init.view, now);
      if ('request' in next) requests.push(run);
      else {
        ended.push(event.episode);
        if ('broken' in next) this.#fail(run, { ...next.broken, where: this.#ctx.path });
        else this.#finish(run, next.trajectory); // at once: an answer to it that is still to come is too late
      }
    }
    if (ended.length > 0) this.#release(ended);
    this.#ask(requests.filter(({ group }) => this.#training === 'on' || !isTraining(group)));
    return this.#flush();
  }

  acted({ turns: batch, tokens }: ActedEvent) {
    const now = this.#chargeTime();
    const turns = unpackActed(batch);
    this.#totals.countCall(turns.length, tokens);
    for (const answer of turns) {
      const run = this.#episodes.get(answer.episode);
      const action = run && !this.#isFrozen(run) ? act(run, answer, now) : undefined;
      if (action === undefined) continue;
      this.#totals.countTurn(run!.pending!.actMs, answer.stages);
      this.#out.command({ type: 'step', episode: answer.episode, turn: run!.turns.length + 1, action });
    }
    return this.#flush();
  }

  /** Ends episodes that the policy goes no further in. One that did not even begin has failed. */
  truncated(episodes: readonly number[]) {
    this.#chargeTime();
    const ended: number[] = [];
    for (const episode of episodes) {
      const run = this.#episodes.get(episode);
      if (!run?.request || this.#isFrozen(run)) continue;
      ended.push(episode);
      if (run.turns.length > 0) this.#finish(run, truncate(run, this.#init.view));
      else {
        const message = "the first observation does not fit the model's context";
        this.#fail(run, { cause: 'policy', where: this.#init.paths.inference, message });
      }
    }
    if (ended.length > 0) this.#release(ended);
    return this.#flush();
  }

  /** Sends every waiting turn again with its history; one whose env is at work, when that has answered. */
  policyEnded() {
    this.#totals.policyEnded();
    this.#policyIncarnation++;
    this.#ask([...this.#episodes.values()].filter(({ asked }) => asked));
    return this.#flush();
  }

  report(): void {
    this.#ticking = false;
    this.#chargeTime();
    const { scheduler } = this.#init.paths;
    this.#out.send<Progressed>(scheduler, { type: 'progressed', totals: this.#totals.with(this.#episodes.size) });
  }

  /**
   * True for an episode that ran when training ended: it stays as it was, and a checkpoint keeps that state whenever it
   * is written.
   */
  #isFrozen({ group }: EpisodeRun): boolean {
    return this.#training === 'ended' && !this.#init.barrier && isTraining(group);
  }

  #ask(runs: readonly EpisodeRun[]): void {
    if (runs.length === 0) return;
    const requests = runs.map((run) => requestFor(run, this.#policyIncarnation));
    const packed = this.#init.policyInThread ? packRequests(requests) : requests;
    this.#out.send<InferenceCommand>(this.#init.paths.inference, { type: 'act', requests: packed });
  }

  #release(episodes: readonly number[]): void {
    this.#out.send<InferenceCommand>(this.#init.paths.inference, { type: 'release', episodes });
  }

  #startEpisode(group: GroupRun, member: number, attempt: number): void {
    const { task, horizon, beginning } = group;
    const episode = this.#nextEpisode++;
    const now = this.#ctx.clock.now();
    const turns = beginning?.turns ?? [];
    const isFresh = turns.length === 0;
    const run = isFresh
      ? openEpisode(group, member, episode, attempt, now)
      : reopenEpisode(group, { episode, member, attempt, turns }, now);
    this.#episodes.set(episode, run);
    const open = { type: 'open', episode, attempt, task, horizon } as const;
    this.#out.command(isFresh ? open : { ...open, replay: turns.map(({ action }) => action) });
  }

  #finish(run: EpisodeRun, trajectory: Trajectory): void {
    const { group } = run;
    this.#close(run);
    group.finished[run.member] = trajectory;
    this.#gathered++;
    this.#totals.countFinished();
    this.#failedInRow = 0;
    const trajectories = listFinished(group);
    if (trajectories.length < group.size) return;
    this.#groups.delete(group.group);
    this.#gathered -= group.size;
    this.#outcomes.groups.push({ group: group.group, trajectories, envSteps: this.#totals.envSteps });
  }

  #fail(run: EpisodeRun, failure: Failure): void {
    const { group, member, attempt } = run;
    this.#close(run);
    const next = nextAttempt(failure, attempt, this.#countFailed(run, failure), group.task, this.#init);
    if (next !== undefined) {
      this.#outcomes.failed.push({ group: group.group, failure });
      this.#startEpisode(group, member, next);
    } else {
      this.#outcomes.gaveUp.push({ group: group.group, failure, attempts: attempt });
      this.#drop(group);
    }
  }

  #countFailed({ pending, since, group }: EpisodeRun, { cause }: Failure): FailureRow {
    const sentAt = pending?.sentAt ?? since;
    const outage = this.#outages.recordFailure(group.task.env, cause, sentAt, this.#ctx.clock.now());
    // A world that is out while others answer says nothing of them.
    if (cause !== 'unreachable' || !outage.othersAnswer) this.#failedInRow++;
    return { failures: this.#failedInRow, ...outage };
  }

  #drop(group: GroupRun | undefined): void {
    if (!group || !this.#groups.delete(group.group)) return;
    const running = [...group.running.values()];
    for (const run of running) this.#close(run);
    this.#gathered -= listFinished(group).length;
    this.#release(running.map(({ episode }) => episode));
  }

  #close(run: EpisodeRun): void {
    this.#episodes.delete(run.episode);
    run.group.running.delete(run.member);
    this.#outcomes.ended = true;
    this.#out.command({ type: 'close', episode: run.episode });
  }

  /** Charges the time since the last call to the counts that held until now. @returns the present time */
  #chargeTime(): number {
    const now = this.#ctx.clock.now();
    const training = this.#training === 'on' || this.#training === 'paused';
    this.#totals.chargeTime(now, this.#episodes.size, this.#gathered, training);
    return now;
  }

  /**
   * Flushes the messages that a handler has gathered. @returns a promise where a mailbox was full: the actor waits for
   * its place
   */
  #flush(): void | Promise<void> {
    const { scheduler } = this.#init.paths;
    this.#out.sendCommands();
    const totals = () => this.#totals.with(this.#episodes.size);
    if (this.#outcomes.ended) {
      const { groups, gaveUp, failed } = this.#outcomes;
      this.#out.send<Played>(scheduler, { type: 'played', groups, gaveUp, failed, totals: totals() });
      this.#outcomes = createOutcomes();
    } else if (!this.#ticking && !this.#init.barrier) {
      // A tick, not a look at the clock: a repeated run has to send the same messages.
      this.#ticking = true;
      this.#ctx.sendAfter(REPORT_MS, { type: 'report' });
    }
    if (this.#capture && !(this.#capture.atRest && moves(this.#episodes.values()))) {
      const running = [...this.#groups.values()].filter(isTraining).map(saveGroup);
      const state = { running, nextEpisode: this.#nextEpisode, totals: totals() };
      this.#out.send<Captured>(scheduler, { type: 'captured', id: this.#capture.id, state });
      this.#capture = undefined;
    }
    return this.#out.awaitSpace();
  }
}
