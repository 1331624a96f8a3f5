/** Connection to an MCP server: its tools as they were listed, and calls of them. The official client speaks the protocol. */
import { createHash } from 'node:crypto';
import type { CallToolResult, Client, Transport, VersionNegotiationMode } from '@modelcontextprotocol/client';
import { messageOf } from '../../core/errors.ts';
import { firstLineOf } from '../../core/first-line.ts';
import type { Tool } from '../../core/model-call.ts';
import { RemoteError } from '../../http/retry.ts';
import type { ClientPackage } from './client-package.ts';
import { ServerProcess } from './server-process.ts';

/** Output of a call. */
export interface ToolOutput {
  /** Parts of text, one a line; a part of another kind is named in brackets. */
  readonly text: string;
  /** Structured content, where the tool gives some. */
  readonly structured?: unknown;
  /** True where the tool failed. */
  readonly isError: boolean;
  /** True where no result came in time; `isError` too then. */
  readonly isLate?: true;
}

/** Limits of a call. */
export interface CallLimits {
  readonly timeoutMs: number;
  /** Cancels the call. */
  readonly signal: AbortSignal;
}

/** Settings of a connection. */
export interface ConnectionOptions {
  readonly client: ClientPackage;
  /** Makes the transport, anew for each generation that is tried. */
  readonly transport: () => Transport | Promise<Transport>;
  /** Generation; without one `legacy` is tried, then `auto`. */
  readonly spec: string | undefined;
  /** Milliseconds until the tools are listed. */
  readonly timeoutMs: number;
}

/** Most tools that are listed, and the UTF-16 units of their JSON. */
const MAX_TOOLS = 1024;
const MAX_TOOLS_CHARS = 2 ** 20;

/** Server that cannot go on, or was never there. Its episode fails; that is no reward. */
export class ServerGone extends Error {}

/** Open connection. */
export class McpConnection {
  /** Tools, in the server's order, as they were when the connection was opened. */
  readonly tools: readonly Tool[];
  /** Instructions of the server for models; empty where it has none. */
  readonly instructions: string;
  readonly #package: ClientPackage;
  readonly #client: Client;
  readonly #transport: Transport;
  #hasChanged = false;
  #isBusy = false;

