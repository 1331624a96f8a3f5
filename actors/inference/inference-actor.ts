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

import type { ParamSet } from '../../src/compute/model/parameters.ts';
import { batchStarts } from '../../src/policy/batching.ts';
import { hasEngine, type OpenedPolicy, openPolicy, withNewest } from '../../src/policy/open-policy.ts';
import type { Acted, ActRequest, Policy } from '../../src/policy/policy.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import { packActed, unpackRequests } from '../../src/policy/turn-batch.ts';
import { divideUnanswered } from '../../src/policy/unanswered.ts';
import type { ActorRef, Behavior, BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { LearnerCommand } from '../learner/protocol.ts';
import type { EnvObserved, Truncated } from '../rollout/protocol.ts';
import type { ActedEvent, InferenceCommand, InferenceInit, InferenceReport, ServedEvent } from './protocol.ts';

/** Internal tick, and the end of a call that was not awaited; no other actor can send them. */
type Internal =
  | InferenceCommand
  | { readonly type: 'serve' }
  | { readonly type: 'stepped'; readonly turns: readonly Acted[] }
  | { readonly type: 'broke'; readonly thrown: unknown };

/** Calls under way at once where the policy overlaps them: the engine is inside one, and the next is ready. */
const MAX_CALLS = 2;

export default function inferenceActor(init: InferenceInit): BehaviorFactory<Internal> {
  return async (ctx) => {
    const { policy } = await newest(ctx, init);
    const service = new Service(ctx, init, await openPolicy(policy, { maxBatch: init.maxBatch, clock: ctx.clock }));
    await service.reportServed();
    return handlersOf(ctx, service);
  };
}

/** Milliseconds that the learner may take to answer: it may be in the middle of an update, as long as the watchdog lets it be. */
const WEIGHTS_MS = 300_000;

/** Init of a new incarnation, with the newest weights instead of those of the run's start. */
async function newest(ctx: Context<Internal>, init: InferenceInit): Promise<InferenceInit> {
  if (ctx.incarnation === 1 || init.learnerPath === undefined || !hasEngine(init.policy)) return init;
  const learner = ctx.resolve<LearnerCommand>(init.learnerPath);
  const asked = await ctx.ask<ParamSet | ServedAdapter, LearnerCommand>(
    learner,
    (replyTo) => ({ type: 'weights', replyTo }),
    { deadlineMs: WEIGHTS_MS },
  );
  return { ...init, policy: withNewest(init.policy, asked) };
}

function handlersOf(ctx: Context<Internal>, service: Service): Behavior<Internal> {
  return {
    handlers: {
      act: ({ requests }) => service.act(unpackRequests(requests)),
      release: ({ episodes }) => service.release(episodes),
      forget: () => service.forget(),
      loadWeights: ({ params }) => service.loadWeights(params),
      useAdapter: ({ adapter }) => service.useAdapter(adapter),
      report: ({ replyTo }) => ctx.reply(replyTo, service.report()),
      serve: () => service.serve(),
      stepped: ({ turns }) => service.stepped(turns),
      broke: ({ thrown }) => {
        throw thrown;
      },
    },
    stopped: () => service.close(),
  };
}

class Service {
  readonly #ctx: Context<Internal>;
  readonly #opened: OpenedPolicy;
  readonly #policy: Policy;
  readonly #maxWaitMs: number;
  readonly #servedPath: string | undefined;
  readonly #rollouts: ActorRef<ActedEvent | EnvObserved | Truncated>;
  readonly #totals = { calls: 0, turns: 0, busyMs: 0, idleMs: 0 };
  /** Last turn of each episode. */
  readonly #seen = new Map<number, number>();
  /** Clock when the oldest waiting turn arrived. */
  #oldest: number | undefined;
  /** A `serve` is on its way. */
  #ticking = false;
  #cancelWait: (() => void) | undefined;
  /** Calls under way. */
  #calls = 0;
  /** Clock when calls were last under way after none was, and when none was any more. */
  #busySince = 0;
  #lastEnd: number | undefined;

  constructor(ctx: Context<Internal>, { replyPath, servedPath, maxWaitMs }: InferenceInit, opened: OpenedPolicy) {
    this.#ctx = ctx;
    this.#opened = opened;
    this.#policy = opened.policy;
    this.#maxWaitMs = maxWaitMs;
    this.#servedPath = servedPath;
    this.#rollouts = ctx.resolve<ActedEvent | EnvObserved | Truncated>(replyPath);
  }

  act(requests: readonly ActRequest[]): void {
    const { fresh, forget } = unseen(this.#seen, requests);
    this.#policy.release(forget);
    const { truncated, failed } = divideUnanswered(this.#policy.submit(fresh), this.#ctx.path);
    if (truncated.length > 0) void this.#rollouts.tell({ type: 'truncated', episodes: truncated });
    if (failed.length > 0) void this.#rollouts.tell({ type: 'observed', events: failed });
    this.#oldest ??= this.#ctx.clock.now();
    this.#schedule();
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#seen.delete(episode);
    this.#policy.release(episodes);
    this.#schedule();
  }

  forget(): void {
    this.#policy.forget();
    this.#oldest = undefined;
    this.#schedule();
  }

  async loadWeights(params: ParamSet): Promise<void> {
    // Older ones may have waited in the mailbox while this incarnation asked for the newest.
    if (params.version < this.#policy.version) return;
    this.#policy.load(params);
    await this.reportServed();
  }

  useAdapter(adapter: ServedAdapter): void {
    this.#policy.useAdapter?.(adapter);
  }

  /** Says, to who waits for it, once the policy's server has the newest weights. */
  async reportServed(): Promise<void> {
    if (this.#servedPath === undefined || !this.#policy.serving) return;
    const adapter = await this.#policy.serving();
    await this.#ctx.resolve<ServedEvent>(this.#servedPath).tell({ type: 'served', adapter });
  }

  report(): InferenceReport {
    const { computing, engine } = this.#opened;
    const sinceMs = this.#calls > 0 ? this.#ctx.clock.now() - this.#busySince : 0;
    const totals = { ...this.#totals, busyMs: this.#totals.busyMs + sinceMs };
    return { ...totals, tokens: this.#policy.tokens, engineMs: computing.ms, engine };
  }

  /** Begins an engine call, and awaits it unless the policy overlaps calls: turns are then taken in meanwhile. */
  async serve(): Promise<void> {
    const policy = this.#policy;
    this.#ticking = false;
    if (policy.waiting === 0) return;
    const start = this.#ctx.clock.now();
    if (this.#calls++ === 0) {
      this.#busySince = start;
      if (this.#lastEnd !== undefined) this.#totals.idleMs += start - this.#lastEnd;
    }
    if (!policy.overlaps) return this.stepped(await policy.step());
    const { self } = this.#ctx;
    Promise.resolve(policy.step()).then(
      (turns) => void self.tell({ type: 'stepped', turns }),
      (thrown: unknown) => void self.tell({ type: 'broke', thrown }),
    );
    this.#oldest = policy.waiting > 0 ? start : undefined;
    this.#schedule();
  }

  /** Sends the answers of a call that is done. */
  async stepped(turns: readonly Acted[]): Promise<void> {
    const policy = this.#policy;
    const totals = this.#totals;
    const end = this.#ctx.clock.now();
    if (--this.#calls === 0) {
      this.#lastEnd = end;
      totals.busyMs += end - this.#busySince;
    }
    // Those that came meanwhile begin to wait now: the answers to this call's turns may still join them.
    this.#oldest = policy.waiting > 0 ? end : undefined;
    totals.calls++;
    totals.turns += turns.length;
    if (turns.length > 0) {
      await this.#rollouts.tell({ type: 'acted', turns: packActed(turns), tokens: policy.tokens });
    }
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#cancelWait?.();
    await this.#policy.dispose();
    await this.#opened.close();
  }

  #schedule(): void {
    if (this.#ticking || this.#policy.waiting === 0 || this.#calls >= MAX_CALLS) return;
    // Nothing is gained by a small call while the engine is busy: only a full or complete one begins then.
    const isBusy = this.#calls > 0;
    const oldestMs = this.#oldest === undefined || isBusy ? 0 : this.#ctx.clock.now() - this.#oldest;
    const maxWaitMs = isBusy ? Number.POSITIVE_INFINITY : this.#maxWaitMs;
    const { waiting, complete, maxBatch } = this.#policy;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    if (batchStarts({ waiting, complete, maxBatch, oldestMs, maxWaitMs })) {
      this.#ticking = true;
      void this.#ctx.self.tell({ type: 'serve' });
    } else if (!isBusy) {
      this.#cancelWait = this.#ctx.sendAfter(Math.max(0, maxWaitMs - oldestMs), { type: 'serve' });
    }
  }
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
