/**
 * Serves a trained policy turn by turn. The batching inference actor has a thread of its own; an actor beside it gets
 * its replies and settles the promises of waiting requests.
 *
 * Admission is by bytes: a turn for which there is no room is refused at once, so neither mailbox can hold more. A turn
 * that was given up keeps its room until the policy's thread has read that it was.
 */
import { systemClock } from '../../src/core/clock.ts';
import { LongplayError } from '../../src/core/errors.ts';
import type { LocalPolicySpec } from '../../src/policy/open-policy.ts';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { MIN_REQUEST_BYTES, requestBytes } from '../../src/policy/request-bytes.ts';
import { packRequests, unpackActed, unpackRequests } from '../../src/policy/turn-batch.ts';
import type { ActorRef, ActorSystem, BehaviorFactory } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { reportSlowStarts } from '../../src/runtime/slow-start.ts';
import type { DecisionRequest, Decisions } from '../../src/serve/decisions.ts';
import type { EnvObserved } from '../rollout/protocol.ts';
import type { ActedEvent, InferenceCommand, InferenceInit, InferenceReport } from './protocol.ts';

export interface ServedPolicyOptions {
  readonly policy: LocalPolicySpec;
  readonly maxBatch: number;
  readonly maxWaitMs: number;
  /** Bytes of turns that may wait or be under way; the first one may have any size. Default 256 MiB. */
  readonly maxBytes?: number;
  /** Called with lines for the person who waits. */
  readonly onNotice?: ((line: string) => void) | undefined;
}

export interface ServedPolicy extends Decisions {
  stop(): Promise<void>;
}

/** A turn that is not decided yet. */
interface Waiting {
  readonly resolve: (acted: Acted) => void;
  readonly reject: (error: Error) => void;
}

type ReplyMessage = ActedEvent | EnvObserved | { readonly type: 'down'; readonly final: boolean };

/** Milliseconds that a decision may take, waiting included: clients of HTTP servers give up about then. */
const DECISION_MS = 60_000;
/** Bytes of a message without a turn. */
const SMALL = 200;
/** Milliseconds that the policy's thread gets to read what was sent before; it may be inside a long call. */
const READ_MS = 60_000;

/** Starts the actors. @throws what the policy's thread threw */
export async function servePolicyActors(options: ServedPolicyOptions): Promise<ServedPolicy> {
  const { policy, maxBatch, maxWaitMs, maxBytes = 256 * 2 ** 20 } = options;
  const system = createSystem({ mode: 'async', supervision: { intensity: 3, periodMs: 60_000 } });
  reportSlowStarts(system, options.onNotice ?? (() => {}));
  const waiting = new Map<number, Waiting>();
  const init: InferenceInit = {
    policy: { ...policy, givenPrompts: true },
    maxBatch,
    maxWaitMs,
    replyPath: '/replies',
  };
  try {
    // An answer for each turn that was admitted, at most.
    const answers = Math.ceil(maxBytes / MIN_REQUEST_BYTES) + 1;
    await system.spawn<ReplyMessage>('replies', replies(waiting), {
      mailbox: { capacity: answers, overflow: 'wait' },
    });
    const inference = await system.spawnModule<InferenceCommand, InferenceInit>(
      'inference',
      { url: new URL('./inference-actor.js', import.meta.url), init, placement: 'thread' },
      {
        killable: false,
        mailbox: { capacity: maxBytes, overflow: 'wait', weigh: (message) => bytesOf(message as InferenceCommand) },
      },
    );
    return new Served(system, inference, waiting, maxBytes, DECISION_MS);
  } catch (thrown) {
    await system.stop();
    throw thrown;
  }
}

class Served implements ServedPolicy {
  readonly #system: ActorSystem;
  readonly #inference: ActorRef<InferenceCommand>;
  readonly #waiting: Map<number, Waiting>;
  readonly #maxBytes: number;
  readonly #deadlineMs: number;
  #next = 0;
  /** Bytes of turns that wait, and of those given up whose release the policy has not read. */
  #bytes = 0;
  /** Bytes of turns given up since the policy was last asked whether it has read that. */
  #givenUp = 0;
  #asking = false;
  #broken: string | undefined;

  constructor(
    system: ActorSystem,
    inference: ActorRef<InferenceCommand>,
    waiting: Map<number, Waiting>,
    maxBytes: number,
    deadlineMs: number,
  ) {
    this.#system = system;
    this.#inference = inference;
    this.#waiting = waiting;
    this.#maxBytes = maxBytes;
    this.#deadlineMs = deadlineMs;
    system.terminated.catch((error: Error) => {
      this.#broken = error.message;
      failAll(waiting, `the policy is down: ${error.message}`);
    });
  }

