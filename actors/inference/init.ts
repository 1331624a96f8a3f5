/** Init of the inference actor, picked from the options of a run. */
import { join, resolve } from 'node:path';
import type { RunConfig } from '../../src/config/run-config.ts';
import { readSecret } from '../../src/core/secrets.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { ChatReading } from '../../src/reading/chat-codec.ts';
import { workerUrl } from '../../src/runtime/thread.ts';
import { CLUSTER_PATHS, engineOptions, isServed, PATHS, type Policy, type RunOptions } from '../options.ts';
import type { InferenceInit } from './protocol.ts';

export function inferenceInit(options: RunOptions, policy: Policy | undefined): InferenceInit {
  const { maxBatch, maxWaitMs } = options.config.rollout;
  return {
    policy: policy
      ? options.config.policy.kind === 'server'
        ? serverInference(options, policy)
        : localInference(options, policy)
      : { kind: 'random' },
    maxBatch,
    maxWaitMs,
    replyPath: PATHS.rollout,
    learnerPath: options.learn ? PATHS.learner : undefined,
    servedPath: options.cluster && isServed(options.config) ? CLUSTER_PATHS.weights : undefined,
  };
}

function serverInference(options: RunOptions, { model, params, chat }: Policy): InferenceInit['policy'] {
  const { config, dir } = options;
  const { server, path } = config.policy;
  return {
    ...sampledBy(config, chat!),
    kind: 'server',
    config: { ...model, adapter: model.adapter! },
    adapters: resolve(server.adapters ?? join(dir, 'adapters')),
    baseModel: resolve(path!),
    maxLag: config.learner.maxLag,
    params,
  };
}

/** Server that samples a policy's tokens, and how it is asked. */
function sampledBy({ policy: { server, path, maxTokens } }: RunConfig, chat: ChatReading) {
  const { api, url, attempts, attemptMs, retryMs, apiKeyEnv } = server;
  const apiKey = readSecret(apiKeyEnv);
  return { server: { api, url, model: server.model ?? path!, attemptMs, apiKey }, chat, maxTokens, attempts, retryMs };
}

/** Inference of a worker whose policy is behind a server: another process has had the adapters loaded. */
export function toldInference({ config }: RunOptions, chat: ChatReading, adapter: ServedAdapter): InferenceInit {
  const { maxBatch, maxWaitMs } = config.rollout;
  const policy = { ...sampledBy(config, chat), kind: 'told', adapter } as const;
  return { policy, maxBatch, maxWaitMs, replyPath: PATHS.rollout, learnerPath: CLUSTER_PATHS.worker };
}

function localInference(
  { config, mode, replay, envModule }: RunOptions,
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
  };
}
