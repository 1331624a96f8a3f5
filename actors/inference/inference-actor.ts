/**
 * Inference actor: batches the pending turns of all episodes into large engine calls.
 *
 * Owns the policy: weights, KV cache and programs. One engine call per `serve`; between two calls every message that
 * has come in is handled, so new turns join the running batch, finished ones leave it, and new weights land between
 * calls.
 *
 * A policy that throws crashes the actor. The next incarnation asks the learner for its weights before it serves, and
 * the rollouts, which watch it, send every waiting turn again with its history; what the old incarnation had not begun
 * and the new one cannot know the beginning of is left out (`unseen`).
 */

import type { ParamSet } from '../../src/model/parameters.ts';
import { batchStarts } from '../../src/policy/batching.ts';
import { type OpenedPolicy, openPolicy } from '../../src/policy/open-policy.ts';
import type { ActRequest } from '../../src/policy/policy.ts';
import { packActed, unpackRequests } from '../../src/policy/turn-batch.ts';
import type { Behavior, BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { LearnerCommand } from '../learner/protocol.ts';
import type { EnvObserved } from '../rollout/protocol.ts';
import type { ActedEvent, InferenceCommand, InferenceInit, InferenceReport } from './protocol.ts';

/** Internal tick; no other actor can send it. */
type Internal = InferenceCommand | { readonly type: 'serve' };

export default function inferenceActor(init: InferenceInit): BehaviorFactory<Internal> {
  return async (ctx) => {
    const { policy } = await newest(ctx, init);
    return serve(ctx, init, await openPolicy(policy, { maxBatch: init.maxBatch, clock: ctx.clock }));
  };
}

/** Milliseconds that the learner may take to answer: it may be in the middle of an update. */
const WEIGHTS_MS = 100_000;

/** Init of a new incarnation, with the newest weights instead of those of the run's start. */
async function newest(ctx: Context<Internal>, init: InferenceInit): Promise<InferenceInit> {
  if (ctx.incarnation === 1 || init.learnerPath === undefined || init.policy.kind === 'random') return init;
  const learner = ctx.resolve<LearnerCommand>(init.learnerPath);
  const params = await ctx.ask<ParamSet, LearnerCommand>(learner, (replyTo) => ({ type: 'weights', replyTo }), {
    deadlineMs: WEIGHTS_MS,
  });
  return { ...init, policy: { ...init.policy, params } };
}

function serve(ctx: Context<Internal>, init: InferenceInit, opened: OpenedPolicy): Behavior<Internal> {
  const { policy, engine, computing, close } = opened;
  const rollouts = ctx.resolve<ActedEvent | EnvObserved>(init.replyPath);
  const totals = { calls: 0, turns: 0, busyMs: 0, idleMs: 0 };
  const seen = new Map<number, number>(); // last turn of each episode
  let oldest: number | undefined; // when the oldest waiting turn arrived
  let ticking = false; // a `serve` is on its way
  let cancelWait: (() => void) | undefined;
  let lastEnd: number | undefined;

  const schedule = () => {
    if (ticking || policy.waiting === 0) return;
    const oldestMs = oldest === undefined ? 0 : ctx.clock.now() - oldest;
    const { waiting, complete, maxBatch } = policy;
    cancelWait?.();
    cancelWait = undefined;
    if (batchStarts({ waiting, complete, maxBatch, oldestMs, maxWaitMs: init.maxWaitMs })) {
      ticking = true;
      void ctx.self.tell({ type: 'serve' });
    } else {
      cancelWait = ctx.after(Math.max(0, init.maxWaitMs - oldestMs), { type: 'serve' });
    }
  };

  return {
    handlers: {
      act({ requests }) {
        const { fresh, forget } = unseen(seen, unpackRequests(requests));
        policy.release(forget);
        const refused = policy.submit(fresh);
        if (refused.length > 0) {
          const events = refused.map(({ episode, message }) => {
            const failure = { cause: 'policy', where: ctx.path, message } as const;
            return { type: 'failed', episode, failure } as const;
          });
          void rollouts.tell({ type: 'observed', events });
        }
        oldest ??= ctx.clock.now();
        schedule();
      },
      release({ episodes }) {
        for (const episode of episodes) seen.delete(episode);
        policy.release(episodes);
        schedule();
      },
      forget() {
        policy.forget();
        oldest = undefined;
        schedule();
      },
      loadWeights({ params }) {
        // Older ones may have waited in the mailbox while this incarnation asked for the newest.
        if (params.version >= policy.version) policy.load(params);
      },
      report({ replyTo }) {
        const report: InferenceReport = { ...totals, tokens: policy.tokens, engineMs: computing.ms, engine };
        ctx.reply(replyTo, report);
      },
      async serve() {
        ticking = false;
        if (policy.waiting === 0) return;
        const start = ctx.clock.now();
        if (lastEnd !== undefined) totals.idleMs += start - lastEnd;
        const turns = await policy.step();
        lastEnd = ctx.clock.now();
        oldest = policy.waiting > 0 ? lastEnd : undefined;
        totals.calls++;
        totals.turns += turns.length;
        totals.busyMs += lastEnd - start;
        if (turns.length > 0) {
          await rollouts.tell({ type: 'acted', turns: packActed(turns), tokens: policy.tokens });
        }
        schedule();
      },
    },
    async stopped() {
      cancelWait?.();
      await policy.dispose();
      await close();
    },
  };
}

/**
 * Unseen requests only. Around a restart a turn may come twice, once with and once without its history, and a turn may
 * come whose history this incarnation lacks. Duplicates are discarded, and so are turns that lack their history: they
 * come again with it.
 * @param seen last turn of each episode; updated
 * @returns the requests to submit, and the episodes to forget before, because they come with their whole history
 */
export function unseen(
  seen: Map<number, number>,
  requests: readonly ActRequest[],
): { readonly fresh: readonly ActRequest[]; readonly forget: readonly number[] } {
  const forget: number[] = [];
  const fresh = requests.filter(({ episode, turn, history }) => {
    const known = seen.get(episode);
    if (known === undefined ? turn > 0 && !history : turn <= known) return false;
    if (known !== undefined && history) forget.push(episode);
    seen.set(episode, turn);
    return true;
  });
  return { fresh, forget };
}
