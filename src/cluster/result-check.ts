/**
 * Check of workers' results, on the learner's machine: whether one counts, and which workers are banned. A result comes
 * from another machine, so nothing in it is believed.
 */
import { LongplayError, messageOf } from '../core/errors.ts';
import type { GroupTicket } from '../core/ticket.ts';
import type { EpisodeCheck } from './episode-check.ts';
import { decodeResult, type GroupResult } from './result.ts';

/** Facts of a run that results must fit. */
export interface ResultCheckOptions {
  readonly vocabSize: number;
  /** Returns the digest of this run's weights of a version; undefined where it is not known. */
  readonly digestOf: (version: number) => string | undefined;
  /** Returns what is wrong with the episodes of a result (`createEpisodeCheck`); undefined where nothing is. */
  readonly check?: EpisodeCheck | undefined;
  /** Called for a worker whose results were refused three times in a row; further ones are refused unread. */
  readonly onBanned?: ((worker: string, why: string) => void) | undefined;
}

/** Result that passed the check, or the reason why it did not; `worker` is undefined where the bytes name none. */
export type CheckedResult =
  | { readonly result: GroupResult }
  | { readonly result: undefined; readonly worker: string | undefined; readonly why: string };

/** Refused results in a row after which a worker is banned. Names come from other machines, hence a bound on them. */
const MAX_REFUSED = 3;
const MAX_WORKERS = 10_000;

/** Check of results; remembers each worker's refused results in a row. */
export class ResultCheck {
  readonly #options: ResultCheckOptions;
  /** Refused results in a row, by worker. */
  readonly #refusedInRow = new Map<string, number>();

  constructor(options: ResultCheckOptions) {
    this.#options = options;
  }

  /** Decodes and checks a result. @param ticket that it answers */
  check(bytes: Uint8Array, ticket: GroupTicket): CheckedResult {
    let worker: string | undefined;
    try {
      const result = decodeResult(bytes, ticket, this.#options.vocabSize);
      worker = result.worker;
      this.#checkWorker(worker);
      this.#checkDigests(result);
      const why = this.#options.check?.(result.trajectories, ticket.purpose.name === 'train');
      if (why !== undefined) throw new LongplayError('REMOTE_FAILED', why);
      return { result };
    } catch (thrown) {
      if (!(thrown instanceof LongplayError)) throw thrown;
      return { result: undefined, worker, why: messageOf(thrown) };
    }
  }

  /** Records that a worker's result counts: its refused ones are no longer in a row. */
  recordAccepted(worker: string): void {
    this.#refusedInRow.delete(worker);
  }

  /** Records that a worker's result was refused; the third one in a row bans it. */
  recordRefused(worker: string, why: string): void {
    if (this.#refusedInRow.size >= MAX_WORKERS) return;
    const inRow = (this.#refusedInRow.get(worker) ?? 0) + 1;
    this.#refusedInRow.set(worker, inRow);
    if (inRow === MAX_REFUSED) this.#options.onBanned?.(worker, why);
  }

  /** @throws {LongplayError} REMOTE_FAILED for a worker that is banned */
  #checkWorker(worker: string): void {
    const inRow = this.#refusedInRow.get(worker) ?? 0;
    if (inRow < MAX_REFUSED) return;
    throw new LongplayError('REMOTE_FAILED', `${inRow} of its results in a row were refused`);
  }

  /**
   * Checks that this run has had the weights that decided; a learner may have been restored without its journal.
   * @throws {LongplayError} REMOTE_FAILED
   */
  #checkDigests({ digests }: GroupResult): void {
    for (const [version, digest] of Object.entries(digests)) {
      const own = this.#options.digestOf(Number(version));
      if (own !== undefined && own !== digest) {
        throw new LongplayError('REMOTE_FAILED', `decided by other weights of version ${version} than this run's`);
      }
    }
  }
}
