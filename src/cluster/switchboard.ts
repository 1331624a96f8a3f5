/**
 * Switchboard: messages between machines that are heard now or never, for what needs no memory: a run calls for env hosts
 * here, and speaks with them. Nothing is kept, nobody is told when a message is lost or the other end has died: `Channel` sees to that.
 *
 * Two implement it: NATS (`nats.ts`), and a twin in memory (`memory-switchboard.ts`) that loses on purpose.
 */
import type { LongplayError } from '../core/errors.ts';

/** Place that messages are sent to: calls for a host (`call`), or one channel's way to its host (`up`) or from it (`down`). */
export type Place = { readonly kind: 'call' } | { readonly kind: 'up' | 'down'; readonly channel: string };

/** Connection to a switchboard, for one run. */
export interface Switchboard {
  /** Says something to whoever listens at a place. In order, each once at most. @throws {LongplayError} where it may not */
  say(to: Place, bytes: Uint8Array): void;
  /** Listens at a place. What is said afterwards by this connection finds it listening. @returns ends it */
  hear(at: Place, heard: (bytes: Uint8Array) => void): () => void;
  /** Resolves once the server refuses to let this connection listen. */
  readonly refused: Promise<LongplayError>;
  /** Most bytes of one message. */
  readonly mostBytes: number;
  close(): Promise<void>;
}
