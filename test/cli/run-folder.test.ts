/** A run's folder as several commands use it: one writes at a time, and evaluations cost no training episode. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { rollout } from '../../src/run/rollout.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

const folder = temporaryFolder('run-folder');
const yaml = join(folder, 'small.yaml');
const ids = join(folder, 'ids.txt');
const trained = join(folder, 'trained');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(async () => {
  writeFileSync(yaml, stringify(smallConfig({ trace: { maxShare: 1 } })));
  writeFileSync(ids, '3 5\n');
  const { status, stderr } = await typed('train', yaml, '--runs', folder, '--name', 'trained', '--json');
  expect(status, stderr).toBe(0);
}, 120_000);

const purposes = (run: string) => TraceStore.open(run).episodes.map(({ purpose }) => purpose);
const count = (run: string, wanted: string) => purposes(run).filter((one) => one === wanted).length;

/** Waits for a file of a run that is being made, and returns whether it came while `busy`. */
async function appears(path: string, busy: Promise<unknown>): Promise<boolean> {
  let over = false;
  const end = () => {
    over = true;
  };
  busy.then(end, end);
  while (!existsSync(path) && !over) await new Promise((resolve) => setTimeout(resolve, 2));
  return !over;
}

describe('a folder of a run', { timeout: 120_000 }, () => {
  it('keeps its training episodes, however often it is evaluated', async () => {
    const before = count(trained, 'train');
    expect(before).toBeGreaterThan(0);
    for (let n = 1; n <= 5; n++) {
      const { status, stderr } = await typed('eval', trained, '--tasks', ids, '--episodes', '1', '--json');
      expect(status, stderr).toBe(0);
      expect(readdirSync(join(trained, 'traces')).filter((name) => /^eval-\d+\.jsonl$/.test(name))).toHaveLength(n);
    }
    expect(count(trained, 'train')).toBe(before);
    const store = TraceStore.open(trained);
    const sizes = store.episodes.filter(({ purpose }) => purpose !== 'train').map(({ at }) => store.groupOf(at).length);
    expect(new Set(sizes)).toEqual(new Set([1])); // evaluations of one number are not taken for one group
  });

  it('is locked while a rollout plays, and a second one is refused', async () => {
    const dir = join(folder, 'rolled');
    const config = { env: { id: 'textcraft' }, policy: { kind: 'random' as const } };
    const running = rollout({ config, episodes: 3000, horizon: 20, dir });
    expect(await appears(join(dir, 'traces', '00001.jsonl'), running.done)).toBe(true);
    expect(existsSync(join(dir, 'lock.json'))).toBe(true);
    const { status, stderr } = await typed('rollout', '--resume', dir);
    expect([status, stderr]).toEqual([2, expect.stringContaining('is writing this run already')]);
    const { finished } = await running.stop();
    expect(existsSync(join(dir, 'lock.json'))).toBe(false);
    expect(count(dir, 'rollout')).toBe(finished);
  });

  it.each(['sft', 'dpo'])('is locked while %s learns', async (command) => {
    const dir = join(folder, command);
    const busy = typed(command, yaml, '--data', trained, '--epochs', '3', '--runs', folder, '--name', command);
    expect(await appears(join(dir, 'lock.json'), busy)).toBe(true);
    await busy;
    expect(existsSync(join(dir, 'lock.json'))).toBe(false);
  });

  it('says in its results since when its totals count', async () => {
    const results = () => JSON.parse(readFileSync(join(trained, 'results.json'), 'utf8'));
    const first = results();
    expect([first.startedFrom, first.unwritten]).toEqual([0, []]);
    const { status, stderr } = await typed('train', '--resume', trained, '--set', 'stop={updates: 6}', '--json');
    expect(status, stderr).toBe(0);
    const second = results();
    expect(second.startedFrom).toBe(4);
    expect(second.ended.status.envSteps).toBeGreaterThan(first.ended.status.envSteps);
  });
});
