/** Command `longplay serve-policy`. */
import type { Command } from 'commander';
import { err, out } from '../../console/terminal.ts';
import { type PolicyServerSettings, startPolicyServer } from '../../run/serve-trained-policy.ts';
import { runCommand } from '../fail.ts';
import { MOST, port, wholeNumber } from '../flags.ts';
import { awaitSignal } from '../interrupt.ts';

/** Adds the command. */
export function servePolicy(program: Command): void {
  program
    .command('serve-policy')
    .description('serve a trained policy as OpenAI’s API; a language model to agents too, as OpenAI’s and Anthropic’s')
    .argument('<run>', "the run's folder; its newest good checkpoint is served")
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port; 0 picks a free one', port, 8000)
    .option('--name <name>', "the model's name; by default the run's")
    .option('--max-batch <n>', 'turns per engine call', wholeNumber(1, MOST.held), 64)
    .option('--max-wait-ms <n>', 'milliseconds a turn may wait for company', wholeNumber(0, MOST.milliseconds), 0)
    .action((run: string, flags: PolicyServerSettings) =>
      runCommand(async () => {
        const started = await startPolicyServer(run, { ...flags, onNotice: err.line });
        for (const warning of started.warnings) err.line(warning);
        out.line(`serving ${started.name} (update ${started.version}) on ${started.url}/v1`);
        await awaitSignal();
        await started.close();
      }),
    );
}
