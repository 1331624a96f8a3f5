/**
 * Model Context Protocol for one world: an agent of somebody's (an IDE's, a hosted one) plays it by calling tools.
 *
 *     start    {task?, split?, seed?}   opens an episode: a task by its index, else one of the split, drawn by the seed
 *     act      {action}                 takes an action of a world of texts
 *     actions  {}                       lists the actions that are possible now
 *     reply    {text}                   replies in words, in a world of tools
 *     …        the tools of a world of tools, under their own names
 *
 * A result has the observation as its text, and `{episode, reward, done, success, turn}` as its structure. Over HTTP every call
 * but `start` names its episode by the handle that `start` gave (`episode`): a request has no session in the revision of
 * 2026-07-28, and none here in earlier ones. On standard input and output there is one client, whose newest episode is meant
 * where none is named, so a world's tools have the schemas that a policy in training sees.
 */
import { randomUUID } from 'node:crypto';
import type { CallToolResult, Tool as ListedTool, Server } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isAgentCall, NO_USAGE, printAgentReply, readAgentCall } from '../core/agent-call.ts';
import { messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { ConversationMessage, Tool } from '../core/model-call.ts';
import { Rng } from '../core/rng.ts';
import type { Task } from '../core/task.ts';
import { instructions } from '../text/prompts/conversation.ts';
import { FORMATS } from '../text/prompts/formats.ts';
import { DEFAULT_IDLE_MS, DEFAULT_SESSIONS, type SessionLimits } from './agentgym/sessions.ts';
import type { EpisodeAnswer, Episodes } from './episodes.ts';
import type { ServerPackage } from './mcp-package.ts';
import type { PromptedEnv } from './openenv-server.ts';

/** Names of the tools that every world has; a world's own tool of such a name is called `world_…`. */
const OWN = ['start', 'reply'] as const;

const startArguments = z.strictObject({
  task: z.int().min(0).optional(),
  split: z.enum(['train', 'test']).default('train'),
  seed: z.int().min(0).max(0xffffffff).optional(),
});
const handle = { episode: z.string().optional() };
const actArguments = z.strictObject({ action: z.string(), ...handle });
const actionsArguments = z.strictObject(handle);
const replyArguments = z.strictObject({ text: z.string(), ...handle });

/** Mistake of the client, as a result that reports it. */
class Refused extends Error {}

/** Episode that a client plays. */
interface PlayedEpisode {
  readonly handle: string;
  answer: EpisodeAnswer;
  /** True while a call of it is under way: calls of one episode come one after another. */
  isBusy: boolean;
  usedAt: number;
}

/** World of a server, and its instructions. */
type McpWorld = Pick<PromptedEnv, 'env' | 'prompt'>;

/** Client of one connection, or all clients of an HTTP server. */
export interface McpAudience {
  /** True where calls may leave the episode out: the newest one is meant. */
  readonly isOneClient: boolean;
}

/** Serves a world to clients of the protocol. */
export class McpProtocol {
  readonly #world: McpWorld;
  readonly #episodes: Episodes;
  readonly #limits: SessionLimits;
  readonly #now: () => number;
  readonly #audience: McpAudience;
  readonly #played = new Map<string, PlayedEpisode>();
  /** Starts without task and seed so far: they go through the split in order. */
  #unseeded = 0;
  #opening = 0;
  #newest: string | undefined;
  #tools: Promise<readonly Tool[]> | undefined;

  constructor(world: McpWorld, episodes: Episodes, limits: SessionLimits, now: () => number, audience: McpAudience) {
    this.#world = world;
    this.#episodes = episodes;
    this.#limits = limits;
    this.#now = now;
    this.#audience = audience;
  }

  /** Episodes that are open. */
  get count(): number {
    return this.#played.size;
  }

  /** Makes a server of the official package, for a connection or a request. */
  async createMcpServer({ Server }: ServerPackage): Promise<Server> {
    const { env } = this.#world;
    const server = new Server(
      { name: `longplay ${env.id}`, version: '1' },
      { capabilities: { tools: {} }, instructions: this.#instructions() },
    );
    const listed = await this.#listTools();
    server.setRequestHandler('tools/list', () => ({ tools: [...listed] }));
    server.setRequestHandler('tools/call', ({ params }) => this.call(params.name, params.arguments ?? {}));
    return server;
  }

  /** Calls a tool. A mistake of the client, and a world that breaks, are results with `isError`. */
  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<CallToolResult> {
    try {
      if (name === 'start') return await this.#start(read(startArguments, args));
      if (this.#world.prompt.tools) return await this.#callWorldTool(name, args);
      if (name === 'act') {
        const { action, episode } = read(actArguments, args);
        return await this.#step(episode, action);
      }
      if (name === 'actions') return this.#list(read(actionsArguments, args).episode);
      throw new Refused(`there is no tool '${name.slice(0, 100)}'`);
    } catch (thrown) {
      return { content: [{ type: 'text', text: messageOf(thrown) }], isError: true };
    }
  }

  /** Ends episodes that nobody has played for too long. @returns how many */
  sweep(now: number): number {
    let closed = 0;
    for (const episode of this.#played.values()) {
      if (episode.isBusy || now - episode.usedAt <= (this.#limits.idleMs ?? DEFAULT_IDLE_MS)) continue;
      this.#close(episode);
      closed++;
    }
    return closed;
  }

  /** Ends all episodes. */
  close(): void {
    for (const episode of this.#played.values()) this.#close(episode);
  }

  #instructions(): string {
    const { env, prompt } = this.#world;
    const how = prompt.tools
      ? 'Call start, then the tools of the world; reply speaks to its user, or gives the final answer.'
      : 'Call start, then act with one action at a time; actions lists what is possible now.';
    return `${prompt.tools ? env.description : instructions(prompt, FORMATS.action)}\n\n${how}`;
  }

  async #listTools(): Promise<readonly ListedTool[]> {
    const { env, prompt } = this.#world;
    const { isOneClient } = this.#audience;
    const range = { minimum: 0, maximum: env.tasks.count - 1 };
    const start = toolOf('start', 'Starts an episode, and gives its first observation.', {
      task: { type: 'integer', ...range, description: 'index of the task; without it one of the split is taken' },
      split: { enum: ['train', 'test'], default: 'train' },
      seed: { type: 'integer', minimum: 0, description: 'seed of what is drawn at random' },
    });
    if (!prompt.tools) {
      const act = { action: { type: 'string', description: 'text of the action' } };
      return [
        start,
        withHandle(toolOf('act', 'Takes an action, and gives the next observation.', act, ['action']), isOneClient),
        withHandle(toolOf('actions', 'Lists the actions that are possible now.', {}), isOneClient),
      ];
    }
    const text = { text: { type: 'string' } };
    const reply = toolOf('reply', 'Replies in words: to the user of the world, or as the final answer.', text, [
      'text',
    ]);
    const worldTools = (await this.#readTools()).map(({ name, description, parameters }) =>
      withHandle(
        {
          name: listedName(name),
          ...(description === undefined ? {} : { description }),
          inputSchema: { ...parameters, type: 'object' } as ListedTool['inputSchema'],
        },
        isOneClient,
      ),
    );
    return [start, withHandle(reply, isOneClient), ...worldTools];
  }

  /** Tools of a world of tools: those of an episode of its first task. */
  #readTools(): Promise<readonly Tool[]> {
    this.#tools ??= this.#probe();
    this.#tools.catch(() => {
      this.#tools = undefined; // tried again by the next client
    });
    return this.#tools;
  }

  async #probe(): Promise<readonly Tool[]> {
    const { env } = this.#world;
    const index = env.tasks.split('train')[0] ?? 0;
    const { episode, step } = await this.#episodes.open({ env: env.id, index, seed: 0 }, { listActions: false });
    this.#episodes.close(episode);
    return readAgentCall(step.observation).tools ?? [];
  }

  async #start(args: z.infer<typeof startArguments>): Promise<CallToolResult> {
    const task = this.#taskOf(args);
    const { maxSessions = DEFAULT_SESSIONS } = this.#limits;
    const before = this.#audience.isOneClient ? this.#played.get(this.#newest ?? '') : undefined;
    if (before) this.#close(before);
    if (this.#played.size + this.#opening >= maxSessions) {
      // Nobody has to close an episode that has ended: the oldest of those makes room.
      const ended = [...this.#played.values()].find(({ answer }) => answer.step.kind === 'terminated');
      if (!ended) throw new Refused('this server holds as many episodes as it may');
      this.#close(ended);
    }
    this.#opening++;
    try {
      const answer = await this.#episodes.open(task, { listActions: !this.#world.prompt.tools });
      const episode = { handle: randomUUID(), answer, isBusy: false, usedAt: this.#now() };
      this.#played.set(episode.handle, episode);
      this.#newest = episode.handle;
      return this.#resultOf(episode);
    } finally {
      this.#opening--;
    }
  }

  #taskOf({ task: index, split, seed }: z.infer<typeof startArguments>): Task {
    const { env } = this.#world;
    const { count } = env.tasks;
    if (index !== undefined) {
      if (index < count) return { env: env.id, index, seed: seed ?? 0 };
      throw new Refused(`task: expected 0 to ${count - 1}, got ${index}`);
    }
    const indices = env.tasks.split(split);
    if (indices.length === 0) throw new Refused(`split: the world has no tasks in '${split}'`);
    const at = seed === undefined ? this.#unseeded++ % indices.length : Rng.fromSeed(seed).int(indices.length);
    return { env: env.id, index: indices[at]!, seed: seed ?? 0 };
  }

  async #callWorldTool(name: string, given: Readonly<Record<string, unknown>>): Promise<CallToolResult> {
    // With one client the schemas are the world's own: `episode` is an argument like any other there.
    const { episode, ...others } = given;
    if (this.#audience.isOneClient && name !== 'reply') return this.#callTool(undefined, name, given);
    if (episode !== undefined && typeof episode !== 'string')
      throw new Refused('episode: expected the text that start gave');
    if (name === 'reply') {
      const { text } = read(replyArguments, others);
      return this.#step(episode, printAgentReply({ content: text, calls: [], finish: 'stop', usage: NO_USAGE }));
    }
    return this.#callTool(episode, name, others);
  }

  #callTool(
    handle: string | undefined,
    name: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const calls = [{ name: worldName(name), arguments: JSON.stringify(args) }];
    return this.#step(handle, printAgentReply({ content: '', calls, finish: 'calls', usage: NO_USAGE }));
  }

  async #step(handle: string | undefined, action: string): Promise<CallToolResult> {
    const episode = this.#find(handle);
    const { answer } = episode;
    if (answer.step.kind === 'terminated') throw new Refused('the episode has ended: call start');
    if (episode.isBusy) throw new Refused('another call of this episode is under way: wait for its result');
    episode.isBusy = true;
    try {
      episode.answer = await this.#episodes.step(answer.episode, answer.turn + 1, action);
      return this.#resultOf(episode);
    } catch (thrown) {
      this.#close(episode);
      throw new Refused(`the episode broke, call start: ${messageOf(thrown)}`);
    } finally {
      episode.isBusy = false;
      episode.usedAt = this.#now();
    }
  }

  #list(handle: string | undefined): CallToolResult {
    const episode = this.#find(handle);
    const { actions } = episode.answer;
    episode.usedAt = this.#now();
    const text = actions.length > 0 ? actions.join('\n') : 'none are listed';
    return { content: [{ type: 'text', text }], structuredContent: { actions: [...actions] } };
  }

  #find(handle: string | undefined): PlayedEpisode {
    const named = handle ?? (this.#audience.isOneClient ? this.#newest : undefined);
    if (named === undefined && this.#audience.isOneClient) throw new Refused('no episode has been started: call start');
    if (named === undefined) throw new Refused('episode: expected the text that start gave, got nothing');
    const found = this.#played.get(named);
    if (!found) throw new Refused('there is no such episode any more: call start');
    return found;
  }

  #resultOf({ handle, answer: { step, turn } }: PlayedEpisode): CallToolResult {
    const { text, isError } = this.#world.prompt.tools ? textOfCalls(step.observation) : { text: step.observation };
    const isPartial = step.kind === 'mid' && step.partial === true;
    return {
      content: [
        {
          type: 'text',
          text: isPartial && text === '' ? 'Taken as a part of an action: actions lists what may follow.' : text,
        },
      ],
      structuredContent: {
        episode: handle,
        reward: step.kind === 'first' ? 0 : step.reward,
        done: step.kind === 'terminated',
        success: step.kind === 'terminated' ? step.success : null,
        turn,
        ...(isPartial ? { partial: true } : {}),
      },
      ...(isError ? { isError } : {}),
    };
  }

  #close(episode: PlayedEpisode): void {
    this.#played.delete(episode.handle);
    this.#episodes.close(episode.answer.episode);
  }
}

