/** Episode of a task: the request, the answers to its calls, and the check at the end. */
import type { AgentReply } from '../../src/core/agent-call.ts';
import { messageOf } from '../../src/core/errors.ts';
import { parseJson } from '../../src/core/json-text.ts';
import type { ConversationMessage, Tool } from '../../src/core/model-call.ts';
import { isRecord } from '../../src/core/record.ts';
import type { ToolAnswer, ToolEpisode, ToolResult } from '../../src/core/tool-world.ts';
import { commandOf, SUBMIT_NAME } from './forms.ts';
import type { Shell, ShellResult } from './shell.ts';
import { BASH, type Work } from './work.ts';

/** Longest part of a result that is shown, in UTF-16 units: of the output and of the errors each. */
const MAX_OUTPUT_CHARS = 4000;
const MAX_ERROR_CHARS = 1000;
/** Calls of one reply that are made. */
const MAX_CALLS = 8;
/** Longest command line that is run. */
const MAX_COMMAND_CHARS = 32_768;
/** Bound of an observation: its results in JSON, where a character takes six, and the opening, or refusals of other calls. */
export const MAX_OBSERVATION_CHARS = 6 * MAX_CALLS * (MAX_OUTPUT_CHARS + MAX_ERROR_CHARS) + 2 ** 20;
/** Answer to the calls of a reply that are too many. */
const REFUSED: ToolResult = { text: `not run: a reply holds ${MAX_CALLS} calls at most`, isError: true };

const INSTRUCTIONS = `You work in a terminal. Do what the user asks for, by calls of the tools. Paths are relative to the folder that you begin in. Other files may be made on the way. When everything is done, call ${SUBMIT_NAME}; that ends the task.`;

/** Episode of one task. */
export class TerminalEpisode implements ToolEpisode {
  readonly opening: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly toolChoice = 'required';
  readonly #work: Work;
  readonly #maxCalls: number;
  readonly #shell: Shell;
  #calls = 0;

  /** @param maxCalls calls after which the episode ends */
  constructor(work: Work, maxCalls: number, shell: Shell) {
    this.#work = work;
    this.#maxCalls = maxCalls;
    this.#shell = shell;
    this.tools = work.tools;
    const request: ConversationMessage = { role: 'user', content: work.request };
    // Typed tools explain themselves, and every text that a policy sees is a value that it can choose.
    this.opening = work.choices ? [request] : [{ role: 'system', content: INSTRUCTIONS }, request];
  }

  /** Runs the calls one after another. A reply without a call counts as one that did nothing. */
  async take({ calls }: AgentReply): Promise<ToolAnswer> {
    const results: ToolResult[] = [];
    let answer: string | undefined;
    for (const [i, { name, arguments: text }] of calls.entries()) {
      if (answer !== undefined) results.push({ text: 'not run: the task has ended', isError: true });
      else if (i >= MAX_CALLS) results.push(REFUSED);
      else if (this.#calls + i >= this.#maxCalls) results.push(fail('not run: the calls are used up'));
      else {
        const args = readArguments(text);
        const isEnd = name === SUBMIT_NAME && typeof args === 'object';
        if (isEnd) answer = readAnswer(args);
        results.push(isEnd ? { text: 'submitted' } : await this.#run(name, args));
      }
    }
    this.#calls += Math.max(1, Math.min(calls.length, MAX_CALLS));
    if (answer !== undefined) return this.#finish(results, answer);
    if (this.#calls >= this.#maxCalls) {
      return { results, user: 'The calls are used up.', reward: 0, end: { success: false } };
    }
    return { results, ...(calls.length === 0 ? { user: 'Call a tool.' } : {}), reward: 0 };
  }

  async #finish(results: readonly ToolResult[], answer: string): Promise<ToolAnswer> {
    const { reward, success, text } = await this.#work.check(this.#shell, answer);
    return { results, user: text, reward, end: { success } };
  }

  async #run(name: string, args: Record<string, unknown> | string): Promise<ToolResult> {
    if (typeof args === 'string') return fail(args);
    const { choices } = this.#work;
    if (choices) {
      const { command, error } = commandOf(name, args, choices);
      return error === undefined ? show(await this.#shell.run(command)) : fail(error);
    }
    if (name !== BASH.name) return fail(`there is no tool ${JSON.stringify(name)}`);
    const { command } = args;
    if (typeof command !== 'string') return fail('bash: command must be a text');
    if (command.length > MAX_COMMAND_CHARS) {
      return fail(`bash: a command has at most ${MAX_COMMAND_CHARS} characters, got ${command.length}`);
    }
    return show(await this.#shell.run(command));
  }
}

function fail(text: string): ToolResult {
  return { text: cut(text, MAX_ERROR_CHARS), isError: true };
}

/** Arguments of a call, or what is wrong with them. */
function readArguments(text: string): Record<string, unknown> | string {
  try {
    const args = parseJson(text);
    return isRecord(args) ? args : 'the arguments must be a JSON object';
  } catch (thrown) {
    return `the arguments are no JSON: ${messageOf(thrown)}`;
  }
}

function readAnswer({ answer }: Record<string, unknown>): string {
  return typeof answer === 'string' || typeof answer === 'number' ? String(answer) : '';
}

/** Result of a command as a text: output, errors, and the exit code unless it is 0. */
function show({ stdout, stderr, exitCode }: ShellResult): ToolResult {
  const parts = [cut(stdout, MAX_OUTPUT_CHARS), cut(stderr, MAX_ERROR_CHARS)].map((part) => part.replace(/\n$/, ''));
  if (exitCode !== 0) parts.push(`[exit code ${exitCode}]`);
  return { text: parts.filter((part) => part !== '').join('\n') || '[no output]' };
}

/** Beginning and end of a long text, with the number of characters between them. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed();
  const half = most >> 1;
  const left = `\n[${text.length - 2 * half} characters left out]\n`;
  return (text.slice(0, half) + left + text.slice(-half)).toWellFormed();
}
