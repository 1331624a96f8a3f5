/** Init of the inference actor of a policy behind an OpenAI-compatible server, picked from the options of a run. */
import type { WorldPrompt } from '../../src/core/prompt.ts';
import type { Connection } from '../../src/policy/remote/connect.ts';
import { PATHS, type RunOptions } from '../options.ts';
import type { RemoteInferenceInit } from './protocol.ts';

export function remoteInit(
  { config, envModule, limits }: RunOptions,
  prompt: WorldPrompt,
  remote: Connection,
): RemoteInferenceInit {
  return {
    openai: config.policy.openai,
    chat: config.policy.chat,
    limits: limits?.openai,
    ...remote,
    prompt,
    envModule: envModule.href,
    noticePath: PATHS.recorder,
    replyPath: PATHS.rollout,
  };
}
