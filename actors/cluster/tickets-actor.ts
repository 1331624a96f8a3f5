/** Tickets actor: has groups played by workers, as the rollouts play them here. See `TicketsCommand`. */
import { type Broker, measureLoad, type UnavailableReason } from '../../src/cluster/broker.ts';
import type { EpisodeCheck } from '../../src/cluster/episode-check.ts';
import { TicketIssuer } from '../../src/cluster/issuer.ts';
import type { GroupResult } from '../../src/cluster/result.ts';
import { type ClusterWatch, stuckWords } from '../../src/cluster/watch.ts';
import type { Failure } from '../../src/core/failure.ts';
import type { FailedAttempt, GroupTicket, PlayedGroup } from '../../src/core/ticket.ts';
import { type Trajectory, turnsUsed } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/record/run-status.ts';
import { NO_TIME } from '../../src/record/slot-time.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { RolloutCommand } from '../rollout/protocol.ts';
import type { Captured, Played, SchedulerCommand } from '../scheduler/protocol.ts';
import type { Arrived, Refused, TicketsCommand, WeightsCommand } from './protocol.ts';

export interface TicketsInit {
  readonly broker: Broker;
  /** Groups played here at once; 0: all go to workers. */
  readonly localGroups: number;
  readonly vocabSize: number;
  /** Check of the episodes of results; see `episodeCheck`. */
  readonly check: EpisodeCheck;
  /** Verifier of results that looks at a share of them; see `TicketIssuer`. */
  readonly verify?: ((result: GroupResult) => Promise<string | undefined> | undefined) | undefined;
  readonly watch: ClusterWatch;
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
          for (const { ticket } of restore.groups) tickets.playsHere(ticket.group);
          tickets.tellRollouts(restore);
        },
        pause: (pause) => tickets.pause(pause.ended),
        resume: (resume) => tickets.tellRollouts(resume),
        capture: (capture) => tickets.tellRollouts(capture),
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

/** Milliseconds between two questions how loaded the broker is. */
const LOAD_MS = 2000;

class Tickets {
  readonly #ctx: Context<TicketsCommand>;
  readonly #init: TicketsInit;
  readonly #issuer: TicketIssuer;
  /** Groups that are played here. */
  readonly #here = new Set<number>();
  /** Training groups that were with workers when training ended: a checkpoint keeps their tickets. */
  #left: readonly number[] = [];
  #local: RolloutTotals;
  /** Steps of training episodes, and episodes, of workers. */
  #envSteps = 0;
  #episodes = 0;
  /** Episodes are numbered as they finish: every machine counts its own from 0. */
  #nextEpisode: number;
  readonly #training = new Set<number>();
  readonly #endReports: () => void;
  #running = 0;
  /** Reason told last why results find no place at the broker, until one comes again. */
  #told: UnavailableReason | undefined;
  #stopped = false;

