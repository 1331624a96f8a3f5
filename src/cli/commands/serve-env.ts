/** Command `longplay serve-env`. */
import type { Command } from 'commander';
import { openEnvSessions } from '../../../actors/tree.ts';
import { out } from '../../console/terminal.ts';
import { systemClock } from '../../core/clock.ts';
import { UserError } from '../../core/errors.ts';
import { readSecret } from '../../core/secrets.ts';
import { findWorld } from '../../run/find-world.ts';
import { type EnvServer, originalId, serveEnvs } from '../../serve/env-server.ts';
import { runCommand } from '../fail.ts';
import { MOST, port, untilSignal, wholeNumber } from '../flags.ts';

interface ServeEnvFlags {
  readonly host: string;
  readonly port: number;
  readonly threads: number;
  readonly maxSessions: number;
  readonly idleMinutes: number;
  readonly maxBody: number;
  readonly rate: number;
  readonly stepSeconds: number;
}

/** Adds the command. */
export function serveEnv(program: Command): void {
  program
    .command('serve-env')
    .description('serve worlds over HTTP: AgentGym’s protocol under /<env>/, ours under /v1/')
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
    .option('--step-seconds <n>', 'deadline of one action', wholeNumber(1, MOST.seconds), 10)
    .action((envs: string[], flags: ServeEnvFlags) =>
      runCommand(async () => {
        const started = await startEnvServer(envs, flags);
        out.line(`serving ${envs.join(', ')} on ${started.url}`);
        await untilSignal();
        await started.close();
      }),
    );
}

/** Starts hosts and server; the bench and tests use it too. */
export async function startEnvServer(ids: readonly string[], flags: Partial<ServeEnvFlags> = {}): Promise<EnvServer> {
  if (new Set(ids).size < ids.length) throw new UserError('BAD_ARGUMENT', 'serve-env: a world is named twice');
  const worlds = await Promise.all(ids.map((id) => findWorld(id)));
  const stepDeadlineMs = 1000 * (flags.stepSeconds ?? 10);
  const specs = worlds.flatMap(({ env: { id }, url, world }) => {
    const server = world.agentgym?.server;
    const served = server ? [{ id: originalId(id), options: server.options }] : [];
    return [{ id, options: {} }, ...served].map((spec) => ({ ...spec, url, world }));
  });
  const episodes = await openEnvSessions({
    envs: await Promise.all(
      specs.map(async ({ world, ...spec }) => ({ ...spec, shared: await world.share?.(spec.options) })),
    ),
    threads: flags.threads ?? 1,
    isolation: 'thread',
    listActions: false,
    stepDeadlineMs,
    openDeadlineMs: Math.max(30_000, stepDeadlineMs),
  });
  try {
    const server = await serveEnvs({
      worlds,
      episodes,
      clock: systemClock,
      host: flags.host ?? '127.0.0.1',
      port: flags.port ?? 0,
      token: readSecret('LONGPLAY_SERVER_TOKEN'),
      maxSessions: flags.maxSessions ?? 4096,
      idleMs: 60_000 * (flags.idleMinutes ?? 30),
      maxBodyBytes: flags.maxBody ?? 1024 * 1024,
      requestsPerSecond: flags.rate ?? 100_000,
    });
    return {
      url: server.url,
      counts: server.counts,
      get sessions() {
        return server.sessions;
      },
      async close() {
        await server.close();
        await episodes.stop();
      },
    };
  } catch (thrown) {
    await episodes.stop();
    throw thrown;
  }
}
