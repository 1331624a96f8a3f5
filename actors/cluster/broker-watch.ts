/** Watch over the broker, for the learner's monitor: workers' reports, the load, and results that cannot be stored. */
import { type Broker, measureLoad, type UnavailableReason } from '../../src/cluster/broker.ts';
import { type ClusterMonitor, describeStuck } from '../../src/cluster/cluster-monitor.ts';
import type { Clock } from '../../src/core/clock.ts';

/** Milliseconds between two measurements of the broker's load. */
const LOAD_MS = 2000;

/** Broker to watch, and the monitor that it is watched for. */
export interface BrokerWatchOptions {
  readonly broker: Broker;
  readonly clock: Clock;
  readonly monitor: ClusterMonitor;
  /** Called with lines for a person. */
  readonly onNotice: (text: string) => void;
}

/** Watch over the broker of a run, from its creation to `stop`. */
export class BrokerWatch {
  readonly #options: BrokerWatchOptions;
  readonly #unsubscribe: () => void;
  /** Reason that was reported last for results that cannot be stored, until a result arrives. */
  #reported: UnavailableReason | undefined;
  #isStopped = false;

  constructor(options: BrokerWatchOptions) {
    const { broker, clock, monitor } = options;
    this.#options = options;
    this.#unsubscribe = broker.reports.subscribe((name, bytes) => {
      const report = monitor.workers.add(name, bytes, clock.now());
      if (report?.stuck !== undefined) this.#reportStuck(name, report.stuck);
    });
    void this.#measureLoad();
  }

  /** Records that a result arrived: the broker stores results. */
  recordArrived(): void {
    this.#reported = undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
  }

  /** Reports once that the broker stores no results. Reads still work, so the learner itself would not notice. */
  #reportStuck(worker: string, reason: UnavailableReason): void {
    if (reason === this.#reported) return;
    this.#reported = reason;
    this.#options.onNotice(`${worker}: ${describeStuck(reason)}`);
  }

  /** Measures the broker's load every two seconds. */
  async #measureLoad(): Promise<void> {
    const { broker, clock, monitor } = this.#options;
    while (!this.#isStopped) {
      monitor.load = await measureLoad(broker).catch(() => undefined);
      await new Promise<void>((resolve) => clock.setTimer(LOAD_MS, resolve));
    }
  }
}
