/**
 * Looking never harms: every command that reads a run leaves its folder byte for byte as it was, whatever state the run is
 * in. One small run is made; its copies are put into the states and read.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { commandLine } from '../../src/cli/program.ts';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import { viewRuns } from '../../src/run/view-runs.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { longplay } from '../support/longplay-command.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

const long = process.env.LONGPLAY_LONG === '1';
const folder = temporaryFolder('reading');
const trained = join(folder, 'trained');
const yaml = join(folder, 'small.yaml');
const ids = join(folder, 'ids.txt');
const verify = join(folder, 'verify.mjs');
let made = 0;

beforeAll(() => {
  const config = smallConfig({ trace: { maxShare: 1 }, evaluation: { horizons: [4], episodesPerTask: 1 } });
  writeFileSync(yaml, stringify(config));
  writeFileSync(ids, '3 5\n');
  writeFileSync(verify, 'export const verify = ({ turns }) => turns.length;\n');
  mkdirSync(join(folder, 'elsewhere'));
  const args = [yaml, '--runs', folder, '--name', 'trained', '--journal', '--json'];
  const { status, stderr } = longplay('train', ...args, '--set', 'evaluation.tasks=[3, 5]');
  expect(status, stderr).toBe(0);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Digest of each file of a folder, and the names of its folders. */
function digestsOf(dir: string): Record<string, string> {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const digest = entry.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'a folder';
      return [relative(dir, path), digest];
    }),
  );
}

/** Runs a command in this process. @returns its exit code and all that it printed */
async function run(...args: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  const { status, stdout, stderr } = await typed(...args);
  return { code: status, text: stdout + stderr };
}

/** A new path outside the run. */
const fresh = (name: string) => join(folder, 'elsewhere', `${made++}-${name}`);

/** Commands that read a run, by name; each returns its exit code and what it printed. */
const READERS: Readonly<Record<string, (dir: string) => Promise<{ readonly code: number; readonly text: string }>>> = {
  'view --out': (dir) => run('view', dir, '--out', fresh('page.html')),
  async view(dir) {
    const server = await viewRuns([dir]);
    try {
      const paths = ['', 'api/runs', 'api/runs/0/curves', 'api/runs/0/episodes/0', 'api/runs/0/episodes'];
      for (const path of paths) await (await fetch(new URL(path, server.url))).arrayBuffer();
      return { code: 0, text: '' };
    } finally {
      await server.close();
    }
  },
  eval: (dir) => run('eval', dir, '--tasks', ids, '--episodes', '1', '--json'),
  compare: (dir) => run('compare', dir, otherRun()),
  'export, AgentTraj': (dir) => run('export', dir, '--out', fresh('episodes.json')),
  'export, ChatML': (dir) => run('export', dir, '--out', fresh('episodes.jsonl')),
  'export, pairs': (dir) => run('export', dir, '--format', 'dpo', '--out', fresh('pairs.jsonl')),
  'export, ATIF': (dir) => run('export', dir, '--format', 'atif', '--out', fresh('documents')),
  'export, verl': (dir) => run('export', dir, '--format', 'verl', '--out', fresh('rows.parquet')),
  'export, Parquet': (dir) => run('export', dir, '--out', fresh('turns.parquet')),
  'export --to hf': (dir) => run('export', dir, '--to', 'hf', '--out', fresh('model')),
  'export --to gguf': (dir) => run('export', dir, '--to', 'gguf', '--out', fresh('model.gguf')),
  replay: (dir) => run('replay', dir),
  'replay --check': (dir) => run('replay', dir, '--check'),
  'replay --from-turn': (dir) => {
    const first = ['--episode', String(TraceStore.open(dir).episodes[0]?.episode)];
    return run('replay', dir, ...first, '--from-turn', '0', '--policy', dir, '--group', '2', '--out', fresh('on'));
  },
  rescore: (dir) => run('rescore', dir, '--verify', verify, '--out', fresh('rescored')),
  'replay-learner': (dir) => run('replay-learner', dir),
  'doctor --model': (dir) => run('doctor', '--model', dir),
  async 'serve-policy'(dir) {
    const server = await startPolicyServer(dir);
    await server.close();
    return { code: 0, text: '' };
  },
  'sft --data': (dir) => run('sft', yaml, '--data', dir, '--epochs', '1', '--runs', fresh('runs')),
  'dpo --data': (dir) => run('dpo', yaml, '--data', dir, '--epochs', '1', '--runs', fresh('runs')),
  'rollout --policy': (dir) =>
    run('rollout', '--policy', dir, '--episodes', '2', '--horizon', '2', '--runs', fresh('runs'), '--json'),
  'train --set policy.init': (dir) =>
    run('train', yaml, '--set', `policy.init=${dir}`, '--set', 'stop={updates: 1}', '--runs', fresh('runs'), '--json'),
  'cluster status': () => run('cluster', 'status', 'nats://127.0.0.1:9'),
};

