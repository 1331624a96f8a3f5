/** Command `longplay serve-policy`. */
import type { Command } from 'commander';
import { type PolicyServerSettings, startPolicyServer } from '../../run/serve-trained-policy.ts';
import { runCommand } from '../fail.ts';
import { untilSignal, wholeNumber } from '../flags.ts';

/** Adds the command. */
export function servePolicy(program: Command): void {
  program
    .command('serve-policy')
    .description('serve a trained policy as OpenAI’s API: /v1/completions, /v1/chat/completions')
    .argument('<run>', "the run's folder; its newest good checkpoint is served")
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port', wholeNumber(0), 8000)
    .option('--name <name>', "the model's name; by default the run's")
    .option('--max-batch <n>', 'turns per engine call', wholeNumber(1), 64)
    .option('--max-wait-ms <n>', 'milliseconds a turn may wait for company', wholeNumber(0), 0)
    .action((run: string, flags: PolicyServerSettings) =>
      runCommand(async () => {
        const started = await startPolicyServer(run, flags);
        for (const warning of started.warnings) process.stderr.write(`${warning}\n`);
        process.stdout.write(`serving ${started.name} (update ${started.version}) on ${started.url}/v1\n`);
        await untilSignal();
        await started.close();
      }),
    );
}
