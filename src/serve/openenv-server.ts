/**
 * OpenEnv's protocol for one world (huggingface/OpenEnv, `env_server`): a WebSocket a session at `…/ws`, beside
 * `…/health`, `…/metadata` and `…/schema`. A client sends `{type: reset | step | state | close, data}` and receives
 * `{type: observation | state | error, data}`.
 *
 *     reset        {index?, split?, seed?, episode_id?}   a task by its index, else one of the split, drawn by the seed
 *     step         {action}                               the action's text
 *     observation  {observation: {text, actions, turn, success, metadata}, reward, done}
 *     error        {message, code, metadata?}
 *
 * What OpenEnv has no field for lies under `metadata.longplay` (`src/world/remote/openenv-facts.ts`):
 *
 *     /metadata    task table, bounds, replay, prompt
 *     observation  `partial`: true for a stage of an action (`Mid.partial`)
 *     error        `cause`: how an environment broke (`core/failure.ts`); the episode is over
 *
 * A world of tools takes OpenEnv's actions of tools too (openenv-tools.ts), and `metadata.longplay.messages` of its observations
 * has what is new of the conversation.
 *
 * Differences from the original: its stateless `POST /reset` and `POST /step` (an environment for each request) are not
 * served; idle sessions end after `idleMs`, where the original keeps them by default.
 */
import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import { z } from 'zod';
import { readAgentCall } from '../core/agent-call.ts';
import type { Env } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { Tool } from '../core/model-call.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import { Rng } from '../core/rng.ts';
import type { Task } from '../core/task.ts';
import { type HttpAnswer, type HttpRequest, json } from '../http/app.ts';
import { SEND_MS } from '../http/server.ts';
import { instructions } from '../text/prompts/conversation.ts';
import { FORMATS } from '../text/prompts/formats.ts';
import { type WorldFacts, worldFacts } from '../world/remote/openenv-facts.ts';
import { DEFAULT_IDLE_MS, DEFAULT_SESSIONS, type SessionLimits } from './agentgym/sessions.ts';
import { type EpisodeAnswer, EpisodeFailed, type Episodes } from './episodes.ts';
import {
  type CallToolAction,
  callToolFields,
  listToolsData,
  messagesOf,
  printCall,
  toolAction,
  toolActionSchema,
} from './openenv-tools.ts';
import { problem } from './problem.ts';

/** Messages that a client may send ahead of their answers. */
const MAX_AHEAD = 64;
/** Bytes of such messages from which on no more are read. */
const MAX_AHEAD_BYTES = 2 ** 20;

const seeds = z.int().min(0).max(0xffffffff);
const resetData = z.object({
  index: z.int().min(0).optional(),
  split: z.enum(['train', 'test']).default('train'),
  seed: seeds.nullish(),
  episode_id: z.string().max(255).nullish(),
});
const stepData = z.strictObject({ action: z.string(), metadata: z.record(z.string(), z.unknown()).optional() });
const message = z.object({
  type: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
});

const action = {
  type: 'object',
  properties: { action: { type: 'string', description: 'text of the action' }, metadata: { type: 'object' } },
  required: ['action'],
  additionalProperties: false,
};
const observation = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    actions: { type: 'array', items: { type: 'string' }, description: 'actions possible now' },
    turn: { type: 'integer', minimum: 0 },
    success: { type: ['boolean', 'null'], description: 'whether the task was solved; null before the end' },
    metadata: { type: 'object' },
  },
  required: ['text', 'actions', 'turn', 'success', 'metadata'],
};
const state = {
  type: 'object',
  properties: {
    episode_id: { type: ['string', 'null'] },
    step_count: { type: 'integer', minimum: 0 },
    env: { type: 'string' },
    index: { type: ['integer', 'null'] },
    label: { type: ['string', 'null'] },
    seed: { type: ['integer', 'null'] },
  },
};

type ErrorCode = 'INVALID_JSON' | 'UNKNOWN_TYPE' | 'VALIDATION_ERROR' | 'EXECUTION_ERROR' | 'CAPACITY_REACHED';

class Refused extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}

export interface OpenEnvLimits extends SessionLimits {
  /** Milliseconds in which a client may take nothing of an answer. Default 30000. */
  readonly sendMs?: number;
}

