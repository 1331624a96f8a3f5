/** A run small enough for a test: one narrow layer, a few groups, TextCraft's depth 1. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfig, RunConfigInput } from '../../src/config/run-config.ts';
import { localUrl, packageRoot } from '../../src/runtime/module-url.ts';

/** URL of TextCraft's module. */
export const textcraftUrl = localUrl(new URL('envs/textcraft/index.js', packageRoot));

/** @param overrides merged section by section over the small defaults */
export function smallConfig(overrides: Partial<RunConfigInput> = {}): RunConfig {
  const base: RunConfigInput = {
    seed: 1,
    env: { id: 'textcraft' },
    tasks: { labels: ['depth 1'], sampling: { type: 'uniform' } },
    horizon: { type: 'fixed', rounds: 4 },
    policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 4, concurrentGroups: 4, maxBatch: 16 },
    learner: { groupsPerUpdate: 2, maxLag: 1 },
    stop: { updates: 4 },
    checkpoint: { everyUpdates: 2 },
    evaluation: { episodesPerTask: 1, horizons: [4], greedy: false, randomBaseline: false },
    ...overrides,
  };
  return checkRunConfig(base, 'test');
}

/** A fresh folder. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `longplay-${name}-`));
}
