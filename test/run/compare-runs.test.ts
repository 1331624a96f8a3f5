/** Finished runs compared: grouped by configuration, refused where they cannot be, printed and drawn. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEnv } from '../../envs/textcraft/index.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { summarise } from '../../src/learning/evaluation/summary.ts';
import { compareRuns } from '../../src/run/compare-runs.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('compare');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);

function makeRun(name: string, seed: number, solved: number, overrides: Partial<RunConfigInput> = {}): void {
  const config = smallConfig({ seed, ...overrides });
  createRunFolder(at(name), config);
  const { tasks } = createEnv(config.env.options);
  const results = tasks.split('test').map((index, i) => ({
    task: { env: 'textcraft', index, seed: tasks.evalSeed },
    asked: 2,
    successes: [i < solved, i < solved],
    returns: [0, 0],
    turns: [1, 1],
  }));
  const plan = { name: 'h4 sampled', horizon: 4, temperature: 1 };
  const evaluations = [summarise({ plan, results, failed: 0 }, tasks)];
  writeFileSync(join(at(name), 'results.json'), JSON.stringify({ format: 1, evaluations }));
  const rows = Array.from({ length: 30 }, (_, i) => ({
    update: i,
    envSteps: 100 * i,
    success: (solved / 100) * (i / 30),
  }));
  writeFileSync(join(at(name), 'metrics.jsonl'), `${rows.map((row) => JSON.stringify(row)).join('\n')}\n{"cut":`);
}

it('runs whose task numbers name different tasks are refused', () => {
  makeRun('sorted-1', 1, 40);
  makeRun('published-1', 1, 60, { env: { id: 'textcraft', options: { order: 'agenttraj' } } });
  expect(() => compareRuns([at('sorted-1'), at('published-1')])).toThrow(
    `compare: the same task numbers name different tasks (sorted in ${at('sorted-1')}, agenttraj in ${at('published-1')}); evaluate the runs under the same env.options`,
  );
});

const long: Partial<RunConfigInput> = { horizon: { type: 'fixed', rounds: 8 } };
beforeAll(() => {
  [40, 50, 60].forEach((solved, i) => {
    makeRun(`short-${i + 1}`, i + 1, solved);
    makeRun(`long-${i + 1}`, i + 1, solved + 5 + i, long);
  });
  makeRun('babyai', 1, 50, { env: { id: 'babyai' }, tasks: {} });
  makeRun('deep-1', 1, 90, { policy: { model: { hiddenSize: 16, layers: 2, heads: 2 } } });
});

const short = ['short-1', 'short-2', 'short-3'].map(at);
const longer = ['long-3', 'long-1', 'long-2'].map(at);

describe('runs', () => {
  it('are grouped by configuration, named by what their folders share, and paired by seed', () => {
    const { groups, differingKeys, evaluations } = compareRuns([...short, ...longer]);
    expect(groups.map(({ name, seeds }) => [name, seeds])).toEqual([
      ['short', [1, 2, 3]],
      ['long', [1, 2, 3]],
    ]);
    expect(differingKeys).toEqual(['horizon.rounds']);
    const { name, labels } = evaluations[0]!;
    expect(name).toBe('h4 sampled');
    const { success, differences, tasks: count } = labels.at(-1)!;
    expect(count).toBe(100);
    expect(success.map((one) => one!.value)).toEqual([0.5, 0.56]);
    expect(differences[0]).toBeUndefined();
    // 0.05, 0.06, 0.07: mean 0.06, s = 0.01, t(2)·s/√3 = 0.02484
    expect(differences[1]).toMatchObject({ method: 'paired by seed', value: expect.closeTo(0.06, 12) });
    expect(differences[1]!.high).toBeCloseTo(0.06 + 0.02484, 4);
    expect(groups[1]!.curve).toHaveLength(60);
    expect(groups[1]!.curve.at(-1)).toMatchObject({ x: 2900 });
  });

  it('of three configurations are each compared with the first', () => {
    const { groups, differingKeys, evaluations } = compareRuns([...longer, ...short, at('deep-1')]);
    expect(groups.map(({ name }) => name)).toEqual(['long', 'short', 'deep']);
    expect(differingKeys).toEqual(['horizon.rounds', 'policy.model.layers']);
    expect(evaluations[0]!.labels.at(-1)!.differences.map((one) => one?.method)).toEqual([
      undefined,
      'paired by seed',
      'paired by task',
    ]);
  });

  it('are refused where they cannot be compared', () => {
    expect(() => compareRuns(short)).toThrow(/two configurations or more, got 3 of one/);
    expect(() => compareRuns([at('short-1'), at('short-1')])).toThrow(/got 1 of one/);
    expect(() => compareRuns([at('short-1'), at('babyai')])).toThrow(/one world, got textcraft, babyai/);
    expect(() => compareRuns([at('short-1'), at('nowhere')])).toThrow(/nowhere is no run/);
    createRunFolder(at('begun'), smallConfig({ seed: 9 }));
    expect(() => compareRuns([at('short-1'), at('begun')])).toThrow(
      /begun has no results to compare.*when training ends/,
    );
    writeFileSync(join(at('begun'), 'results.json'), '{"evaluations": 3}');
    expect(() => compareRuns([at('short-1'), at('begun')])).toThrow(/begun\/results.json: expected results/);
  });
});

describe('longplay compare', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(fileURLToPath(packageRoot), 'dist/src/cli/main.js'), 'compare', ...args], {
      encoding: 'utf8',
      cwd: folder,
    });

  it('prints success, differences with intervals, and bars; writes the curves', () => {
    const { status, stdout, stderr } = run(
      'short-1',
      'short-2',
      'short-3',
      'long-1',
      'long-2',
      'long-3',
      '--plot',
      'c.svg',
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('they differ in horizon.rounds');
    expect(stdout).toMatch(/^all \(100 tasks\) +50 \[25, 75\] +56 \[29, 83\] +\+6\.0 \[3\.5, 8\.5\]$/m);
    expect(stdout).toMatch(/^short +·+├─+●─+┤·+$/m);
    expect(stdout).toContain('differences: paired by seed');
    const svg = readFileSync(join(folder, 'c.svg'), 'utf8');
    expect(svg.match(/<polyline/g)).toHaveLength(2);
  }, 30_000);

  it('is one object with --json, and one line for a mistake', () => {
    const { stdout } = run('short-1', 'long-1', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ format: 1, groups: [{ name: 'short' }, { name: 'long' }] });
    const { status, stderr } = run('short-1', 'short-2');
    expect(status).toBe(2);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }, 30_000);
});
