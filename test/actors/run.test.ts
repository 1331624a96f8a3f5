import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { rolloutInit } from '../../actors/rollout/init.ts';
import type { Run } from '../../actors/tree.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { countFailed, countUnaccounted } from '../../src/core/failure.ts';
import { oldestVersion } from '../../src/core/trajectory.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { startRun } from '../../src/run/start-run.ts';
import { loadNewest } from '../../src/storage/checkpoint.ts';
import { readTrace, type TraceLine } from '../../src/storage/trace.ts';
import { tracePaths } from '../../src/storage/trace-files.ts';
import { smallConfig, temporaryFolder, textcraftUrl } from '../support/small-run.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Finished {
  readonly dir: string;
  readonly rows: readonly MetricsRow[];
  readonly traces: readonly TraceLine[];
  readonly weights: string;
}

async function trained(config: RunConfig, mode: 'async' | 'serial', resumeFrom?: string): Promise<Finished> {
  const dir = resumeFrom ?? temporaryFolder('run');
  folders.push(dir);
  const rows: MetricsRow[] = [];
  const run: Run = await startRun({
    config,
    dir,
    mode,
    envModule: textcraftUrl,
    learn: true,
    checkpoint: resumeFrom === undefined ? undefined : loadNewest(join(dir, 'checkpoints')),
  });
  try {
    run.metrics$.subscribe((row) => rows.push(row));
    const { status } = await run.train();
    expect(countUnaccounted(status.accounting)).toBe(0);
    expect((await run.save()).ok).toBe(true);
  } finally {
    await run.stop();
  }
  const { tensors } = loadNewest(join(dir, 'checkpoints'));
  const hash = createHash('sha256');
  for (const name of Object.keys(tensors).sort()) hash.update(name).update(tensors[name]!.data as Float32Array);
  return {
    dir,
    rows,
    traces: tracePaths(join(dir, 'traces')).flatMap((path) => readTrace(path).episodes),
    weights: hash.digest('hex'),
  };
}

describe('a run', () => {
  it('in serial mode repeats bit for bit under one seed, and differs under another', async () => {
    const [a, b, c] = [
      await trained(smallConfig(), 'serial'),
      await trained(smallConfig(), 'serial'),
      await trained(smallConfig({ seed: 2 }), 'serial'),
    ];
    expect(b.weights).toBe(a.weights);
    expect(b.traces).toEqual(a.traces);
    expect(b.rows).toEqual(a.rows);
    expect(c.weights).not.toBe(a.weights);
  });

  it('makes its rollout actor out of plain data', () => {
    const options = { config: smallConfig(), dir: '', mode: 'async', envModule: textcraftUrl, learn: true } as const;
    const init = rolloutInit(options, 'view', true, undefined);
    expect(structuredClone(init)).toEqual(init);
    expect(JSON.parse(JSON.stringify(init))).toEqual(init);
  });

  it('in threads accounts for every episode and trains nothing older than maxLag', async () => {
    for (const maxLag of [0, 2]) {
      const { rows, traces } = await trained(
        smallConfig({ learner: { groupsPerUpdate: 2, maxLag, filterGroups: false }, stop: { updates: 8 } }),
        'async',
      );
      expect(rows.map(({ update }) => update)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      for (const row of rows) expect(row.lagMax).toBeLessThanOrEqual(maxLag);
      expect(rows.at(-1)!.failed).toBe(0);
      for (const trace of traces) {
        expect(trace.turns.length).toBeLessThanOrEqual(4);
        expect(trace.end === 'truncated').toBe(trace.turns.length === 4 && !trace.success);
        for (const turn of trace.turns) expect(trace.actionTable).toContain(turn.action);
        expect(oldestVersion(trace)).toBeGreaterThanOrEqual(0);
      }
    }
  });

  it('never mixes horizons in a group, and stretches them by update', async () => {
    const { rows, traces } = await trained(
      smallConfig({
        horizon: { type: 'scaling_inter_stepwise', rounds: [2, 3, 5], steps_scaling_inter: 2 },
        learner: { groupsPerUpdate: 2, maxLag: 0 },
        stop: { updates: 6 },
      }),
      'async',
    );
    // The row of update k shows the horizon of step k + 1.
    expect(rows.map(({ horizon }) => horizon)).toEqual([2, 3, 3, 5, 5, 5]);
    const horizonOf = new Map<number, number>();
    for (const { group, horizon } of traces) {
      expect(horizonOf.get(group) ?? horizon).toBe(horizon);
      horizonOf.set(group, horizon);
    }
    expect(new Set(traces.map(({ horizon }) => horizon))).toEqual(new Set([2, 3, 5]));
  });

  it('goes on from its checkpoint: update, horizon and counters', async () => {
    const first = await trained(smallConfig({ stop: { updates: 3 } }), 'async');
    const second = await trained(smallConfig({ stop: { updates: 6 } }), 'async', first.dir);
    expect(second.rows.map(({ update }) => update)).toEqual([4, 5, 6]);
    expect(second.rows[0]!.envSteps).toBeGreaterThanOrEqual(first.rows.at(-1)!.envSteps!);
    expect(second.rows.at(-1)!.envSteps).toBeGreaterThan(first.rows.at(-1)!.envSteps!);
    expect(second.weights).not.toBe(first.weights);
  });

  it('refuses a checkpoint of another model', async () => {
    const { dir } = await trained(smallConfig({ stop: { updates: 1 } }), 'async');
    const other = smallConfig({ policy: { model: { hiddenSize: 32, layers: 1, heads: 2 } } });
    await expect(trained(other, 'async', dir)).rejects.toThrow(/another model: model\.hiddenSize is 16 there, 32 here/);
  });

  it('plays evaluations of given tasks and repeats them', async () => {
    const dir = temporaryFolder('eval');
    folders.push(dir);
    const config = smallConfig();
    const plan = {
      name: 'h4',
      tasks: [0, 1, 2].map((index) => ({ env: 'textcraft', index, seed: 42 })),
      episodes: 3,
      horizon: 4,
      temperature: 1,
      seed: 9,
    };
    const run = await startRun({ config, dir, mode: 'async', envModule: textcraftUrl, learn: false });
    try {
      const one = await run.evaluate(plan);
      expect(one.results.map(({ successes }) => successes.length)).toEqual([3, 3, 3]);
      expect(await run.evaluate(plan)).toEqual(one);
      const { accounting } = await run.status();
      expect(countUnaccounted(accounting)).toBe(0);
      expect(countFailed(accounting)).toBe(0);
    } finally {
      await run.stop();
    }
  });
});
