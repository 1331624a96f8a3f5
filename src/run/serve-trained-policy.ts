/** Trained policy over HTTP: inference actors and the server in front of them. */
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { servePolicyActors } from '../../actors/tree.ts';
import { chooseEngine } from '../compute/engine/open.ts';
import { requireOneWorld } from '../config/worlds.ts';
import { UserError } from '../core/errors.ts';
import { readApiKey } from '../http/api-key.ts';
import { loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import { fetchModel } from '../policy/pretrained/hub.ts';
import { setUpPolicy } from '../policy/setup.ts';
import { workerUrl } from '../runtime/module-url.ts';
import { servePolicy } from '../serve/policy-server.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import { AgentCodec, openAgentCodec } from '../text/reading/agent-codec.ts';
import type { ChatCodecSpec } from '../text/reading/chat-codec.ts';
import type { Codec } from '../text/reading/codec.ts';
import { moduleChange } from '../world/env-id.ts';
import { findWorld } from './find-world.ts';
import { readRunConfig } from './run-folder.ts';

/** Options of a policy server. */
export interface PolicyServerSettings {
  /** Address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN. Default 127.0.0.1. */
  readonly host?: string;
  /** Port; 0 (the default) takes a free one. */
  readonly port?: number;
  /** Turns per engine call. Default 64. */
  readonly maxBatch?: number;
  /** Milliseconds that a turn may wait for company. Default 0. */
  readonly maxWaitMs?: number;
  /** Name of the model; by default the run's. */
  readonly name?: string;
  /** Called with lines for the person who waits. */
  readonly onNotice?: (line: string) => void;
}

/** Policy server that has started: its URL, name and version. */
export interface StartedPolicyServer {
  /** `http://127.0.0.1:8000`; the API lies under `/v1`. */
  readonly url: string;
  readonly name: string;
  /** Policy version: updates seen. */
  readonly version: number;
  /** Notices for a person, e.g. of a checkpoint that was passed over. */
  readonly warnings: readonly string[];
  close(): Promise<void>;
}

/**
 * Serves a run's newest policy as OpenAI's API, until `close`.
 * @param dir the run's folder
 * @throws {UserError} for a run without a good checkpoint
 */
export async function startPolicyServer(
  dir: string,
  settings: PolicyServerSettings = {},
): Promise<StartedPolicyServer> {
  const config = readRunConfig(dir);
  requireOneWorld(config, 'serve-policy');
  const changed = moduleChange(config.env);
  const { url, world, env } = await findWorld(config.env.id, config.env.options);
  const checkpoint = loadNewestOf(dir);
  const { notice } = await chooseEngine(config.engine);
  const prompt = worldPrompt(world, config.env.options, env.description);
  await fetchModel(config.policy.path);
  const setup = setUpPolicy(config, { view: world.view, prompt }, dir, checkpoint);
  if (!setup) {
    throw new UserError('BAD_ARGUMENT', `${dir}: its policy (kind ${config.policy.kind}) has no weights to serve`);
  }
  const { codec, model, params, chat } = setup;
  const { decoder, masked, maxTokens } = config.policy;
  const agents = openAgents(codec, chat);
  const { name: engineName, device, packing, inferenceThreads } = config.engine;
  const decisions = await servePolicyActors({
    policy: {
      kind: 'local',
      engine: { name: engineName, device, packing, threads: inferenceThreads },
      model,
      chat,
      envModule: workerUrl(url).href,
      decoder,
      // A client of a language model sends a list only where it wants one followed.
      masked: masked || chat !== undefined,
      maxTokens,
      cacheOnUpdate: 'keep',
      params,
    },
    maxBatch: settings.maxBatch ?? 64,
    maxWaitMs: settings.maxWaitMs ?? 0,
    onNotice: settings.onNotice,
  });
  const name = settings.name ?? basename(resolve(dir));
  try {
    const server = await servePolicy({
      decisions,
      model: {
        name,
        codec,
        decoder,
        maxTokens,
        maxPositions: model.maxPositions,
        version: params.version,
        created: Math.floor(statSync(checkpoint.path).mtimeMs / 1000),
        world: prompt,
        agents: agents.codec,
      },
      host: settings.host ?? '127.0.0.1',
      port: settings.port ?? 0,
      token: readApiKey('LONGPLAY_SERVER_TOKEN'),
    });
    return {
      url: server.url,
      name,
      version: params.version,
      warnings: [
        ...(changed === undefined ? [] : [changed]),
        ...checkpoint.warnings,
        ...setup.notices,
        ...agents.notices,
        notice,
      ],
      async close() {
        await server.close();
        await decisions.stop();
      },
    };
  } catch (thrown) {
    await decisions.stop();
    throw thrown;
  }
}

/** Reader of agents' calls for a language model. One whose template has no end of turns answers conversations alone. */
function openAgents(
  codec: Codec,
  chat: ChatCodecSpec | undefined,
): { readonly codec?: AgentCodec; readonly notices: readonly string[] } {
  if (codec instanceof AgentCodec) return { codec, notices: [] };
  if (!chat) return { notices: [] };
  try {
    return { codec: openAgentCodec(chat.folder, chat), notices: [] };
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown;
    return {
      notices: [`agents get no replies, since the model's template cannot hold their calls: ${thrown.message}`],
    };
  }
}
