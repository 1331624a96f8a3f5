/** Usage of a policy behind a server: what was asked and answered, and how well answers could be read. */
import { excerpt } from '../../http/http-client.ts';

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
