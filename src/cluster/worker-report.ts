/** Reports of workers, for the eye only. No decision reads them, and all of them may be missing. */
import { z } from 'zod';
import { parseJson } from '../core/json-text.ts';
import { UNAVAILABLE_REASONS, type UnavailableReason } from './broker.ts';

/** Report of a worker, once a second. */
export interface WorkerReport {
  readonly format: 1;
  /** Groups at once. */
  readonly slots: number;
  /** Tickets that it holds, and those of them that wait for their weights. */
  readonly held: number;
  readonly waiting: number;
  /** Groups whose results were stored. */
  readonly finished: number;
  /** Rates over the last seconds: groups, and tokens that its policy computed. */
  readonly groupsPerSecond: number;
  readonly tokensPerSecond: number;
  /** Version of its weights. */
  readonly version: number;
  /** Reason why its results could not be stored for a while. */
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

/** Bytes that a report may have. */
const MAX_BYTES = 4096;

export function encodeReport(report: WorkerReport): Uint8Array {
  return Buffer.from(JSON.stringify(report));
}

/** Decodes a report. @returns undefined for invalid bytes: another report comes */
export function decodeReport(bytes: Uint8Array): WorkerReport | undefined {
  if (bytes.length > MAX_BYTES) return undefined;
  try {
    const checked = reportSchema.safeParse(parseJson(Buffer.from(bytes).toString('utf8')));
    return checked.success ? (checked.data as WorkerReport) : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds between two reports; and without one until a worker is shown as silent, and as gone. */
export const REPORT_MS = 1000;
const SILENT_MS = 3000;
const GONE_MS = 15_000;
/** Workers shown at most: their names come from other machines. */
const MAX_WORKERS = 10_000;

/** Row of a worker. */
export interface WorkerRow extends WorkerReport {
  readonly name: string;
  readonly state: 'here' | 'silent' | 'gone';
  /** Milliseconds since its last report, by the clock of this machine. */
  readonly silentMs: number;
  /** Results of it that were refused. */
  readonly refused: number;
}

/** Table of a run's workers, by what they report and when this machine received it. */
export class WorkerTable {
  readonly #reports = new Map<string, { readonly report: WorkerReport; readonly at: number }>();
  readonly #refused = new Map<string, number>();

  /** Adds a report. @param now milliseconds @returns undefined where the bytes are invalid, or the table is full */
  add(name: string, bytes: Uint8Array, now: number): WorkerReport | undefined {
    const report = decodeReport(bytes);
    if (!report || (this.#reports.size >= MAX_WORKERS && !this.#reports.has(name))) return undefined;
    this.#reports.set(name, { report, at: now });
    return report;
  }

  /** Counts a refused result of a worker. */
  addRefused(name: string): void {
    if (this.#refused.size < MAX_WORKERS) this.#refused.set(name, (this.#refused.get(name) ?? 0) + 1);
  }

  /** Lists rows by name, without workers that are long gone. @param now milliseconds */
  list(now: number): readonly WorkerRow[] {
    for (const [name, { at }] of this.#reports) if (now - at > 4 * GONE_MS) this.#reports.delete(name);
    const rows = [...this.#reports].map(([name, { report, at }]): WorkerRow => {
      const silentMs = now - at;
      const state = silentMs < SILENT_MS ? 'here' : silentMs < GONE_MS ? 'silent' : 'gone';
      return { ...report, name, state, silentMs, refused: this.#refused.get(name) ?? 0 };
    });
    return rows.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}
