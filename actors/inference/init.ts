/** Init of the inference actor, picked from the options of a run. */
import { join, resolve } from 'node:path';
import { nameBaseModel } from '../../src/config/paths.ts';
import { readApiKey } from '../../src/http/api-key.ts';
import { MAX_WAIT_MS } from '../../src/policy/batching.ts';
import { SERVER_RETRIES, type ServedAdapter } from '../../src/policy/served-adapters.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import type { ChatCodecSpec } from '../../src/text/reading/chat-codec.ts';
import { CLUSTER_PATHS, engineOptions, isServed, PATHS, type Policy, type RunOptions } from '../options.ts';
import type { InferenceInit } from './protocol.ts';

export function inferenceInit(options: RunOptions, policy: Policy | undefined): InferenceInit {
  const { maxBatch } = options.config.rollout;
  return {
    policy: policy
      ? isServed(options.config)
        ? serverInference(options, policy)
        : localInference(options, policy)
      : kindWithoutWeights(options),
    maxBatch,
    maxWaitMs: MAX_WAIT_MS,
    replyPath: PATHS.rollout,
    learnerPath: options.learn ? PATHS.learner : undefined,
    servedPath: options.cluster && isServed(options.config) ? CLUSTER_PATHS.weights : undefined,
  };
}

function kindWithoutWeights({ config: { policy, env }, envModule, rule }: RunOptions): InferenceInit['policy'] {
  if (rule !== undefined) return { kind: 'rule', rule };
  if (policy.kind !== 'oracle') return { kind: 'random' };
  return { kind: 'oracle', envModule: workerUrl(envModule).href, envOptions: env.options };
}

function serverInference(options: RunOptions, { model, params, chat }: Policy): InferenceInit['policy'] {
  const { config, dir } = options;
  const { server, path } = config.policy;
  return {
    ...buildServerSampling(options, chat!),
    kind: 'server',
    config: { ...model, adapter: model.adapter! },
    adapters: resolve(server.adapters ?? join(dir, 'adapters')),
    baseModel: nameBaseModel(path!),
    maxLag: config.learner.maxLag,
    params,
  };
}

/** Server that samples a policy's tokens, and how it is asked. */
function buildServerSampling({ config, limits }: RunOptions, chat: ChatCodecSpec) {
  const { server, path, maxTokens, apiKeyEnv } = config.policy;
  const { api, url } = server;
  const { attempts, attemptMs, retryMs } = { ...SERVER_RETRIES, ...limits?.server };
  const apiKey = readApiKey(apiKeyEnv);
  return { server: { api, url, model: server.model ?? path!, attemptMs, apiKey }, chat, maxTokens, attempts, retryMs };
}

/** Inference of a worker whose policy is behind a server: the learner's process loads the adapters there. */
export function followerInference(options: RunOptions, chat: ChatCodecSpec, adapter: ServedAdapter): InferenceInit {
  const { maxBatch } = options.config.rollout;
  const policy = { ...buildServerSampling(options, chat), kind: 'follower', adapter } as const;
  return { policy, maxBatch, maxWaitMs: MAX_WAIT_MS, replyPath: PATHS.rollout, learnerPath: CLUSTER_PATHS.worker };
}

function localInference(
  { config, mode, record, replay, envModule }: RunOptions,
  { model, params, chat }: Policy,
): InferenceInit['policy'] {
  const { decoder, masked, maxTokens, cacheOnUpdate } = config.policy;
  return {
    kind: 'local',
    engine: engineOptions(config, mode, config.engine.inferenceThreads, replay),
    model,
    envModule: workerUrl(envModule).href,
    decoder,
    masked,
    maxTokens,
    cacheOnUpdate,
    params,
    chat,
    // A repetition goes message by message: each call begins and ends within one.
    engineThread: mode === 'async' && !record && !replay,
  };
}
