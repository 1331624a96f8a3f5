/** Prompting: the two ways to put an episode to a server, as a conversation or as token ids of the world's view. */
import type { Acted, ActRequest } from '../policy.ts';
import type { Api, Completion } from './openai-client.ts';

/** Prompt: a request to send. */
export interface Prompt {
  readonly api: Api;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Remembers running episodes; no I/O. */
export interface Prompting {
  /** Asks for a turn's prompt, once per turn. */
  ask(request: ActRequest): Prompt;
  /** Reads the answer to it. @throws {RemoteError} mismatch for an answer to another question */
  read(request: ActRequest, completion: Completion): Acted;
  /** Drops episodes. */
  release(episodes: readonly number[]): void;
  /** Drops all of them. */
  forget(): void;
}
