import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { startRun } from '../../src/run/start-run.ts';
import { temporaryFolder, textcraftUrl } from '../support/small-run.ts';

const long = process.env.LONGPLAY_LONG === '1';

/** TextCraft, depth 1, horizon 8, a narrow model, one seed. Random play reaches 57 %. */
function config(overrides: Partial<RunConfigInput>) {
  return checkRunConfig(
    {
      seed: 3,
      env: { id: 'textcraft' },
      tasks: { labels: ['depth 1'] },
      horizon: { type: 'fixed', rounds: 8 },
      policy: { model: { hiddenSize: 32, layers: 2, heads: 2 } },
      rollout: { groupSize: 8, concurrentGroups: 8 },
      learner: { learningRate: 3e-3 },
      stop: { updates: long ? 120 : 30 },
      trace: { everyGroups: 0 },
      ...overrides,
    },
    'test',
  );
}

async function heldOutSuccess(
  overrides: Partial<RunConfigInput>,
  mode: 'async' | 'serial',
): Promise<[before: number, after: number]> {
  const dir = temporaryFolder('learning');
  const run = await startRun({ config: config(overrides), dir, mode, envModule: textcraftUrl, learn: true });
  const { tasks } = run.env;
  const indices = tasks.split('test').filter((index) => tasks.label(index) === 'depth 1');
  const play = async (name: string) => {
    const { results } = await run.evaluate({
      name,
      tasks: indices.map((index) => ({ env: 'textcraft', index, seed: tasks.evalSeed })),
      episodes: 4,
      horizon: 8,
      temperature: 1,
      seed: 1,
    });
    const all = results.flatMap(({ successes }) => successes);
    return all.filter(Boolean).length / all.length;
  };
  try {
    const before = await play('before');
    await run.train();
    return [before, await play('after')];
  } finally {
    await run.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

it('learns held-out goals from scratch by choosing, in serial mode', { timeout: 300_000 }, async () => {
  const [before, after] = await heldOutSuccess({}, 'serial');
  console.log(`choice: ${before.toFixed(2)} → ${after.toFixed(2)}`);
  expect(after).toBeGreaterThan(Math.max(before + 0.1, long ? 0.8 : 0.68));
});

it('and in threads', { timeout: 300_000 }, async () => {
  const [before, after] = await heldOutSuccess({}, 'async');
  console.log(`choice, threads: ${before.toFixed(2)} → ${after.toFixed(2)}`);
  expect(after).toBeGreaterThan(before + 0.08);
});

it('learns by spelling actions under a trie, so that turns join and leave running batches', {
  timeout: 600_000,
}, async () => {
  const [before, after] = await heldOutSuccess(
    {
      policy: { decoder: 'tokens', model: { hiddenSize: 32, layers: 2, heads: 2 } },
      learner: { learningRate: 3e-3, entropyCoef: 0.001 },
      stop: { updates: long ? 200 : 20 },
    },
    'async',
  );
  console.log(`tokens: ${before.toFixed(2)} → ${after.toFixed(2)}`);
  expect(after).toBeGreaterThan(before + 0.05);
});

it.skipIf(!long)('learns as well in threads as in serial mode, over five seeds', { timeout: 1_800_000 }, async () => {
  const after: Record<'async' | 'serial', number[]> = { async: [], serial: [] };
  for (let seed = 1; seed <= 5; seed++) {
    for (const mode of ['serial', 'async'] as const) {
      after[mode].push((await heldOutSuccess({ seed, stop: { updates: 60 } }, mode))[1]);
    }
  }
  const mean = (values: number[]) => values.reduce((a, b) => a + b) / values.length;
  const spread = (values: number[]) => values.reduce((a, b) => a + (b - mean(values)) ** 2, 0) / (values.length - 1);
  const difference = mean(after.async) - mean(after.serial);
  const noise = Math.sqrt((spread(after.async) + spread(after.serial)) / 5);
  console.log(
    `serial ${after.serial.map((x) => x.toFixed(2))}, async ${after.async.map((x) => x.toFixed(2))}: difference ${difference.toFixed(3)}, standard error ${noise.toFixed(3)}`,
  );
  expect(Math.abs(difference)).toBeLessThan(Math.max(0.05, 3 * noise));
});
