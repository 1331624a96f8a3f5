/**
 * Journaling of the scheduler's decisions: an entry is written before its decision has any effect outside. While the
 * disk refuses, effects wait in their order, nothing new starts, and writing is tried again; nothing is lost.
 */
import { messageOf } from '../../src/core/errors.ts';
import type { Journal, JournalEntry } from '../../src/storage/journal.ts';
import type { UpdateReport } from '../learner/protocol.ts';

/** Journal of a run, as its scheduler gets it. */
export interface SchedulerJournal {
  readonly journal: Journal;
  /** Digests of the updates that its entries name, by version: a learner that makes them again is compared with them. */
  readonly digests: ReadonlyMap<number, string>;
  /** Update of the oldest checkpoint that is kept. */
  readonly oldestCheckpoint: () => number | undefined;
}

interface Waiting {
  readonly entry: JournalEntry;
  readonly effect: () => void;
}

export class Journaling {
  readonly #journal: SchedulerJournal | undefined;
  readonly #again: () => void;
  readonly #notify: (text: string) => void;
  readonly #waiting: Waiting[] = [];
  /** Positions of the states that checkpoints of this process hold, by update. */
  readonly #checkpoints = new Map<number, number>();
  #refused = false;

  /**
   * @param journal the run's journal; without one every effect comes at once
   * @param again has `flush` called in a while
   * @param notify shows a line to the user
   */
  constructor(journal: SchedulerJournal | undefined, again: () => void, notify: (text: string) => void) {
    this.#journal = journal;
    this.#again = again;
    this.#notify = notify;
  }

  /** True while entries wait for the disk. */
  get isBehind(): boolean {
    return this.#waiting.length > 0;
  }

  /** True for a group whose end waits to be written. */
  holds(group: number): boolean {
    return this.#waiting.some(
      ({ entry }) => entry.type === 'played' && [...entry.groups, ...entry.gaveUp].some((one) => one.group === group),
    );
  }

  /** Writes an entry, then has its effect. */
  record(entry: () => JournalEntry, effect: () => void): void {
    if (!this.#journal) {
      effect();
      return;
    }
    this.#waiting.push({ entry: entry(), effect });
    if (this.#waiting.length === 1) this.flush();
  }

  /** Writes what waits, as far as the disk lets it. */
  flush(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      try {
        this.#journal!.journal.append(next.entry);
      } catch (thrown) {
        if (!this.#refused) this.#notify(`the journal cannot be written: ${messageOf(thrown)}; the run waits for room`);
        this.#refused = true;
        this.#again();
        return;
      }
      this.#waiting.shift();
      next.effect();
    }
    if (this.#refused) this.#notify('the journal is written again; the run goes on');
    this.#refused = false;
  }

  /** Records the digest of an update, and compares it with that of an earlier process. */
  recordUpdate({ version, digest }: Pick<UpdateReport, 'version' | 'digest'>): void {
    if (!this.#journal || digest === undefined) return;
    const before = this.#journal.digests.get(version);
    if (before === digest) return;
    if (before !== undefined) {
      this.#notify(
        `update ${version}, made again of the same groups, has other weights than before (${digest.slice(0, 12)}, then ${before.slice(0, 12)}): this machine computes otherwise`,
      );
    }
    this.record(
      () => ({ type: 'updated', version, digest }),
      () => {},
    );
  }

  /** Begins a file: the state of update `version` is taken for a checkpoint. @returns the position that it names */
  checkpoint(version: number): number | undefined {
    if (!this.#journal) return undefined;
    const { journal } = this.#journal;
    journal.close();
    this.#checkpoints.set(version, journal.position);
    return journal.position;
  }

  /** Removes entries that no checkpoint needs any more. Those of an earlier process stay until its checkpoints are gone. */
  trim(): void {
    const oldest = this.#journal?.oldestCheckpoint();
    const position = oldest === undefined ? undefined : this.#checkpoints.get(oldest);
    if (position !== undefined) this.#journal!.journal.trim(position);
  }
}
