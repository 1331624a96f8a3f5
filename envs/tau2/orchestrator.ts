/**
 * Course of an episode: whose turn it is, what a message leads to, and when it ends. Half duplex: the agent and the user take turns;
 * a message with calls is followed by their results and by its author's next message.
 */
import type { AgentReply } from '../../src/core/agent-call.ts';
import type { CallResult, Environment, Side } from './environment.ts';
import type { Arguments } from './python/calls.ts';
import { parsePython } from './python/json.ts';
import type { PyValue } from './python/values.ts';
import type { TauTask } from './tasks.ts';

/** Text with which the agent opens a conversation. */
export const GREETING = 'Hi! How can I help you today?';
/** Tokens in a text of the user that end the episode. */
export const STOP = '###STOP###';
export const TRANSFER = '###TRANSFER###';
export const OUT_OF_SCOPE = '###OUT-OF-SCOPE###';

/** Call of a message. */
export interface MessageCall {
  readonly id: string;
  readonly name: string;
  readonly args: Arguments;
  /** Present where the arguments could not be read: what is wrong with them. Such a call fails. */
  readonly fault?: string | undefined;
}

/** Message of an episode; a text together with calls is shown to nobody. */
export interface Message {
  readonly role: Side | 'tool';
  readonly content: string;
  /** Empty in a text. */
  readonly calls: readonly MessageCall[];
  /** Call that a tool's result answers: its id, its caller, and whether it failed. */
  readonly answers?: { readonly id: string; readonly side: Side; readonly error: boolean } | undefined;
}

/** Reads a call of a policy or of a user's model; arguments that are no JSON of an object make it fail. */
export function readCall(id: string, { name, arguments: text }: AgentReply['calls'][number]): MessageCall {
  const none: Arguments = new Map();
  let value: PyValue;
  try {
    value = text.trim() === '' ? new Map() : parsePython(text);
  } catch (thrown) {
    return { id, name, args: none, fault: `the arguments of ${name} are no JSON: ${(thrown as Error).message}` };
  }
  if (value instanceof Map) return { id, name, args: value };
  return { id, name, args: none, fault: `the arguments of ${name} must be a JSON object` };
}

/** Reason why an episode ended. */
export type TerminationReason =
  | 'user_stop'
  | 'agent_stop'
  | 'max_steps'
  | 'too_many_errors'
  | 'agent_error'
  | 'user_error';

/** Limits of an episode. */
export interface Limits {
  /** Steps: messages and executions of calls. ≥ 1 */
  readonly maxSteps: number;
  /** Failing calls of both sides. ≥ 1 */
  readonly maxErrors: number;
  /** True where a message with a text and calls is an error of its author. */
  readonly validates: boolean;
  /** True where a text of the agent with `###STOP###` ends the episode. Without a user it always does. */
  readonly agentStops: boolean;
}

export const DEFAULT_LIMITS: Limits = { maxSteps: 200, maxErrors: 10, validates: false, agentStops: false };

/** Course of one episode. */
export class Orchestrator {
  readonly messages: Message[];
  readonly #environment: Environment;
  readonly #limits: Limits;
  readonly #isSolo: boolean;
  #next: Side | 'tools';
  #steps = 0;
  #errors = 0;
  #ending: TerminationReason | undefined;
  #isFirst: boolean;

  /** Begins an episode; calls of the task's history that change a database are made. */
  constructor(task: TauTask, environment: Environment, limits: Limits, isSolo: boolean) {
    this.#environment = environment;
    this.#limits = limits;
    this.#isSolo = isSolo;
    this.messages = readHistory(task);
    environment.replay(this.messages);
    const last = this.messages.at(-1);
    if (!last && !isSolo) this.messages.push({ role: 'assistant', content: GREETING, calls: [] });
    this.#next = isSolo ? 'assistant' : last ? nextAfter(last) : 'user';
    this.#isFirst = isSolo && !last;
  }

  /** Side whose turn it is; `tools` where calls are to be made. */
  get next(): Side | 'tools' {
    return this.#next;
  }

  get steps(): number {
    return this.#steps;
  }

  get errors(): number {
    return this.#errors;
  }

  /** Reason of the end; undefined while the episode goes on. */
  get ending(): TerminationReason | undefined {
    return this.#ending;
  }

  /**
   * Takes the message of the side whose turn it is.
   * @param content text; blanks count as none
   * @throws {RangeError} for a message without a text or a call
   */
  add(content: string, calls: readonly MessageCall[]): void {
    const role = this.#next;
    if (role === 'tools') throw new Error('calls are to be made before the next message');
    if (calls.length === 0 && content.trim() === '') throw new RangeError('a message needs a text or a call');
    this.messages.push({ role, content, calls });
    this.#next = calls.length > 0 ? 'tools' : this.#isSolo ? 'assistant' : role === 'user' ? 'assistant' : 'user';
    if (calls.length === 0 && this.#isStop(role, content)) this.#ending = role === 'user' ? 'user_stop' : 'agent_stop';
    else if (this.#isWrong(content, calls)) this.#ending = role === 'user' ? 'user_error' : 'agent_error';
    // The first message of an agent without a user belongs to the opening.
    if (!this.#isFirst) this.#steps++;
    this.#isFirst = false;
    this.#checkLimits();
  }

  /** Makes the calls of the last message. @returns their results, in order */
  execute(): readonly CallResult[] {
    const { role, calls } = this.messages.at(-1)!;
    if (this.#next !== 'tools' || role === 'tool') throw new Error('there is no call to make');
    const results = calls.map(({ name, args, fault }) => {
      return fault === undefined ? this.#environment.call(role, name, args) : { text: `Error: ${fault}`, error: true };
    });
    results.forEach(({ text, error }, i) => {
      if (error) this.#errors++;
      this.messages.push({ role: 'tool', content: text, calls: [], answers: { id: calls[i]!.id, side: role, error } });
    });
    this.#next = role;
    this.#steps++;
    this.#checkLimits();
    return results;
  }

  #isStop(role: Side, content: string): boolean {
    if (role === 'assistant') return (this.#isSolo || this.#limits.agentStops) && content.includes(STOP);
    return [STOP, TRANSFER, OUT_OF_SCOPE].some((token) => content.includes(token));
  }

  #isWrong(content: string, calls: readonly MessageCall[]): boolean {
    if (this.#isSolo) return calls.length === 0;
    return this.#limits.validates && calls.length > 0 && content.trim() !== '';
  }

  /** Limits count after each step but one that leaves calls to be made; they hold before any other reason. */
  #checkLimits(): void {
    if (this.#next === 'tools') return;
    if (this.#steps >= this.#limits.maxSteps) this.#ending = 'max_steps';
    if (this.#errors >= this.#limits.maxErrors) this.#ending = 'too_many_errors';
  }
}

function readHistory({ history }: TauTask): Message[] {
  const callers = new Map<string, Side>();
  return history.map(({ role, content, calls, callId }) => {
    if (role !== 'tool') for (const { id } of calls) callers.set(id, role);
    const id = callId ?? '';
    const answers = role === 'tool' ? { id, side: callers.get(id) ?? 'assistant', error: false } : undefined;
    return { role, content: content ?? '', calls, ...(answers ? { answers } : {}) };
  });
}

function nextAfter({ role, calls, answers }: Message): Side | 'tools' {
  if (role === 'tool') return answers!.side;
  if (calls.length > 0) return 'tools';
  return role === 'user' ? 'assistant' : 'user';
}
