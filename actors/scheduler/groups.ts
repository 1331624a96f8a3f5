/**
 * Groups: every one that was launched, from its ticket to the update that consumes it, and the account of all episodes:
 * launched = trained + stale + filtered + failed + in flight, at any time. A result counts only if its group is
 * outstanding; that makes each count once.
 */
import { LongplayError } from '../../src/core/errors.ts';
import type { Accounting, FailureCause } from '../../src/core/failure.ts';
import type { UpdateReport } from '../learner/protocol.ts';
import type { GroupTicket, RolloutState } from '../rollout/protocol.ts';
import { Ledger } from './ledger.ts';
import type { SchedulerState } from './protocol.ts';
import type { ResultQueue } from './result-queue.ts';

export class LaunchedGroups {
  readonly deliveries: ResultQueue;
  readonly #ledger: Ledger;
  /** Outstanding groups in launch order: with the rollouts, or on the way there. */
  readonly #outstanding = new Map<number, GroupTicket>();
  /** Episodes that a checkpoint keeps in flight, until its groups are restored: in a run that is over they never are. */
  #kept: number;

  constructor(deliveries: ResultQueue, accounting: Accounting | undefined) {
    this.deliveries = deliveries;
    this.#ledger = new Ledger(accounting);
    this.#kept = accounting?.inFlight ?? 0;
  }

  /** Begins the restoring of a checkpoint's groups, all of them: `restore` and `deliveries.add` count them from now on. */
  restoring(): void {
    this.#kept = 0;
  }

  /** Counts of outstanding groups, to train on and in all. */
  get counts(): { readonly training: number; readonly all: number } {
    return { training: this.#training().length, all: this.#outstanding.size };
  }

  launch(ticket: GroupTicket): void {
    this.#outstanding.set(ticket.group, ticket);
    this.#ledger.launch(ticket.size);
  }

  /** Restores a group of a checkpoint, whose accounting counts it already. */
  restore(ticket: GroupTicket): void {
    this.#outstanding.set(ticket.group, ticket);
  }

  /**
   * Records an attempt that failed and is made again. @returns its ticket; undefined for a group that is not
   * outstanding
   */
  recordFailed(group: number, cause: FailureCause): GroupTicket | undefined {
    const ticket = this.#outstanding.get(group);
    if (!ticket) return undefined;
    this.#ledger.fail(cause);
    this.#ledger.launch(1);
    return ticket;
  }

  /**
   * Records a finished group; `deliveries.add` or `filter` decide what its episodes count as.
   * @returns its ticket; undefined for a group that is not outstanding
   * @throws {LongplayError} STALLED when it is not whole
   */
  recordFinished(group: number, episodes: number): GroupTicket | undefined {
    const ticket = this.#outstanding.get(group);
    if (!ticket) return undefined;
    if (episodes !== ticket.size) {
      throw new LongplayError('STALLED', `group ${group} came back with ${episodes} episodes, expected ${ticket.size}`);
    }
    this.#outstanding.delete(group);
    return ticket;
  }

  /** Records a group given up, whose last attempt failed for `cause`; its other episodes count as filtered. */
  recordGivenUp(group: number, cause: FailureCause): GroupTicket | undefined {
    const ticket = this.#outstanding.get(group);
    if (!ticket) return undefined;
    this.#outstanding.delete(group);
    this.#ledger.fail(cause);
    this.#ledger.filter(ticket.size - 1);
    return ticket;
  }

  /** Filters finished episodes that are not for training. */
  filter(episodes: number): void {
    this.#ledger.filter(episodes);
  }

  /** Counts an update's groups, consumed or too old. @throws {LongplayError} STALLED when episodes are unaccounted for */
  recordConsumed({ trained, filtered, stale }: Pick<UpdateReport, 'trained' | 'filtered' | 'stale'>): void {
    for (const group of trained) this.#ledger.train(this.deliveries.collect(group));
    for (const group of filtered) this.#ledger.filter(this.deliveries.collect(group));
    for (const group of stale) this.#ledger.drop(this.deliveries.collect(group));
    this.#ledger.check(this.#inFlight());
  }

  /** Abandons training groups, which are no longer wanted; they count as filtered. @returns their numbers */
  abandonTraining(): readonly number[] {
    return this.#training().map(({ group, size }) => {
      this.#outstanding.delete(group);
      this.#ledger.filter(size);
      return group;
    });
  }

  get accounting(): Accounting {
    return this.#ledger.account(this.#inFlight());
  }

  /**
   * State for a checkpoint. Evaluations under way are not kept, since a resumed run has lost their episodes: they count
   * as filtered.
   * @param running as the rollouts reported them
   * @param isElsewhere true for a group of which the rollouts have nothing: its ticket alone is kept
   * @throws {LongplayError} STALLED when a group is neither with the rollouts nor elsewhere nor with the learner
   */
  snapshot(
    running: RolloutState['running'],
    isElsewhere: (group: number) => boolean = () => false,
  ): Pick<SchedulerState, 'accounting' | 'running' | 'tickets' | 'delivered'> {
    const training = this.#training();
    const kept = running.filter(({ group }) => this.#outstanding.has(group));
    const there = new Set(kept.map(({ group }) => group));
    const absent = training.filter(({ group }) => !there.has(group));
    const tickets = absent.filter(({ group }) => isElsewhere(group));
    if (tickets.length !== absent.length) {
      const missing = absent.filter(({ group }) => !isElsewhere(group));
      throw new LongplayError(
        'STALLED',
        `checkpoint: the rollouts do not have ${missing.map(({ group }) => `group ${group}`).join(', ')}`,
      );
    }
    let inFlight = this.#kept + this.deliveries.episodes;
    for (const { size } of training) inFlight += size;
    const { accounting } = this;
    const filtered = accounting.filtered + accounting.inFlight - inFlight;
    const delivered = this.deliveries.snapshot();
    const saved = { accounting: { ...accounting, filtered, inFlight }, running: kept, delivered };
    return tickets.length > 0 ? { ...saved, tickets } : saved;
  }

  #training(): GroupTicket[] {
    return [...this.#outstanding.values()].filter(({ purpose }) => purpose.name === 'train');
  }

  /** Episodes running, or finished and waiting for an update. */
  #inFlight(): number {
    let count = this.#kept + this.deliveries.episodes;
    for (const { size } of this.#outstanding.values()) count += size;
    return count;
  }
}
