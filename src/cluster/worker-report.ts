/** Reports of workers: how each is, for the eye only. No decision is taken by them, and they may all be missing. */
import { z } from 'zod';
import { UNAVAILABLE_REASONS, type UnavailableReason } from './broker.ts';

/** Report of a worker, once a second. */
export interface WorkerReport {
  readonly format: 1;
  /** Groups at once. */
  readonly slots: number;
  /** Tickets that it holds, and those of them that wait for their weights. */
  readonly held: number;
  readonly waiting: number;
  /** Groups whose results were stored, and tokens that its policy computed. */
  readonly finished: number;
  readonly groupsPerSecond: number;
  readonly tokensPerSecond: number;
  /** Version of its weights. */
  readonly version: number;
  /** Reason why its results have found no place at the broker for a while. */
  readonly stuck?: UnavailableReason | undefined;
}

const count = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const reportSchema = z.looseObject({
  format: z.literal(1),
  slots: count,
  held: count,
  waiting: count,
  finished: count,
  groupsPerSecond: count,
  tokensPerSecond: count,
  version: count,
  stuck: z.enum(UNAVAILABLE_REASONS).optional(),
});

/** Most bytes of a report. */
const MOST_BYTES = 4096;

export function encodeReport(report: WorkerReport): Uint8Array {
  return Buffer.from(JSON.stringify(report));
}

/** @returns undefined for bytes that are no report: they are for the eye, and another comes */
export function decodeReport(bytes: Uint8Array): WorkerReport | undefined {
  if (bytes.length > MOST_BYTES) return undefined;
  try {
    const checked = reportSchema.safeParse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    return checked.success ? (checked.data as WorkerReport) : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds between two reports; of silence after which a worker is shown as silent, and as gone. */
export const REPORT_MS = 1000;
const SILENT_MS = 3000;
const GONE_MS = 15_000;
/** Workers shown at most: their names come from outside. */
const MOST_WORKERS = 10_000;

/** Row of a worker. */
export interface WorkerRow extends WorkerReport {
  readonly name: string;
  readonly state: 'here' | 'silent' | 'gone';
  /** Milliseconds since its last report, by the clock of this machine. */
  readonly silentMs: number;
  /** Results of it that could not be believed. */
  readonly refused: number;
}

/** Rows of a run's workers, by what they report and when it was heard here. */
export class WorkerRows {
  readonly #seen = new Map<string, { readonly report: WorkerReport; readonly at: number }>();
  readonly #refused = new Map<string, number>();

  /** Takes a report. @returns undefined where it is none */
  heard(name: string, bytes: Uint8Array, now: number): WorkerReport | undefined {
    const report = decodeReport(bytes);
    if (!report || (this.#seen.size >= MOST_WORKERS && !this.#seen.has(name))) return undefined;
    this.#seen.set(name, { report, at: now });
    return report;
  }

  refused(name: string): void {
    if (this.#refused.size < MOST_WORKERS) this.#refused.set(name, (this.#refused.get(name) ?? 0) + 1);
  }

  /** Rows by name. Those that have been gone for a while are left out. */
  rows(now: number): readonly WorkerRow[] {
    for (const [name, { at }] of this.#seen) if (now - at > 4 * GONE_MS) this.#seen.delete(name);
    const rows = [...this.#seen].map(([name, { report, at }]): WorkerRow => {
      const silentMs = now - at;
      const state = silentMs < SILENT_MS ? 'here' : silentMs < GONE_MS ? 'silent' : 'gone';
      return { ...report, name, state, silentMs, refused: this.#refused.get(name) ?? 0 };
    });
    return rows.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}
