/** Tickets actor: sends groups to workers, and to the rollouts here. See `TicketsCommand`. */
import type { Broker } from '../../src/cluster/broker.ts';
import type { ClusterMonitor } from '../../src/cluster/cluster-monitor.ts';
import type { EpisodeCheck } from '../../src/cluster/episode-check.ts';
import type { GroupResult } from '../../src/cluster/result.ts';
import { TicketDispatcher } from '../../src/cluster/ticket-dispatcher.ts';
import type { Failure } from '../../src/core/failure.ts';
import type { FailedAttempt, GroupTicket, PlayedGroup } from '../../src/core/ticket.ts';
import { type Trajectory, turnsUsed } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/metrics/run-status.ts';
import { NO_TIME } from '../../src/metrics/slot-time.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { RolloutCommand } from '../rollout/protocol.ts';
import type { Captured, Played, SchedulerCommand } from '../scheduler/protocol.ts';
import { BrokerWatch } from './broker-watch.ts';
import type { Arrived, Refused, TicketsCommand, WeightsCommand } from './protocol.ts';

export interface TicketsInit {
  readonly broker: Broker;
  /** Groups played here at once; 0: all go to workers. */
  readonly localGroups: number;
  readonly vocabSize: number;
  /** Check of the episodes of results; see `createEpisodeCheck`. */
  readonly check: EpisodeCheck;
  /** Plays a share of the results again; see `createVerifier`. */
  readonly verify?: ((result: GroupResult) => Promise<string | undefined> | undefined) | undefined;
  readonly monitor: ClusterMonitor;
  readonly onNotice: (text: string) => void;
  /** Digest of this run's weights of a version. */
  readonly digestOf: (version: number) => string | undefined;
  readonly start: { readonly nextEpisode: number; readonly envSteps: number; readonly episodes: number };
  readonly paths: { readonly scheduler: string; readonly rollout: string; readonly weights: string };
}

export function ticketsActor(init: TicketsInit): BehaviorFactory<TicketsCommand> {
  return (ctx) => {
    const tickets = new Tickets(ctx, init);
    return {
      handlers: {
        play: ({ groups }) => tickets.play(groups),
        abandon: (abandon) => tickets.abandon(abandon.groups),
        restore: (restore) => {
          for (const { ticket } of restore.groups) tickets.addLocal(ticket.group);
          tickets.sendToRollouts(restore);
        },
        pause: (pause) => tickets.pause(pause.ended),
        resume: (resume) => tickets.sendToRollouts(resume),
        capture: (capture) => tickets.sendToRollouts(capture),
        played: (played) => tickets.played(played),
        progressed: ({ totals }) => tickets.progressed(totals),
        captured: (captured) => tickets.captured(captured),
        arrived: (arrived) => tickets.arrived(arrived),
        refused: (refused) => tickets.refused(refused),
        broke: ({ error }) => {
          throw error;
        },
      },
      stopped: () => tickets.stop(),
    };
  };
}

class Tickets {
  readonly #ctx: Context<TicketsCommand>;
  readonly #init: TicketsInit;
  readonly #dispatcher: TicketDispatcher;
  readonly #watch: BrokerWatch;
  /** Groups that are played here. */
  readonly #localGroups = new Set<number>();
  /** Training groups that were with workers when training ended: a checkpoint keeps their tickets. */
  #unfinished: readonly number[] = [];
  #localTotals: RolloutTotals;
  /** Steps of training episodes, and episodes, of workers. */
  #envSteps = 0;
  #episodes = 0;
  /** Episodes are numbered as they finish: every machine counts its own from 0. */
  #nextEpisode: number;
  readonly #training = new Set<number>();
  #running = 0;

