/** Opens policies from their specifications: one table entry a kind, which maps it to its class. */

import type { EngineOptions } from '../compute/engine/engine.ts';
import { openEngine } from '../compute/engine/open.ts';
import { timeEngine } from '../compute/engine/timed.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import type { ParamSet } from '../compute/model/parameters.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { Clock } from '../core/clock.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { AgentCodec, openAgentCodec } from '../text/reading/agent-codec.ts';
import type { ChatCodecSpec } from '../text/reading/chat-codec.ts';
import type { Codec } from '../text/reading/codec.ts';
import { codecOf, openModelCodec } from '../text/reading/codec-of.ts';
import type { AnswerLimits } from '../text/reading/transcript.ts';
import { loadReading, loadWorld } from '../world/open-world.ts';
import { CachedPolicy } from './cached-policy.ts';
import { EngineThread } from './engine-thread.ts';
import { type GenerationClient, type GenerationOptions, openGenerationClient } from './generation/generation-client.ts';
import { OraclePolicy } from './oracle-policy.ts';
import type { Policy } from './policy.ts';
import { PromptReader } from './prompt-reader.ts';
import { RandomPolicy } from './random-policy.ts';
import { type Rule, RulePolicy } from './rule-policy.ts';
import {
  type Adapters,
  FollowerAdapters,
  type OwnAdapterOptions,
  OwnAdapters,
  type ServedAdapter,
} from './served-adapters.ts';
import { ServerPolicy, type ServerPolicyOptions } from './server-policy.ts';
import { WindowPolicy } from './window-policy.ts';

/** Policy that answers in this process; plain data. */
export type PolicySpec =
  | LocalPolicySpec
  | ServerPolicySpec
  | FollowerPolicySpec
  | OraclePolicySpec
  | { readonly kind: 'random' }
  | { readonly kind: 'rule'; readonly rule: Rule };

/** The world's own solver. */
export interface OraclePolicySpec {
  readonly kind: 'oracle';
  /** URL of the world's module. */
  readonly envModule: string;
  readonly envOptions: EnvOptions;
}

/** Policy whose tokens a server samples. */
interface SampledPolicySpec extends Pick<ServerPolicyOptions, 'maxTokens' | 'attempts' | 'retryMs'> {
  readonly server: GenerationOptions;
  readonly chat: ChatCodecSpec;
}

/** Policy whose tokens a server samples under our adapters. */
export interface ServerPolicySpec extends SampledPolicySpec, Omit<OwnAdapterOptions, 'client'> {
  readonly kind: 'server';
  readonly params: ParamSet;
}

/** Policy whose tokens a server samples under adapters that another process has loaded: it needs no weights. */
export interface FollowerPolicySpec extends SampledPolicySpec {
  readonly kind: 'follower';
  readonly adapter: ServedAdapter;
}

/** Policy with weights of its own. */
export interface LocalPolicySpec
  extends Pick<RunConfig['policy'], 'decoder' | 'masked' | 'maxTokens' | 'cacheOnUpdate'> {
  readonly kind: 'local';
  readonly engine: EngineOptions;
  readonly model: ModelConfig;
  /** URL of the world's module; the policy reads through its view, unless `chat` is given. */
  readonly envModule: string;
  readonly chat?: ChatCodecSpec | undefined;
  /** True when requests bring prompts that their clients rendered (`ActRequest.given`). */
  readonly givenPrompts?: boolean | undefined;
  readonly params: ParamSet;
  /**
   * True where the engine gets a thread of its own, so that calls are prepared beside it; ignored for a language model, whose
   * calls are long, and for a policy that caches nothing.
   */
  readonly engineThread?: boolean | undefined;
}

/** Policy in service, and what its owner has to report and close. */
export interface OpenedPolicy {
  readonly policy: Policy;
  /** Name and device of its engine; `none` where nothing is computed. */
  readonly engine: string;
  /** Milliseconds inside the engine so far. */
  readonly computing: { readonly ms: number };
  /** Closes the engine; the policy is disposed of first, by its owner. */
  readonly close: () => Promise<void>;
}

/** Options of opening a policy. */
interface OpeningOptions {
  /** Turns of one call at most. */
  readonly maxBatch: number;
  readonly clock: Clock;
}

/** Way of serving a kind of specification. */
interface Opening<S extends PolicySpec> {
  /** True where turns are read or written at length, here or through a server: it gets a thread of its own. */
  readonly hasEngine: boolean;
  open(spec: S, options: OpeningOptions): Promise<OpenedPolicy>;
  /** Replaces weights, or the adapter that stands for them, by newer ones; another form of them changes nothing. */
  renew(spec: S, newest: ParamSet | ServedAdapter): PolicySpec;
}

function withParams<S extends { readonly params: ParamSet }>(spec: S, newest: ParamSet | ServedAdapter): S {
  return 'folder' in newest ? spec : { ...spec, params: newest };
}