  constructor(ctx: Context<TicketsCommand>, init: TicketsInit) {
    const { broker, vocabSize, digestOf, check, verify, watch, start } = init;
    this.#ctx = ctx;
    this.#init = init;
    this.#nextEpisode = start.nextEpisode;
    const { envSteps, episodes } = start;
    this.#local = { envSteps, episodes, runningEpisodes: 0, tokens: 0, calls: 0, decidedTurns: 0, time: NO_TIME };
    const self = (message: TicketsCommand) => void ctx.self.tell(message);
    this.#issuer = new TicketIssuer({
      broker,
      clock: ctx.clock,
      vocabSize,
      digestOf,
      check,
      verify,
      onNotice: init.onNotice,
      onShutOut: (worker, why) => this.#shutOut(worker, why),
      onResult: (result) => self({ type: 'arrived', ticket: result.ticket, result }),
      onRefused: (ticket, worker, why) => self({ type: 'refused', ticket, worker, why }),
      onError: (error) => self({ type: 'broke', error }),
    });
    this.#issuer.start();
    watch.counts = () => this.#issuer.counts;
    this.#endReports = broker.reports.subscribe((name, bytes) => {
      const report = watch.workers.heard(name, bytes, ctx.clock.now());
      if (report?.stuck !== undefined) this.#stuck(name, report.stuck);
    });
    void this.#watchLoad();
  }

  play(groups: readonly GroupTicket[]): void {
    const free = Math.max(0, this.#init.localGroups - this.#here.size);
    const here = groups.slice(0, free);
    const away = groups.slice(free);
    for (const { group } of here) this.#here.add(group);
    if (here.length > 0) this.tellRollouts({ type: 'play', groups: here });
    for (const { group, purpose, size } of away) {
      this.#running += size;
      if (purpose.name === 'train') this.#training.add(group);
    }
    this.#issuer.issue(away);
  }

  playsHere(group: number): void {
    this.#here.add(group);
  }

  abandon(groups: readonly number[]): void {
    this.#issuer.withdraw(groups);
    for (const group of groups) {
      this.#training.delete(group);
      this.#here.delete(group);
    }
    this.#left = this.#left.filter((group) => !groups.includes(group));
    this.tellRollouts({ type: 'abandon', groups });
  }

  pause(ended: boolean): void {
    if (ended) {
      this.#left = [...this.#training];
      this.#training.clear();
      this.#issuer.withdraw(this.#left);
      this.#issuer.clear();
    }
    this.tellRollouts({ type: 'pause', ended });
  }

  played({ groups, gaveUp, failed, totals }: Played): void {
    this.#local = totals;
    for (const { group } of [...groups, ...gaveUp]) this.#here.delete(group);
    const numbered = groups.map(
      (one): PlayedGroup => ({ ...this.#numbered(one), envSteps: one.envSteps + this.#envSteps }),
    );
    this.#tellScheduler({ type: 'played', groups: numbered, gaveUp, failed, totals: this.#totals });
  }

  progressed(totals: RolloutTotals): void {
    this.#local = totals;
    this.#tellScheduler({ type: 'progressed', totals: this.#totals });
  }

  captured({ id, state }: Captured): void {
    this.#local = state.totals;
    const elsewhere = [...this.#training, ...this.#left];
    const nextEpisode = Math.max(this.#nextEpisode, state.nextEpisode);
    this.#tellScheduler({ type: 'captured', id, state: { ...state, nextEpisode, totals: this.#totals, elsewhere } });
  }

  arrived({ ticket, result }: Arrived): void {
    this.#told = undefined;
    const { group, purpose, size } = ticket;
    if (this.#left.includes(group)) return; // training has ended: it stays as it was
    this.#training.delete(group);
    this.#running -= size;
    const failed = failedAttempts(result, this.#ctx.path);
    if (result.gaveUp) {
      this.#tellScheduler({
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
    const groups = [this.#numbered({ group, trajectories, envSteps })];
    this.#tellScheduler({ type: 'played', groups, gaveUp: [], failed, totals: this.#totals });
  }

  refused({ ticket, worker, why }: Refused): void {
    if (worker !== undefined) this.#init.watch.workers.refused(worker);
    const message = `the result of ${worker ?? 'a worker'} for group ${ticket.group} cannot be believed: ${why}`;
    const failed = attempts(ticket, ticket.size, { cause: 'worker', where: this.#ctx.path, message });
    this.#tellScheduler({ type: 'played', groups: [], gaveUp: [], failed, totals: this.#totals });
  }

  tellRollouts(command: RolloutCommand): void {
    void this.#ctx.resolve<RolloutCommand>(this.#init.paths.rollout).tell(command);
  }

  stop(): void {
    this.#stopped = true;
    this.#endReports();
    this.#issuer.stop();
  }

  #shutOut(worker: string, why: string): void {
    this.#init.onNotice(`${worker}: several results in a row cannot be believed (${why}); nothing more is taken of it`);
    void this.#ctx.resolve<WeightsCommand>(this.#init.paths.weights).tell({ type: 'shutOut', worker });
  }

  /** Tells of a broker that takes no results: a learner that only reads is answered, and would wait in silence. */
  #stuck(worker: string, reason: UnavailableReason): void {
    if (reason === this.#told) return;
    this.#told = reason;
    this.#init.onNotice(`${worker}: ${stuckWords(reason)}`);
  }

  /** Asks the broker now and then how loaded it is; for the eye only. */
  async #watchLoad(): Promise<void> {
    const { broker, watch } = this.#init;
    while (!this.#stopped) {
      watch.load = await measureLoad(broker).catch(() => undefined);
      await new Promise<void>((resolve) => this.#ctx.clock.after(LOAD_MS, resolve));
    }
  }

  get #totals(): RolloutTotals {
    const { envSteps, episodes, runningEpisodes, ...rest } = this.#local;
    return {
      ...rest,
      envSteps: envSteps + this.#envSteps,
      episodes: episodes + this.#episodes,
      runningEpisodes: runningEpisodes + this.#running,
    };
  }

  #numbered(group: PlayedGroup): PlayedGroup {
    const trajectories = group.trajectories.map((one): Trajectory => ({ ...one, episode: this.#nextEpisode++ }));
    return { ...group, trajectories };
  }

  #tellScheduler(command: SchedulerCommand): void {
    void this.#ctx.resolve<SchedulerCommand>(this.#init.paths.scheduler).tell(command);
  }
}

/** Attempts at a group's episodes that failed: those its worker tells of, and all that were lost with earlier workers. */
function failedAttempts({ ticket, delivery, failed, gaveUp }: GroupResult, where: string): FailedAttempt[] {
  const told = failed.map((failure) => ({ group: ticket.group, failure }));
  // A group that is given up because nobody lived to tell counts the last of those attempts in `gaveUp`.
  const counted = gaveUp?.failure.cause === 'worker' && gaveUp.attempts > 1 ? 1 : 0;
  const lost = Math.max(0, delivery - 1 - counted) * ticket.size;
  if (lost === 0) return told;
  const message = `a worker that had group ${ticket.group} went away`;
  return [...attempts(ticket, lost, { cause: 'worker', where, message }), ...told];
}

function attempts({ group }: GroupTicket, count: number, failure: Failure): FailedAttempt[] {
  return Array.from({ length: count }, () => ({ group, failure }));
}
