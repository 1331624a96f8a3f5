/** A run with a warm start imitates the world's solver first, measures that, and reinforces from there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { train } from '../../src/run/train.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('warm-start');
const curious = fileURLToPath(new URL('dist/test/support/curious-env.js', packageRoot));

function configOf(warmStart: RunConfigInput['warmStart'], change: Partial<RunConfigInput> = {}): RunConfigInput {
  return {
    env: { id: 'textcraft' },
    tasks: { labels: ['depth 1'] },
    horizon: { type: 'fixed', rounds: 6 },
    policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 2, concurrentGroups: 2, maxBatch: 4 },
    learner: { groupsPerUpdate: 2 },
    stop: { updates: 1 },
    evaluation: { horizons: [6], episodesPerTask: 1, greedy: false, randomBaseline: false },
    trace: { everyGroups: 0 },
    warmStart,
    ...change,
  };
}

/** Evaluations on the disk, with the update they are of. */
function evaluationsOf(dir: string): { update: number; evaluation: { all: { success: { value: number } } } }[] {
  const text = readFileSync(join(dir, 'evaluations.jsonl'), 'utf8').trim();
  return text.split('\n').map((line) => JSON.parse(line));
}

describe('a warm start', { timeout: 120_000 }, () => {
  it('imitates the solver, is measured as update 0, and is what reinforcement starts from', async () => {
    const notices: string[] = [];
    const dir = join(folder, 'warm');
    const config = configOf({ episodes: 24, epochs: 8, learningRate: 5e-3 });
    await train({ config, dir, onNotice: (line) => notices.push(line) }).done;
    expect(notices).toContain('warm start: imitating 24 episodes of the solver (of 24 played)');
    expect(notices.some((line) => /^starting from the weights of .*imitated, update 24$/.test(line))).toBe(true);
    const [start, ...others] = evaluationsOf(dir);
    expect(others).toEqual([]);
    expect(start!.update).toBe(0);
    const coldDir = join(folder, 'cold');
    const cold = await train({ config: configOf({}), dir: coldDir }).done;
    // The evaluation of the start is over all test tasks; few demonstrations are enough to beat random weights.
    expect(start!.evaluation.all.success.value).toBeGreaterThan(cold.evaluations[0]!.all.success.value);
    expect(existsSync(join(coldDir, 'evaluations.jsonl'))).toBe(false);
  });

  it('that is stopped keeps nothing, and begins anew when the run is resumed', async () => {
    const dir = join(folder, 'stopped');
    const config = configOf({ episodes: 24, epochs: 500 });
    const stopping = new AbortController();
    const onNotice = (line: string) => {
      if (line.startsWith('warm start: step')) stopping.abort();
    };
    await expect(train({ config, dir, onNotice, interrupt: stopping.signal }).done).rejects.toThrow(
      `stopped during the warm start, which begins anew with: longplay train --resume ${dir}`,
    );
    const notices: string[] = [];
    const again = configOf({ episodes: 24, epochs: 1 });
    const { startedFrom } = await train({ config: again, dir, resume: true, onNotice: (line) => notices.push(line) })
      .done;
    expect(startedFrom).toBe(0);
    expect(notices).toContain('warm start: imitating 24 episodes of the solver (of 24 played)');
  });

  it('is refused for a world without a solver, before anything is made', async () => {
    const dir = join(folder, 'without');
    const config = configOf({ episodes: 4 }, { env: { id: curious }, tasks: {} });
    await expect(train({ config, dir }).done).rejects.toThrow(
      /warmStart\.episodes: .* has no solver that could be imitated/,
    );
    expect(existsSync(dir)).toBe(false);
  });
});
