/** Scorer of saved episodes: threads in which the user's function runs, each with a limit on the time of one episode. */
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import type { AgentOutcome } from '../../core/agent-call.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { workerUrl } from '../../runtime/module-url.ts';
import type { TraceLine } from '../../storage/trace.ts';
import type { RescoreThreadData, RescoreThreadMessage } from './rescore-thread.ts';

/** Milliseconds to start a thread and load a module, which is no episode's time. */
const LOADING_MS = 60_000;

/** Reason of an episode whose scorer was closed: nobody asks for it any more. */
const STOPPED = 'stopped';

/** New reward of an episode, or why there is none: a missing one is neither 0 nor 1. */
export type Scored = { readonly outcome: AgentOutcome } | { readonly failed: string };

export interface EpisodeScorerOptions extends RescoreThreadData {
  /** Path of the module as messages should call it. */
  readonly path: string;
  /** Milliseconds that one episode may take. */
  readonly limitMs: number;
  /** Called with what the function prints, line by line, and with notices. */
  readonly onNotice: (line: string) => void;
}

/** Scorer of one episode at a time. A thread that its episode broke is replaced before the next one. */
export class EpisodeScorer {
  readonly #options: EpisodeScorerOptions;
  #worker: Worker | undefined;
  #isNoticed = false;
  #isClosed = false;

  constructor(options: EpisodeScorerOptions) {
    this.#options = options;
  }

  /** Starts the thread and loads the function, unless it is closed. @throws {UserError} BAD_ARGUMENT for a module that has none */
  async start(): Promise<void> {
    if (this.#isClosed) return;
    const { path, url, env, onNotice } = this.#options;
    const worker = new Worker(workerUrl(new URL('./rescore-thread.ts', import.meta.url)), {
      workerData: { url, env } satisfies RescoreThreadData,
      stdout: true,
      stderr: true,
    });
    // What a function prints is no result of the command: on stdout it would spoil the JSON.
    for (const stream of [worker.stdout, worker.stderr]) createInterface(stream).on('line', onNotice);
    worker.on('error', () => {}); // between two episodes; the exit that follows tells
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    this.#worker = worker;
    const answer = await awaitAnswer(worker, LOADING_MS);
    if (this.#isClosed) return;
    if (answer.type === 'ready') {
      if (answer.notice !== undefined && !this.#isNoticed) onNotice(answer.notice);
      this.#isNoticed = true;
      return;
    }
    await worker.terminate();
    throw new UserError('BAD_ARGUMENT', `--verify ${path}: ${answer.type === 'scored' ? '' : answer.message}`);
  }

  /**
   * Scores an episode. One whose thread breaks is scored once more in a fresh one: what an earlier episode left behind may have
   * broken it.
   * @throws {UserError} as `start`, where the thread has to be replaced and cannot be
   */
  async score(episode: TraceLine): Promise<Scored> {
    const first = await this.#score(episode);
    const scored = 'broke' in first ? await this.#score(episode) : first;
    return 'broke' in scored ? { failed: scored.broke } : scored;
  }

  async #score(episode: TraceLine): Promise<Scored | { readonly broke: string }> {
    if (!this.#worker) await this.start();
    const worker = this.#worker;
    if (!worker || this.#isClosed) return { failed: STOPPED };
    const answering = awaitAnswer(worker, this.#options.limitMs);
    worker.postMessage(episode);
    const answer = await answering;
    if (answer.type === 'scored') return { outcome: answer.outcome };
    if (answer.type === 'failed') return { failed: answer.message };
    this.#worker = undefined;
    await worker.terminate();
    if (this.#isClosed || !('isLate' in answer)) return { failed: STOPPED };
    return answer.isLate ? { failed: answer.message } : { broke: answer.message };
  }

  /** Ends the thread; an episode under way fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }
}

/** Message of a thread, or what came in its place. */
type ThreadAnswer =
  | RescoreThreadMessage
  | { readonly type: 'silent'; readonly message: string; readonly isLate: boolean };

/** Waits for the next message of a thread. */
function awaitAnswer(worker: Worker, limitMs: number): Promise<ThreadAnswer> {
  return new Promise((resolve) => {
    const end = (answer: ThreadAnswer) => {
      clearTimeout(timer);
      worker.off('message', end);
      worker.off('error', onError);
      worker.off('exit', onExit);
      resolve(answer);
    };
    const endSilent = (message: string, isLate = false) => end({ type: 'silent', message, isLate });
    const onError = (thrown: unknown) => endSilent(`it broke its thread: ${messageOf(thrown)}`);
    const onExit = (code: number) => endSilent(`it ended its thread with code ${code}`);
    const timer = setTimeout(() => endSilent(`no answer within ${limitMs / 1000} s`, true), limitMs);
    worker.on('message', end);
    worker.on('error', onError);
    worker.on('exit', onExit);
  });
}
