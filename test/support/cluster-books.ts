/**
 * Books of a learner that learns nothing: its weights are a chain of hashes over the results in their order, so that one more, one
 * less, one twice or two exchanged show. Folded from its journal alone. For tests of what stands between machines.
 */
import { createHash } from 'node:crypto';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { groupsToStart } from '../../src/learning/schedule/admission.ts';
import { trajectory } from './trajectories.ts';

/** Members of a group, groups of an update, and token ids. */
export const SIZE = 2;
export const PER_UPDATE = 2;
export const VOCABULARY = 10;

export const hashOf = (...parts: readonly string[]) => createHash('sha256').update(parts.join('|')).digest('hex');

export class Books {
  readonly maxLag: number;
  readonly outstanding = new Map<number, GroupTicket>();
  readonly trained: number[] = [];
  readonly account = { launched: 0, trained: 0, stale: 0, failed: 0 };
  readonly digests: string[] = [hashOf('initial')];
  /** Largest lag of what was trained on, and decisions that were. */
  maxSeen = 0;
  decisions = 0;
  next = 0;
  waiting: { readonly group: number; readonly versions: readonly number[]; readonly made: string }[] = [];

  constructor(maxLag: number) {
    this.maxLag = maxLag;
  }

  get version(): number {
    return this.digests.length - 1;
  }

  launch(): GroupTicket[] {
    const { version, maxLag, waiting, outstanding } = this;
    const accepted = version * PER_UPDATE + waiting.length;
    const start = groupsToStart({ maxLag, version, groupsPerUpdate: PER_UPDATE, accepted, running: outstanding.size });
    return Array.from({ length: start }, () => {
      const group = this.next++;
      const purpose = { name: 'train', temperature: 1, seed: group };
      const ticket = { group, task: { env: 'toy', index: 0, seed: 0 }, horizon: 99, size: SIZE, purpose, version };
      outstanding.set(group, ticket);
      this.account.launched += SIZE;
      return ticket;
    });
  }

  /** Takes a result. @param lost attempts at its episodes that failed before */
  take(group: number, trajectories: readonly Trajectory[], lost: number): void {
    if (!this.outstanding.delete(group)) throw new Error(`group ${group} counts twice`);
    this.account.launched += lost;
    this.account.failed += lost;
    const versions = trajectories.flatMap(({ turns }) => turns.map(({ decision }) => decision!.version));
    this.waiting.push({ group, versions, made: hashOf(String(group), ...versions.map(String)) });
    const isLate = ({ versions }: { readonly versions: readonly number[] }) =>
      versions.some((one) => this.version - one > this.maxLag || one > this.version);
    this.account.stale += this.waiting.filter(isLate).length * SIZE;
    this.waiting = this.waiting.filter((one) => !isLate(one));
    if (this.waiting.length >= PER_UPDATE) {
      const batch = this.waiting.splice(0, PER_UPDATE);
      for (const { versions } of batch) {
        this.decisions += versions.length;
        for (const one of versions) this.maxSeen = Math.max(this.maxSeen, this.version - one);
      }
      this.digests.push(hashOf(this.digests.at(-1)!, ...batch.map((one) => one.made)));
      this.trained.push(...batch.map((one) => one.group));
      this.account.trained += PER_UPDATE * SIZE;
    }
    this.check();
  }

  /** Takes note of attempts that failed and are made again. */
  failed(attempts: number): void {
    this.account.launched += attempts;
    this.account.failed += attempts;
    this.check();
  }

  /** @throws where an episode is unaccounted for */
  check(): void {
    const { launched, trained, stale, failed } = this.account;
    const inFlight = (this.outstanding.size + this.waiting.length) * SIZE;
    if (launched !== trained + stale + failed + inFlight)
      throw new Error(`unaccounted: ${JSON.stringify(this.account)} ${inFlight}`);
  }
}

/** Episodes of a ticket, each one turn, decided by weights of `version`. */
export function playedBy({ group, task, horizon }: GroupTicket, version: number): Trajectory[] {
  return Array.from({ length: SIZE }, (_, member) => ({
    ...trajectory({ turns: [{ version }], horizon }, member),
    group,
    task,
  }));
}
