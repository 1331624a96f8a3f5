/** Command `longplay gateway`. */
import type { Command } from 'commander';
import { err, out } from '../../console/terminal.ts';
import { MAX_DATA_BYTES } from '../../core/bounded-file.ts';
import { startGateway } from '../../run/serve-gateway.ts';
import { runCommand } from '../fail.ts';
import { port } from '../flags.ts';
import { awaitSignal } from '../interrupt.ts';

interface GatewayFlags {
  readonly upstream: string;
  readonly model?: string;
  readonly record?: string;
  readonly port: number;
  readonly tokenEnv: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function gateway(program: Command): void {
  program
    .command('gateway')
    .description('stand in front of a chat server: chat completions, responses and messages, kept on request')
    .requiredOption('--upstream <url>', 'base URL of the chat server, e.g. https://api.openai.com/v1')
    .option('--model <name>', 'model in every request; by default the only one there, else what the client asks for')
    .option('--record <file>', 'keep the conversations as JSON lines, which sft reads')
    .option('--port <n>', 'port on the loopback; 0 picks a free one', port, 8080)
    .option('--token-env <name>', "environment variable that holds the chat server's key", 'OPENAI_API_KEY')
    .option('--json', 'print the addresses and the key as one JSON object')
    .action((flags: GatewayFlags) => runCommand(() => gatewayCommand(flags)));
}

async function gatewayCommand({ json, ...flags }: GatewayFlags): Promise<void> {
  const started = await startGateway({ ...flags, onNotice: err.line });
  const { baseURL, root, key, model } = started;
  const { upstream, record } = flags;
  if (json) out.json({ baseURL, root, key, model, upstream, record });
  else {
    out.line(`forwarding ${model ?? 'the model that is asked for'} of ${upstream}  (Ctrl-C ends it)`);
    out.line(`OPENAI_BASE_URL=${baseURL} OPENAI_API_KEY=${key}`);
    out.line(`ANTHROPIC_BASE_URL=${root} ANTHROPIC_API_KEY=${key}`);
  }
  await Promise.race([awaitSignal(), started.ended]);
  const kept = await started.close();
  if (!kept) return;
  err.line(`${record}: ${kept.conversations} conversations, ${kept.bytes} bytes`);
  if (kept.bytes > MAX_DATA_BYTES) err.line(`sft reads files of up to ${MAX_DATA_BYTES} bytes: split it`);
}
