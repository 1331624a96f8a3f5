/**
 * Policy whose tokens a generation server samples, under adapters that a learner here trains.
 *
 * Every version of the adapter is written to a folder of its own and loaded under a name that is never used again: a
 * server's caches go by name, and a decision's version is the one its name stands for. A request names the newest adapter
 * that is loaded when it is sent; within a turn the version never changes, between turns of an episode it may. Old
 * adapters are unloaded once no request names them and none that may still be trained on will.
 *
 * Life of a version: written to `<name>.tmp` → synced and renamed → loaded by the server → named by requests → too old to be
 * trained on and named by none → unloaded → its folder removed.
 *
 * Requests run beside each other and beside the actor's handlers. So an answer may come for an episode that was released
 * meanwhile, or forgotten and opened anew under the same number: it counts only while its member is the same object and has
 * not been asked again.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LongplayError, messageOf } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { Decision, ModelResponse } from '../core/trajectory.ts';
import type { LoraConfig, ModelConfig } from '../model/config.ts';
import { checkParams, type ParamSet } from '../model/parameters.ts';
import { ADAPTER_WEIGHTS, writeAdapter } from '../pretrained/adapter.ts';
import type { Codec } from '../reading/codec.ts';
import { follow } from '../reading/follow.ts';
import type { Transcript } from '../reading/transcript.ts';
import { makeFolder } from '../record/atomic-file.ts';
import type { GenerationClient } from '../remote/generation/generation-client.ts';
import type { Acted, ActRequest, Policy, Unanswered } from './policy.ts';

/** Model, codec, server and limits of a server policy. */
export interface ServerPolicyOptions {
  readonly config: ModelConfig & { readonly adapter: LoraConfig };
  readonly codec: Codec;
  /** Connection to the server; one attempt a call, the attempts are counted here. */
  readonly client: GenerationClient;
  /** Folder for adapters, on a path that the server sees too. */
  readonly adapters: string;
  /** Base model's path or name, for the adapters' own record. */
  readonly baseModel: string;
  /** Ids that end an answer beside the codec's own, by the model's generation config. */
  readonly endTokens: readonly number[];
  /** Longest answer, in tokens. */
  readonly maxTokens: number;
  /** Requests in flight at most. */
  readonly maxBatch: number;
  /** Versions that a trained decision may be behind. */
  readonly maxLag: number;
  /** Times one turn, or one adapter, is tried. */
  readonly attempts: number;
  /** Milliseconds before a second attempt; doubled for each further one. */
  readonly retryMs: number;
}

/** Version of the weights that the server can sample under. */
interface Published {
  readonly version: number;
  /** Name of the adapter; undefined for the base alone, whose adapter would change nothing. */
  readonly name: string | undefined;
  /** Place of its files, for a server that was restarted and has to load them again. */
  readonly folder: string;
}

/** Running episode. */
interface Member {
  readonly transcript: Transcript;
  /** Request under way, and its number: an answer to an older one is discarded. */
  request: ActRequest | undefined;
  asked: number;
}

