/** Command `longplay serve-env`. */
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { type EnvServerSettings, serveWorldByStdio, startEnvServer } from '../../run/serve-worlds.ts';
import { runCommand } from '../fail.ts';
import {
  collectFlag,
  type EnvOptionFlags,
  envOptionsOf,
  MOST,
  oneOf,
  port,
  refuseFlags,
  wholeNumber,
  withEnvOptions,
} from '../flags.ts';
import { awaitSignal, firstSignal } from '../interrupt.ts';

/** Adds the command. */
export function serveEnv(program: Command): void {
  const command = program
    .command('serve-env')
    .description('serve worlds over HTTP: AgentGym’s protocol under /<env>/, OpenEnv’s under /openenv/<env>/')
    .argument('<env...>', 'worlds to serve')
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port; 0 picks a free one', port, 36001)
    .option('--threads <n>', 'threads that run episodes', wholeNumber(1, MOST.threads), 1)
    .option('--max-sessions <n>', 'sessions at once, of each protocol and world', wholeNumber(1, MOST.held), 4096)
    .option(
      '--idle-minutes <n>',
      'minutes without a request until a session is closed',
      wholeNumber(1, MOST.minutes),
      30,
    )
    .option('--max-body <bytes>', 'largest request body', wholeNumber(1, MOST.bytes), 1024 * 1024)
    .option('--rate <n>', 'requests per second of one client address', wholeNumber(1, MOST.repeats), 100_000)
    .option(
      '--mcp <transport>',
      'serve the Model Context Protocol: http, beside the others at /mcp/<env>; or stdio, in place of them',
      oneOf(['http', 'stdio']),
    )
    .option('--step-seconds <n>', 'deadline of one action', wholeNumber(1, MOST.seconds), 10)
    .option(
      '--host-variable <name>',
      'environment variable that the worlds get although it looks like a secret, e.g. OPENAI_API_KEY; repeatable',
      collectFlag,
    );
  withEnvOptions(command).action((envs: string[], flags: ServeEnvFlags) =>
    runCommand(async () => {
      const { mcp, hostVariable: hostVariables, ...others } = flags;
      const settings = { ...others, hostVariables };
      const options = envOptionsOf(flags);
      if (mcp === 'stdio') return serveByStdio(command, envs, { ...settings, options });
      const started = await startEnvServer(envs, { ...settings, options, mcp: mcp === 'http' });
      out.line(`serving ${started.ids.join(', ')} on ${started.url}`);
      await awaitSignal();
      await started.close();
    }),
  );
}

/** Flags of the command. */
type ServeEnvFlags = Omit<EnvServerSettings, 'mcp' | 'hostVariables'> &
  EnvOptionFlags & { readonly mcp?: 'http' | 'stdio'; readonly hostVariable?: readonly string[] };

/** Serves one world over standard input and output; the terminal is the protocol's. */
async function serveByStdio(command: Command, envs: readonly string[], settings: EnvServerSettings): Promise<void> {
  const [id, ...others] = envs;
  if (others.length > 0) {
    throw new UserError('BAD_ARGUMENT', `serve-env: --mcp stdio serves one world, got ${envs.join(', ')}`);
  }
  refuseFlags(command, ['host', 'port', 'maxBody', 'rate'], 'they are of servers by HTTP; --mcp stdio has none');
  const started = await serveWorldByStdio(id!, settings);
  const interrupted = firstSignal();
  await Promise.race([started.ended, interrupted.signal]);
  interrupted.stop();
  await started.close();
}
