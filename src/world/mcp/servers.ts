/** Servers of an env host: one an episode, or used ones that a reset brings back to their beginning. */
import type { Transport } from '@modelcontextprotocol/client';
import { messageOf, UserError } from '../../core/errors.ts';
import type { Tool } from '../../core/model-call.ts';
import type { Resources } from '../../core/world.ts';
import { readApiKey } from '../../http/api-key.ts';
import { fetchBounded } from './bounded-fetch.ts';
import type { ClientPackage } from './client-package.ts';
import { hashTools, McpConnection } from './connection.ts';
import { createEpisodeFolder, fillEpisodeFolder, removeEpisodeFolder } from './episode-folder.ts';
import { FOLDER, type McpOptions, type McpTask, nameOfServer, usesFolder } from './options.ts';
import { ServerProcess } from './server-process.ts';

/** Input of a module's `createServer`: the episode that the server is for. */
export interface ServerRequest {
  readonly task: McpTask;
  readonly index: number;
  /** uint32; whatever the server draws at random should follow from it. */
  readonly seed: number;
}

/** Server in memory: an `McpServer` of the official packages, of either generation, or anything that connects as it does. */
export interface MemoryServer {
  connect(transport: Transport): Promise<void>;
}

/** Maker of servers in memory, which a module exports. */
export type CreateServer = (request: ServerRequest) => MemoryServer | Promise<MemoryServer>;

/** Server with the folder that it works in. */
export interface McpServer {
  readonly connection: McpConnection;
  /** Path of its own folder; undefined where it has none. */
  readonly folder: string | undefined;
  /** Tools that the policy may call. */
  readonly offered: readonly Tool[];
  /** Digest of `offered`. */
  readonly hash: string;
}

/** Servers of one host. */
export class McpServers implements Resources {
  /** Digest of the tools that the first server offered. */
  readonly hash: string;
  readonly #options: McpOptions;
  readonly #client: ClientPackage;
  readonly #createInMemory: CreateServer | undefined;
  readonly #idle: McpServer[] = [];
  readonly #all = new Set<McpServer>();
  /** Servers that are being started. */
  #starting = 0;
  #isDisposed = false;

  private constructor(
    options: McpOptions,
    client: ClientPackage,
    createServer: CreateServer | undefined,
    hash: string,
  ) {
    this.#options = options;
    this.#client = client;
    this.#createInMemory = createServer;
    this.hash = hash;
  }

  /**
   * Starts a server to see that it can be, and what it offers.
   * @param first task that it is made for
   * @throws {UserError} BAD_CONFIG for a server that cannot be played
   */
  static async open(
    options: McpOptions,
    client: ClientPackage,
    createServer: CreateServer | undefined,
    first: ServerRequest,
  ): Promise<McpServers> {
    const probe = new McpServers(options, client, createServer, '');
    let server: McpServer;
    try {
      server = await probe.#start(first);
    } catch (thrown) {
      if (thrown instanceof UserError) throw thrown;
      throw new UserError('BAD_CONFIG', `mcp: ${nameOfServer(options)}: ${messageOf(thrown)}`, { cause: thrown });
    }
    const servers = new McpServers(options, client, createServer, server.hash);
    if (options.reset === 'restart') await probe.#end(server);
    else {
      servers.#all.add(server);
      servers.#idle.push(server);
    }
    return servers;
  }

