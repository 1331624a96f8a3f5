/** Worlds over HTTP: env hosts and the server in front of them. */
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { openEnvSessions } from '../../actors/tree.ts';
import { out } from '../console/terminal.ts';
import { systemClock } from '../core/clock.ts';
import { describeValue } from '../core/describe-value.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { readApiKey } from '../http/api-key.ts';
import { type EnvServer, originalId, serveEnvs } from '../serve/env-server.ts';
import { loadServerPackage } from '../serve/mcp-package.ts';
import { McpProtocol } from '../serve/mcp-server.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import { listHostVariables } from '../world/mcp/options.ts';
import { type FoundWorld, findWorld } from './find-world.ts';

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
  /** Environment variables that the worlds get although they look like secrets, e.g. the key of a simulated user's model. */
  readonly hostVariables?: readonly string[] | undefined;
  /** Options of the world, where one is served. */
  readonly options?: EnvOptions;
  /** True to serve the Model Context Protocol at `/mcp/<world>` too. */
  readonly mcp?: boolean;
}

/** World that is played over standard input and output. */
export interface StdioServer {
  /** Resolves when the client has gone. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves a world by the Model Context Protocol over this process's standard input and output, until the client closes them.
 * Nothing else may write there.
 * @throws {UserError} MISSING_ENGINE without the package; as `startEnvServer`
 */
export async function serveWorldByStdio(id: string, settings: EnvServerSettings = {}): Promise<StdioServer> {
  const mcp = await loadServerPackage();
  const { worlds, episodes } = await openWorlds([id], settings);
  const [{ env, world }] = worlds as [FoundWorld];
  const limits = { maxSessions: settings.maxSessions ?? 4096, idleMs: 60_000 * (settings.idleMinutes ?? 30) };
  const prompt = worldPrompt(world, settings.options ?? {}, env.description);
  const protocol = new McpProtocol({ env, prompt }, episodes, limits, () => systemClock.now(), { isOneClient: true });
  const ended = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
  });
  const transport = new mcp.StdioServerTransport(
    process.stdin,
    createMessageStream((message) => out.json(message)),
  );
  const handle = mcp.serveStdio(() => protocol.createMcpServer(mcp), { transport });
  return {
    ended,
    async close() {
      await handle.close();
      protocol.close();
      await episodes.stop();
    },
  };
}

/**
 * Serves worlds by AgentGym's protocol and OpenEnv's, and by the Model Context Protocol where it is asked for, until `close`.
 * @param ids worlds by id, or modules by path
 * @throws {UserError} UNKNOWN_ENV, BAD_ARGUMENT
 */
export async function startEnvServer(ids: readonly string[], settings: EnvServerSettings = {}): Promise<EnvServer> {
  const mcp = settings.mcp ? await loadServerPackage() : undefined;
  const { worlds, episodes } = await openWorlds(ids, settings);
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
      mcp,
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

/** Finds worlds and starts the hosts that play them. */
async function openWorlds(ids: readonly string[], settings: EnvServerSettings) {
  if (new Set(ids).size < ids.length) throw new UserError('BAD_ARGUMENT', 'serve-env: a world is named twice');
  const options = settings.options ?? {};
  const unset = settings.hostVariables?.find((name) => process.env[name] === undefined);
  if (unset !== undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      `serve-env: expected a host variable that is set, e.g. OPENAI_API_KEY, got ${describeValue(unset)}`,
    );
  }
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
    variables: { passed: [...(settings.hostVariables ?? []), ...worlds.flatMap(({ url }) => listHostVariables(url))] },
    listActions: false,
    stepDeadlineMs,
    openDeadlineMs: Math.max(30_000, stepDeadlineMs),
  });
  return { worlds, episodes };
}

/** Makes a stream that hands on each line of JSON that is written to it, as a value. */
function createMessageStream(take: (message: unknown) => void): Writable {
  let text = '';
  const decoder = new StringDecoder('utf8');
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      // A character's bytes may come in two chunks.
      const lines = (text + (typeof chunk === 'string' ? chunk : decoder.write(chunk))).split('\n');
      text = lines.pop()!;
      for (const line of lines) take(parseJson(line));
      done();
    },
  });
}
