/**
 * Agent programs: a module's function in this thread, or a command as a child process. Either gets a task and the address
 * of a model, makes any number of calls, and ends with a reward.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { type AgentOutcome, readOutcome } from '../core/agent-call.ts';
import { describeValue } from '../core/describe-value.ts';
import { messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { isRecord } from '../core/record.ts';

/** Model as an agent sees it. */
export interface AgentModel {
  /** Base URL for OpenAI-like clients; it ends in `/v1`. */
  readonly baseURL: string;
  /** The same without `/v1`, for Anthropic's clients. */
  readonly root: string;
  readonly apiKey: string;
  readonly name: string;
}

/** Input of an agent: what its default export is called with. */
export interface AgentRun {
  /** Entry of the list of tasks, or `{ index }`. */
  readonly task: unknown;
  readonly index: number;
  /** uint32; whatever the agent draws at random should follow from it. */
  readonly seed: number;
  /** Calls that the episode may make; the replies to later ones are a closing text. */
  readonly horizon: number | undefined;
  readonly model: AgentModel;
  /** Aborts when the episode is over, whatever the agent is doing. */
  readonly signal: AbortSignal;
}

/**
 * Program: plays one episode. Rejects where it failed; that is never a reward.
 * @param posted resolves once a reward was posted, for programs whose end shows by that alone
 */
export type AgentProgram = (run: AgentRun, posted?: Promise<void>) => Promise<AgentOutcome | undefined>;

/** Name of the model in requests. */
export const MODEL_NAME = 'policy';

/** Program of a module's function. */
export function moduleProgram(agent: (run: AgentRun) => unknown): AgentProgram {
  return async (run) => readOutcome(await agent(run));
}

/** Characters of a program's output that are kept for its reward, and of its errors for the message. */
const MAX_OUTPUT = 1 << 20;
const MAX_ERRORS = 2000;
/** Milliseconds from the polite signal to the one that ends a process. */
const KILL_MS = 2000;

/**
 * Program of a command: a process an episode. The task is one line of JSON on its standard input; the variables OPENAI_BASE_URL,
 * OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and LONGPLAY_MODEL name the model, LONGPLAY_TASK is the line again. Its
 * reward is the last line of its output that is a JSON object with `reward`.
 * @param folder that the command runs in
 */
export function commandProgram(command: readonly string[], folder: string): AgentProgram {
  return async (run) => {
    const input = lineOf(run);
    const process = new CommandProcess(command, folder, { ...variablesOf(run.model), LONGPLAY_TASK: input });
    const release = process.killOn(run.signal);
    try {
      process.end(input);
      await process.ended;
      return lastOutcome(process.output);
    } finally {
      release();
    }
  };
}

/**
 * Program of a command whose processes play many episodes each, one after another: for languages that take long to start.
 * Each episode is one line of JSON on its standard input, `model` included; its output is one line of JSON with `reward`, or
 * with `error` where the episode failed. A process whose episode is cut in the middle is ended.
 */
export class CommandPool {
  readonly #command: readonly string[];
  readonly #folder: string;
  readonly #idle: CommandProcess[] = [];
  readonly #all = new Set<CommandProcess>();

  constructor(command: readonly string[], folder: string) {
    this.#command = command;
    this.#folder = folder;
  }

  /** Plays an episode in an idle process, or a new one. */
  readonly play: AgentProgram = async (run) => {
    const process = this.#idle.pop() ?? this.#start();
    const release = process.killOn(run.signal);
    try {
      const answer = process.answered();
      process.write(lineOf(run));
      const json = await Promise.race([answer, process.ended.then(() => undefined)]);
      if (!json) throw new Error(`the command ${this.#command[0]} ended before its episode did`);
      if (!('reward' in json)) throw new Error(`the agent failed: ${describeValue(json.error, 300)}`);
      const outcome = readOutcome(json);
      if (!run.signal.aborted) this.#idle.push(process);
      return outcome;
    } catch (thrown) {
      process.kill();
      throw thrown;
    } finally {
      release();
    }
  };

