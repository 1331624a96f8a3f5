/**
 * Environment server: AgentGym's own protocol of each world under `/<world>/…` (and at the root when only one world is
 * served), OpenEnv's under `/openenv/<world>/…`, the Model Context Protocol at `/mcp/<world>` where it is asked for, `/health`
 * and `/metrics`. Episodes run on the env hosts; this thread only
 * reads, waits and writes.
 */
import { WebSocketServer } from 'ws';
import type { Clock } from '../core/clock.ts';
import type { Env } from '../core/env.ts';
import type { World } from '../core/world.ts';
import { createApp, type HttpAnswer, type HttpRequest, handle, json } from '../http/app.ts';
import { type HttpServer, type ListenOptions, listen, type UpgradeHandler } from '../http/server.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import { AgentGymProtocol } from './agentgym/protocol.ts';
import { DEFAULT_SESSIONS, type SessionLimits } from './agentgym/sessions.ts';
import type { Episodes } from './episodes.ts';
import type { ServerPackage } from './mcp-package.ts';
import { McpProtocol } from './mcp-server.ts';
import { OpenEnvProtocol } from './openenv-server.ts';
import { problem } from './problem.ts';
import { metricsAnswer } from './server-metrics.ts';

/** Served world. */
export interface ServedEnv {
  readonly env: Env;
  readonly world: Pick<World, 'agentgym' | 'draw' | 'prompt' | 'tools'>;
}

/** Id under which the hosts must know a world with the options of its AgentGym dialect. */
export function originalId(env: string): string {
  return `${env}/original`;
}

export interface EnvServerOptions extends ListenOptions, SessionLimits {
  /**
   * Worlds to serve. The hosts know each under its env's id, and under `originalId(id)` where it has an AgentGym
   * server's dialect.
   */
  readonly worlds: readonly ServedEnv[];
  readonly episodes: Episodes;
  readonly clock: Clock;
  /** Package of the Model Context Protocol; without it `/mcp/<world>` is not served. */
  readonly mcp?: ServerPackage | undefined;
}

/** Server of worlds that has started. */
export interface EnvServer extends HttpServer {
  /** Open sessions, of both protocols. */
  readonly sessions: number;
  /** Ids under which worlds are served, those of users' modules among them. */
  readonly ids: readonly string[];
}

/** Connections at once beside OpenEnv's sessions. */
const FURTHER_CONNECTIONS = 1024;
/** Milliseconds between two looks for idle sessions, at most. */
const SWEEP_MS = 10_000;

/** Protocols of the worlds, by env id. */
interface Protocols {
  readonly openEnv: ReadonlyMap<string, OpenEnvProtocol>;
  readonly agentGym: ReadonlyMap<string, AgentGymProtocol>;
  /** Protocol at the root, where one world is served. */
  readonly root: AgentGymProtocol | undefined;
}

function protocolsOf(options: EnvServerOptions, now: () => number): Protocols {
  const { worlds, episodes } = options;
  const openEnv = new Map<string, OpenEnvProtocol>();
  for (const { env, world } of worlds) {
    const prompt = worldPrompt(world, {}, env.description);
    openEnv.set(env.id, new OpenEnvProtocol({ env, prompt, isOfTools: world.tools === true }, episodes, options, now));
  }
  const agentGym = new Map<string, AgentGymProtocol>();
  for (const { env, world } of worlds) {
    const server = world.agentgym?.server;
    if (!server) continue;
    const served = { env: env.id, original: originalId(env.id), server, draw: world.draw };
    agentGym.set(env.id, new AgentGymProtocol(served, episodes, options, now));
  }
  const root = worlds.length === 1 ? [...agentGym.values()][0] : undefined;
  return { openEnv, agentGym, root };
}

/** Model Context Protocol of each world, where the package is there. */
function mcpProtocolsOf(options: EnvServerOptions, now: () => number): ReadonlyMap<string, McpProtocol> {
  const { worlds, episodes, mcp } = options;
  if (!mcp) return new Map();
  return new Map(
    worlds.map(({ env, world }) => {
      const prompt = worldPrompt(world, {}, env.description);
      return [env.id, new McpProtocol({ env, prompt }, episodes, options, now, { isOneClient: false })];
    }),
  );
}

/** Handler of the requests of a world: of the revision of 2026-07-28, and of earlier ones without sessions. */
function handlerOf(mcp: ServerPackage, protocol: McpProtocol, { maxBodyBytes = 1024 * 1024 }: EnvServerOptions) {
  return mcp.createMcpHandler(() => protocol.createMcpServer(mcp), { maxRequestBodySize: maxBodyBytes });
}

