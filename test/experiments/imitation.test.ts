/** The imitation study: the planner's episodes teach, and what was learnt is evaluated under true names. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { imitate } from '../../experiments/imitation.ts';
import { inFolder } from '../support/toy-run.ts';

it('learns from the planner, and evaluates what it learnt', { timeout: 120_000 }, async () => {
  await inFolder(async (dir) => {
    const set = ['policy.model.hiddenSize=16', 'policy.model.layers=1', 'tasks.labels=[depth 1]'];
    const { losses, evaluations } = await imitate(join(dir, 'run'), { episodes: 1500, set, evaluated: 'test' });
    expect(losses).toHaveLength(8);
    expect(losses.at(-1)!).toBeLessThan(0.9 * losses[0]!);
    expect(evaluations.map(({ name, all }) => [name, all.tasks])).toEqual([
      ['h24 sampled', 100],
      ['h24 greedy', 100],
    ]);
  });
});

it('takes no key that a configuration does not have', async () => {
  await inFolder(async (dir) => {
    await expect(imitate(join(dir, 'run'), { episodes: 1, set: ['policy.model.depth=5'] })).rejects.toThrow(
      /unknown key .*policy\.model\.depth/,
    );
  });
});