/** Policy of a generation server; see the head of the file for versions, names and races. */
export class ServerPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: ServerPolicyOptions;
  /** Run id in every name: another run, and this one after a restart, has other names. */
  readonly #run = randomUUID().slice(0, 8);
  readonly #members = new Map<number, Member>();
  /** Episodes that wait for a place among the requests in flight. */
  readonly #queue: number[] = [];
  readonly #flights = new Map<number, Promise<void>>();
  /** Requests in flight under each adapter: it must not be unloaded under them. */
  readonly #users = new Map<Published, number>();
  /** Adapters that the server has, oldest first. */
  readonly #published: Published[] = [];
  /** Answers that came since the last step. */
  #acted: Acted[] = [];
  /** First error of a request whose attempts are used up; the next step throws it. */
  #failure: unknown;
  #params: ParamSet;
  /** Publication under way: one at a time, or two would write and load the same version. */
  #publishing: Promise<void> | undefined;
  #tokens = 0;
  #flight = 0;

  constructor(options: ServerPolicyOptions, params: ParamSet) {
    this.#options = options;
    this.maxBatch = options.maxBatch;
    checkParams(options.config, params);
    this.#params = params;
  }

  /** Takes new weights; requests are sent under them once the server has loaded them. */
  load(params: ParamSet): void {
    checkParams(this.#options.config, params);
    this.#params = params;
  }

  get version(): number {
    return this.#params.version;
  }

  get waiting(): number {
    return this.#queue.length + this.#flights.size + this.#acted.length;
  }

  get complete(): boolean {
    return this.waiting > 0;
  }

  get tokens(): number {
    return this.#tokens;
  }

  submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    for (const request of requests) {
      const { episode, given } = request;
      if (given) throw new RangeError('server policy: prompts that a client rendered are for policies in this process');
      const known = this.#members.get(episode);
      const transcript = follow(this.#options.codec, known?.transcript, request);
      if (known) known.request = request;
      else this.#members.set(episode, { transcript, request, asked: 0 });
      this.#queue.push(episode);
    }
    return [];
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#members.delete(episode);
  }

  forget(): void {
    this.#members.clear();
    this.#queue.length = 0;
    this.#acted = [];
  }

  /**
   * Sends the waiting turns, and awaits the first answer. @throws {LongplayError} REMOTE_FAILED when attempts are used
   * up
   */
  async step(): Promise<readonly Acted[]> {
    // Waits for the server to have the newest adapter, so no turn is ever sent under weights older than those at hand.
    const current = await this.#newest();
    while (this.#queue.length > 0 && this.#flights.size < this.maxBatch) {
      const member = this.#members.get(this.#queue.shift()!);
      // An episode that was released while it waited has no member any more.
      if (member?.request) this.#send(member, member.request, current);
    }
    // The first answer is enough: the rollouts go on with it while the others are still being written.
    if (this.#acted.length === 0 && this.#flights.size > 0) await Promise.race(this.#flights.values());
    if (this.#failure !== undefined) throw this.#failure;
    const acted = this.#acted;
    this.#acted = [];
    return acted;
  }

  async dispose(): Promise<void> {
    await Promise.allSettled(this.#flights.values()); // or they would fail under an adapter that is gone
    for (const { name, folder } of this.#published) {
      if (name !== undefined) await this.#options.client.unload(name).catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    }
    this.#published.length = 0;
  }

  // --- requests -------------------------------------------------------------------------------------------------

  /** Sends one turn. Its answer is kept only if the episode still waits for just this request when it comes. */
  #send(member: Member, request: ActRequest, adapter: Published): void {
    const flight = this.#flight++;
    const asked = ++member.asked;
    this.#users.set(adapter, (this.#users.get(adapter) ?? 0) + 1);
    const work = this.#ask(member, request, adapter)
      .then((acted) => {
        if (this.#members.get(request.episode) === member && member.asked === asked) this.#acted.push(acted);
      })
      .catch((thrown: unknown) => {
        if (this.#members.get(request.episode) === member) this.#failure ??= thrown;
      })
      .finally(() => {
        this.#flights.delete(flight);
        this.#users.set(adapter, this.#users.get(adapter)! - 1);
      });
    this.#flights.set(flight, work);
  }

  /**
   * Asks the server for one turn, with attempts: milliseconds between them double from `retryMs` on.
   * @throws {LongplayError} REMOTE_FAILED with the last reason
   */
  async #ask(member: Member, request: ActRequest, adapter: Published): Promise<Acted> {
    const { codec, client, maxTokens, endTokens, attempts, retryMs } = this.#options;
    const { episode, turn, samplingSeed, temperature } = request;
    const { transcript } = member;
    // Ids, never text: the server must read what was sampled before, token for token. A copy, since the transcript grows.
    const ids = [...transcript.prompt.tokens, ...transcript.tokens];
    let last = '';
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await pause(retryMs * 2 ** (attempt - 1));
      try {
        const { name } = adapter;
        const answer = await client.generate({
          ...(name === undefined ? {} : { adapter: name }),
          ids,
          maxTokens,
          temperature,
          seed: seedFrom(samplingSeed, turn), // the same for every attempt: a retry repeats the turn, it does not redraw it
          endTokens: [codec.end, ...endTokens.filter((id) => id !== codec.end)],
        });
        if (answer.kind === 'done') {
          return this.#finish(member, request, adapter, answer.tokens, answer.logprobs, ids.length);
        }
        last = answer.kind === 'aborted' ? 'the server broke the answer off' : `the server does not know ${name}`;
        // It was restarted: the folder is still there, and the name still stands for it.
        if (answer.kind === 'unknown-adapter' && name !== undefined) await client.load(name, adapter.folder);
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
    { version }: Published,
    tokens: readonly number[],
    logprobs: readonly number[],
    promptTokens: number,
  ): Acted {
    const { codec } = this.#options;
    this.#tokens += promptTokens + tokens.length;
    const decision: Decision = {
      kind: 'tokens',
      version,
      context: transcript.takeContext(),
      value: 0,
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs),
      masked: false,
    };
    transcript.write(tokens);
    const { action, ...said } = codec.answer(tokens);
    const response: ModelResponse = {
      ...said,
      text: said.text ?? action,
      promptTokens,
      completionTokens: tokens.length,
      ...(turn === 0 && codec.opening ? { opening: codec.opening } : {}),
    };
    // Servers tell log-probabilities before the temperature (vLLM's default) or after it: they agree at 1 alone, so what
    // was sampled otherwise is played and not kept for training.
    return { episode, turn, action, response, ...(temperature === 1 ? { decision } : {}) };
  }

  // --- adapters -------------------------------------------------------------------------------------------------

  /** Newest adapter, loaded. */
  async #newest(): Promise<Published> {
    while (this.#published.at(-1)?.version !== this.#params.version) {
      this.#publishing ??= this.#publish(this.#params).finally(() => {
        this.#publishing = undefined;
      });
      await this.#publishing;
    }
    return this.#published.at(-1)!;
  }

  /** Writes an adapter, has the server load it, and retires older ones. @throws {LongplayError} REMOTE_FAILED */
  async #publish(params: ParamSet): Promise<void> {
    const { config, client, adapters, baseModel, attempts, retryMs } = this.#options;
    const { version, values } = params;
    const name = `lp-${this.#run}-v${version}`;
    const folder = join(adapters, name);
    // B starts at zero, so the adapter of a fresh run changes nothing: the base alone gives the same numbers, and is
    // there before anything is loaded.
    const changes = Object.entries(values).some(([key, data]) => key.includes('.lora_B.') && data.some((x) => x !== 0));
    if (!changes) {
      this.#published.push({ version, name: undefined, folder });
      return;
    }
    makeFolder(adapters);
    // Beside, synced and renamed: a server on another machine may read the folder as soon as its name is there.
    const unfinished = `${folder}.tmp`;
    writeAdapter(unfinished, config, values, baseModel);
    const fd = openSync(join(unfinished, ADAPTER_WEIGHTS), 'r');
    fsyncSync(fd);
    closeSync(fd);
    renameSync(unfinished, folder);
    let last = '';
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await pause(retryMs * 2 ** (attempt - 1));
      try {
        await client.load(name, folder);
        this.#published.push({ version, name, folder });
        await this.#retire();
        return;
      } catch (thrown) {
        last = messageOf(thrown);
      }
    }
    throw new LongplayError('REMOTE_FAILED', `the server loads no adapter from ${folder}: ${last}`);
  }

  /** Retires adapters: unloads those without a request under way that are too old to be trained on. */
  async #retire(): Promise<void> {
    const { client, maxLag } = this.#options;
    const newest = this.#published.at(-1)!;
    for (const old of [...this.#published]) {
      if (old === newest || old.version >= newest.version - maxLag || (this.#users.get(old) ?? 0) > 0) continue;
      this.#published.splice(this.#published.indexOf(old), 1);
      this.#users.delete(old);
      if (old.name === undefined) continue;
      await client.unload(old.name).catch(() => {});
      rmSync(old.folder, { recursive: true, force: true });
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