  get healthy(): boolean {
    return this.#broken === undefined;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get waitingBytes(): number {
    return this.#bytes;
  }

  async decide(turn: DecisionRequest, gone: AbortSignal): Promise<Acted> {
    if (this.#broken !== undefined) throw new LongplayError('ACTOR_STOPPED', `the policy is down: ${this.#broken}`);
    const episode = this.#next;
    const command = { type: 'act', requests: packRequests([requestOf(turn, episode)]) } as const;
    const bytes = bytesOf(command) + SMALL; // with its release
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      const held = `${this.#waiting.size} turns of ${Math.ceil(this.#bytes / 1024)} KiB wait for the policy`;
      throw new LongplayError('MAILBOX_FULL', `${held}, and there is no room for one more: ask again later`);
    }
    this.#next = (this.#next + 1) & 0x7fffffff;
    this.#bytes += bytes;
    return new Promise((resolve, reject) => {
      const settle = (after: () => void) => {
        cancel();
        gone.removeEventListener('abort', onGone);
        this.#waiting.delete(episode);
        void this.#inference.tell({ type: 'release', episodes: [episode] });
        after();
      };
      const giveUp = (error: Error) => {
        settle(() => reject(error));
        this.#givenUp += bytes;
        void this.#freeGivenUp();
      };
      const onGone = () => giveUp(new LongplayError('ASK_TIMEOUT', 'the client left'));
      const late = `no decision within ${this.#deadlineMs} ms`;
      const cancel = systemClock.setTimer(this.#deadlineMs, () => giveUp(new LongplayError('ASK_TIMEOUT', late)));
      gone.addEventListener('abort', onGone);
      this.#waiting.set(episode, {
        resolve: (acted) => {
          this.#bytes -= bytes;
          settle(() => resolve(acted));
        },
        reject: giveUp,
      });
      void this.#inference.tell(command);
    });
  }

  async stop(): Promise<void> {
    this.#broken ??= 'it is being stopped';
    await this.#system.stop();
  }

  /** Frees the room of turns given up once the policy's thread has read that they were. */
  async #freeGivenUp(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    while (this.#givenUp > 0 && this.healthy) {
      const bytes = this.#givenUp;
      this.#givenUp = 0;
      // Messages are read in order: the answer proves that all before it were.
      const read = this.#system.ask<InferenceReport, InferenceCommand>(
        this.#inference,
        (replyTo) => ({ type: 'report', replyTo }),
        { deadlineMs: READ_MS },
      );
      await read.then(
        () => {
          this.#bytes -= bytes;
        },
        () => {
          this.#givenUp += bytes; // late, or restarted in between: asked again
        },
      );
    }
    this.#asking = false;
  }
}

function requestOf({ given, actions, temperature, sampling, stop }: DecisionRequest, episode: number): ActRequest {
  return {
    episode,
    group: episode,
    member: 0,
    groupSize: 1,
    turn: 0,
    observation: '',
    actions: Int32Array.from(actions, (_, i) => i),
    newActions: actions,
    samplingSeed: 0,
    temperature,
    ...(sampling ? { sampling } : {}),
    ...(stop ? { stop } : {}),
    given,
  };
}

function bytesOf(message: InferenceCommand): number {
  return message.type === 'act' ? SMALL + requestBytes(unpackRequests(message.requests)) : SMALL;
}

function replies(waiting: ReadonlyMap<number, Waiting>): BehaviorFactory<ReplyMessage> {
  return (ctx) => {
    ctx.watch({ path: '/inference' }, ({ final }) => ({ type: 'down', final }));
    return {
      handlers: {
        acted({ turns }) {
          for (const acted of unpackActed(turns)) waiting.get(acted.episode)?.resolve(acted);
        },
        observed({ events }) {
          for (const event of events) {
            if (event.type !== 'failed') continue;
            waiting.get(event.episode)?.reject(new LongplayError('BAD_ARGUMENT', event.failure.message));
          }
        },
        down() {
          failAll(waiting, 'the policy broke while it decided; it is being restarted');
        },
      },
    };
  };
}

function failAll(waiting: ReadonlyMap<number, Waiting>, message: string): void {
  for (const { reject } of [...waiting.values()]) reject(new LongplayError('ACTOR_STOPPED', message));
}