/** A run of another configuration, beside the one that is read. */
function otherRun(): string {
  const dir = fresh('other');
  cpSync(trained, dir, { recursive: true });
  const config = join(dir, 'config.yaml');
  writeFileSync(config, readFileSync(config, 'utf8').replace(/learningRate: .*/, 'learningRate: 0.00123'));
  return dir;
}

/** Commands that are given no run. */
const WITHOUT_RUN = [
  'preflight',
  'play',
  'envs',
  'algorithms',
  'models',
  'check-env',
  'new-env',
  'prune-engines',
  'new-agent',
  'new-study',
  'import',
  'index',
  'worker',
  'serve-env',
  'serve-retriever',
  'gateway',
  'optimize-prompt',
];

/** Commands that are quick, for states that come in numbers. */
const QUICK = ['view --out', 'view', 'export, ChatML', 'replay --check', 'rescore', 'replay-learner'];

/** Files that `eval` may add: episodes of its own. */
const EVAL_FILE = /^traces\/eval-\d+(\.index)?\.jsonl$/;

/** Reads a run by commands, and holds them to have left it alone. @returns exit codes by command */
async function readAll(dir: string, names = Object.keys(READERS)): Promise<Record<string, number>> {
  const codes: Record<string, number> = {};
  for (const name of names) {
    const before = digestsOf(dir);
    const { code, text } = await READERS[name]!(dir).catch((thrown: Error) => ({ code: 2, text: thrown.message }));
    expect(text, name).not.toMatch(/internal error|^\s+at /m);
    const after = digestsOf(dir);
    const added = Object.keys(after).filter((file) => !(file in before));
    if (name === 'eval') for (const file of added.filter((one) => EVAL_FILE.test(one))) delete after[file];
    expect(after, name).toEqual(before);
    for (const file of added) rmSync(join(dir, file));
    codes[name] = code;
  }
  return codes;
}

/** A copy of the trained run. */
function copy(): string {
  const dir = join(folder, 'states', String(made++));
  cpSync(trained, dir, { recursive: true });
  return dir;
}

/** The files of a run that lines are appended to, while it trains. */
function growing(dir: string): string[] {
  const journal = readdirSync(join(dir, 'journal')).map((name) => Number(name.split('.', 1)[0]));
  const newest = `journal/${Math.max(...journal)}.jsonl`;
  return [newest, 'metrics.jsonl', 'traces/00001.jsonl', 'traces/00001.index.jsonl'].map((name) => join(dir, name));
}

/** The bytes of a file at which a kill may have cut it: within each line, and at its end. */
function cutsOf(file: string): number[] {
  const bytes = readFileSync(file);
  const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  const all = ends.flatMap((end, i) => [Math.floor(((ends[i - 1] ?? 0) + end) / 2), end]).slice(0, -1);
  return long ? all : [all[0]!, all[Math.floor(all.length / 2)]!, all.at(-1)!];
}

const DONE = [
  'view --out',
  'view',
  'eval',
  'export, ChatML',
  'replay --check',
  'replay --from-turn',
  'rescore',
  'replay-learner',
  'serve-policy',
];

