/**
 * Teacher behind an OpenAI-compatible server: an episode goes there as a prompt of token ids, and comes back with the
 * log-probability of each. Two forms are read: vLLM's `prompt_logprobs`, and OpenAI's `echo` with `logprobs`.
 *
 * @see https://docs.vllm.ai/en/latest/api/vllm/entrypoints/openai/completion/protocol
 */
import { systemClock } from '../../core/clock.ts';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { recordOf } from '../../core/record.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { attempt } from '../../http/attempts.ts';
import { HttpClient, parseAnswer } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import type { Teacher, TeacherIdentity, TeacherScores } from './teacher.ts';
import { decisionsOf } from './training-batch.ts';

/** Form in which a server reports log-probabilities of a prompt. */
export type PromptScoring = 'prompt_logprobs' | 'echo';

/** Server of a teacher; plain data. */
export interface TeacherServer {
  /** Root of the server, with or without `/v1`. */
  readonly url: string;
  readonly model: string;
  readonly key?: string | undefined;
  readonly scoring: PromptScoring;
}

/** Requests in flight, and how long one may take and be tried again. */
const CONCURRENCY = 16;
const LIMITS = { attempts: 30, attemptMs: 120_000, totalMs: 600_000, minMs: 500, maxMs: 30_000 };
/** Milliseconds of a request before a run starts. */
const CHECK_MS = 30_000;

/** Client of a teacher's server: asks for log-probabilities of token ids. */
class ScoringClient {
  readonly #server: Omit<TeacherServer, 'scoring'>;
  readonly #http: HttpClient;

  constructor(server: Omit<TeacherServer, 'scoring'>) {
    const { url, key } = server;
    this.#server = server;
    this.#http = new HttpClient({
      baseUrl: `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`,
      headers: key ? { authorization: `Bearer ${key}` } : {},
      maxConnections: CONCURRENCY,
      maxBytes: 256 * 1024 * 1024,
    });
  }

  /** Models that the server lists; undefined where it keeps no list. @throws {RemoteError} */
  async models(): Promise<string[] | undefined> {
    const { body } = await this.#http.send('GET', 'models', undefined, CHECK_MS);
    const data = recordOf(parseAnswer(body))?.data;
    if (!Array.isArray(data)) return undefined;
    return data.flatMap((one) => {
      const id = recordOf(one)?.id;
      return typeof id === 'string' ? [id] : [];
    });
  }

  /**
   * Log-probability of each id behind the first, given those before it. Makes one attempt.
   * @returns [ids] the first is 0; with the texts of the ids, where the server tells them
   * @throws {RemoteError}
   */
  async score(ids: readonly number[], scoring: PromptScoring, deadlineMs: number): Promise<ScoredPrompt> {
    const form = scoring === 'echo' ? { echo: true, logprobs: 1 } : { prompt_logprobs: 0 };
    const body = { model: this.#server.model, prompt: ids, max_tokens: 1, temperature: 1, add_special_tokens: false };
    const answer = await this.#http.send('POST', 'completions', JSON.stringify({ ...body, ...form }), deadlineMs);
    return readScores(parseAnswer(answer.body), ids, scoring);
  }

  get closed(): AbortSignal {
    return this.#http.closed;
  }

  close(): void {
    this.#http.close();
  }
}

/** Log-probabilities of a prompt, and its tokens as texts. */
interface ScoredPrompt {
  /** [ids] log-probabilities; that of the first, which nothing comes before, is 0. */
  readonly logprobs: Float64Array;
  readonly texts: readonly (string | undefined)[];
}

/**
 * Reads the answer to a completion request.
 * @throws {RemoteError} malformed, where it has no log-probability of each id behind the first
 */
export function readScores(answer: unknown, ids: readonly number[], scoring: PromptScoring): ScoredPrompt {
  const { choices } = recordOf(answer) ?? {};
  const choice = recordOf(Array.isArray(choices) ? choices[0] : undefined) ?? {};
  const logprobs = new Float64Array(ids.length);
  const texts = new Array<string | undefined>(ids.length);
  const echoed = recordOf(choice.logprobs) ?? {};
  const list = scoring === 'echo' ? echoed.token_logprobs : choice.prompt_logprobs;
  const tokens = Array.isArray(echoed.tokens) ? (echoed.tokens as unknown[]) : [];
  for (let i = 1; i < ids.length; i++) {
    const entry: unknown = Array.isArray(list) ? list[i] : undefined;
    const own =
      scoring === 'echo' ? { logprob: entry, decoded_token: tokens[i] } : recordOf(recordOf(entry)?.[ids[i]!]);
    if (typeof own?.logprob !== 'number' || !Number.isFinite(own.logprob)) {
      throw new RemoteError('malformed', `an answer without a log-probability of token ${i} of the prompt`);
    }
    logprobs[i] = own.logprob;
    texts[i] = typeof own.decoded_token === 'string' ? own.decoded_token : undefined;
  }
  return { logprobs, texts };
}

/** Text that a server scores before a run starts, and its tokens by the student's vocabulary. */
export interface ProbeText {
  readonly text: string;
  readonly ids: readonly number[];
}

