/** Curve buffer: rows of metrics as curves of bounded length; past it, neighbouring points are averaged into one. */
import type { MetricsRow } from '../metrics/metric-table.ts';
import { pointName, points } from '../metrics/metrics.ts';
import type { Curves } from './api.ts';

/** Last-value series, positions and counters: of two points that become one, the later counts. */
const LAST: ReadonlySet<string> = new Set(['update', 'elapsed', 'horizon', 'envSteps', 'episodes', 'progress']);

export class CurveBuffer {
  readonly #most: number;
  readonly #series = new Map<string, (number | null)[]>();
  #length = 0;
  #stride = 1;
  #rows = 0;
  /** Sums and counts of the point that is being filled. */
  #pending = new Map<string, { sum: number; count: number }>();

  /** @param most points kept at most, even */
  constructor(most = 2000) {
    this.#most = most;
  }

  get rows(): number {
    return this.#rows;
  }

  add(row: MetricsRow): void {
    for (const point of points(row)) {
      const { value } = point;
      const name = pointName(point);
      const known = this.#pending.get(name);
      if (known && !LAST.has(name)) {
        known.sum += value;
        known.count++;
      } else this.#pending.set(name, { sum: value, count: 1 });
    }
    if (++this.#rows % this.#stride === 0) this.#push();
  }

  /** Curves so far; points that are not full yet are left out. */
  get curves(): Omit<Curves, 'evaluations'> {
    return { rows: this.#rows, stride: this.#stride, series: Object.fromEntries(this.#series) };
  }

  #push(): void {
    for (const [name, { sum, count }] of this.#pending) {
      let values = this.#series.get(name);
      if (!values) this.#series.set(name, (values = new Array(this.#length).fill(null)));
      values.push(sum / count);
    }
    this.#length++;
    for (const values of this.#series.values()) if (values.length < this.#length) values.push(null);
    this.#pending = new Map();
    if (this.#length >= this.#most) this.#halve();
  }

  #halve(): void {
    for (const [name, values] of this.#series) {
      this.#series.set(
        name,
        Array.from({ length: this.#length / 2 }, (_, i) => mergeValues(name, values[2 * i]!, values[2 * i + 1]!)),
      );
    }
    this.#length /= 2;
    this.#stride *= 2;
  }
}

function mergeValues(name: string, a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return LAST.has(name) ? b : (a + b) / 2;
}