/** Answers by the protocol that a request's path names. */
function route({ openEnv, agentGym, root }: Protocols, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
  const { path } = request;
  if (path.startsWith('/openenv/')) {
    const [, , id, ...rest] = path.split('/');
    const protocol = openEnv.get(id ?? '');
    if (protocol) return protocol.handle(`/${rest.join('/')}`, request);
  }
  const end = path.indexOf('/', 1);
  const named = end < 0 ? path.slice(1) : path.slice(1, end);
  const world = agentGym.get(named);
  if (world) return world.handle(end < 0 ? '/' : path.slice(end), request);
  if (root) return root.handle(path, request);
  const ids = [...openEnv.keys()].join(', ');
  const id = openEnv.size === 1 ? ids : named;
  if (openEnv.get(id)?.isOfTools) {
    const why = `AgentGym's protocol cannot carry ${id}, a world of tools`;
    return problem(404, 'NOT_FOUND', `nothing at ${path}: ${why}; OpenEnv's is at /openenv/${id}`);
  }
  return problem(404, 'NOT_FOUND', `nothing at ${path}; the worlds here: ${ids}`);
}

/**
 * Serves worlds.
 * @throws {UserError} BAD_ARGUMENT when it cannot listen
 */
export async function serveEnvs(options: EnvServerOptions): Promise<EnvServer> {
  const { worlds, episodes, clock } = options;
  const now = () => clock.now();
  const protocols = protocolsOf(options, now);
  const { openEnv, agentGym } = protocols;
  const ids = worlds.map(({ env }) => env.id);
  const mcp = mcpProtocolsOf(options, now);
  const counted = [...openEnv.values(), ...[...agentGym.values()].map((world) => world.sessions), ...mcp.values()];
  const sessions = () => counted.reduce((sum, { count }) => sum + count, 0);
  let expired = 0;
  let server: HttpServer | undefined;

  const app = createApp();
  app.get(
    '/health',
    handle(() => {
      const status = episodes.healthy ? 'ok' : 'the env hosts cannot be started';
      return json({ status, envs: ids, sessions: sessions() }, episodes.healthy ? 200 : 503);
    }),
  );
  app.get(
    '/metrics',
    handle(() =>
      metricsAnswer(server!.counts, [
        { name: 'sessions', type: 'gauge', help: 'Sessions that are open.', value: sessions() },
        { name: 'episodes', type: 'gauge', help: 'Episodes that are open in the env hosts.', value: episodes.count },
        { name: 'expired_sessions_total', type: 'counter', help: 'Sessions closed as idle.', value: expired },
      ]),
    ),
  );
  const mcpHandlers = new Map([...mcp].map(([id, protocol]) => [id, handlerOf(options.mcp!, protocol, options)]));
  app.all('/mcp/:id', (c, next) => mcpHandlers.get(c.req.param('id'))?.fetch(c.req.raw) ?? next());
  app.all(
    '*',
    handle((request) => route(protocols, request)),
  );

  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false, // a few bytes of deflate unpack to gigabytes
    maxPayload: options.maxBodyBytes ?? 1024 * 1024,
  });
  const upgrade: UpgradeHandler = (path, request, socket, head) => {
    const [, id] = /^\/openenv\/([^/]+)\/ws$/.exec(path) ?? [];
    const protocol = openEnv.get(id ?? '');
    if (protocol) sockets.handleUpgrade(request, socket, head, (connection) => protocol.accept(connection));
    return protocol !== undefined;
  };
  // A session of OpenEnv is a connection.
  const maxSessions = worlds.length * (options.maxSessions ?? DEFAULT_SESSIONS);
  const maxConnections = options.maxConnections ?? maxSessions + FURTHER_CONNECTIONS;
  server = await listen(app, { ...options, maxConnections, upgrade });
  let cancel = () => {};
  const sweep = () => {
    for (const one of counted) expired += one.sweep(now());
    cancel = clock.setTimer(Math.min(SWEEP_MS, (options.idleMs ?? SWEEP_MS) / 2), sweep);
  };
  sweep();
  const listening = server;
  return {
    url: listening.url,
    ids,
    counts: listening.counts,
    unref: () => listening.unref(),
    get sessions() {
      return sessions();
    },
    close() {
      cancel();
      return listening.close();
    },
  };
}
