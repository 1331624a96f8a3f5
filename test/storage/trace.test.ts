/** Traces: written, rotated, indexed, cut off, read again, checked against their env, and exported. */
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createEnv, createOracle } from '../../envs/textcraft/index.ts';
import type { Env, TimeStep } from '../../src/core/env.ts';
import { withHorizon } from '../../src/core/horizon.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import { agentTraj, chatRecord } from '../../src/run/export-traces.ts';
import { writeParquet } from '../../src/storage/parquet.ts';
import { recheck } from '../../src/storage/recheck.ts';
import { readTrace, type TraceLine } from '../../src/storage/trace.ts';
import { TraceBudget } from '../../src/storage/trace-budget.ts';
import { TraceFiles, type TraceFilesOptions } from '../../src/storage/trace-files.ts';
import { indexPath } from '../../src/storage/trace-index.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { trajectoryOf } from '../support/traces.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-trace-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let dir = '';
let folders = 0;
beforeEach(() => {
  dir = join(root, String(folders++));
});

function files(over: Partial<TraceFilesOptions> = {}): TraceFiles {
  return new TraceFiles({ dir, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12, ...over });
}

const group = (g: number): Trajectory[] => [
  trajectoryOf({ episode: 2 * g, group: g, success: true }),
  trajectoryOf({ episode: 2 * g + 1, group: g, kind: 'tokens' }),
];