/**
 * Connects to a teacher's server, before play begins: finds its model, and the form in which it reports log-probabilities.
 * @param probe tokens of the student's vocabulary, ten or more
 * @throws {UserError} REMOTE_FAILED where it does not answer; BAD_CONFIG where it has no such model, no log-probabilities of
 *   prompts, or another vocabulary
 */
export async function connectTeacher(
  { url, model, key }: { readonly url: string; readonly model?: string | undefined; readonly key?: string | undefined },
  probe: ProbeText,
): Promise<TeacherServer> {
  const at = 'learner.distillation.teacher';
  const list = new ScoringClient({ url, model: '', key });
  let models: string[] | undefined;
  try {
    models = await list.models();
  } catch (thrown) {
    if (!(thrown instanceof RemoteError)) throw thrown;
    if (thrown.status !== 404) {
      const cure = thrown.status === 401 || thrown.status === 403 ? 'set apiKeyEnv' : 'is the server running?';
      throw new UserError('REMOTE_FAILED', `${at}: ${url} does not answer: ${thrown.message}; ${cure}`);
    }
  } finally {
    list.close();
  }
  const named = model ?? (models?.length === 1 ? models[0] : undefined);
  if (named === undefined || (models && !models.includes(named))) {
    const has = models?.join(', ') || 'none that it lists';
    throw new UserError('BAD_CONFIG', `${at}.model: expected a model of ${url} (${has}), got ${model ?? 'none'}`);
  }
  const client = new ScoringClient({ url, model: named, key });
  const refusals: string[] = [];
  try {
    for (const scoring of ['prompt_logprobs', 'echo'] as const) {
      try {
        const { texts } = await client.score(probe.ids, scoring, CHECK_MS);
        checkVocabulary(url, texts, probe);
        return { url, model: named, scoring, ...(key === undefined ? {} : { key }) };
      } catch (thrown) {
        if (!(thrown instanceof RemoteError)) throw thrown;
        refusals.push(`${scoring}: ${thrown.message}`);
      }
    }
  } finally {
    client.close();
  }
  throw new UserError(
    'BAD_CONFIG',
    `${at}.url: ${url} reports no log-probabilities of prompts of token ids, which a teacher has to; use vLLM (${refusals.join('; ')})`,
  );
}

/** Refuses a server whose tokens, where it names them, are not the student's. @throws {UserError} BAD_CONFIG */
function checkVocabulary(url: string, texts: readonly (string | undefined)[], { text }: ProbeText): void {
  const rest = texts.slice(1);
  if (rest.some((one) => one === undefined)) return;
  const bare = (words: string) => words.replace(/[\s▁Ġ]/g, '');
  const read = bare(rest.join(''));
  if (read !== '' && bare(text).endsWith(read)) return;
  throw new UserError(
    'BAD_CONFIG',
    `learner.distillation.teacher.url: the model behind ${url} has another vocabulary: it reads '${read.slice(0, 60)}' where the student wrote '${text}'; use one with the student's tokenizer`,
  );
}

/** Opens the teacher; nothing is asked of the server yet. */
export function openServerTeacher(server: TeacherServer, identity: TeacherIdentity): Teacher {
  const client = new ScoringClient(server);
  return {
    identity,
    average: undefined,
    follow() {},
    async dispose() {
      client.close();
    },
    async score(units): Promise<TeacherScores> {
      const groups = units.flat();
      const places = new Map(decisionsOf(groups).map((decision, at) => [decision, at]));
      const logprobs = new Float64Array(places.size);
      const members = groups.flatMap(({ prompt, members }) => members.map((member) => ({ prompt, member })));
      let next = 0;
      const work = async () => {
        for (let i = next++; i < members.length; i = next++) {
          const { prompt, member } = members[i]!;
          const { tokens, decisions } = member;
          if (decisions.length === 0) continue;
          const first = prompt.tokens.length;
          const scores = await scoreAgain(client, server, [...prompt.tokens, ...tokens], i);
          for (const decision of decisions) logprobs[places.get(decision)!] = scores[first + decision.at + 1]!;
        }
      };
      await Promise.all(Array.from({ length: Math.min(CONCURRENCY, members.length) }, work));
      return { logprobs, listed: undefined };
    },
  };
}

/** Scores ids, with retries. @throws {LongplayError} REMOTE_FAILED */
async function scoreAgain(
  client: ScoringClient,
  { url, model, scoring }: TeacherServer,
  ids: readonly number[],
  request: number,
): Promise<Float64Array> {
  const rng = Rng.fromSeed(seedFrom('teacher', request)); // only the waits are drawn
  try {
    const { logprobs } = await attempt(LIMITS, { clock: systemClock, rng, closed: client.closed }, (deadlineMs) =>
      client.score(ids, scoring, deadlineMs),
    );
    return logprobs;
  } catch (thrown) {
    throw new LongplayError('REMOTE_FAILED', `teacher ${model} at ${url}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Text of which a prompt is made to learn what a server can do. */
export const PROBE_TEXT = 'The teacher reads what the student wrote, token by token, and scores it.';
