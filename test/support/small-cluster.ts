/** A learner and workers in one process, over the twin of a broker: every actor is real, in threads of its own. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Run, type RunningWorker, type RunOptions, startWorker } from '../../actors/tree.ts';
import { ClusterMonitor } from '../../src/cluster/cluster-monitor.ts';
import { decodeAnnouncement } from '../../src/cluster/identity.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { systemClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { startRun } from '../../src/run/start-run.ts';
import { MemoryServer } from './memory-broker.ts';

const LEASE_MS = 10_000;

export interface SmallCluster {
  readonly run: Run;
  readonly exchange: MemoryServer;
  /** Adds a worker, once the run is announced. @param config the run's, with what this machine has otherwise */
  join(config?: RunConfig): Promise<void>;
}

/** Starts a learner that plays nothing itself, hands it to `use`, and stops it and its workers. */
export async function withSmallCluster<T>(
  { config, dir, envModule, ...more }: Pick<RunOptions, 'config' | 'dir' | 'envModule'> & Partial<RunOptions>,
  use: (cluster: SmallCluster) => Promise<T>,
): Promise<T> {
  const exchange = new MemoryServer(systemClock, Rng.fromSeed(1), LEASE_MS);
  mkdirSync(dir, { recursive: true });
  const run = await startRun({
    ...{ config, dir, mode: 'async', envModule, learn: true, journal: join(dir, 'journal') },
    cluster: { broker: exchange.connect(), run: 'run', localGroups: 0, verify: 0, monitor: new ClusterMonitor() },
    ...more,
  });
  const workers: RunningWorker[] = [];
  const joined = async (own = config) => {
    while (!exchange.announcement) await new Promise((resolve) => setTimeout(resolve, 20));
    const announcement = decodeAnnouncement(exchange.announcement.bytes);
    const named = { run: 'run', name: `w${workers.length}`, broker: exchange.connect(), announcement };
    const worker = await startWorker({
      ...named,
      ...{ config: own, envModule, slots: 4, leaseMs: LEASE_MS, onNotice() {} },
    });
    workers.push(worker);
  };
  try {
    await run.save(); // the journal of a new run begins with it
    return await use({ run, exchange, join: joined });
  } finally {
    await run.stop();
    for (const worker of workers) await worker.stop();
  }
}