describe('a trace', () => {
  it('gives back what was written, with advantages on their decisions', () => {
    const writer = files();
    writer.episodes(group(0), 'train', 'easy');
    writer.credit(4, [{ group: 0, advantages: [Float32Array.of(0.5, -0.5), Float32Array.of(1, 2)] }]);
    writer.close();
    const { header, episodes } = readTrace(join(dir, '00001.jsonl'));
    expect(header.config).toEqual({ env: { id: 'toy' } });
    expect(episodes.map((one) => stripped(one))).toEqual(group(0));
    expect(episodes.map(({ turns }) => turns.map(({ advantage }) => advantage))).toEqual([
      [0.5, -0.5],
      [1, 2],
    ]);
    const store = TraceStore.open(dir);
    expect([0, 1].map((at) => store.read(at))).toEqual(episodes);
  });

  it('is read up to a line that was cut off, wherever the cut is', () => {
    const writer = files();
    for (let g = 0; g < 3; g++) writer.episodes(group(g), 'train', 'easy');
    writer.close();
    const path = join(dir, '00001.jsonl');
    const whole = readFileSync(path);
    const ends = [...whole.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
    fc.assert(
      fc.property(fc.integer({ min: ends[0]!, max: whole.length }), (size) => {
        writeFileSync(path, whole.subarray(0, size));
        rmSync(indexPath(path), { force: true });
        const complete = ends.filter((end) => end <= size).length - 1;
        expect(TraceStore.open(dir).size).toBe(complete);
        expect(readTrace(path).episodes.length).toBeGreaterThanOrEqual(complete);
      }),
    );
  });

  it('that is damaged before its end is refused, naming the line', () => {
    const writer = files();
    writer.episodes(group(0), 'train', 'easy');
    writer.close();
    const path = join(dir, '00001.jsonl');
    writeFileSync(path, readFileSync(path, 'utf8').replace('{"purpose"', '{purpose'));
    expect(() => readTrace(path)).toThrow(/line 2/);
    rmSync(indexPath(path));
    expect(() => TraceStore.open(dir)).toThrow(/line 2/);
    writeFileSync(path, '{"format":"other"}\n');
    expect(() => readTrace(path)).toThrow(/expected a trace of version 1/);
  });

  it('is bounded: files rotate, the oldest go, a restart never appends to a file that may be cut', () => {
    const notices: string[] = [];
    const writer = files({ rotateBytes: 2000, keepBytes: 8000, onNotice: (line) => notices.push(line) });
    for (let g = 0; g < 20; g++) writer.episodes(group(g), 'train', undefined);
    writer.close();
    const names = () => readdirSync(dir).filter((name) => !name.includes('index'));
    const bytes = () => names().reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
    expect(bytes()).toBeGreaterThan(4000);
    expect(bytes()).toBeLessThan(8000 + 3000);
    expect(readdirSync(dir).length).toBe(2 * names().length);
    expect(notices).toEqual([expect.stringMatching(/00001\.jsonl is removed, .* 8000 bytes \(trace\.keepBytes\)/)]);
    for (const name of names()) expect(statSync(join(dir, name)).size).toBeLessThan(2000 + 3000);
    const last = names().at(-1)!;
    appendFileSync(join(dir, last), '{"purpose":"train","epis');
    const again = files({ rotateBytes: 2000, keepBytes: 8000 });
    again.episodes(group(99), 'train', undefined);
    again.close();
    expect(names().at(-1)).not.toBe(last);
    expect(TraceStore.open(dir).episodes.at(-1)!.episode).toBe(199);
  });

  it('of another process, or another purpose, is not removed for room, however many processes write', () => {
    const keep = { rotateBytes: 3000, keepBytes: 9000 };
    const first = files(keep);
    first.episodes(group(0), 'train', undefined);
    first.close();
    for (let n = 0; n < 12; n++) {
      // As `longplay eval` does, or a run that was killed and goes on.
      const next = files({ ...keep, evaluations: n % 2 === 0 ? 'eval' : 'evaluation' });
      for (let g = 1; g < 6; g++) next.episodes(group(g), 'h8 sampled', undefined);
      next.close();
    }
    const kept = (purpose: string) => TraceStore.open(dir).episodes.filter((one) => one.purpose === purpose);
    expect(kept('train').map(({ episode }) => episode)).toEqual([0, 1]);
    expect(kept('h8 sampled').length).toBeGreaterThan(0);
    const small = { rotateBytes: 1e6, keepBytes: 4e6 };
    for (let n = 0; n < 12; n++) {
      const next = files(small);
      next.episodes(group(10 + n), 'train', undefined);
      next.close();
    }
    expect(kept('train')).toHaveLength(2 + 2 * 12);
  });

  it('has files of each process that writes at the same time', () => {
    const writers = [0, 1, 2].map(() => files({ evaluations: 'eval' }));
    for (let g = 0; g < 4; g++) for (const writer of writers) writer.episodes(group(g), 'h8 sampled', undefined);
    for (const writer of writers) writer.close();
    const store = TraceStore.open(dir);
    expect(store.size).toBe(3 * 4 * 2);
    for (const { at } of store.episodes) expect(store.groupOf(at)).toHaveLength(2);
  });

  it('goes on in a new file after a write that failed half way', () => {
    const writer = files();
    writer.episodes(group(0), 'train', undefined);
    const first = join(dir, '00001.jsonl');
    truncateSync(first, statSync(first).size - 10); // what a full disk leaves
    writer.close();
    writer.episodes(group(1), 'train', undefined);
    writer.close();
    rmSync(indexPath(first));
    expect(TraceStore.open(dir).episodes.map(({ episode }) => episode)).toEqual([0, 2, 3]);
  });
});

describe('the store', () => {
  it('gives the same list from the index, without it, and from a part of it', () => {
    const writer = files();
    for (let g = 0; g < 5; g++) {
      writer.episodes(group(g), g === 4 ? 'h8 greedy' : 'train', `label ${g % 2}`);
      if (g % 2 === 0) writer.credit(g, [{ group: g, advantages: [Float32Array.of(g, 1), Float32Array.of(2, 3)] }]);
    }
    writer.close();
    const path = indexPath(join(dir, '00001.jsonl'));
    const reference = TraceStore.open(dir);
    const index = readFileSync(path, 'utf8');
    expect(reference.size).toBe(10);
    for (const part of ['', index.slice(0, index.length / 2), index.slice(0, -7)]) {
      if (part === '') rmSync(path);
      else writeFileSync(path, part);
      const store = TraceStore.open(dir);
      expect(store.episodes).toEqual(reference.episodes);
      for (let at = 0; at < store.size; at++) expect(store.read(at)).toEqual(reference.read(at));
    }
  });

  it('follows a run that is still writing', () => {
    const writer = files({ rotateBytes: 3000 });
    const store = (() => {
      writer.episodes(group(0), 'train', undefined);
      return TraceStore.open(dir);
    })();
    let seen = store.size;
    for (let g = 1; g < 8; g++) {
      writer.episodes(group(g), 'train', undefined);
      seen += store.refresh();
      expect(store.size).toBe(seen);
      expect(store.episodes.at(-1)!.group).toBe(g);
    }
    expect(store.refresh()).toBe(0);
    writer.close();
  });
});

describe('the budget of tracing', () => {
  it('lets through its share of the time, and everything that is cheap', () => {
    const written = (costMs: number) => {
      const budget = new TraceBudget(0.02, 0);
      let count = 0;
      for (let now = 0; now < 100_000; now += 10) {
        if (!budget.allows(now)) continue;
        count++;
        budget.spend(costMs);
      }
      return count;
    };
    expect(written(0.1)).toBe(10_000);
    expect(written(1) / 10_000).toBeCloseTo(0.2, 1);
  });
});

describe('checking against the env', () => {
  it('finds nothing in an honest recording, and each kind of lie', async () => {
    const env = createEnv();
    const honest = await played(3, 12);
    expect(await recheck(env, honest)).toBeUndefined();
    const { turns } = honest;
    const last = turns.length - 1;
    const lies: [string, Trajectory, number][] = [
      ['observation', { ...honest, turns: turns.with(1, { ...turns[1]!, observation: 'You see nothing.' }) }, 1],
      ['reward', { ...honest, turns: turns.with(0, { ...turns[0]!, reward: 0.5 }) }, 1],
      ['end', { ...honest, end: 'truncated' }, last + 1],
      ['success', { ...honest, success: false }, last + 1],
      ['observation', { ...honest, finalObservation: 'other' }, last + 1],
    ];
    for (const [what, lie, turn] of lies) expect(await recheck(env, lie)).toMatchObject({ what, turn });
  });

  it('truncates where the horizon did', async () => {
    const cut = await played(500, 1);
    expect(cut.end).toBe('truncated');
    const env = createEnv();
    const limits: unknown[] = [];
    const open: Env['open'] = (task, given) => {
      limits.push(given);
      return env.open(task);
    };
    expect(await recheck({ ...env, open }, cut)).toBeUndefined();
    // A session that pays at its horizon has to be told of it.
    expect(limits).toEqual([{ horizon: 1 }]);
  });
});

describe('an export', () => {
  const episode: TraceLine = { ...trajectoryOf({ success: true, kind: 'tokens' }), purpose: 'train', label: 'easy' };

  it('as AgentTraj and ChatML alternates what was seen and done', () => {
    expect(agentTraj(episode)).toEqual({
      item_id: 'toy_0',
      conversations: [
        { from: 'human', loss: null, value: 'observation 0 of 0' },
        { from: 'gpt', loss: true, value: 'look' },
        { from: 'human', loss: null, value: 'observation 1 of 0' },
        { from: 'gpt', loss: true, value: 'go' },
      ],
      reward: 1,
      rewards: [0, 1],
      success: true,
    });
    expect(chatRecord(episode).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  it('as Parquet has a row per turn, in any number of parts', { timeout: 60_000 }, async () => {
    const path = join(root, 'turns.parquet');
    const many = Array.from({ length: 10_500 }, (_, i): TraceLine => ({ ...episode, episode: i }));
    expect(writeParquet(path, many)).toBe(21_000);
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    expect(rows.length).toBe(21_000);
    expect(rows.at(-1)).toMatchObject({
      episode: 10_499,
      turn: 1,
      action: 'go',
      reward: 1,
      tokens: '[70,71]',
      advantage: null,
      choice: null,
      success: true,
      decodeMs: 4,
    });
  });
});

/** Apache Arrow's own reader (arrow-rs as WebAssembly), where it is installed: names apart, so that types need not be. */
const [wasm, arrow] = await Promise.all(
  ['parquet-wasm/node', 'apache-arrow'].map((name) => import(name).catch(() => undefined)),
);
if (!wasm || !arrow) console.log('skipped: parquet-wasm and apache-arrow are not installed, so Arrow is not compared');

it.skipIf(!wasm || !arrow)('Parquet is read by Arrow’s own reader', () => {
  const path = join(root, 'arrow.parquet');
  const episode: TraceLine = { ...trajectoryOf({ success: true, kind: 'tokens' }), purpose: 'train', label: 'easy' };
  writeParquet(path, [episode, { ...trajectoryOf({ episode: 1 }), purpose: 'train' }]);
  const table = arrow.tableFromIPC(wasm.readParquet(readFileSync(path)).intoIPCStream());
  expect(table.numRows).toBe(4);
  expect(table.get(1).toJSON()).toMatchObject({
    episode: 0,
    turn: 1,
    action: 'go',
    reward: 1,
    tokens: '[70,71]',
    choice: null,
  });
  expect(table.get(2).toJSON()).toMatchObject({ episode: 1, turn: 0, success: false, choice: 0, tokens: null });
});

function stripped({ purpose: _, label: __, turns, ...rest }: TraceLine): Trajectory {
  return { ...rest, turns: turns.map(({ advantage: ___, ...turn }): Turn => turn) };
}

/** An episode of TextCraft by its oracle. */
async function played(index: number, horizon: number): Promise<Trajectory> {
  const env = createEnv();
  const task = { env: 'textcraft', index, seed: 11 };
  const session = await env.open(task);
  const solver = createOracle()(task);
  const turns: Turn[] = [];
  let step: TimeStep = session.first;
  while (step.kind === 'first' || step.kind === 'mid') {
    const { observation } = step;
    const action = solver(step)!;
    step = withHorizon(await session.step(action), turns.length + 1, horizon);
    turns.push({
      observation,
      actions: new Int32Array(0),
      action,
      reward: (step as { reward: number }).reward,
      actMs: 0,
      envMs: 0,
    });
  }
  const end = step.kind === 'truncated' ? 'truncated' : 'terminated';
  const success = step.kind === 'terminated' && step.success;
  return {
    episode: 0,
    group: 0,
    task,
    horizon,
    attempt: 1,
    actionTable: [],
    turns,
    finalObservation: step.observation,
    end,
    success,
  };
}
