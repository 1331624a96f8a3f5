/** Worlds over HTTP: env hosts and the server in front of them. */
import { openEnvSessions } from '../../actors/tree.ts';
import { systemClock } from '../core/clock.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { readApiKey } from '../http/api-key.ts';
import { type EnvServer, originalId, serveEnvs } from '../serve/env-server.ts';
import { findWorld } from './find-world.ts';

/** Options of a server of worlds. */
export interface EnvServerSettings {
  /** Address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN. Default 127.0.0.1. */
  readonly host?: string;
  /** Port; 0 (the default) takes a free one. */
  readonly port?: number;
  /** Threads that run episodes, ≥ 1. Default 1. */
  readonly threads?: number;
  /** Sessions at once, of each protocol and world. Default 4096. */
  readonly maxSessions?: number;
  /** Minutes without a request until a session is closed. Default 30. */
  readonly idleMinutes?: number;
  /** Bytes of the largest request body. Default 1 MiB. */
  readonly maxBody?: number;
  /** Requests per second of one client address. Default 100000. */
  readonly rate?: number;
  /** Seconds that one action may take. Default 10. */
  readonly stepSeconds?: number;
  /** Options of the world, where one is served. */
  readonly options?: EnvOptions;
}

/**
 * Serves worlds by AgentGym's protocol and OpenEnv's, until `close`.
 * @param ids worlds by id, or modules by path
 * @throws {UserError} UNKNOWN_ENV, BAD_ARGUMENT
 */
export async function startEnvServer(ids: readonly string[], settings: EnvServerSettings = {}): Promise<EnvServer> {
  if (new Set(ids).size < ids.length) throw new UserError('BAD_ARGUMENT', 'serve-env: a world is named twice');
  const options = settings.options ?? {};
  if (ids.length > 1 && Object.keys(options).length > 0) {
    throw new UserError(
      'BAD_ARGUMENT',
      `serve-env: options are for one world, got ${ids.join(', ')}; start a server for each`,
    );
  }
  const worlds = await Promise.all(ids.map((id) => findWorld(id, options)));
  const stepDeadlineMs = 1000 * (settings.stepSeconds ?? 10);
  const specs = worlds.flatMap(({ env: { id }, url, world }) => {
    const server = world.agentgym?.server;
    const served = server ? [{ id: originalId(id), options: { ...options, ...server.options } }] : [];
    return [{ id, options }, ...served].map((spec) => ({ ...spec, url, world }));
  });
  const episodes = await openEnvSessions({
    envs: await Promise.all(
      specs.map(async ({ world, ...spec }) => ({ ...spec, shared: await world.share?.(spec.options) })),
    ),
    threads: settings.threads ?? 1,
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
      host: settings.host ?? '127.0.0.1',
      port: settings.port ?? 0,
      token: readApiKey('LONGPLAY_SERVER_TOKEN'),
      maxSessions: settings.maxSessions ?? 4096,
      idleMs: 60_000 * (settings.idleMinutes ?? 30),
      maxBodyBytes: settings.maxBody ?? 1024 * 1024,
      requestsPerSecond: settings.rate ?? 100_000,
    });
    return {
      url: server.url,
      ids: server.ids,
      counts: server.counts,
      unref: () => server.unref(),
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
