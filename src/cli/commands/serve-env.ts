/** Command `longplay serve-env`. */
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { type EnvServerSettings, startEnvServer } from '../../run/serve-worlds.ts';
import { runCommand } from '../fail.ts';
import { type EnvOptionFlags, envOptionsOf, MOST, port, wholeNumber, withEnvOptions } from '../flags.ts';
import { untilSignal } from '../interrupt.ts';

/** Adds the command. */
export function serveEnv(program: Command): void {
  const command = program
    .command('serve-env')
    .description('serve worlds over HTTP: AgentGym’s protocol under /<env>/, OpenEnv’s under /openenv/<env>/')
    .argument('<env...>', 'worlds to serve')
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port; 0 picks a free one', port, 36001)
    .option('--threads <n>', 'threads that run episodes', wholeNumber(1, MOST.threads), 1)
    .option('--max-sessions <n>', 'sessions at once, of each protocol', wholeNumber(1, MOST.held), 4096)
    .option(
      '--idle-minutes <n>',
      'minutes without a request until a session is closed',
      wholeNumber(1, MOST.minutes),
      30,
    )
    .option('--max-body <bytes>', 'largest request body', wholeNumber(1, MOST.bytes), 1024 * 1024)
    .option('--rate <n>', 'requests per second of one client address', wholeNumber(1, MOST.repeats), 100_000)
    .option('--step-seconds <n>', 'deadline of one action', wholeNumber(1, MOST.seconds), 10);
  withEnvOptions(command).action((envs: string[], flags: EnvServerSettings & EnvOptionFlags) =>
    runCommand(async () => {
      const started = await startEnvServer(envs, { ...flags, options: envOptionsOf(flags) });
      out.line(`serving ${started.ids.join(', ')} on ${started.url}`);
      await untilSignal();
      await started.close();
    }),
  );
}
