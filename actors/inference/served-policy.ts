/**
 * Serves a trained policy turn by turn: the batching inference actor in a thread of its own, and beside it an actor
 * that gets its replies and settles the promises of waiting requests.
 */
import { systemClock } from '../../src/core/clock.ts';
import { LongplayError } from '../../src/core/errors.ts';
import type { LocalPolicySpec } from '../../src/policy/open-policy.ts';
import type { Acted } from '../../src/policy/policy.ts';
import { packRequests, unpackActed } from '../../src/policy/turn-batch.ts';
import type { ActorRef, BehaviorFactory } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/system.ts';
import type { DecisionRequest, Decisions } from '../../src/serve/decisions.ts';
import type { ActedEvent, InferenceCommand, InferenceInit } from './protocol.ts';

export interface ServedPolicyOptions {
  readonly policy: LocalPolicySpec;
  readonly maxBatch: number;
  readonly maxWaitMs: number;
  /** Milliseconds that a decision may take, waiting included. Default 60000. */
  readonly deadlineMs?: number;
}

export interface ServedPolicy extends Decisions {
  stop(): Promise<void>;
}

interface Waiting {
  readonly resolve: (acted: Acted) => void;
  readonly reject: (error: Error) => void;
}

type ReplyMessage = ActedEvent | { readonly type: 'down'; readonly final: boolean };

/** Starts the actors. @throws what the policy's thread threw */
export async function servePolicyActors(options: ServedPolicyOptions): Promise<ServedPolicy> {
  const system = createSystem({ mode: 'async', supervision: { intensity: 3, periodMs: 60_000 } });
  const waiting = new Map<number, Waiting>();
  let broken: string | undefined;
  system.terminated.catch((error: Error) => {
    broken = error.message;
    failAll(waiting, `the policy is down: ${broken}`);
  });
  const init: InferenceInit = {
    policy: { ...options.policy, givenPrompts: true },
    maxBatch: options.maxBatch,
    maxWaitMs: options.maxWaitMs,
    replyPath: '/replies',
  };
  let inference: ActorRef<InferenceCommand>;
  try {
    await system.spawn<ReplyMessage>('replies', replies(waiting), {
      mailbox: { capacity: 1_000_000, overflow: 'wait' },
    });
    inference = await system.spawnModule<InferenceCommand, InferenceInit>(
      'inference',
      { url: new URL('./inference-actor.js', import.meta.url), init, placement: 'thread' },
      { killable: false, startMs: 120_000, mailbox: { capacity: 1_000_000, overflow: 'wait' } },
    );
  } catch (thrown) {
    await system.stop();
    throw thrown;
  }
  let next = 0;
  return {
    get healthy() {
      return broken === undefined;
    },
    get waiting() {
      return waiting.size;
    },
    decide({ given, actions, temperature }: DecisionRequest, gone: AbortSignal) {
      if (broken !== undefined)
        return Promise.reject(new LongplayError('ACTOR_STOPPED', `the policy is down: ${broken}`));
      const episode = next;
      next = (next + 1) & 0x7fffffff;
      return new Promise<Acted>((resolve, reject) => {
        const settle = (after: () => void) => {
          cancel();
          gone.removeEventListener('abort', onGone);
          waiting.delete(episode);
          void inference.tell({ type: 'release', episodes: [episode] });
          after();
        };
        const giveUp = (message: string) => settle(() => reject(new LongplayError('ASK_TIMEOUT', message)));
        const onGone = () => giveUp('the client left');
        const deadlineMs = options.deadlineMs ?? 60_000;
        const cancel = systemClock.after(deadlineMs, () => giveUp(`no decision within ${deadlineMs} ms`));
        gone.addEventListener('abort', onGone);
        waiting.set(episode, {
          resolve: (acted) => settle(() => resolve(acted)),
          reject: (error) => settle(() => reject(error)),
        });
        const request = {
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
          given,
        };
        void inference.tell({ type: 'act', requests: packRequests([request]) });
      });
    },
    stop: () => system.stop(),
  };
}

function replies(waiting: Map<number, Waiting>): BehaviorFactory<ReplyMessage> {
  return (ctx) => {
    ctx.watch({ path: '/inference' }, ({ final }) => ({ type: 'down', final }));
    return {
      handlers: {
        acted({ turns }) {
          for (const acted of unpackActed(turns)) waiting.get(acted.episode)?.resolve(acted);
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
