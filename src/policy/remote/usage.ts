/** Usage of a policy behind a server: what was asked and answered, and how well answers could be read. */
import { redact } from '../../core/secrets.ts';
import type { ModelResponse } from '../../core/trajectory.ts';
import { excerpt } from '../../http/http-client.ts';
import type { RemoteError } from '../../http/retry.ts';
import type { Completion } from './openai-client.ts';

/** Usage of a policy behind a server since the start: requests, tokens, misread answers. */
export interface RemoteUsage {
  /** Requests that were answered well. */
  readonly requests: number;
  /** Requests that had to be sent again, by fault. */
  readonly retries: Readonly<Record<string, number>>;
  /** Turns that no attempt answered. */
  readonly failures: number;
  /** Answers from which no action could be read. */
  readonly formatErrors: number;
  /** The same by what was wrong, each with an answer that had it. */
  readonly misread?: readonly { readonly error: string; readonly count: number; readonly answer: string }[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Milliseconds from the first attempt to the answer, summed over the requests. */
  readonly latencyMs: number;
  readonly inFlight: number;
}

/** Different format errors that are counted one by one. */
const MAX_MISREAD = 20;

/** Counter of a policy's usage. */
export class UsageCounter {
  readonly #counts = {
    requests: 0,
    failures: 0,
    formatErrors: 0,
    promptTokens: 0,
    completionTokens: 0,
    latencyMs: 0,
  };
  readonly #retries: Record<string, number> = {};
  /** Format errors by their words, and the first answer that had one; at most `MAX_MISREAD` different ones. */
  readonly #misread = new Map<string, { count: number; answer: string }>();
  #turns = 0;

  /** Turns answered so far. */
  get turns(): number {
    return this.#turns;
  }

  /** Tokens read and written so far. */
  get tokens(): number {
    return this.#counts.promptTokens + this.#counts.completionTokens;
  }

  /** Counts a request that was answered. @param ms milliseconds from the first attempt to the answer */
  countAnswer({ promptTokens, completionTokens }: Completion, ms: number): void {
    this.#counts.requests++;
    this.#counts.promptTokens += promptTokens;
    this.#counts.completionTokens += completionTokens;
    this.#counts.latencyMs += ms;
  }

  /** Counts a request that is sent again. */
  countRetry({ fault, status }: RemoteError): void {
    const why = status === undefined ? fault : String(status);
    this.#retries[why] = (this.#retries[why] ?? 0) + 1;
  }

  /** Counts a turn that has its action, and how well its answer could be read. */
  countTurn(response: ModelResponse | undefined): void {
    this.#turns++;
    if (response?.formatError === undefined) return;
    this.#counts.formatErrors++;
    const known = this.#misread.get(response.formatError);
    if (known) known.count++;
    else if (this.#misread.size < MAX_MISREAD)
      this.#misread.set(response.formatError, { count: 1, answer: redact(response.text).slice(0, 300) });
  }

  /** Counts turns that no attempt answered. */
  countFailures(turns: number): void {
    this.#counts.failures += turns;
  }

  /** Usage so far. @param inFlight requests that are under way */
  summarize(inFlight: number): RemoteUsage {
    const misread = [...this.#misread].map(([error, facts]) => ({ error, ...facts }));
    return { ...this.#counts, retries: { ...this.#retries }, misread, inFlight };
  }
}

/** Share of answers that may be misread before a notice. */
const MANY = 0.5;

/** Notice about answers that could not be read; undefined where they are few. */
export function misreadNotice({ requests, formatErrors, misread = [] }: RemoteUsage): string | undefined {
  if (formatErrors === 0 || formatErrors < MANY * requests) return undefined;
  const [most] = [...misread].sort((a, b) => b.count - a.count);
  const why = most ? `: ${most.error} E.g. '${excerpt(most.answer, 120)}'` : '';
  const form = 'The form of answers is policy.chat.format (action takes any text).';
  return `${formatErrors} of ${requests} answers not understood${why}; ${form}`;
}