/** World and its prompt for language models. */
export interface PromptedEnv {
  readonly env: Env;
  readonly prompt: WorldPrompt;
  /** True for a world of tools. */
  readonly isOfTools: boolean;
}

export class OpenEnvProtocol {
  readonly #world: PromptedEnv;
  readonly #episodes: Episodes;
  readonly #limits: OpenEnvLimits;
  readonly #now: () => number;
  readonly #sessions = new Set<Session>();
  /** Resets without index and seed so far: they go through the split in order. */
  #unseeded = 0;
  #facts: WorldFacts | undefined;
  /** Tools of the first task, for clients that list them before a reset. */
  #tools: Promise<readonly Tool[]> | undefined;

  constructor(world: PromptedEnv, episodes: Episodes, limits: OpenEnvLimits, now: () => number) {
    this.#world = world;
    this.#episodes = episodes;
    this.#limits = limits;
    this.#now = now;
  }

  /** True for a world of tools. */
  get isOfTools(): boolean {
    return this.#world.isOfTools;
  }

  /** Connections open. */
  get count(): number {
    return this.#sessions.size;
  }

  /** @param path behind the world's name: `/health`, `/metadata`, `/schema` */
  handle(path: string, { method }: HttpRequest): HttpAnswer {
    const { env, prompt, isOfTools } = this.#world;
    if (path === '/ws') return problem(426, 'UPGRADE_REQUIRED', 'sessions are WebSockets: connect with ws:// here');
    if (method !== 'GET') return problem(405, 'METHOD_NOT_ALLOWED', `expected GET, got ${method}`);
    if (path === '/health') return json({ status: this.#episodes.healthy ? 'healthy' : 'unhealthy' });
    if (path === '/schema') return json({ action: isOfTools ? toolActionSchema : action, observation, state });
    if (path === '/metadata') {
      const unknown = { version: null, author: null, documentation_url: null };
      const readme = instructions(prompt, FORMATS.action);
      this.#facts ??= worldFacts(env, prompt, isOfTools);
      return json({
        ...{ name: env.id, description: env.description, readme_content: readme, ...unknown },
        metadata: { longplay: this.#facts },
      });
    }
    return problem(404, 'NOT_FOUND', `nothing at ${path}; there are /ws, /health, /metadata and /schema`);
  }

  /** Serves a connection until it closes. */
  accept(socket: WebSocket): void {
    if (this.#sessions.size >= (this.#limits.maxSessions ?? DEFAULT_SESSIONS)) {
      const full = new Refused('CAPACITY_REACHED', 'this server holds as many sessions as it may');
      void send(socket, errorOf(full), this.#sendMs);
      socket.close(1013);
      return;
    }
    const { env, isOfTools } = this.#world;
    const world: SessionWorld = {
      env,
      taskOf: (data) => this.#task(data),
      listTools: isOfTools ? () => this.#listTools() : undefined,
    };
    const session = new Session(socket, world, this.#episodes, this.#now, this.#sendMs);
    this.#sessions.add(session);
    socket.once('close', () => this.#end(session));
  }

  #end(session: Session): void {
    this.#sessions.delete(session);
    session.end();
  }

  get #sendMs(): number {
    return this.#limits.sendMs ?? SEND_MS;
  }

  /** Ends sessions without a message for too long, whether or not the client answers the close. @returns how many */
  sweep(now: number): number {
    let closed = 0;
    for (const session of this.#sessions) {
      if (session.busy || now - session.usedAt <= (this.#limits.idleMs ?? DEFAULT_IDLE_MS)) continue;
      session.socket.close(1001, 'idle');
      this.#end(session);
      closed++;
    }
    return closed;
  }

  /** Lists the tools of the first task. */
  #listTools(): Promise<readonly Tool[]> {
    this.#tools ??= this.#readTools().catch((thrown: unknown) => {
      this.#tools = undefined;
      throw thrown;
    });
    return this.#tools;
  }

  async #readTools(): Promise<readonly Tool[]> {
    const { env } = this.#world;
    const index = env.tasks.split('train')[0] ?? 0;
    const { episode, step } = await this.#episodes.open({ env: env.id, index, seed: 0 }, { listActions: false });
    this.#episodes.close(episode);
    return readAgentCall(step.observation).tools ?? [];
  }

  #task({ index, split, seed }: z.infer<typeof resetData>): Task {
    const { env } = this.#world;
    if (index !== undefined) {
      if (index < env.tasks.count) return { env: env.id, index, seed: seed ?? 0 };
      throw new Refused('VALIDATION_ERROR', `index: ${env.id} has tasks 0 … ${env.tasks.count - 1}, got ${index}`);
    }
    const indices = env.tasks.split(split);
    if (indices.length === 0) throw new Refused('VALIDATION_ERROR', `split: ${env.id} has no tasks in '${split}'`);
    const at = typeof seed === 'number' ? Rng.fromSeed(seed).int(indices.length) : this.#unseeded++ % indices.length;
    return { env: env.id, index: indices[at]!, seed: seed ?? 0 };
  }
}

/** World as a session plays it. */
interface SessionWorld {
  readonly env: Env;
  taskOf(data: z.infer<typeof resetData>): Task;
  /** Lists the tools of a task; absent where the world is none of tools. */
  readonly listTools: (() => Promise<readonly Tool[]>) | undefined;
}

/** A connection and the episode that it plays. Messages are answered one after the other, in order. */
class Session {
  readonly socket: WebSocket;
  readonly #world: SessionWorld;
  readonly #episodes: Episodes;
  readonly #now: () => number;
  readonly #sendMs: number;
  #last: Promise<void> = Promise.resolve();
  #ahead = 0;
  /** Bytes of the messages that are not answered yet. */
  #aheadBytes = 0;
  #over = false;
  #id: string | undefined;
  #task: Task | undefined;
  #answer: EpisodeAnswer | undefined;
  /** Tools of the episode. */
  #tools: readonly Tool[] | undefined;
  usedAt: number;

