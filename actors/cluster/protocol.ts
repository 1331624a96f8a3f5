/** Messages of the actors that stand between a run and its broker. */
import type { GroupResult } from '../../src/cluster/result.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { ServedEvent } from '../inference/protocol.ts';
import type { Weights } from '../learner/protocol.ts';
import type { Abandon, Capture, Pause, Play, Restore, Resume } from '../rollout/protocol.ts';
import type { Captured, Played, Progressed } from '../scheduler/protocol.ts';

/**
 * Tickets actor: takes the rollouts' messages in their place. It sends some groups to the rollouts here and the others to
 * workers, and reports both alike. The scheduler cannot distinguish them.
 */
export type TicketsCommand =
  | Play
  | Abandon
  | Restore
  | Pause
  | Resume
  | Capture
  | Played
  | Progressed
  | Captured
  | Arrived
  | Refused
  | Broke;

/** Result of a worker that counts. */
export interface Arrived {
  readonly type: 'arrived';
  readonly ticket: GroupTicket;
  readonly result: GroupResult;
}

/** Result that failed a check; its group is played again. */
export interface Refused {
  readonly type: 'refused';
  readonly ticket: GroupTicket;
  readonly worker: string | undefined;
  readonly why: string;
}

/** Error that ends the connection. */
export interface Broke {
  readonly type: 'broke';
  readonly error: unknown;
}

/** Weights actor: announces the learner's newest weights. */
export type WeightsCommand = Publish | Ban | ServedEvent;

/** Bans a worker: its results are refused unread, and the next announcement names it. */
export interface Ban {
  readonly type: 'ban';
  readonly worker: string;
}

/** Publishes the weights of a version. */
export interface Publish {
  readonly type: 'publish';
  readonly version: number;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Worker actor: consumes tickets, and follows the weights. Its rollouts report to it as they would to a scheduler. */
export type WorkerCommand = Played | Progressed | Captured | Weights | Broke;
