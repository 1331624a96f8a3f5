/**
 * Remote policy: a model behind a server. The server batches, so every turn is a request of its own, at most `maxBatch`
 * of them in flight; answers of episodes that were released meanwhile are dropped.
 */
import type { OpenAIConfig } from '../../config/run-config.ts';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Rng } from '../../core/rng.ts';
import { type AttemptOptions, attempt } from '../../http/attempts.ts';
import { RemoteError } from '../../http/retry.ts';
import type { Acted, ActRequest, Policy, Unanswered } from '../policy.ts';
import { AdaptingClient, isDenial } from './adapting-client.ts';
import type { Completion, OpenAIClient } from './openai-client.ts';
import type { Prompt, Prompting } from './prompting.ts';
import { isContextOverflow } from './refused-keys.ts';
import { type RemoteUsage, UsageCounter } from './usage.ts';

/** Limits of a turn's request: ten minutes in all, for servers that are busy or restart. */
const REQUEST_LIMITS: AttemptOptions = { attempts: 6, attemptMs: 120_000, totalMs: 600_000, minMs: 500, maxMs: 30_000 };

export interface RemotePolicyOptions {
  readonly openai: OpenAIConfig;
  /** Limits of a turn's request; absent ones as in `REQUEST_LIMITS`. */
  readonly limits?: Partial<AttemptOptions> | undefined;
  readonly client: OpenAIClient;
  readonly prompting: Prompting;
  readonly clock: Clock;
  /** Random generator that spreads retries. */
  readonly rng: Rng;
  /** Declares work outside the actor system, so that a serial run waits for it. */
  readonly outside?: <T>(work: Promise<T>) => Promise<T>;
  /** Called whenever `take` has something to give. */
  readonly onSettled?: () => void;
  /** Gets what a person should know. */
  readonly onNotice?: (text: string) => void;
}

interface Settled {
  readonly request: ActRequest;
  readonly outcome: { readonly completion: Completion; readonly ms: number } | Pick<Unanswered, 'message' | 'ends'>;
}

export class RemotePolicy implements Policy {
  /** Version 0: the server's weights are its own. */
  readonly version = 0;
  /** Requests in flight at most. */
  readonly maxBatch: number;
  readonly #options: RemotePolicyOptions;
  readonly #client: AdaptingClient;
  /** Turns that wait for a place, oldest first, and those in flight, by episode. */
  readonly #queue = new Map<number, ActRequest>();
  readonly #flying = new Map<number, ActRequest>();
  #inFlight = 0;
  readonly #settled: Settled[] = [];
  readonly #used = new UsageCounter();
  #wake: (() => void) | undefined;
  /** Refusal of the key itself: nothing that is sent with it will be answered. */
  #denial: RemoteError | undefined;

  constructor(options: RemotePolicyOptions) {
    this.#options = options;
    this.#client = new AdaptingClient(options.client, { onNotice: options.onNotice });
    this.maxBatch = options.openai.concurrency;
  }

  load(): void {}

  get waiting(): number {
    return this.#queue.size + this.#flying.size;
  }

  /** Complete at once: requests do not wait for each other. */
  get complete(): boolean {
    return true;
  }

  get tokens(): number {
    return this.#used.tokens;
  }

  /** Refusal of the API key, once the server has refused it; no request is sent from then on. */
  get denial(): RemoteError | undefined {
    return this.#denial;
  }

  /** Turns answered so far. */
  get turns(): number {
    return this.#used.turns;
  }

  get usage(): RemoteUsage {
    return this.#used.summarize(this.#inFlight);
  }

  submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    for (const request of requests) this.#queue.set(request.episode, request);
    this.#send();
    return [];
  }

  /** Steps: waits until some turn is answered. @throws {RemoteError} for one that no attempt answered */
  async step(): Promise<readonly Acted[]> {
    for (;;) {
      const { acted, unanswered } = this.take();
      if (unanswered[0]) throw new RemoteError('network', unanswered[0].message);
      if (acted.length > 0 || this.waiting === 0) return acted;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Takes the turns settled since the last call, and sends waiting ones that now have a place. Never waits. */
  take(): { readonly acted: readonly Acted[]; readonly unanswered: readonly Unanswered[] } {
    const acted: Acted[] = [];
    const unanswered: Unanswered[] = [];
    for (const { request, outcome } of this.#settled.splice(0)) {
      this.#inFlight--;
      const wanted = this.#flying.get(request.episode) === request;
      if (wanted) this.#flying.delete(request.episode);
      const read = this.#read(request, outcome, wanted);
      if (read && 'turn' in read) acted.push(read);
      else if (read) unanswered.push(read);
    }
    for (const { response } of acted) this.#used.countTurn(response);
    this.#used.countFailures(unanswered.length);
    this.#options.prompting.release(unanswered.map(({ episode }) => episode));
    this.#send();
    return { acted, unanswered };
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) {
      this.#queue.delete(episode);
      this.#flying.delete(episode);
    }
    this.#options.prompting.release(episodes);
  }

  forget(): void {
    this.#options.prompting.forget();
    this.#queue.clear();
    this.#flying.clear();
  }

  /** Disposes of it: answers under way are given up, and not asked for again. */
  dispose(): void {
    this.#queue.clear();
    this.#options.client.close();
  }

  #read(request: ActRequest, outcome: Settled['outcome'], wanted: boolean): Acted | Unanswered | undefined {
    const { episode } = request;
    if ('message' in outcome) return wanted ? { episode, ...outcome } : undefined;
    const { completion, ms } = outcome;
    this.#used.countAnswer(completion, ms);
    if (!wanted) return undefined;
    try {
      return this.#options.prompting.read(request, completion);
    } catch (thrown) {
      if (!(thrown instanceof RemoteError)) throw thrown;
      return { episode, message: thrown.message };
    }
  }

  #send(): void {
    for (const [episode, request] of this.#queue) {
      if (this.#denial || this.#inFlight >= this.maxBatch) return;
      this.#queue.delete(episode);
      this.#ask(request);
    }
  }

  #ask(request: ActRequest): void {
    const { limits, client, prompting, clock, rng, outside = (work) => work } = this.#options;
    const prompt = prompting.ask(request);
    this.#flying.set(request.episode, request);
    this.#inFlight++;
    const began = clock.now();
    const onRetry = (error: RemoteError) => this.#used.countRetry(error);
    const { closed } = client;
    const answer = attempt({ ...REQUEST_LIMITS, ...limits }, { clock, rng, closed, onRetry }, (deadlineMs) =>
      this.#complete(prompt, deadlineMs),
    ).then(
      (completion) => ({ completion, ms: clock.now() - began }),
      (thrown) => ({
        message: messageOf(thrown),
        ...(thrown instanceof RemoteError && isContextOverflow(thrown) ? { ends: true as const } : {}),
      }),
    );
    void outside(answer).then((outcome) => {
      this.#settled.push({ request, outcome });
      this.#notify();
    });
  }

  /** Makes one attempt; remembers a refusal of the key itself. */
  async #complete(prompt: Prompt, deadlineMs: number): Promise<Completion> {
    try {
      return await this.#client.complete(prompt, deadlineMs);
    } catch (thrown) {
      if (thrown instanceof RemoteError && isDenial(thrown)) this.#denial ??= thrown;
      throw thrown;
    }
  }

  #notify(): void {
    this.#options.onSettled?.();
    this.#wake?.();
    this.#wake = undefined;
  }
}