/** Observation of a world of tools as text: what the tools gave, and what the user says. */
function textOfCalls(observation: string): { readonly text: string; readonly isError?: true } {
  const messages = readMessages(observation);
  const text = messages
    .map(({ content }) => content)
    .filter((content) => content !== '')
    .join('\n\n');
  const isError = messages.some((message) => message.role === 'tool' && message.isError === true);
  return { text, ...(isError ? { isError } : {}) };
}

/** Messages of a call; those of an outcome where the episode is over. */
function readMessages(observation: string): readonly ConversationMessage[] {
  if (isAgentCall(observation)) return readAgentCall(observation).messages;
  const { messages = [] } = observation === '' ? {} : (parseJson(observation) as { messages?: ConversationMessage[] });
  return messages;
}

function toolOf(
  name: string,
  description: string,
  properties: Record<string, object>,
  required: string[] = [],
): ListedTool {
  return { name, description, inputSchema: { type: 'object', properties, required } as ListedTool['inputSchema'] };
}

/** Tool with the episode among its arguments, where clients share the server. */
function withHandle(tool: ListedTool, isOneClient: boolean): ListedTool {
  if (isOneClient) return tool;
  const { properties = {}, required = [] } = tool.inputSchema;
  const episode = { type: 'string', description: 'episode, as start gave it' };
  return {
    ...tool,
    inputSchema: { ...tool.inputSchema, properties: { ...properties, episode }, required: [...required, 'episode'] },
  };
}

function listedName(name: string): string {
  return (OWN as readonly string[]).includes(name) ? `world_${name}` : name;
}

function worldName(listed: string): string {
  const name = listed.replace(/^world_/, '');
  return (OWN as readonly string[]).includes(name) ? name : listed;
}

function read<T>(schema: z.ZodType<T>, args: unknown): T {
  const result = schema.safeParse(args);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new Refused(`${path.join('.') || 'arguments'}: ${message}`);
}
