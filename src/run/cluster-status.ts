/** Status of the runs of a NATS server: announcements, tickets, results, and the workers' reports. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Broker, type BrokerLoad, ignoreUnavailable, measureLoad } from '../cluster/broker.ts';
import type { Credentials } from '../cluster/credentials.ts';
import { decodeAnnouncement } from '../cluster/identity.ts';
import { REPORT_MS, type WorkerRow, WorkerTable } from '../cluster/worker-report.ts';
import { systemClock } from '../core/clock.ts';
import { UserError } from '../core/errors.ts';

export interface StatusOptions {
  readonly url: string;
  /** Name of a run; by default all of them. */
  readonly run?: string | undefined;
  readonly credentials?: Credentials | undefined;
}

/** Status of one run. */
export interface ClusterStatus {
  readonly run: string;
  readonly world: string;
  /** Version of the weights that are announced, in bytes, and true once training has ended. */
  readonly version: number;
  readonly weightBytes: number;
  readonly ended: boolean;
  /** Number of the learner's process. */
  readonly life: number;
  readonly maxLag: number;
  readonly load: BrokerLoad;
  readonly workers: readonly (WorkerRow & { readonly lag: number })[];
}

/** Milliseconds in which reports are collected: nearly two of each worker. */
const LISTEN_MS = 1.8 * REPORT_MS;

/**
 * Reads the status of a run, or of all runs.
 * @throws {UserError} UNKNOWN_RUN for a run that is not announced
 */
export async function readClusterStatus({ url, run, credentials }: StatusOptions): Promise<readonly ClusterStatus[]> {
  const { connectNats, listRuns } = await import('../cluster/nats/connect.ts');
  const runs = run === undefined ? await listRuns({ url, credentials }) : [run];
  const found = await Promise.all(
    runs.map(async (one) => {
      const broker = await connectNats({ url, run: one, credentials });
      try {
        return await readStatus(broker, one);
      } finally {
        await broker.close();
      }
    }),
  );
  const announced = found.flatMap((one) => one ?? []);
  if (run !== undefined && announced.length === 0)
    throw new UserError('UNKNOWN_RUN', `no run '${run}' is announced at ${url}`);
  return announced;
}

async function readStatus(broker: Broker, run: string): Promise<ClusterStatus | undefined> {
  const table = new WorkerTable();
  const unsubscribe = broker.reports.subscribe((name, bytes) => table.add(name, bytes, systemClock.now()));
  try {
    const found = await broker.weights.readAnnouncement().catch(ignoreUnavailable);
    if (!found) return undefined;
    const { version, bytes, ended, life, config } = decodeAnnouncement(found.bytes);
    if (!ended) await sleep(LISTEN_MS);
    const load = await measureLoad(broker);
    const workers = table.list(systemClock.now()).map((row) => ({ ...row, lag: version - row.version }));
    const { maxLag } = config.learner;
    return { run, world: config.env.id, version, weightBytes: bytes, ended, life, maxLag, load, workers };
  } finally {
    unsubscribe();
  }
}
