/**
 * Gateway: the model server of agent programs. One for each env host, on the loopback unless it is given another address.
 * Each episode has a base URL and an unguessable key of its own; its calls wait here until something answers them.
 */
import type { ConversationMessage, ModelCall, ModelReply } from '../core/model-call.ts';

/** Episode as the gateway sees it. */
export interface GatewayEpisode {
  /** Base URL for OpenAI-like clients, which ends in `/v1`. */
  readonly baseURL: string;
  /** The same without `/v1`, for Anthropic's clients. */
  readonly root: string;
  readonly key: string;
  /** Next call that waits for its reply, in order of arrival. Rejects when the episode was closed or the signal aborts. */
  next(signal?: AbortSignal): Promise<WaitingCall>;
  /**
   * Numbers of the calls whose reply was made but did not reach its client, since this was last asked. That settles them: a
   * later retry is a new call, and no later call continues them. A retry before it gets the stored reply, which then counts
   * as delivered.
   */
  takeUndelivered(): readonly number[];
  /** Reward that the program posted to `<root>/reward`, as it was sent; undefined where it posted none. */
  postedReward(): unknown;
  /** Resolves once a reward was posted. */
  readonly posted: Promise<void>;
  /** Answers waiting calls and every later one with a short closing text, which is neither sampled nor counted. */
  finish(): void;
  /** Ends the episode: waiting calls are refused, its key is worth nothing from now on. */
  close(): void;
}

/** Call that waits for its reply. */
export interface WaitingCall {
  /** Number among the calls of the episode that were given to `next`: 0, 1, … */
  readonly number: number;
  /** Number of the call that it continues; `null` where it begins a chain. */
  readonly parent: number | null;
  /** Name of the model that the program asked for. */
  readonly model: string;
  readonly call: ModelCall;
  /** Messages behind the parent's reply; all of them where there is no parent. */
  readonly fresh: readonly ConversationMessage[];
  /**
   * Signal that aborts when the client has gone. The call waits on: `answer` keeps the reply for a retry of the client, which
   * joins until then; `refuse` drops the call, and a retry is a new one.
   */
  readonly gone: AbortSignal;
  /** Id that the i-th call of its reply gets. */
  callId(i: number): string;
  /**
   * Sends the reply; the ids of its calls are minted here. Resolves when it has reached its client, or when that has gone:
   * `takeUndelivered` knows which.
   */
  answer(reply: ModelReply): Promise<void>;
  /** Refuses the call: nothing has been sampled. @param code that clients compare, e.g. `context_length_exceeded` */
  refuse(status: number, message: string, code?: string): void;
}

/** Gateway of a host. */
export interface Gateway {
  open(): GatewayEpisode;
  /** Ends all episodes and closes every socket. */
  close(): Promise<void>;
}