  /** Takes a server at its beginning. @throws {Error} where it cannot be started, or its reset fails */
  async take(request: ServerRequest, signal: AbortSignal): Promise<McpServer> {
    const server = this.#idle.pop() ?? (await this.#startWithin(request));
    try {
      if (this.#isDisposed) throw new Error('the host ends');
      if (server.folder !== undefined) fillEpisodeFolder(server.folder, request.task);
      await this.#reset(server, request.task, signal);
      return server;
    } catch (thrown) {
      await this.#end(server);
      throw thrown;
    }
  }

  /** Gives a server back. @param isClean false where it may still be at work */
  async release(server: McpServer, isClean: boolean): Promise<void> {
    const isKept = isClean && this.#options.reset !== 'restart' && !server.connection.hasChanged && !this.#isDisposed;
    if (isKept) this.#idle.push(server);
    else await this.#end(server);
  }

  async dispose(): Promise<void> {
    this.#isDisposed = true;
    await Promise.all([...this.#all].map((server) => this.#end(server)));
  }

  /** Starts a server, unless there are as many as there may be. */
  async #startWithin(request: ServerRequest): Promise<McpServer> {
    const { command, maxServers } = this.#options;
    if (command && this.#all.size + this.#starting >= maxServers) {
      throw new Error(`${maxServers} servers run already: lower rollout.concurrentGroups, or raise maxServers`);
    }
    this.#starting++;
    try {
      return await this.#start(request);
    } finally {
      this.#starting--;
    }
  }

  async #reset({ connection }: McpServer, task: McpTask, signal: AbortSignal): Promise<void> {
    const { reset, startTimeoutMs } = this.#options;
    if (typeof reset === 'string') return;
    const output = await connection.call(
      reset.tool,
      { ...reset.arguments, ...task.reset },
      { timeoutMs: startTimeoutMs, signal },
    );
    if (output.isError) throw new Error(`the reset ${reset.tool} failed: ${output.text.slice(0, 300)}`);
  }

  async #start(request: ServerRequest): Promise<McpServer> {
    const folder = usesFolder(this.#options) ? createEpisodeFolder() : undefined;
    try {
      if (folder !== undefined) fillEpisodeFolder(folder, request.task);
      const { spec, startTimeoutMs: timeoutMs } = this.#options;
      const transport = () => this.#transport(folder, request);
      const connection = await McpConnection.open({ client: this.#client, transport, spec, timeoutMs });
      const server = await this.#offer(connection, folder);
      this.#all.add(server);
      return server;
    } catch (thrown) {
      if (folder !== undefined) removeEpisodeFolder(folder);
      throw thrown;
    }
  }

  /** Selects the tools that are offered. Closes the connection where it may not be played. */
  async #offer(connection: McpConnection, folder: string | undefined): Promise<McpServer> {
    const { tools: names, toolsHash } = this.#options;
    const listed = connection.tools;
    const missing = names?.find((name) => !listed.some((tool) => tool.name === name));
    const offered = names ? listed.filter(({ name }) => names.includes(name)) : listed;
    const hash = hashTools(offered);
    if (missing === undefined && (toolsHash === undefined || toolsHash === hash))
      return { connection, folder, offered, hash };
    await connection.close();
    throw missing === undefined
      ? new Error(`toolsHash: expected ${toolsHash}, the server offers tools with ${hash}`)
      : new Error(
          `tools: the server has no '${missing}'; it lists ${listed.map(({ name }) => name).join(', ') || 'none'}`,
        );
  }

  async #transport(folder: string | undefined, request: ServerRequest): Promise<Transport> {
    const { InMemoryTransport, StreamableHTTPClientTransport, parseJSONRPCMessage } = this.#client;
    const { command, cwd, url, env, variables, tokenEnv } = this.#options;
    if (this.#createInMemory) {
      const server = await this.#createInMemory(request);
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      server.connect(theirs).catch(() => ours.close());
      return ours;
    }
    if (url !== undefined) {
      const token = tokenEnv === undefined ? undefined : readApiKey(tokenEnv);
      if (tokenEnv !== undefined && !token) {
        throw new UserError('BAD_CONFIG', `mcp: tokenEnv: the environment variable ${tokenEnv} is not set`);
      }
      return new StreamableHTTPClientTransport(new URL(url), {
        fetch: fetchBounded,
        ...(token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
      });
    }
    const fill = (text: string) => (folder === undefined ? text : text.replaceAll(FOLDER, folder));
    const words = command!.map(fill);
    const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]));
    return new ServerProcess(
      { words, folder: cwd ?? folder ?? process.cwd(), env: filled, variables },
      parseJSONRPCMessage,
    );
  }

  async #end(server: McpServer): Promise<void> {
    if (!this.#all.delete(server)) return;
    const at = this.#idle.indexOf(server);
    if (at >= 0) this.#idle.splice(at, 1);
    await server.connection.close();
    if (server.folder !== undefined) removeEpisodeFolder(server.folder);
  }
}
