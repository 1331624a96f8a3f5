/**
 * Policy whose tokens a generation server samples, under adapters that a learner here trains.
 *
 * A request names the newest adapter that is loaded when it is sent (`served-adapters.ts`); within a turn the version never changes,
 * between turns of an episode it may.
 *
 * Requests run beside each other and beside the actor's handlers. So an answer may come for an episode that was
 * released meanwhile, or forgotten and opened anew under the same number. It counts only while its member is the same
 * object and has not been asked again.
 */

import type { ParamSet } from '../compute/model/parameters.ts';
import { systemClock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { Decision, ModelResponse } from '../core/trajectory.ts';
import { sleep } from '../http/attempts.ts';
import type { Codec } from '../text/reading/codec.ts';
import { advanceTranscript } from '../text/reading/replay-turns.ts';
import type { AnswerLimits, Transcript } from '../text/reading/transcript.ts';
import type { GenerationClient } from './generation/generation-client.ts';
import { type Acted, type ActRequest, formatTooLong, type Policy, type Unanswered } from './policy.ts';
import type { Adapters, ServedAdapter, ServerRetries } from './served-adapters.ts';

/** Codec, server and limits of a server policy. */
export interface ServerPolicyOptions extends Pick<ServerRetries, 'attempts' | 'retryMs'> {
  readonly codec: Codec;
  /** Longest sequence that the model reads, in tokens. */
  readonly maxPositions: number;
  /** Connection to the server, closed with the policy; one attempt a call, the attempts are counted here. */
  readonly client: GenerationClient;
  /** Adapters that the server has. */
  readonly adapters: Adapters;
  /** Ids that end an answer beside the codec's own, by the model's generation config. */
  readonly endTokens: readonly number[];
  /** Longest answer, in tokens. */
  readonly maxTokens: number;
  /** Requests in flight at most. */
  readonly maxBatch: number;
}

/** Milliseconds of a step at most: between two steps the policy's owner hears messages, an order to stop among them. */
const STEP_MS = 1000;

/** Running episode. */
interface Member {
  readonly transcript: Transcript;
  /** Turn that waits for its answer; an answer to another one is discarded. */
  request: ActRequest | undefined;
}

/** Answer to a turn of a member. */
interface Answered {
  readonly member: Member;
  readonly acted: Acted;
}

/** Policy of a generation server; see the head of the file for versions, names and races. */
export class ServerPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: ServerPolicyOptions;
  readonly #members = new Map<number, Member>();
  /** Turns that wait for a place among the requests in flight. */
  readonly #queue: { readonly member: Member; readonly request: ActRequest }[] = [];
  readonly #flights = new Map<number, Promise<void>>();
  /** Answers that came since the last step. */
  #acted: Answered[] = [];
  /** First error of a request whose attempts are used up; the next step throws it. */
  #failure: unknown;
  #tokens = 0;
  #flight = 0;
  /** Newest adapter, while it is waited for. */
  #serving: Promise<ServedAdapter> | undefined;

  constructor(options: ServerPolicyOptions) {
    this.#options = options;
    this.maxBatch = options.maxBatch;
  }

  /** Takes new weights; requests are sent under them once the server has loaded them. */
  load(params: ParamSet): void {
    this.#options.adapters.load(params);
  }

  useAdapter(adapter: ServedAdapter): void {
    this.#options.adapters.useAdapter(adapter);
  }

  serving(): Promise<ServedAdapter> {
    return this.#options.adapters.newest();
  }

  get version(): number {
    return this.#options.adapters.version;
  }

  get waiting(): number {
    // Of episodes, not of requests: those in flight for episodes that were released are awaited by nobody.
    let waiting = 0;
    for (const { request } of this.#members.values()) if (request) waiting++;
    return waiting;
  }

  get complete(): boolean {
    return this.waiting > 0;
  }

  get tokens(): number {
    return this.#tokens;
  }

  submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    const { codec, maxPositions } = this.#options;
    const refused: Unanswered[] = [];
    for (const request of requests) {
      const { episode, given } = request;
      if (given) throw new RangeError('server policy: prompts that a client rendered are for policies in this process');
      const known = this.#members.get(episode);
      const transcript = advanceTranscript(codec, known?.transcript, request);
      const member = known ?? { transcript, request: undefined };
      this.#members.set(episode, member);
      // Refused here: the server would refuse each attempt, and the run would end for one episode.
      const length = transcript.prompt.tokens.length + transcript.tokens.length;
      if (transcript.refusal || transcript.limits?.mask) {
        const message = 'the call of the agent asks for a tool or for JSON, and a server samples freely';
        refused.push({ episode, ...(transcript.refusal ?? { message }) });
        continue;
      }
      if (length >= maxPositions) {
        refused.push({ episode, message: formatTooLong(length + 1, maxPositions) });
        continue;
      }
      member.request = request;
      this.#queue.push({ member, request });
    }
    return refused;
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#members.delete(episode);
  }

  forget(): void {
    this.#members.clear();
    this.#queue.length = 0;
    this.#acted = [];
    this.#failure = undefined;
  }

  /**
   * Sends the waiting turns, and awaits the first answer for a second.
   * @returns nothing where none has come
   * @throws {LongplayError} REMOTE_FAILED when attempts are used up
   */
  async step(): Promise<readonly Acted[]> {
    if (this.waiting === 0) return [];
    const wait = new AbortController();
    try {
      return await this.#step(sleep(systemClock, STEP_MS, wait.signal));
    } finally {
      wait.abort(); // its timer would keep the process alive
    }
  }

  async #step(waited: Promise<void>): Promise<readonly Acted[]> {
    // Waits for the server to have the newest adapter, so no turn is ever sent under weights older than those at hand.
    this.#serving ??= this.serving().finally(() => {
      this.#serving = undefined;
    });
    const current = await Promise.race([this.#serving, waited]);
    if (!current) return [];
    while (this.#queue.length > 0 && this.#flights.size < this.maxBatch) {
      const { member, request } = this.#queue.shift()!;
      if (this.#awaits(member, request)) this.#send(member, request, current);
    }
    // The first answer is enough: the rollouts go on with it while the others are still being written.
    if (this.#acted.length === 0 && this.#flights.size > 0) await Promise.race([...this.#flights.values(), waited]);
    if (this.#failure !== undefined) throw this.#failure;
    const answered = this.#acted.filter(({ member, acted }) => this.#members.get(acted.episode) === member);
    this.#acted = [];
    for (const { member } of answered) member.request = undefined;
    return answered.map(({ acted }) => acted);
  }

  async dispose(): Promise<void> {
    this.#queue.length = 0;
    this.#options.client.close(); // answers under way are given up
    await Promise.allSettled(this.#flights.values()); // or they would fail under an adapter that is gone
    await this.#options.adapters.dispose();
  }

  // --- requests -------------------------------------------------------------------------------------------------

  /** True while an episode waits for the answer to just this turn: it was neither released nor opened anew since. */
  #awaits(member: Member, request: ActRequest): boolean {
    return this.#members.get(request.episode) === member && member.request === request;
  }

  /** Sends one turn. Its answer is kept only if the episode still waits for it when it comes. */
  #send(member: Member, request: ActRequest, adapter: ServedAdapter): void {
    const flight = this.#flight++;
    const { adapters } = this.#options;
    adapters.begin(adapter);
    const work = this.#ask(member, request, adapter)
      .then((acted) => {
        if (this.#awaits(member, request)) this.#acted.push({ member, acted });
      })
      .catch((thrown: unknown) => {
        if (this.#awaits(member, request)) this.#failure ??= thrown;
      })
      .finally(() => {
        this.#flights.delete(flight);
        adapters.end(adapter);
      });
    this.#flights.set(flight, work);
  }

  /**
   * Asks the server for one turn, with attempts: milliseconds between them double from `retryMs` on.
   * @throws {LongplayError} REMOTE_FAILED with the last reason
   */
  async #ask(member: Member, request: ActRequest, first: ServedAdapter): Promise<Acted> {
    const { codec, client, adapters, maxTokens, endTokens, attempts, retryMs } = this.#options;
    const { episode, turn, samplingSeed, temperature } = request;
    const { transcript } = member;
    // Ids, never text: the server must read what was sampled before, token for token. A copy, since the transcript grows.
    const ids = [...transcript.prompt.tokens, ...transcript.tokens];
    let adapter = first;
    let last = '';
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await sleep(systemClock, retryMs * 2 ** (attempt - 1), client.closed);
      if (client.closed.aborted) break;
      try {
        const { name } = adapter;
        const answer = await client.generate({
          ...(name === undefined ? {} : { adapter: name }),
          ids,
          maxTokens: Math.min(maxTokens, transcript.limits?.maxTokens ?? maxTokens),
          temperature,
          seed: seedFrom(samplingSeed, turn), // the same for every attempt: a retry repeats the turn, it does not redraw it
          endTokens: [codec.end, ...endTokens.filter((id) => id !== codec.end)],
        });
        if (answer.kind === 'done') {
          return this.#finish(member, request, adapter, answer.tokens, answer.logprobs, ids.length);
        }
        last = answer.kind === 'aborted' ? 'the server broke the answer off' : `the server does not know ${name}`;
        if (answer.kind === 'unknown-adapter') adapter = await adapters.reload(adapter);
      } catch (thrown) {
        // Anything else is a bug of ours: no attempt would mend it.
        if (!(thrown instanceof LongplayError)) throw thrown;
        last = thrown.message;
      }
    }
    throw new LongplayError(
      'REMOTE_FAILED',
      `episode ${episode}, turn ${turn}: no answer in ${attempts} attempts: ${last}`,
    );
  }

  /** Decision of an answer: the sampled ids exactly as the server reported them, under the version that its name stands for. */
  #finish(
    { transcript }: Member,
    { episode, turn, temperature }: ActRequest,
    { version }: ServedAdapter,
    sampled: readonly number[],
    logprobs: readonly number[],
    promptTokens: number,
  ): Acted {
    const { codec } = this.#options;
    const tokens = cutAtEnd(sampled, transcript.limits);
    this.#tokens += promptTokens + tokens.length;
    const decision: Decision = {
      kind: 'tokens',
      version,
      context: transcript.takeContext(),
      value: 0,
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs.slice(0, tokens.length)),
      masked: false,
    };
    transcript.write(tokens);
    const { action, ...rest } = codec.answer(tokens, transcript);
    const response: ModelResponse = {
      ...rest,
      text: rest.text ?? action,
      promptTokens,
      completionTokens: tokens.length,
      ...(turn === 0 && codec.opening ? { opening: codec.opening } : {}),
    };
    // Servers report log-probabilities before the temperature (vLLM's default) or after it: they agree at 1 alone, so what
    // was sampled otherwise is played and not kept for training.
    return { episode, turn, action, response, ...(temperature === 1 ? { decision } : {}) };
  }
}

/** Cuts a run behind the token with which it is a whole answer: the server knows nothing of the transcript's limits. */
function cutAtEnd(run: readonly number[], limits: AnswerLimits | undefined): readonly number[] {
  if (!limits?.ends) return run;
  for (let length = 1; length < run.length; length++) {
    const begun = run.slice(0, length);
    if (limits.ends(begun)) return begun;
  }
  return run;
}
