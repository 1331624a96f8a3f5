/**
 * Agent programs: a module's function in this thread, or a command as a child process. Either gets a task and the address
 * of a model, makes any number of calls, and ends with a reward.
 */
import { spawn } from 'node:child_process';
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

/** Result of an agent. */
export interface AgentOutcome {
  readonly reward: number;
  /** True when the task was solved. */
  readonly success: boolean;
  /** Numbers that are averaged over episodes, by name. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Program: plays one episode. Rejects where it failed; that is never a reward. */
export type AgentProgram = (run: AgentRun) => Promise<AgentOutcome | undefined>;

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
 * Program of a command. The task is one line of JSON on its standard input; the variables OPENAI_BASE_URL, OPENAI_API_KEY,
 * ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and LONGPLAY_MODEL name the model, LONGPLAY_TASK is the task again. Its reward is the last
 * line of its output that is a JSON object with `reward`.
 * @param folder that the command runs in
 */
export function commandProgram([file, ...args]: readonly string[], folder: string): AgentProgram {
  return ({ task, index, seed, horizon, model, signal }) =>
    new Promise((resolve, reject) => {
      const input = JSON.stringify({ task, index, seed, ...(horizon === undefined ? {} : { horizon }) });
      const child = spawn(file!, args, {
        cwd: folder,
        env: { ...process.env, ...variablesOf(model), LONGPLAY_TASK: input },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      let output = '';
      let errors = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-MAX_OUTPUT);
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        errors = (errors + text).slice(-MAX_ERRORS);
      });
      const stop = () => {
        child.kill('SIGTERM');
        setTimeout(() => child.kill('SIGKILL'), KILL_MS).unref();
      };
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop);
      child.stdin.on('error', () => {}); // a program that reads no input
      child.stdin.end(`${input}\n`);
      child.on('error', (error) => reject(new Error(`the command ${file} cannot be started: ${messageOf(error)}`)));
      child.on('close', (code, ended) => {
        signal.removeEventListener('abort', stop);
        if (code === 0) {
          try {
            resolve(lastOutcome(output));
          } catch (thrown) {
            reject(thrown);
          }
          return;
        }
        const how = code === null ? `was ended by ${ended}` : `exited with code ${code}`;
        const why = findError(errors);
        reject(new Error(`the command ${file} ${how}${why === '' ? '' : `: ${why}`}`));
      });
    });
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
    const line = lines[at]!.trim();
    if (!line.startsWith('{')) continue;
    let json: unknown;
    try {
      json = parseJson(line);
    } catch {
      continue; // a line of the program's own
    }
    if (isRecord(json) && 'reward' in json) return readOutcome(json);
  }
  return undefined;
}

/**
 * Reads what an agent returned or posted.
 * @returns undefined for nothing: its reward may come otherwise
 * @throws {TypeError} for anything but `{ reward, success?, metrics? }`
 */
export function readOutcome(value: unknown): AgentOutcome | undefined {
  if (value === undefined || value === null) return undefined;
  const expected = 'expected { reward: number, success?: boolean, metrics?: { [name]: number } } of the agent';
  if (typeof value === 'number') return readOutcome({ reward: value });
  if (!isRecord(value)) throw new TypeError(`${expected}, got ${describeValue(value)}`);
  const { reward, success = typeof reward === 'number' && reward > 0, metrics = {} } = value;
  if (typeof reward !== 'number' || !Number.isFinite(reward)) {
    throw new TypeError(`${expected}, got reward ${describeValue(reward)}`);
  }
  if (typeof success !== 'boolean') throw new TypeError(`${expected}, got success ${describeValue(success)}`);
  if (!isRecord(metrics) || !Object.values(metrics).every(Number.isFinite)) {
    throw new TypeError(`${expected}, got metrics ${describeValue(metrics)}`);
  }
  return { reward, success, metrics: metrics as Record<string, number> };
}
