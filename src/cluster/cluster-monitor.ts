/** Monitor of a cluster, at its learner: what console and metrics show. No decision reads it. */
import { type BrokerLoad, UNAVAILABLE, UNAVAILABLE_REASONS, type UnavailableReason } from './broker.ts';
import type { DispatchCounts } from './ticket-dispatcher.ts';
import { type WorkerRow, WorkerTable } from './worker-report.ts';

/** Facts of a cluster at one moment. */
export interface ClusterFacts {
  readonly workers: readonly WorkerRow[];
  readonly counts: DispatchCounts;
  /** Load of the broker when it was last measured; undefined until it was. */
  readonly load: BrokerLoad | undefined;
}

const NO_COUNTS: DispatchCounts = { outstanding: 0, results: 0, duplicates: 0, reissued: 0, refused: 0, verified: 0 };

export class ClusterMonitor {
  readonly workers = new WorkerTable();
  load: BrokerLoad | undefined;
  /** Returns the dispatcher's counts, once there is one. */
  counts = (): DispatchCounts => NO_COUNTS;

  /** @param now milliseconds of this machine's clock */
  facts(now: number): ClusterFacts {
    return { workers: this.workers.list(now), counts: this.counts(), load: this.load };
  }
}

/** Milliseconds of a round trip to the broker above which it slows the run. */
const SLOW_SERVER_MS = 100;

/**
 * Lists warnings about a cluster, one line each.
 * @param groups that may be out at once: (maxLag + 1) · groupsPerUpdate
 */
export function listWarnings(
  { workers, load }: ClusterFacts,
  { version, maxLag, groups }: { readonly version: number; readonly maxLag: number; readonly groups: number },
): string[] {
  const warnings: string[] = [];
  const here = workers.filter(({ state }) => state === 'here');
  const slots = here.reduce((sum, one) => sum + one.slots, 0);
  if (here.length > 1 && slots > groups) {
    warnings.push(
      `${here.length} workers have ${slots} slots, and learner.maxLag allows ${groups} groups at once: more machines are no use; raise learner.groupsPerUpdate or maxLag`,
    );
  }
  const late = here.filter((one) => version - one.version > maxLag);
  if (late.length > 0) {
    warnings.push(
      `${nameWorkers(late)}: weights lag more than learner.maxLag ${maxLag}; their decisions come too late`,
    );
  }
  const silent = workers.filter(({ state }) => state !== 'here');
  if (silent.length > 0) warnings.push(`${nameWorkers(silent)}: no report; their tickets go to others`);
  for (const reason of UNAVAILABLE_REASONS) {
    const stuck = here.filter((one) => one.stuck === reason);
    if (stuck.length > 0) warnings.push(`${nameWorkers(stuck)}: ${describeStuck(reason)}`);
  }
  const refused = workers.filter((one) => one.refused > 0);
  if (refused.length > 0) warnings.push(`${nameWorkers(refused)}: results were refused`);
  if (load && load.roundTripMs > SLOW_SERVER_MS) {
    warnings.push(`the NATS server answers in ${Math.round(load.roundTripMs)} ms: it is busy, or far away`);
  }
  if (workers.length === 0) warnings.push('no worker has reported yet: longplay worker <url> --run <name>');
  return warnings;
}

/** Describes workers whose results cannot be stored. */
export function describeStuck(reason: UnavailableReason): string {
  return `results cannot be stored: the NATS server ${UNAVAILABLE[reason]}; workers retry`;
}

/** Names shown at most. */
const MAX_NAMES = 3;

function nameWorkers(workers: readonly WorkerRow[]): string {
  const names = workers.slice(0, MAX_NAMES).map(({ name }) => name);
  return `${names.join(', ')}${workers.length > MAX_NAMES ? ` and ${workers.length - MAX_NAMES} more` : ''}`;
}
