/** Messages of the batching inference actor, which owns the policy's engine in a thread of its own. */

import type { ParamSet } from '../../src/compute/model/parameters.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { PolicySpec } from '../../src/policy/open-policy.ts';
import type { ActRequest } from '../../src/policy/policy.ts';
import type { RemoteUsage } from '../../src/policy/remote/usage.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { ActedBatch, RequestBatch } from '../../src/policy/turn-batch.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';

export type InferenceCommand = Act | Release | Forget | LoadWeights | UseAdapter | Report;

/** Asks for actions. Answered by one or more `acted`, in any order. */
export interface Act {
  readonly type: 'act';
  /** Requests, in columns where they cross threads. */
  readonly requests: RequestBatch | readonly ActRequest[];
}

/** Releases episodes that ended or were abandoned. */
export interface Release {
  readonly type: 'release';
  readonly episodes: readonly number[];
}

/** Forgets all episodes and every cache: the policy is then as if it had just started. */
export interface Forget {
  readonly type: 'forget';
}

/** Loads new weights; they hold from the next engine call on. */
export interface LoadWeights {
  readonly type: 'loadWeights';
  readonly params: ParamSet;
}

/** Switches to an adapter that another process had the policy's server load; turns are decided under it from now on. */
export interface UseAdapter {
  readonly type: 'useAdapter';
  readonly adapter: ServedAdapter;
}

/** Event sent to `servedPath`: the policy's server has this adapter. */
export interface ServedEvent {
  readonly type: 'served';
  readonly adapter: ServedAdapter;
}

export interface Report {
  readonly type: 'report';
  readonly replyTo: ReplyTo<InferenceReport>;
}

/** Totals since the actor started. */
export interface InferenceReport {
  readonly calls: number;
  readonly turns: number;
  readonly tokens: number;
  /** Milliseconds inside the engine alone. */
  readonly engineMs: number;
  /** Milliseconds of whole calls: building inputs, engine, sampling. */
  readonly busyMs: number;
  /** Milliseconds between the end of a call and the start of the next. */
  readonly idleMs: number;
  readonly engine: string;
  /** Usage of a policy behind a server. */
  readonly remote?: RemoteUsage;
}

/** Init of the actor; plain data. */
export interface InferenceInit extends Pick<RunConfig['rollout'], 'maxBatch'> {
  /** Milliseconds that the oldest waiting turn may wait for others to join its call. */
  readonly maxWaitMs: number;
  readonly policy: PolicySpec;
  /** Path of the actor that gets `acted`. */
  readonly replyPath: string;
  /** Path of the learner, asked for the newest weights after a restart; absent in a run that does not learn. */
  readonly learnerPath?: string | undefined;
  /** Path of the actor that gets `served` for every version of a policy behind a server; absent where nobody needs it. */
  readonly servedPath?: string | undefined;
}

/** Event sent to `replyPath`: turns were decided. */
export interface ActedEvent {
  readonly type: 'acted';
  readonly turns: ActedBatch;
  /** Tokens the policy has computed since it started, padding left out. */
  readonly tokens: number;
}
