/** Command `longplay serve-policy`. */
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { servePolicyActors } from '../../../actors/tree.ts';
import { err, out } from '../../console/terminal.ts';
import { readSecret } from '../../core/secrets.ts';
import { chooseEngine } from '../../engine/open.ts';
import { setUpLocalPolicy } from '../../policy/setup.ts';
import { worldPrompt } from '../../prompts/world-prompt.ts';
import { loadNewestOf } from '../../record/run-checkpoint.ts';
import { findWorld, moduleChange } from '../../run/find-world.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import { workerUrl } from '../../runtime/thread.ts';
import { servePolicy as listenForPolicy } from '../../serve/policy-server.ts';
import { runCommand } from '../fail.ts';
import { MOST, port, untilSignal, wholeNumber } from '../flags.ts';

interface ServePolicyFlags {
  readonly host: string;
  readonly port: number;
  readonly maxBatch: number;
  readonly maxWaitMs: number;
  readonly name?: string;
}

/** Adds the command. */
export function servePolicy(program: Command): void {
  program
    .command('serve-policy')
    .description('serve a trained policy as OpenAI’s API: /v1/completions, /v1/chat/completions')
    .argument('<run>', "the run's folder; its newest good checkpoint is served")
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port; 0 picks a free one', port, 8000)
    .option('--name <name>', "the model's name; by default the run's")
    .option('--max-batch <n>', 'turns per engine call', wholeNumber(1, MOST.held), 64)
    .option('--max-wait-ms <n>', 'milliseconds a turn may wait for company', wholeNumber(0, MOST.milliseconds), 0)
    .action((run: string, flags: ServePolicyFlags) =>
      runCommand(async () => {
        const started = await startPolicyServer(run, flags);
        for (const warning of started.warnings) err.line(warning);
        out.line(`serving ${started.name} (update ${started.version}) on ${started.url}/v1`);
        await untilSignal();
        await started.close();
      }),
    );
}

/** Starts policy and server; tests use it too. @throws {UserError} for a run without a good checkpoint */
export async function startPolicyServer(dir: string, flags: Partial<ServePolicyFlags> = {}) {
  const config = readRunConfig(dir);
  const changed = moduleChange(config.env);
  if (changed !== undefined) err.line(changed);
  const { url, world, env } = await findWorld(config.env.id, config.env.options);
  const checkpoint = loadNewestOf(dir);
  err.line((await chooseEngine(config.engine)).notice);
  const { codec, model, params } = setUpLocalPolicy(config, world.view, checkpoint);
  const { decoder, masked, maxTokens } = config.policy;
  const decisions = await servePolicyActors({
    policy: {
      kind: 'local',
      engine: { name: config.engine.name, device: config.engine.device, threads: config.engine.inferenceThreads },
      model,
      envModule: workerUrl(url).href,
      decoder,
      masked,
      maxTokens,
      cacheOnUpdate: 'keep',
      params,
    },
    maxBatch: flags.maxBatch ?? 64,
    maxWaitMs: flags.maxWaitMs ?? 0,
  });
  const name = flags.name ?? basename(resolve(dir));
  try {
    const server = await listenForPolicy({
      decisions,
      model: {
        name,
        codec,
        decoder,
        maxTokens,
        maxPositions: model.maxPositions,
        version: params.version,
        world: worldPrompt(world, config.env.options, env.description),
      },
      host: flags.host ?? '127.0.0.1',
      port: flags.port ?? 0,
      token: readSecret('LONGPLAY_SERVER_TOKEN'),
    });
    return {
      url: server.url,
      name,
      version: params.version,
      warnings: checkpoint.warnings,
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