describe('a command that reads leaves as it was', { timeout: 600_000 }, () => {
  it('a run, and every command is one of these or is given no run', async () => {
    const { commands } = await commandLine();
    const read = Object.keys(READERS).map((name) => name.split(/[ ,]/, 1)[0]!);
    expect(commands.map((one) => one.name()).sort()).toEqual([...new Set([...read, ...WITHOUT_RUN])].sort());
  });

  it('a run that is finished', async () => {
    const codes = await readAll(copy());
    // All but those which the small policy gives nothing to do: it is no language model, and a server is not there.
    const { 'doctor --model': doctor, 'cluster status': status, ...others } = codes;
    const { 'export --to hf': model, 'export --to gguf': file, ...rest } = others;
    expect([model, file, doctor === 0, status === 0]).toEqual([2, 2, false, false]);
    expect(Object.entries(rest).filter(([, code]) => code !== 0)).toEqual([]);
  });

  it('a run that is training, half a line of each file written', async () => {
    const dir = copy();
    writeFileSync(join(dir, 'lock.json'), JSON.stringify({ format: 2, pid: process.ppid, host: hostname() }));
    for (const file of growing(dir)) truncateSync(file, statSync(file).size - 7);
    const codes = await readAll(dir);
    expect(DONE.filter((name) => codes[name] !== 0)).toEqual([]);
    // Those that write are refused, and leave it alone as well.
    const before = digestsOf(dir);
    writeFileSync(
      join(dir, 'rollout.json'),
      JSON.stringify({ format: 1, episodes: 4, split: 'train', horizon: 2, temperature: 1, seed: 1 }),
    );
    for (const command of ['train', 'rollout']) {
      const { code, text } = await run(command, '--resume', dir);
      expect([code, text]).toEqual([2, expect.stringContaining(`process ${process.ppid} is writing this run`)]);
    }
    rmSync(join(dir, 'rollout.json'));
    expect(digestsOf(dir)).toEqual(before);
  });

  it('a run that was killed at any line', async () => {
    let read = 0;
    for (const of of growing(trained)) {
      for (const bytes of cutsOf(of)) {
        const dir = copy();
        truncateSync(join(dir, relative(trained, of)), bytes);
        await readAll(dir, QUICK);
        rmSync(dir, { recursive: true });
        read++;
      }
    }
    expect(read).toBeGreaterThanOrEqual(12);
  });

  it('a run whose files are empty or gone', async () => {
    for (const name of ['metrics.jsonl', 'traces/00001.jsonl', 'traces', 'journal', 'checkpoints', 'config.yaml']) {
      const dir = copy();
      const path = join(dir, name);
      if (statSync(path).isFile()) writeFileSync(path, '');
      else rmSync(path, { recursive: true });
      await readAll(dir, QUICK);
    }
  });

  const readOnly = mountReadOnly();
  it.skipIf(typeof readOnly === 'string')('a run on a file system that is read-only', async () => {
    const dir = copy();
    const mount = readOnly as (dir: string) => () => void;
    const unmount = mount(dir);
    try {
      expect(() => writeFileSync(join(dir, 'x'), '')).toThrow(/EROFS/);
      const codes = await readAll(dir);
      expect(DONE.filter((name) => codes[name] !== 0)).toEqual([]);
    } finally {
      unmount();
    }
  });

  it('and so does the program as it is typed', () => {
    const dir = copy();
    const before = digestsOf(dir);
    for (const file of growing(dir)) truncateSync(file, statSync(file).size - 7);
    const cut = digestsOf(dir);
    expect(cut).not.toEqual(before);
    for (const args of [
      ['replay-learner', dir],
      ['eval', dir, '--tasks', ids, '--episodes', '1'],
      ['export', dir, '--out', fresh('e.jsonl')],
    ]) {
      const { status, stderr } = longplay(...args);
      expect(status, stderr).toBe(0);
    }
    const after = digestsOf(dir);
    const added = Object.keys(after).filter((file) => !(file in cut));
    expect(added.length).toBeGreaterThan(0);
    expect(added.filter((file) => !EVAL_FILE.test(file))).toEqual([]);
    expect(Object.fromEntries(Object.entries(after).filter(([file]) => !added.includes(file)))).toEqual(cut);
  });
});

/** Makes a folder read-only by a mount upon itself. @returns why there is none, where that is not allowed here */
function mountReadOnly(): string | ((dir: string) => () => void) {
  const mount = (dir: string) => {
    const bound = spawnSync('mount', ['--bind', dir, dir]);
    if (bound.status !== 0) return false;
    return spawnSync('mount', ['-o', 'remount,bind,ro', dir]).status === 0;
  };
  const unmount = (dir: string) => void spawnSync('umount', ['-l', dir]);
  const probe = join(folder, 'probe');
  mkdirSync(probe);
  const works = process.platform === 'linux' && mount(probe);
  if (existsSync(probe)) unmount(probe);
  if (works) {
    return (dir) => {
      if (!mount(dir)) throw new Error(`${dir} cannot be made read-only`);
      return () => unmount(dir);
    };
  }
  const why = 'skipped: a read-only mount cannot be made here (it takes root)';
  console.log(why);
  return why;
}
