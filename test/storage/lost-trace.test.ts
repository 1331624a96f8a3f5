/** Traces that have lost their end: every command that reads them says how much is missing, and export and check fail. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { readDemonstrations } from '../../src/run/offline/demonstrations.ts';
import { viewRuns } from '../../src/run/view-runs.ts';
import { mendTrace } from '../../src/storage/trace-cut.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { indexPath } from '../../src/storage/trace-index.ts';
import { describeLoss, TraceStore } from '../../src/storage/trace-store.ts';
import { trajectoryOf } from '../support/traces.ts';
import { typed } from '../support/typed.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-lost-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const traces = join(root, 'traces');
const path = join(traces, '00001.jsonl');
const EPISODES = 6;

beforeEach(() => {
  rmSync(traces, { recursive: true, force: true });
  mkdirSync(traces);
  const files = new TraceFiles({ dir: traces, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12 });
  for (let group = 0; group < EPISODES / 2; group++) {
    const members = [trajectoryOf({ episode: 2 * group, group }), trajectoryOf({ episode: 2 * group + 1, group })];
    files.episodes(members, 'train', 'easy');
    files.credit(group, [{ group, advantages: [Float32Array.of(1), Float32Array.of(2)] }]);
  }
  files.close();
});

/** Byte behind so many whole lines of the trace. */
function endOf(lines: number): number {
  return Buffer.byteLength(readFileSync(path, 'utf8').split('\n').slice(0, lines).join('\n')) + 1;
}

describe('a trace that has lost its end', () => {
  it('accounts for every episode that its index lists, wherever the cut is', () => {
    const { size } = statSync(path);
    let cuts = 0;
    const ends = Array.from({ length: 1 + 3 * (EPISODES / 2) }, (_, lines) => endOf(lines + 1));
    const inside = Array.from({ length: 60 }, (_, i) => Math.floor((i * size) / 60));
    for (const bytes of [...ends, ...inside].sort((a, b) => b - a)) {
      truncateSync(path, bytes); // shorter and shorter
      const store = TraceStore.open(root);
      const lost = store.losses.reduce((sum, { episodes }) => sum + episodes, 0);
      expect(store.size + lost, `at ${bytes}`).toBe(EPISODES);
      expect(store.losses.length > 0, `at ${bytes}`).toBe(bytes < size && (lost > 0 || !ends.includes(bytes)));
      cuts++;
    }
    expect(cuts).toBeGreaterThan(60);
    rmSync(path);
    expect(() => TraceStore.open(root)).toThrow(/00001\.jsonl: 6 of the 6 episodes that its index lists are lost/);
  });

  it('is reported by export, replay and view, and their result is not a success', async () => {
    truncateSync(path, endOf(4));
    const line = `${path}: 4 of the 6 episodes that its index lists are lost: its end is gone`;
    const out = join(root, 'out.jsonl');
    for (const args of [
      ['export', root, '--out', out],
      ['replay', root],
      ['view', root, '--out', join(root, 'page.html')],
    ]) {
      const { status, stderr } = await typed(...args);
      expect(stderr, args[0]).toContain(line);
      expect(status, args[0]).toBe(1);
    }
    expect(existsSync(out)).toBe(true);
    expect(readFileSync(out, 'utf8').trimEnd().split('\n')).toHaveLength(2);
    const { stderr } = await typed('replay', root, '--check');
    expect(stderr).toContain(line);
    const notices: string[] = [];
    const server = await viewRuns([root], 0, (text) => notices.push(text));
    await server.close();
    expect(readDemonstrations(root, (text) => notices.push(text))).toHaveLength(2);
    expect(notices).toEqual([line, line]);
  });

  it('is whole again, and the index with it, once the process that goes on has mended it', () => {
    truncateSync(path, endOf(4) + 5);
    mendTrace(path);
    const store = TraceStore.open(root);
    expect([store.size, store.losses]).toEqual([2, []]);
    truncateSync(path, 3);
    mendTrace(path);
    expect([existsSync(path), existsSync(indexPath(path))]).toEqual([false, false]);
  });

  it('has lost nothing while its run goes on writing it', () => {
    const store = TraceStore.follow(root);
    const files = new TraceFiles({ dir: traces, config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
    for (let n = 0; n < 20; n++) {
      files.episodes([trajectoryOf({ episode: EPISODES + n, group: EPISODES + n })], 'train', 'easy');
      expect(store.losses.map(describeLoss)).toEqual([]);
    }
    files.close();
  });
});