  constructor(socket: WebSocket, world: SessionWorld, episodes: Episodes, now: () => number, sendMs: number) {
    this.socket = socket;
    this.#world = world;
    this.#episodes = episodes;
    this.#now = now;
    this.#sendMs = sendMs;
    this.usedAt = now();
    socket.on('message', (raw) => this.#receive(raw));
    socket.on('error', () => socket.terminate()); // not WebSocket, or too long: the library reports which to the client
  }

  /** True while a message is being answered. */
  get busy(): boolean {
    return this.#ahead > 0;
  }

  /** Gives the episode up. */
  end(): void {
    this.#over = true;
    if (this.#answer) this.#episodes.close(this.#answer.episode);
    this.#answer = undefined;
  }

  #receive(raw: RawData): void {
    if (this.#ahead >= MAX_AHEAD) {
      this.socket.close(1008, `at most ${MAX_AHEAD} messages ahead of their answers`);
      return;
    }
    const text = raw.toString();
    this.#ahead++;
    this.#aheadBytes += text.length;
    if (this.#aheadBytes > MAX_AHEAD_BYTES) this.socket.pause();
    this.usedAt = this.#now();
    this.#last = this.#last.then(async () => {
      try {
        // Nothing is done for a client that has gone meanwhile.
        const answer = this.socket.readyState === this.socket.OPEN ? await this.#handle(text) : undefined;
        if (answer) await send(this.socket, answer, this.#sendMs);
      } catch (thrown) {
        await send(this.socket, errorOf(thrown), this.#sendMs);
      }
      this.#ahead--;
      this.#aheadBytes -= text.length;
      if (this.#aheadBytes <= MAX_AHEAD_BYTES) this.socket.resume();
      this.usedAt = this.#now();
    });
  }

  async #handle(text: string): Promise<object | undefined> {
    const { type, data = {} } = readMessage(text);
    switch (type) {
      case 'reset':
        return { type: 'observation', data: await this.#reset(read(resetData, data)) };
      case 'step':
        return { type: 'observation', data: await this.#take(data) };
      case 'state':
        return { type: 'state', data: this.#state() };
      case 'close':
        this.socket.close(1000);
        return undefined;
      default:
        throw new Refused('UNKNOWN_TYPE', `type: expected reset, step, state or close, got '${type.slice(0, 100)}'`);
    }
  }

  async #reset(data: z.infer<typeof resetData>): Promise<object> {
    const task = this.#world.taskOf(data);
    if (this.#answer) this.#episodes.close(this.#answer.episode);
    this.#answer = undefined;
    const answer = await this.#episodes.open(task, { listActions: true });
    if (this.#over) {
      this.#episodes.close(answer.episode); // the client left meanwhile
      return {};
    }
    this.#id = data.episode_id ?? randomUUID();
    this.#task = task;
    this.#answer = answer;
    this.#tools = this.#world.listTools && readAgentCall(answer.step.observation).tools;
    return this.#observe(answer);
  }

  /** Takes an action: a text, or one of tools. */
  async #take(data: Readonly<Record<string, unknown>>): Promise<object> {
    const { listTools } = this.#world;
    if (data.type === undefined) return this.#observe(await this.#step(read(stepData, data).action));
    if (!listTools) {
      throw new Refused('VALIDATION_ERROR', `type: ${this.#world.env.id} has no tools; send {action: a text}`);
    }
    const asked = read(toolAction, data);
    if (asked.type === 'list_tools') return listToolsData(this.#tools ?? (await listTools()));
    return this.#observe(await this.#step(printCall(asked)), asked);
  }

  /** Data of an observation. @param call the call of a tool that it answers */
  #observe(answer: EpisodeAnswer, call?: CallToolAction): object {
    const { observation, ...rest } = observationData(answer);
    if (!this.#world.listTools) return { observation, ...rest };
    const messages = messagesOf(answer.step.observation);
    const longplay = { ...observation.metadata.longplay, messages };
    const fields = call ? callToolFields(call, messages, this.#tools ?? []) : {};
    return { observation: { ...observation, ...fields, metadata: { longplay } }, ...rest };
  }

  async #step(text: string): Promise<EpisodeAnswer> {
    const before = this.#answer;
    if (!before) throw new Refused('EXECUTION_ERROR', 'no episode here: send a reset first');
    if (before.step.kind === 'terminated') throw new Refused('EXECUTION_ERROR', 'the episode has ended: send a reset');
    this.#answer = undefined; // where the environment breaks, the episode is gone
    const answer = await this.#episodes.step(before.episode, before.turn + 1, text);
    if (this.#over) this.#episodes.close(answer.episode);
    else this.#answer = answer;
    return answer;
  }

  #state(): object {
    const { index, seed } = this.#task ?? {};
    const { env } = this.#world;
    return {
      episode_id: this.#id ?? null,
      step_count: this.#answer?.turn ?? 0,
      env: env.id,
      index: index ?? null,
      label: index === undefined ? null : env.tasks.label(index),
      seed: seed ?? null,
    };
  }
}

function observationData({ turn, step, actions }: EpisodeAnswer) {
  const success = step.kind === 'terminated' ? step.success : null;
  const partial = step.kind === 'mid' && step.partial === true;
  return {
    observation: { text: step.observation, actions, turn, success, metadata: { longplay: { partial } } },
    reward: step.kind === 'first' ? null : step.reward,
    done: step.kind === 'terminated',
  };
}

function readMessage(text: string): z.infer<typeof message> {
  let raw: unknown;
  try {
    raw = parseJson(text);
  } catch (thrown) {
    throw new Refused('INVALID_JSON', `the message is not JSON: ${messageOf(thrown)}`);
  }
  return read(message, raw);
}

function read<T>(schema: z.ZodType<T>, raw: unknown): T {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const { path, message: text } = result.error.issues[0]!;
  throw new Refused('VALIDATION_ERROR', `${path.join('.') || 'message'}: ${text}`);
}

function errorOf(thrown: unknown): object {
  const code: ErrorCode = thrown instanceof Refused ? thrown.code : 'EXECUTION_ERROR';
  const cause = thrown instanceof EpisodeFailed ? { metadata: { longplay: { cause: thrown.failure.cause } } } : {};
  return { type: 'error', data: { message: messageOf(thrown), code, ...cause } };
}

/**
 * Sends a message, and resolves when it has left: a client that reads nothing is answered no further message, and after
 * a while its connection ends.
 */
function send(socket: WebSocket, value: object, sendMs: number): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(() => socket.terminate(), sendMs);
    socket.send(JSON.stringify(value), () => {
      clearTimeout(late);
      resolve();
    });
  });
}
