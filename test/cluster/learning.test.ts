/** A run whose groups are played by workers learns as one process does, at equal updates. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { trainPair } from '../../experiments/cluster.ts';
import { noServer } from '../support/nats-server.ts';
import { withSmallCluster } from '../support/small-cluster.ts';
import { inFolder, learnToy, toyConfig } from '../support/toy-run.ts';

const long = process.env.LONGPLAY_LONG === '1';
const seeds = long ? 5 : 1;
/** Return of an episode from which the world counts as solved: guessing pays half of it. */
const SOLVED = 0.95;

it(`a world that must be remembered is learnt by two workers' groups as by one's own: ${seeds} seeds`, async () => {
  const envModule = new URL('../support/toy-worlds.ts', import.meta.url);
  for (let seed = 1; seed <= seeds; seed++) {
    const config = toyConfig('memory', { seed, stop: { updates: 20 }, learner: { maxLag: 1 } });
    const away = await inFolder((dir) =>
      withSmallCluster({ config, dir: join(dir, 'run'), envModule }, async ({ run, join: more }) => {
        const training = run.train();
        await more();
        await more();
        const { status } = await training;
        expect(status.version).toBe(20);
        const tasks = Array.from({ length: 60 }, (_, n) => ({ env: 'toy', index: n % 4, seed: 1000 + n }));
        const plan = { name: 'toy', tasks, episodes: 1, horizon: status.horizon, temperature: 1, seed: 3 };
        const returns = (await run.evaluate(plan)).results.flatMap((result) => result.returns);
        return returns.reduce((sum, one) => sum + one, 0) / returns.length;
      }),
    );
    const here = long ? (await learnToy(config)).score : undefined;
    console.log(
      `seed ${seed}: ${away.toFixed(2)} by workers${here === undefined ? '' : `, ${here.toFixed(2)} by one process`}`,
    );
    expect(away).toBeGreaterThanOrEqual(SOLVED);
    if (here !== undefined) expect(Math.abs(away - here)).toBeLessThanOrEqual(1 - SOLVED + 1e-9);
  }
}, 600_000);

it.runIf(long && !noServer)(
  'the quickstart does as well by a learner with two workers as by one process, over three seeds',
  async () => {
    const pairs = [];
    for (let seed = 1; seed <= 3; seed++) pairs.push(await trainPair({ seed, updates: 600, workers: 2 }));
    const differences = pairs.map((pair) => pair.cluster - pair.one);
    const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
    const shown = pairs.map(({ one, cluster }) => `${(100 * one).toFixed(1)} % and ${(100 * cluster).toFixed(1)} %`);
    console.log(
      `one process and a cluster, ${shown.join('; ')}: mean difference ${(100 * mean).toFixed(1)} points (bar 5)`,
    );
    expect(Math.abs(mean)).toBeLessThanOrEqual(0.05);
  },
  7_200_000,
);