  /** Ends all processes. */
  dispose(): void {
    for (const process of this.#all) process.kill();
  }

  #start(): CommandProcess {
    const process = new CommandProcess(this.#command, this.#folder, {});
    this.#all.add(process);
    process.ended.then(
      () => this.#drop(process),
      () => this.#drop(process),
    );
    return process;
  }

  #drop(process: CommandProcess): void {
    this.#all.delete(process);
    const at = this.#idle.indexOf(process);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

/** Process of a command, with what it prints. */
class CommandProcess {
  /** Newest characters of its output. */
  output = '';
  /** Settles with its end; rejects where it failed. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #awaited: ((json: Record<string, unknown>) => void) | undefined;
  /** Beginning of the output's last line. */
  #line = '';

  constructor([file, ...args]: readonly string[], folder: string, variables: Readonly<Record<string, string>>) {
    const child = spawn(file!, args, {
      cwd: folder,
      env: { ...process.env, ...variables },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-MAX_ERRORS);
    });
    child.stdin.on('error', () => {}); // a program that reads no input
    this.ended = new Promise((resolve, reject) => {
      child.on('error', (error) => reject(new Error(`the command ${file} cannot be started: ${messageOf(error)}`)));
      child.on('close', (code, ended) => {
        if (code === 0) return resolve();
        const how = code === null ? `was ended by ${ended}` : `exited with code ${code}`;
        const why = findError(errors);
        reject(new Error(`the command ${file} ${how}${why === '' ? '' : `: ${why}`}`));
      });
    });
    this.ended.catch(() => {}); // reported where it is awaited
  }

  write(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Writes the last line. */
  end(line: string): void {
    this.#child.stdin.end(`${line}\n`);
  }

  /** Next line that is an object with a reward or an error. */
  answered(): Promise<Record<string, unknown>> {
    return new Promise((resolve) => {
      this.#awaited = resolve;
    });
  }

  /** Kills it when a signal aborts. @returns what ends that */
  killOn(signal: AbortSignal): () => void {
    const kill = () => this.kill();
    if (signal.aborted) kill();
    signal.addEventListener('abort', kill);
    return () => signal.removeEventListener('abort', kill);
  }

  kill(): void {
    this.#child.kill('SIGTERM');
    setTimeout(() => this.#child.kill('SIGKILL'), KILL_MS).unref();
  }

  #read(text: string): void {
    this.output = (this.output + text).slice(-MAX_OUTPUT);
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop()!.slice(-MAX_OUTPUT);
    for (const line of lines) {
      const json = outcomeIn(line);
      if (!json) continue;
      this.#awaited?.(json);
      this.#awaited = undefined;
    }
  }
}

/** Line of JSON that an episode is to a command. */
function lineOf({ task, index, seed, horizon, model }: AgentRun): string {
  return JSON.stringify({ task, index, seed, ...(horizon === undefined ? {} : { horizon }), model });
}

/** Line of a program's errors that names one, wherever its language puts it; else the last lines. */
function findError(errors: string): string {
  const lines = errors.trim().split('\n');
  const named = lines.findLast((line) => /^\s*(?:Uncaught )?[\w.]*(?:Error|Exception)\b/.test(line));
  return named?.trim() ?? lines.slice(-2).join(' | ');
}

function variablesOf({ baseURL, root, apiKey, name }: AgentModel): Record<string, string> {
  return {
    OPENAI_BASE_URL: baseURL,
    OPENAI_API_KEY: apiKey,
    ANTHROPIC_BASE_URL: root,
    ANTHROPIC_API_KEY: apiKey,
    LONGPLAY_MODEL: name,
  };
}

/** Outcome in the output of a command: its last line that is an object with a reward; undefined where there is none. */
function lastOutcome(output: string): AgentOutcome | undefined {
  const lines = output.split('\n');
  for (let at = lines.length - 1; at >= 0; at--) {
    const json = outcomeIn(lines[at]!);
    if (json && 'reward' in json) return readOutcome(json);
  }
  return undefined;
}

/** Object with a reward or an error that a line of output is; undefined for a line of the program's own. */
function outcomeIn(line: string): Record<string, unknown> | undefined {
  const text = line.trim();
  if (!text.startsWith('{')) return undefined;
  try {
    const json = parseJson(text);
    return isRecord(json) && ('reward' in json || 'error' in json) ? json : undefined;
  } catch {
    return undefined;
  }
}