  constructor(ctx: Context<TicketsCommand>, init: TicketsInit) {
    const { broker, vocabSize, digestOf, check, verify, monitor, start } = init;
    this.#ctx = ctx;
    this.#init = init;
    this.#nextEpisode = start.nextEpisode;
    const { envSteps, episodes } = start;
    this.#localTotals = { envSteps, episodes, runningEpisodes: 0, tokens: 0, calls: 0, decidedTurns: 0, time: NO_TIME };
    const self = (message: TicketsCommand) => void ctx.self.tell(message);
    this.#dispatcher = new TicketDispatcher({
      broker,
      clock: ctx.clock,
      vocabSize,
      digestOf,
      check,
      verify,
      onNotice: init.onNotice,
      onBanned: (worker, why) => this.#ban(worker, why),
      onResult: (result) => self({ type: 'arrived', ticket: result.ticket, result }),
      onRefused: (ticket, worker, why) => self({ type: 'refused', ticket, worker, why }),
      onError: (error) => self({ type: 'broke', error }),
    });
    this.#dispatcher.start();
    monitor.counts = () => this.#dispatcher.counts;
    this.#watch = new BrokerWatch({ broker, clock: ctx.clock, monitor, onNotice: init.onNotice });
  }

  play(groups: readonly GroupTicket[]): void {
    const free = Math.max(0, this.#init.localGroups - this.#localGroups.size);
    const local = groups.slice(0, free);
    const remote = groups.slice(free);
    for (const { group } of local) this.#localGroups.add(group);
    if (local.length > 0) this.sendToRollouts({ type: 'play', groups: local });
    for (const { group, purpose, size } of remote) {
      this.#running += size;
      if (purpose.name === 'train') this.#training.add(group);
    }
    this.#dispatcher.dispatch(remote);
  }

  /** Adds a group that the rollouts here play already. */
  addLocal(group: number): void {
    this.#localGroups.add(group);
  }

  abandon(groups: readonly number[]): void {
    this.#dispatcher.withdraw(groups);
    for (const group of groups) {
      this.#training.delete(group);
      this.#localGroups.delete(group);
    }
    this.#unfinished = this.#unfinished.filter((group) => !groups.includes(group));
    this.sendToRollouts({ type: 'abandon', groups });
  }

  pause(ended: boolean): void {
    if (ended) {
      this.#unfinished = [...this.#training];
      this.#training.clear();
      this.#dispatcher.withdraw(this.#unfinished);
      this.#dispatcher.clear();
    }
    this.sendToRollouts({ type: 'pause', ended });
  }

  played({ groups, gaveUp, failed, totals }: Played): void {
    this.#localTotals = totals;
    for (const { group } of [...groups, ...gaveUp]) this.#localGroups.delete(group);
    const renumbered = groups.map(
      (one): PlayedGroup => ({ ...this.#renumber(one), envSteps: one.envSteps + this.#envSteps }),
    );
    this.#sendToScheduler({ type: 'played', groups: renumbered, gaveUp, failed, totals: this.#totals });
  }

  progressed(totals: RolloutTotals): void {
    this.#localTotals = totals;
    this.#sendToScheduler({ type: 'progressed', totals: this.#totals });
  }

  captured({ id, state }: Captured): void {
    this.#localTotals = state.totals;
    const elsewhere = [...this.#training, ...this.#unfinished];
    const nextEpisode = Math.max(this.#nextEpisode, state.nextEpisode);
    this.#sendToScheduler({ type: 'captured', id, state: { ...state, nextEpisode, totals: this.#totals, elsewhere } });
  }

  arrived({ ticket, result }: Arrived): void {
    this.#watch.recordArrived();
    const { group, purpose, size } = ticket;
    if (this.#unfinished.includes(group)) return; // training has ended: it stays as it was
    this.#training.delete(group);
    this.#running -= size;
    const failed = listFailedAttempts(result, this.#ctx.path);
    if (result.gaveUp) {
      this.#sendToScheduler({
        type: 'played',
        groups: [],
        gaveUp: [{ group, ...result.gaveUp }],
        failed,
        totals: this.#totals,
      });
      return;
    }
    const { trajectories } = result;
    this.#episodes += size;
    if (purpose.name === 'train') for (const { turns } of trajectories) this.#envSteps += turnsUsed(turns);
    const { envSteps } = this.#totals;
    const groups = [this.#renumber({ group, trajectories, envSteps })];
    this.#sendToScheduler({ type: 'played', groups, gaveUp: [], failed, totals: this.#totals });
  }

  refused({ ticket, worker, why }: Refused): void {
    if (worker !== undefined) this.#init.monitor.workers.addRefused(worker);
    const message = `the result of ${worker ?? 'a worker'} for group ${ticket.group} was refused: ${why}`;
    const failed = repeatFailure(ticket, ticket.size, { cause: 'worker', where: this.#ctx.path, message });
    this.#sendToScheduler({ type: 'played', groups: [], gaveUp: [], failed, totals: this.#totals });
  }

  sendToRollouts(command: RolloutCommand): void {
    void this.#ctx.resolve<RolloutCommand>(this.#init.paths.rollout).tell(command);
  }

  stop(): void {
    this.#watch.stop();
    this.#dispatcher.stop();
  }

  #ban(worker: string, why: string): void {
    this.#init.onNotice(`${worker}: several results in a row were refused (${why}); it is banned from this run`);
    void this.#ctx.resolve<WeightsCommand>(this.#init.paths.weights).tell({ type: 'ban', worker });
  }

  get #totals(): RolloutTotals {
    const { envSteps, episodes, runningEpisodes, ...rest } = this.#localTotals;
    return {
      ...rest,
      envSteps: envSteps + this.#envSteps,
      episodes: episodes + this.#episodes,
      runningEpisodes: runningEpisodes + this.#running,
    };
  }

  /** Gives a group's episodes this run's next numbers. */
  #renumber(group: PlayedGroup): PlayedGroup {
    const trajectories = group.trajectories.map((one): Trajectory => ({ ...one, episode: this.#nextEpisode++ }));
    return { ...group, trajectories };
  }

  #sendToScheduler(command: SchedulerCommand): void {
    void this.#ctx.resolve<SchedulerCommand>(this.#init.paths.scheduler).tell(command);
  }
}

/** Lists the failed attempts at a group's episodes: those that its worker reports, and all that earlier workers lost. */
function listFailedAttempts({ ticket, delivery, failed, gaveUp }: GroupResult, where: string): FailedAttempt[] {
  const reported = failed.map((failure) => ({ group: ticket.group, failure }));
  // Where the group is given up because every worker ended, `gaveUp` counts the last of those attempts.
  const counted = gaveUp?.failure.cause === 'worker' && gaveUp.attempts > 1 ? 1 : 0;
  const lost = Math.max(0, delivery - 1 - counted) * ticket.size;
  if (lost === 0) return reported;
  const message = `a worker that held group ${ticket.group} is gone`;
  return [...repeatFailure(ticket, lost, { cause: 'worker', where, message }), ...reported];
}

function repeatFailure({ group }: GroupTicket, count: number, failure: Failure): FailedAttempt[] {
  return Array.from({ length: count }, () => ({ group, failure }));
}
