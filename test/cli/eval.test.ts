/** `longplay eval` as typed: which tasks it plays. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEnv } from '../../envs/textcraft/index.ts';
import { listEvaluatedTasks } from '../../src/learning/evaluation/tasks.ts';
import { listFinishedEpisodes } from '../../src/run/rollout-plan.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';

const config = fileURLToPath(new URL('test/support/small-run.yaml', packageRoot));
const folder = temporaryFolder('eval-command');
const run = join(folder, 'runs', 'one');
const ids = join(folder, 'ids.txt');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface EvalResult {
  readonly split?: string;
  readonly tasks?: string | readonly number[];
  readonly evaluations: readonly { readonly name: string; readonly all: { tasks: number; episodes: number } }[];
}

/** Evaluates. @returns the result that is printed as JSON */
function played(...args: string[]): EvalResult {
  const { status, stdout, stderr } = longplay('eval', run, ...args, '--json');
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout) as EvalResult;
}
const counts = ({ evaluations }: EvalResult) => evaluations.map(({ name, all }) => [name, all.tasks, all.episodes]);

beforeAll(() => {
  const set = ['stop={updates: 1}', 'evaluation.tasks=selection'].flatMap((one) => ['--set', one]);
  const { status, stderr } = longplay('train', config, '--runs', join(folder, 'runs'), '--name', 'one', ...set);
  expect(status, stderr).toBe(0);
  writeFileSync(ids, '3 5\n31-33\n');
}, 120_000);

describe('the tasks that eval plays', { timeout: 180_000 }, () => {
  it('are those that the run names, unless --split, --tasks or --paper names others', () => {
    expect(played()).toMatchObject({ tasks: 'selection', evaluations: [{ all: { tasks: 75 } }] });
    expect(played('--split', 'test')).toMatchObject({ split: 'test', evaluations: [{ all: { tasks: 100 } }] });
    expect(played('--tasks', 'not-train')).toMatchObject({ evaluations: [{ all: { tasks: 170 } }] });
    expect(played('--tasks', ids, '--episodes', '2')).toMatchObject({
      tasks: [3, 5, 31, 32, 33],
      evaluations: [{ all: { tasks: 5, episodes: 10 } }],
    });
    expect(counts(played('--paper'))).toEqual([
      ['h30 sampled', 100, 100],
      ['h20 sampled', 100, 100],
    ]);
  });

  it('are played by a rollout under any seed, not only the one that the policy was trained under', () => {
    const few = ['--episodes', '2', '--horizon', '1', '--runs', join(folder, 'rolled')];
    const { status, stderr } = longplay('rollout', '--policy', run, '--seed', '17', ...few);
    expect(status, stderr).toBe(0);
  });

  it('are named to a rollout in the same way, and its folder keeps them', () => {
    const indices = (dir: string) =>
      new Set([...listFinishedEpisodes(join(dir, 'traces')).keys()].map((key) => Number(key.split('#', 1)[0])));
    for (const [name, tasks, expected] of [
      ['of-a-file', ids, [3, 5, 31, 32, 33]],
      ['of-a-set', 'selection', listEvaluatedTasks(createEnv(), { split: 'test', tasks: 'selection' })],
    ] as const) {
      const episodes = String(expected.length);
      const args = ['--tasks', tasks, '--episodes', episodes, '--horizon', '1', '--runs', join(folder, 'rolled')];
      const { status, stderr } = longplay('rollout', '--policy', run, '--name', name, ...args);
      expect(status, stderr).toBe(0);
      expect(indices(join(folder, 'rolled', name))).toEqual(new Set(expected));
    }
    const { status, stderr } = longplay('rollout', '--resume', join(folder, 'rolled', 'of-a-file'));
    expect(stderr).toMatch(/5 episodes are finished already, 0 are left/);
    expect(status).toBe(0);
  });

  it.each([
    [['--tasks', 'nowhere'], /evaluation\.tasks: textcraft has no set 'nowhere'/],
    [['--tasks', './nowhere.txt'], /--tasks: there is no file \.\/nowhere\.txt/],
    [['--tasks', 'selection', '--split', 'test'], /--split and --tasks both name what to play/],
    [['--paper', '--episodes', '3'], /--paper sets how often/],
  ])('cannot be %j', (args, message) => {
    const { status, stderr } = longplay('eval', run, ...args);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(status).toBe(2);
  });
});
