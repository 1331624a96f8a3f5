/** Opens policies from their specifications: the one place that maps each kind to its class. */

import type { EngineOptions } from '../compute/engine/engine.ts';
import { openEngine } from '../compute/engine/open.ts';
import { timeEngine } from '../compute/engine/timed.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import type { ParamSet } from '../compute/model/parameters.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { Clock } from '../core/clock.ts';
import { type ChatCodecSpec, openChatCodec } from '../text/reading/chat-codec.ts';
import { codecOf } from '../text/reading/codec-of.ts';
import { loadWorld } from '../world/open-world.ts';
import { CachedPolicy } from './cached-policy.ts';
import { type GenerationOptions, openGenerationClient } from './generation/generation-client.ts';
import type { Policy } from './policy.ts';
import { RandomPolicy } from './random-policy.ts';
import { FollowerAdapters, type OwnAdapterOptions, OwnAdapters, type ServedAdapter } from './served-adapters.ts';
import { ServerPolicy, type ServerPolicyOptions } from './server-policy.ts';
import { WindowPolicy } from './window-policy.ts';

/** Policy that answers in this process; plain data. */
export type PolicySpec = LocalPolicySpec | ServerPolicySpec | FollowerPolicySpec | { readonly kind: 'random' };

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

/**
 * Opens a policy and its engine.
 * @throws {UserError} BAD_WEIGHTS when the weights do not fit the model or the world's vocabulary
 */
export async function openPolicy(
  spec: PolicySpec,
  { maxBatch, clock }: { readonly maxBatch: number; readonly clock: Clock },
): Promise<OpenedPolicy> {
  if (spec.kind === 'random') {
    return { policy: new RandomPolicy(maxBatch), engine: 'none', computing: { ms: 0 }, close: async () => {} };
  }
  if (spec.kind === 'server' || spec.kind === 'follower') {
    const { server, chat, maxTokens, attempts, retryMs } = spec;
    const { endTokens, contextTokens: maxPositions } = chat;
    const client = openGenerationClient(server);
    const adapters =
      spec.kind === 'follower'
        ? new FollowerAdapters(client, spec.adapter)
        : new OwnAdapters({ ...spec, client }, spec.params);
    const codec = openChatCodec(chat);
    const read = { codec, client, adapters, maxPositions, endTokens };
    const policy = new ServerPolicy({ ...read, maxTokens, maxBatch, attempts, retryMs });
    return { policy, engine: `${server.api} at ${server.url}`, computing: { ms: 0 }, close: async () => {} };
  }
  const { model: config, decoder, masked, maxTokens, cacheOnUpdate, params, chat } = spec;
  const codec = codecOf(await loadWorld(new URL(spec.envModule)), chat);
  const { engine, computing } = timeEngine(await openEngine(spec.engine), clock);
  // Where every turn is rendered anew a cache would never be read twice. Spelling needs the cached policy even there (a run
  // reads its own tokens), and so do prompts from outside, which come without a view.
  const common = { config, codec, maxBatch, now: () => clock.now() };
  const policy =
    codec.rendersAnew && decoder === 'choice' && !spec.givenPrompts
      ? await WindowPolicy.create(engine, common, params)
      : await CachedPolicy.create(engine, { ...common, decoder, masked, maxTokens, cacheOnUpdate }, params);
  return { policy, engine: `${engine.name}/${engine.device}`, computing, close: () => engine.dispose() };
}
