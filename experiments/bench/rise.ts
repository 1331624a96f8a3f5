/** Training from scratch: seconds until the quickstart's success has risen, and the speed of its learner. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { train } from '../../src/run/train.ts';
import type { Bench, Figure } from './contract.ts';
import { median } from './median.ts';
import { quickstart } from './rollout.ts';

/** Bench `rise`. */
export const bench: Bench = async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  try {
    return await firstRise(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

/**
 * Seconds from the start of training until success is significantly above what it was: the last 8 updates against the
 * first 4, z > 4 (two proportions).
 */
async function firstRise(dir: string): Promise<Figure[]> {
  const episodesPerUpdate = 64;
  const rows: MetricsRow[] = [];
  const metrics$ = new Subject<MetricsRow>();
  let risen: number | undefined;
  const start = performance.now();
  let halt = () => {};
  metrics$.subscribe((row) => {
    rows.push(row);
    if (rows.length < 16 || risen !== undefined) return;
    const [a, b] = [rows.slice(0, 4), rows.slice(-8)].map((part) => ({
      p: part.reduce((sum, { success }) => sum + (success ?? 0), 0) / part.length,
      n: part.length * episodesPerUpdate,
    })) as [{ p: number; n: number }, { p: number; n: number }];
    const pooled = (a.p * a.n + b.p * b.n) / (a.n + b.n);
    const z = (b.p - a.p) / Math.sqrt(pooled * (1 - pooled) * (1 / a.n + 1 / b.n));
    if (z <= 4) return;
    risen = (performance.now() - start) / 1000;
    halt();
  });
  // Uniform sampling: under the learnable one success stays near one half whatever is learnt.
  const config = quickstart('stop={minutes: 2}', 'tasks.sampling={type: uniform}', 'horizon={type: fixed, rounds: 8}');
  await train({
    config,
    dir: join(dir, 'run'),
    onMetrics: (row) => metrics$.next(row),
    onStarted: (run) => {
      halt = () => run.halt();
    },
  }).done;
  const last = rows.at(-1);
  return [
    {
      name: 'first significant rise of success',
      value: risen ?? Number.NaN,
      unit: 's after the start',
      note:
        risen === undefined ? 'none within two minutes' : `after ${last?.envSteps} env steps, ${last?.update} updates`,
    },
    {
      name: 'learner',
      value: median(rows.map(({ learnerTokensPerSecond }) => learnerTokensPerSecond ?? 0)),
      unit: 'tokens/s',
      note: 'forward, backward and AdamW, beside the rollouts',
    },
  ];
}
