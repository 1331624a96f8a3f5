/**
 * Forwarded calls: the calls of a gateway's episode, each passed on to a chat server as it comes, and its reply passed back.
 * Requests are sent again where that may help; what the server refuses is refused, under a status that fits.
 */
import { type Clock, systemClock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import { Rng } from '../core/rng.ts';
import type { GatewayEpisode, WaitingCall } from '../gateway/gateway.ts';
import { type AttemptOptions, attempt } from '../http/attempts.ts';
import { RemoteError } from '../http/retry.ts';
import { AdaptingClient, isDenial } from '../policy/remote/adapting-client.ts';
import { printChatBody, readChatReply } from '../policy/remote/chat-body.ts';
import type { OpenAIClient } from '../policy/remote/openai-client.ts';
import { isContextOverflow, readRefusal } from '../policy/remote/refused-keys.ts';
import type { CallRecord } from './call-record.ts';

/** Limits of one call: four attempts in five minutes. Clients try again by themselves, so long waits would add up. */
const LIMITS: AttemptOptions = { attempts: 4, attemptMs: 240_000, totalMs: 300_000, minMs: 500, maxMs: 15_000 };

/** Answered calls after which replies that reached nobody are given up. A retry of the client gets them until then. */
const SETTLE_EVERY = 64;

export interface ForwardOptions {
  readonly episode: GatewayEpisode;
  readonly client: OpenAIClient;
  /** Name of the model in requests; absent: the one that the program asks for. */
  readonly model?: string | undefined;
  /** Variable that holds the server's key, for messages. */
  readonly keyName: string;
  /** Record of the calls that were answered. */
  readonly record?: CallRecord | undefined;
  /** Limits of a call's attempts; absent ones as in `LIMITS`. */
  readonly limits?: Partial<AttemptOptions> | undefined;
  readonly clock?: Clock | undefined;
  /** Gets what a person should know. */
  readonly onNotice?: ((line: string) => void) | undefined;
}

/** Forwards calls until the signal aborts; then waits for those under way, which are given up. */
export async function forwardCalls(options: ForwardOptions, signal: AbortSignal): Promise<void> {
  const { episode, client, onNotice } = options;
  const forwarder = new Forwarder(options, new AdaptingClient(client, { onNotice, keepsKeys: true }));
  const running = new Set<Promise<void>>();
  while (!signal.aborted) {
    const call = await episode.next(signal).catch((thrown: unknown) => {
      if (signal.aborted) return undefined;
      throw thrown;
    });
    if (!call) break;
    const work = forwarder.forward(call).finally(() => running.delete(work));
    running.add(work);
  }
  client.close();
  await Promise.all(running);
  forwarder.settle();
}

class Forwarder {
  readonly #options: ForwardOptions;
  readonly #client: AdaptingClient;
  readonly #clock: Clock;
  readonly #rng = Rng.fromSeed(0);
  #answered = 0;
  /** Refusal of the key that was shown already. */
  #isDenied = false;

  constructor(options: ForwardOptions, client: AdaptingClient) {
    this.#options = options;
    this.#client = client;
    this.#clock = options.clock ?? systemClock;
  }

  /** Forwards a call. Never rejects. */
  async forward(call: WaitingCall): Promise<void> {
    const { limits, client, model, keyName, record, onNotice } = this.#options;
    const context = { clock: this.#clock, rng: this.#rng, closed: client.closed };
    try {
      const body = printChatBody(call.call, model ?? call.model);
      const completion = await attempt({ ...LIMITS, ...limits }, context, (deadlineMs) =>
        this.#client.complete({ api: 'chat', body }, deadlineMs),
      );
      const { calls, ...rest } = readChatReply(completion);
      const reply = { ...rest, calls: calls.map((one, i) => ({ ...one, id: call.callId(i) })) };
      record?.add(call, reply);
      await call.answer(reply);
      if (++this.#answered % SETTLE_EVERY === 0) this.settle();
    } catch (thrown) {
      const { status, message, code } = refusalOf(thrown, keyName);
      if (thrown instanceof RemoteError && isDenial(thrown) && !this.#isDenied) {
        this.#isDenied = true;
        onNotice?.(message);
      }
      call.refuse(status, message, code);
    }
  }

  /** Gives up replies that reached nobody: they are no part of the record. */
  settle(): void {
    const undelivered = this.#options.episode.takeUndelivered();
    if (undelivered.length > 0) this.#options.record?.drop(undelivered);
  }
}

/** Refusal of a call, in the gateway's terms. */
export interface ForwardRefusal {
  readonly status: number;
  readonly message: string;
  readonly code?: string | undefined;
}

/**
 * Refusal that states what became of a request to the server. Its own key is no concern of the client's: 502, where the
 * gateway's would be 401.
 */
export function refusalOf(thrown: unknown, keyName: string): ForwardRefusal {
  if (!(thrown instanceof RemoteError)) return { status: 500, message: messageOf(thrown) };
  const { fault, status, message } = thrown;
  if (isDenial(thrown)) {
    return { status: 502, message: `the server behind this gateway refuses its key: set ${keyName} (${message})` };
  }
  if (isContextOverflow(thrown)) return { status: 400, message, code: 'context_length_exceeded' };
  if (fault === 'timeout') return { status: 504, message };
  if (fault === 'closed') return { status: 503, message: 'the gateway is closing' };
  if (fault !== 'status' || status === undefined || status >= 500) return { status: 502, message };
  if (status === 429) return { status, message };
  const { code } = readRefusal(thrown);
  // 400, 403 and 404 are repeated by no client; 409 and 422 by some.
  return { status: status === 403 || status === 404 ? status : 400, message, code };
}
