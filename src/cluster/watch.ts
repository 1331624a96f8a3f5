/** Watch over a cluster from its learner: what console and metrics show. For the eye only. */
import { type BrokerLoad, UNAVAILABLE, UNAVAILABLE_REASONS, type UnavailableReason } from './broker.ts';
import type { IssuerCounts } from './issuer.ts';
import { type WorkerRow, WorkerRows } from './worker-report.ts';

/** Facts of a cluster at one moment. */
export interface ClusterFacts {
  readonly workers: readonly WorkerRow[];
  readonly counts: IssuerCounts;
  /** Load of the broker when it was last asked; undefined until it has answered. */
  readonly load: BrokerLoad | undefined;
}

const NOTHING: IssuerCounts = { outstanding: 0, results: 0, duplicates: 0, issuedAgain: 0, refused: 0, verified: 0 };

export class ClusterWatch {
  readonly workers = new WorkerRows();
  load: BrokerLoad | undefined;
  /** Counts of the issuer, once there is one. */
  counts = (): IssuerCounts => NOTHING;

  facts(now: number): ClusterFacts {
    return { workers: this.workers.rows(now), counts: this.counts(), load: this.load };
  }
}

/** Milliseconds of a question to the broker above which it slows the run. */
const SLOW_SERVER_MS = 100;

/**
 * Warnings about a cluster.
 * @param groups that may be out at once: (maxLag + 1) · groupsPerUpdate
 */
export function clusterWarnings(
  { workers, load }: ClusterFacts,
  { version, maxLag, groups }: { readonly version: number; readonly maxLag: number; readonly groups: number },
): string[] {
  const found: string[] = [];
  const here = workers.filter(({ state }) => state === 'here');
  const slots = here.reduce((sum, one) => sum + one.slots, 0);
  if (here.length > 1 && slots > groups) {
    found.push(
      `${here.length} workers have ${slots} slots, and learner.maxLag lets ${groups} groups be out: more machines buy nothing; raise learner.groupsPerUpdate or maxLag`,
    );
  }
  const late = here.filter((one) => version - one.version > maxLag);
  if (late.length > 0) {
    found.push(`${named(late)}: weights lag more than learner.maxLag ${maxLag}; what they decide comes too late`);
  }
  const silent = workers.filter(({ state }) => state !== 'here');
  if (silent.length > 0) found.push(`${named(silent)}: nothing heard; what they held goes to others`);
  for (const reason of UNAVAILABLE_REASONS) {
    const stuck = here.filter((one) => one.stuck === reason);
    if (stuck.length > 0) found.push(`${named(stuck)}: ${stuckWords(reason)}`);
  }
  const refused = workers.filter((one) => one.refused > 0);
  if (refused.length > 0) found.push(`${named(refused)}: results that cannot be believed`);
  if (load && load.roundTripMs > SLOW_SERVER_MS) {
    found.push(`the NATS server answers in ${Math.round(load.roundTripMs)} ms: it is busy, or far away`);
  }
  if (workers.length === 0) found.push('no worker has reported yet: longplay worker <url> --run <name>');
  return found;
}

/** Words for workers whose results find no place. */
export function stuckWords(reason: UnavailableReason): string {
  return `results cannot be stored: the NATS server ${UNAVAILABLE[reason]}; workers retry`;
}

/** Names shown at most. */
const NAMED = 3;

function named(workers: readonly WorkerRow[]): string {
  const names = workers.slice(0, NAMED).map(({ name }) => name);
  return `${names.join(', ')}${workers.length > NAMED ? ` and ${workers.length - NAMED} more` : ''}`;
}
