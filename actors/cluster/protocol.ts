/** Messages of the actors that stand between a run and its broker. */
import type { GroupResult } from '../../src/cluster/result.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { ServedEvent } from '../inference/protocol.ts';
import type { Weights } from '../learner/protocol.ts';
import type { Abandon, Capture, Pause, Play, Restore, Resume } from '../rollout/protocol.ts';
import type { Captured, Played, Progressed } from '../scheduler/protocol.ts';

/**
 * Tickets actor: stands before the rollouts. The scheduler tells it what it would tell them; it has a share of the groups
 * played here and the others by workers, and reports both alike.
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

/** Result that cannot be believed; its group is played again. */
export interface Refused {
  readonly type: 'refused';
  readonly ticket: GroupTicket;
  readonly worker: string | undefined;
  readonly why: string;
}

/** End of the connection, for good. */
export interface Broke {
  readonly type: 'broke';
  readonly error: unknown;
}

/** Weights actor: announces the learner's newest weights. */
export type WeightsCommand = Publish | ShutOut | ServedEvent;

/** Worker of which nothing is taken any more: it is told so. */
export interface ShutOut {
  readonly type: 'shutOut';
  readonly worker: string;
}

/** Weights of a version, as bytes. */
export interface Publish {
  readonly type: 'publish';
  readonly version: number;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Worker actor: takes tickets, and follows the weights. Its rollouts report to it as they would to a scheduler. */
export type WorkerCommand = Played | Progressed | Captured | Weights | Broke;
