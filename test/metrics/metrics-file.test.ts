/** metrics.jsonl after a full disk, a kill and a resume. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { cutMetrics, MetricsFile } from '../../src/metrics/metrics-file.ts';
import { toyConfig, withToyRun } from '../support/toy-run.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-metrics-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

const path = () => join(dir, 'metrics.jsonl');
const row = (update: number) => ({ update, success: 0.5 }) as unknown as MetricsRow;
const updates = () =>
  readFileSync(path(), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).update);

describe('a row that the disk takes in part', () => {
  it('is taken back, and the next one is whole', () => {
    // `ulimit -f` counts blocks of 1024 bytes; a signal reports it unless ignored.
    const module = new URL('../../dist/src/metrics/metrics-file.js', import.meta.url).href;
    const code = `
      process.on('SIGXFSZ', () => {});
      import(${JSON.stringify(module)}).then(({ MetricsFile }) => {
        const file = new MetricsFile(${JSON.stringify(dir)});
        let refused = 0;
        for (let update = 1; update <= 40; update++) {
          try { file.append({ update, text: 'x'.repeat(update % 2 ? 10 : 900) }); } catch { refused++; }
        }
        console.log(refused);
      });`;
    const ran = spawnSync('bash', ['-c', `ulimit -f 4; exec ${process.execPath} -e "$CODE"`], {
      env: { ...process.env, CODE: code },
      encoding: 'utf8',
    });
    expect(Number(ran.stdout)).toBeGreaterThan(10);
    expect(updates().length).toBeGreaterThan(3);
    expect(readFileSync(path()).at(-1)).toBe(10); // ends with a line's end
  });
});

describe('a resumed run', () => {
  it('cuts the rows of updates that its checkpoint has not seen, and goes on', () => {
    const first = new MetricsFile(dir);
    for (const update of [1, 2, 3, 4]) first.append(row(update));
    first.close();
    writeFileSync(path(), '{"update":5,"suc', { flag: 'a' });

    cutMetrics(dir, 3);
    const second = new MetricsFile(dir);
    for (const update of [4, 5]) second.append(row(update));
    second.close();
    expect(updates()).toEqual([1, 2, 3, 4, 5]);
  });

  it('has each update once, after a kill that came behind its checkpoint too', { timeout: 60_000 }, async () => {
    const config = (updates: number) =>
      toyConfig('chain', {
        rollout: { groupSize: 2, concurrentGroups: 2 },
        learner: { groupsPerUpdate: 1 },
        checkpoint: { everyUpdates: 2 },
        stop: { updates },
      });
    await withToyRun(config(2), dir, ({ run }) => run.train());
    expect(updates()).toEqual([1, 2]);
    writeFileSync(path(), '{"update":3}\n{"update":4}\n{"upd', { flag: 'a' }); // what a run writes until it is killed

    await withToyRun(config(4), dir, ({ run }) => run.train(), { checkpoint: loadNewestOf(dir) });
    expect(updates()).toEqual([1, 2, 3, 4]);
    expect(readFileSync(path(), 'utf8')).not.toMatch(/"update":[34]\}/);
  });

  it('cuts a last line that was cut off, and nothing else', () => {
    writeFileSync(path(), '{"update":1}\nnot a row\n{"update":2}\n{"upd');
    cutMetrics(dir, 9);
    expect(readFileSync(path(), 'utf8')).toBe('{"update":1}\nnot a row\n{"update":2}\n');
  });

  it('has nothing to cut where no file is', () => {
    expect(() => cutMetrics(dir, 1)).not.toThrow();
  });
});
