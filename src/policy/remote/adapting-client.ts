/**
 * Requests that adapt to their server: a key that it refuses is left out of this request and of all that follow, an answer
 * that does not fit beside its conversation is asked for in the length that is left.
 */
import { messageOf } from '../../core/errors.ts';
import { RemoteError } from '../../http/retry.ts';
import type { Completion, OpenAIClient } from './openai-client.ts';
import type { Prompt } from './prompting.ts';
import { answerRoom, findRefusedKey, limitAnswer, omitKey, type RefusedKey } from './refused-keys.ts';

export interface AdaptingOptions {
  /** Gets what a person should know. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** True where no key may be left out: only its other name or a smaller value is sent. Default false. */
  readonly keepsKeys?: boolean | undefined;
}

/** Client that remembers what its server refuses. */
export class AdaptingClient {
  readonly #client: OpenAIClient;
  readonly #options: AdaptingOptions;
  /** Keys of requests that the server has refused. */
  #refused: readonly RefusedKey[] = [];

  constructor(client: OpenAIClient, options: AdaptingOptions = {}) {
    this.#client = client;
    this.#options = options;
  }

  /** Makes one attempt, without the keys that the server refuses. @throws {RemoteError} */
  async complete({ api, body }: Prompt, deadlineMs: number): Promise<Completion> {
    let room: number | undefined;
    for (;;) {
      const known = omitKey(body, this.#refused);
      const asked = room === undefined ? known : limitAnswer(known, room);
      try {
        return await this.#client.complete(api, asked, deadlineMs);
      } catch (thrown) {
        if (!(thrown instanceof RemoteError)) throw thrown;
        const left = room === undefined ? answerRoom(thrown) : undefined;
        if (left !== undefined) {
          room = left; // for this request alone: the conversation grows
          continue;
        }
        const refused = findRefusedKey(thrown, asked);
        if (!refused) throw thrown;
        const { key, instead, max } = refused;
        if (this.#options.keepsKeys && instead === undefined && max === undefined) throw thrown;
        const isKnown = this.#refused.some((one) => one.key === key && (max === undefined || one.max! <= max));
        if (isKnown) continue; // another request has found it already
        this.#refused = [...this.#refused.filter((one) => one.key !== key || max === undefined), refused];
        const without = instead === undefined ? 'without it' : `with ${instead} in its place`;
        const how = max === undefined ? without : `with ${max}`;
        this.#options.onNotice?.(`the server refuses '${key}': requests are sent ${how} (${messageOf(thrown)})`);
      }
    }
  }
}

/** True where the key is refused; a 403 may also be about one conversation. */
export function isDenial({ status, message }: RemoteError): boolean {
  if (status === 401) return true;
  return (
    status === 403 &&
    /\b(?:api[ _-]?key|auth\w*|permission|credential)/i.test(message) &&
    !/moderat|flagged/i.test(message)
  );
}
