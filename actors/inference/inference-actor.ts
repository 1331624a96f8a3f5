/**
 * Batches the pending turns of all episodes into large engine calls.
 *
 * Owns the policy: weights, KV cache and programs. One engine call per `serve`; between two calls every message that
 * has come in is handled, so new turns join the running batch, finished ones leave it, and new weights land between
 * calls. A policy that throws crashes the actor; its supervisor decides, and the rollouts send their episodes again.
 */

import type { EnvModule } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { openEngine } from '../../src/engine/open.ts';
import { batchStarts } from '../../src/policy/batching.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { RandomPolicy } from '../../src/policy/random-policy.ts';
import { SmallPolicy } from '../../src/policy/small-policy.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import type { Behavior, BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { ActedEvent, InferenceCommand, InferenceInit, InferenceReport, SmallPolicyInit } from './protocol.ts';

/** The tick is private: no other actor can send it. */
type Internal = InferenceCommand | { readonly type: 'serve' };

export default function inferenceActor(init: InferenceInit): BehaviorFactory<Internal> {
  return async (ctx) => {
    const opened = await openPolicy(init);
    return serve(ctx, init, opened.policy, opened.engine, opened.close);
  };
}

function serve(
  ctx: Context<Internal>,
  init: InferenceInit,
  policy: Policy,
  engine: string,
  close: () => Promise<void>,
): Behavior<Internal> {
  const rollouts = ctx.resolve<ActedEvent>(init.replyPath);
  const totals = { calls: 0, turns: 0, busyMs: 0, idleMs: 0 };
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
        policy.submit(requests);
        oldest ??= ctx.clock.now();
        schedule();
      },
      release({ episodes }) {
        policy.release(episodes);
        schedule();
      },
      forget() {
        policy.forget();
        oldest = undefined;
        schedule();
      },
      loadWeights({ params }) {
        if (policy instanceof SmallPolicy) policy.load(params);
      },
      report({ replyTo }) {
        const report: InferenceReport = { ...totals, tokens: policy.tokens, engine };
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
        if (turns.length > 0) await rollouts.tell({ type: 'acted', turns, callMs: lastEnd - start });
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

async function openPolicy(
  init: InferenceInit,
): Promise<{ policy: Policy; engine: string; close: () => Promise<void> }> {
  if (init.policy.kind === 'random') {
    return { policy: new RandomPolicy(init.maxBatch), engine: 'none', close: async () => {} };
  }
  const spec = init.policy;
  const view = await viewOf(spec.envModule);
  const engine = await openEngine(spec.engine);
  const policy = await SmallPolicy.create(
    engine,
    {
      config: spec.model,
      tokenizer: new Tokenizer(view),
      view,
      decoder: spec.decoder,
      masked: spec.masked,
      maxTokens: spec.maxTokens,
      groupSize: spec.groupSize,
      maxBatch: init.maxBatch,
      cacheOnUpdate: spec.cacheOnUpdate,
    },
    spec.params,
  );
  return { policy, engine: `${engine.name}/${engine.device}`, close: () => engine.dispose() };
}

/** The view of an env module. @throws {UserError} UNKNOWN_ENV when it has none */
export async function viewOf(envModule: SmallPolicyInit['envModule']) {
  const { view } = (await import(envModule)) as EnvModule;
  if (!view) throw new UserError('UNKNOWN_ENV', `${envModule}: this world has no view for the small policy`);
  return view;
}