const OPENINGS: { readonly [K in PolicySpec['kind']]: Opening<Extract<PolicySpec, { readonly kind: K }>> } = {
  random: {
    hasEngine: false,
    open: async (_, { maxBatch }) => withoutEngine(new RandomPolicy(maxBatch)),
    renew: (spec) => spec,
  },
  rule: {
    hasEngine: false,
    open: async ({ rule }, { maxBatch }) => withoutEngine(new RulePolicy(maxBatch, rule)),
    renew: (spec) => spec,
  },
  oracle: { hasEngine: false, open: openOracle, renew: (spec) => spec },
  local: { hasEngine: true, open: openLocal, renew: withParams },
  server: {
    hasEngine: true,
    open: (spec, options) => openSampled(spec, options, (client) => new OwnAdapters({ ...spec, client }, spec.params)),
    renew: withParams,
  },
  follower: {
    hasEngine: true,
    open: (spec, options) => openSampled(spec, options, (client) => new FollowerAdapters(client, spec.adapter)),
    renew: (spec, newest) => ('folder' in newest ? { ...spec, adapter: newest } : spec),
  },
};

function openingOf(spec: PolicySpec): Opening<PolicySpec> {
  // Every entry takes specifications of its own kind, by which it was found.
  return OPENINGS[spec.kind] as Opening<PolicySpec>;
}

/** True for a policy that reads or writes at length, here or through a server: it gets a thread of its own. */
export function hasEngine(spec: PolicySpec): boolean {
  return openingOf(spec).hasEngine;
}

/** Renews a specification: with newer weights, or with the adapter that stands for them. */
export function withNewest(spec: PolicySpec, newest: ParamSet | ServedAdapter): PolicySpec {
  return openingOf(spec).renew(spec, newest);
}

/**
 * Opens a policy and its engine.
 * @throws {UserError} BAD_WEIGHTS when the weights do not fit the model or the world's vocabulary
 */
export async function openPolicy(spec: PolicySpec, options: OpeningOptions): Promise<OpenedPolicy> {
  return openingOf(spec).open(spec, options);
}

/** Policy that nothing is computed for in this process. */
function withoutEngine(policy: Policy, engine = 'none'): OpenedPolicy {
  return { policy, engine, computing: { ms: 0 }, close: async () => {} };
}

async function openOracle(
  { envModule, envOptions }: OraclePolicySpec,
  { maxBatch }: OpeningOptions,
): Promise<OpenedPolicy> {
  const { createOracle } = await loadWorld(new URL(envModule));
  if (!createOracle)
    throw new UserError('BAD_CONFIG', 'policy.kind: oracle: this world has no oracle; choose another kind of policy');
  return withoutEngine(new OraclePolicy(maxBatch, createOracle(envOptions)));
}

async function openSampled(
  { server, chat, maxTokens, attempts, retryMs }: SampledPolicySpec,
  { maxBatch }: OpeningOptions,
  adaptersOf: (client: GenerationClient) => Adapters,
): Promise<OpenedPolicy> {
  const { endTokens, contextTokens: maxPositions } = chat;
  const client = openGenerationClient(server);
  const codec = openModelCodec(chat);
  const read = { codec, client, adapters: adaptersOf(client), maxPositions, endTokens };
  const policy = new ServerPolicy({ ...read, maxTokens, maxBatch, attempts, retryMs });
  return withoutEngine(policy, `${server.api} at ${server.url}`);
}

/** Reader of the limits that calls of agents set, whatever world the policy was trained in. */
function limitsOfCalls(chat: ChatCodecSpec, codec: Codec): (call: string) => AnswerLimits | undefined {
  let agents = codec instanceof AgentCodec ? codec : undefined;
  return (call) => (agents ??= openAgentCodec(chat.folder, chat)).limitsOfCall(call);
}

async function openLocal(spec: LocalPolicySpec, { maxBatch, clock }: OpeningOptions): Promise<OpenedPolicy> {
  const { model: config, decoder, masked, maxTokens, cacheOnUpdate, params, chat } = spec;
  const codec = codecOf(await loadReading(new URL(spec.envModule)), chat);
  // Where every turn is rendered anew a cache would never be read twice. Spelling needs the cached policy even there (a run
  // reads its own tokens), and so do prompts from outside, which come without a view.
  const caches = !codec.rendersAnew || decoder !== 'choice' || spec.givenPrompts === true;
  const common = { config, codec, maxBatch, now: () => clock.now() };
  const limitsOfCall = chat && spec.givenPrompts ? limitsOfCalls(chat, codec) : undefined;
  const cached = { ...common, decoder, masked, maxTokens, cacheOnUpdate, limitsOfCall };
  if (spec.engineThread && caches && !PromptReader.reads(config)) {
    const thread = await EngineThread.open({ engine: spec.engine, config, decoder });
    try {
      const policy = CachedPolicy.over(thread, cached, params);
      return { policy, engine: thread.engine, computing: thread.computing, close: () => thread.dispose() };
    } catch (thrown) {
      await thread.dispose();
      throw thrown;
    }
  }
  const { engine, computing } = timeEngine(await openEngine(spec.engine), clock);
  const policy = caches
    ? await CachedPolicy.create(engine, cached, params)
    : await WindowPolicy.create(engine, common, params);
  return { policy, engine: `${engine.name}/${engine.device}`, computing, close: () => engine.dispose() };
}