  private constructor({ client }: ConnectionOptions, peer: Client, transport: Transport, tools: readonly Tool[]) {
    this.#package = client;
    this.#client = peer;
    this.#transport = transport;
    this.tools = tools;
    this.instructions = peer.getInstructions() ?? '';
    peer.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#hasChanged = true;
    });
  }

  /** Connects and lists the tools. @throws {Error} naming why not; nothing is left open then */
  static async open(options: ConnectionOptions): Promise<McpConnection> {
    const { spec } = options;
    if (spec !== undefined) return McpConnection.#connect(options, spec);
    try {
      return await McpConnection.#connect(options, 'legacy');
    } catch (thrown) {
      if (!isAnswered(thrown)) throw thrown;
      return await McpConnection.#connect(options, 'auto').catch(() => Promise.reject(thrown));
    }
  }

  static async #connect(options: ConnectionOptions, spec: string): Promise<McpConnection> {
    const {
      client: { Client },
      timeoutMs,
    } = options;
    const transport = await options.transport();
    const mode: VersionNegotiationMode = spec === 'legacy' || spec === 'auto' ? spec : { pin: spec };
    const peer = new Client(
      { name: 'longplay', version: '1' },
      // No capabilities: requests for samples, roots and answers of a user are refused.
      { capabilities: {}, versionNegotiation: { mode, probe: { timeoutMs: Math.max(1, Math.floor(timeoutMs / 4)) } } },
    );
    const limits = { timeout: timeoutMs, maxTotalTimeout: timeoutMs };
    try {
      await peer.connect(transport, limits);
      const { tools } = await peer.listTools({}, limits);
      return new McpConnection(options, peer, transport, readTools(tools));
    } catch (thrown) {
      const end = endOf(transport);
      await endSession(transport);
      await peer.close().catch(() => {});
      await transport.close().catch(() => {});
      if (end !== undefined) throw new ServerGone(end, { cause: thrown });
      throw isAnswered(thrown) || thrown instanceof ServerGone ? thrown : lostServer(transport, thrown);
    }
  }

  /** True once the server has reported another list of tools. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** True where a call has been given up: the server may still be at work. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * Calls a tool. A call that the server refuses, or does not answer in time, has an output with `isError`.
   * @throws {ServerGone} where the connection has ended, or the call was cancelled
   * @throws {RemoteError} where a server by HTTP does not answer any more
   */
  async call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    { timeoutMs, signal }: CallLimits,
  ): Promise<ToolOutput> {
    try {
      const options = { timeout: timeoutMs, maxTotalTimeout: timeoutMs, signal };
      return outputOf(await this.#client.callTool({ name, arguments: { ...args } }, options));
    } catch (thrown) {
      return this.#answerError(thrown, timeoutMs, signal);
    }
  }

  /** Ends the session and the server that it has started. Never throws. */
  async close(): Promise<void> {
    await endSession(this.#transport);
    await this.#client.close().catch(() => {});
    await this.#transport.close().catch(() => {});
  }

  #answerError(thrown: unknown, timeoutMs: number, signal: AbortSignal): ToolOutput {
    const { ProtocolError, SdkError, SdkErrorCode } = this.#package;
    if (signal.aborted) {
      this.#isBusy = true;
      throw new ServerGone('the episode was closed during a call');
    }
    const end = endOf(this.#transport);
    if (end !== undefined) throw new ServerGone(end);
    if (thrown instanceof ProtocolError) return { text: `Error: ${messageOf(thrown)}`, isError: true };
    if (thrown instanceof SdkError) {
      switch (thrown.code) {
        case SdkErrorCode.RequestTimeout:
          this.#isBusy = true;
          return { text: `Error: no result within ${timeoutMs} ms`, isError: true, isLate: true };
        case SdkErrorCode.InvalidResult:
        case SdkErrorCode.UnsupportedResultType:
        case SdkErrorCode.CapabilityNotSupported:
        case SdkErrorCode.InputRequiredRoundsExceeded:
          return { text: `Error: ${messageOf(thrown)}`, isError: true };
      }
    }
    throw lostServer(this.#transport, thrown);
  }
}

/** True for an error that the server has answered with: another generation of the protocol may do better. */
function isAnswered(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || thrown instanceof ServerGone) return false;
  if ('code' in thrown && thrown.code === 'ERA_NEGOTIATION_FAILED') return true;
  return thrown.name === 'ProtocolError' || thrown.name === 'UnsupportedProtocolVersionError' || 'status' in thrown;
}

/** Description of how the process of a server ended; undefined where it runs, or is none. */
function endOf(transport: Transport): string | undefined {
  if (!(transport instanceof ServerProcess) || transport.end === undefined) return undefined;
  const last = transport.stderr.trim().split('\n').at(-1) ?? '';
  return `the server ${transport.end}${last === '' ? '' : `: ${last}`}`;
}

/** Error of a connection that is lost; of one by HTTP, as one of a server that cannot be reached. */
function lostServer(transport: Transport, thrown: unknown): Error {
  const message = `the MCP server does not answer: ${describeError(thrown)}`;
  return isHttp(transport) ? new RemoteError('network', message) : new ServerGone(message, { cause: thrown });
}

function isHttp(transport: Transport): transport is Transport & { terminateSession(): Promise<void> } {
  return 'terminateSession' in transport && typeof transport.terminateSession === 'function';
}

/** Message of an error with that of its cause, as `fetch` hides it. */
function describeError(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return firstLineOf(cause === undefined ? messageOf(thrown) : `${messageOf(thrown)} (${messageOf(cause)})`);
}

/** Ends a session by HTTP, so that the server need not keep it. */
async function endSession(transport: Transport): Promise<void> {
  if (!isHttp(transport)) return;
  const ending = transport.terminateSession().catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([ending, new Promise((resolve) => (timer = setTimeout(resolve, END_MS)))]);
  clearTimeout(timer);
}

/** Milliseconds that a server has to end a session by HTTP. */
const END_MS = 1000;

/** Tools as a policy gets them. @throws {ServerGone} for a list that is too long, or that has a name twice */
function readTools(
  listed: readonly { name: string; description?: string | undefined; inputSchema: Record<string, unknown> }[],
): readonly Tool[] {
  if (listed.length > MAX_TOOLS)
    throw new ServerGone(`the server lists ${listed.length} tools, more than ${MAX_TOOLS}`);
  const tools = listed.map(({ name, description, inputSchema }) => ({
    name: name.toWellFormed(),
    ...(description === undefined ? {} : { description: description.toWellFormed() }),
    parameters: inputSchema,
  }));
  const twice = tools.find(({ name }, i) => tools.findIndex((one) => one.name === name) !== i);
  if (twice) throw new ServerGone(`the server lists the tool ${twice.name} twice`);
  const chars = JSON.stringify(tools).length;
  if (chars > MAX_TOOLS_CHARS)
    throw new ServerGone(`the server's list of tools has ${chars} characters, more than ${MAX_TOOLS_CHARS}`);
  return tools;
}

/** Digest of a list of tools: 16 hexadecimal digits. */
export function hashTools(tools: readonly Tool[]): string {
  return createHash('sha256').update(JSON.stringify(tools)).digest('hex').slice(0, 16);
}

function outputOf({ content, structuredContent, isError }: CallToolResult): ToolOutput {
  const parts = content.map((part) => {
    switch (part.type) {
      case 'text':
        return part.text;
      case 'image':
      case 'audio':
        return `[${part.type} ${part.mimeType}]`;
      case 'resource':
        return 'text' in part.resource ? part.resource.text : `[resource ${part.resource.uri}]`;
      case 'resource_link':
        return `[resource ${part.uri}]`;
      default:
        return '';
    }
  });
  const text =
    parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : parts.join('\n');
  return {
    text: text.toWellFormed(),
    ...(structuredContent === undefined ? {} : { structured: structuredContent }),
    isError: isError === true,
  };
}
