import { expect, it } from 'vitest';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { inFolder, toyConfig, withToyRun } from '../../support/toy-run.ts';

/** Actions of the members of one evaluated group, one text each. */
function played(temperature: number): Promise<string[]> {
  const seen: Trajectory[] = [];
  const tasks = [{ env: 'toy', index: 0, seed: 1 }];
  return inFolder((dir) =>
    withToyRun(
      toyConfig('wage', {}),
      dir,
      async ({ run }) => {
        await run.evaluate({ name: 'x', tasks, episodes: 6, horizon: 6, temperature, seed: 1 });
        await run.flush();
        return seen.map(({ turns }) => turns.map(({ action }) => action).join(' '));
      },
      { learn: false, onEpisodes: (trajectories) => seen.push(...trajectories) },
    ),
  );
}

it('an evaluation at temperature 0 plays the same every time, at 1 it samples', async () => {
  const [greedy, sampled] = [await played(0), await played(1)];
  expect(greedy).toHaveLength(6);
  expect(new Set(greedy).size).toBe(1);
  expect(new Set(sampled).size).toBeGreaterThan(1);
}, 60_000);
