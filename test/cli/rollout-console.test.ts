/** A rollout shows on the console what training does: outcomes by sub-task, rates, progress; and its rows are kept. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { loadRunConfig } from '../../src/config/load.ts';
import type { ActorLine, Progress } from '../../src/console/state.ts';
import { type MetricsRow, metricTable } from '../../src/metrics/metric-table.ts';
import { playRollout } from '../../src/run/rollout.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';

it('rows and progress of a rollout', { timeout: 60_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-rollout-'));
  try {
    const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 8 }, stop: { updates: 1 } };
    const settings = ['policy.kind=random', 'trace.maxShare=0.001', 'rollout.concurrentGroups=16'];
    const config = loadRunConfig(JSON.stringify(raw), 'test', settings);
    const run = join(dir, 'run');
    createRunFolder(run, config);
    const plan = { format: 1, episodes: 300, split: 'test', horizon: 8, temperature: 1, seed: 1 } as const;
    const rows: MetricsRow[] = [];
    const metrics$ = new Subject<MetricsRow>();
    metrics$.subscribe((row) => rows.push(row));
    const progress: Progress[] = [];
    let actors: () => readonly ActorLine[] = () => [];
    const display = {
      progress: (one: Progress) => {
        progress.push(one);
        expect(actors().map(({ path }) => path)).toContain('/inference');
      },
      watch: (source: () => readonly ActorLine[]) => {
        actors = source;
      },
    };
    const { finished, summary } = await playRollout(
      { dir: run, config, plan },
      { onNotice: () => {}, display, metrics$ },
    );
    expect(finished).toBe(300);
    expect(progress.at(-1)).toMatchObject({ episodes: 300, progress: 1, horizon: 8 });
    // Every episode is in exactly one row, under its label.
    const byLabel: Record<string, number> = {};
    let solved = 0;
    for (const row of rows) {
      for (const [label, n] of Object.entries(row.episodesByLabel ?? {})) {
        byLabel[label] = (byLabel[label] ?? 0) + n;
        solved += n * row.successByLabel![label]!;
      }
    }
    expect(Object.values(byLabel).reduce((sum, n) => sum + n, 0)).toBe(300);
    expect(Object.keys(byLabel).length).toBeGreaterThan(1);
    expect(solved).toBeCloseTo(300 * summary.all.success.value, 6);
    const kept = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n');
    expect(kept.map((line) => JSON.parse(line))).toEqual(JSON.parse(JSON.stringify(rows)));
    const names = new Set<string>(metricTable.map(({ name }) => name));
    for (const row of rows) for (const name of Object.keys(row)) expect(names.has(name), name).toBe(true);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
