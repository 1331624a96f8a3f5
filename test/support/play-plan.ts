/** Plays a rollout plan to its end, and reads its traces. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { loadRunConfig } from '../../src/config/load.ts';
import { playRollout } from '../../src/run/rollout.ts';
import type { RolloutPlan } from '../../src/run/rollout-plan.ts';
import { createRunFolder, readRunConfig } from '../../src/run/run-folder.ts';
import { readTrace, type TraceLine } from '../../src/storage/trace.ts';
import { tracePaths } from '../../src/storage/trace-files.ts';

/**
 * Plays a plan into a folder, and expects no notice that names a mishap.
 * @param settings keys of the configuration, `key=value`; the plan's run has the others
 * @returns the episodes, by task
 */
export async function playPlan(
  out: string,
  env: string,
  plan: RolloutPlan,
  settings: readonly string[],
): Promise<TraceLine[]> {
  const raw =
    plan.policyRun === undefined
      ? { env: { id: env }, horizon: { type: 'fixed', rounds: plan.horizon }, stop: { updates: 1 } }
      : readRunConfig(plan.policyRun);
  const config = loadRunConfig(JSON.stringify(raw), 'test', ['rollout.concurrentGroups=16', ...settings]);
  createRunFolder(out, config);
  const notices: string[] = [];
  const { finished } = await playRollout({ dir: out, config, plan }, { onNotice: (line) => notices.push(line) });
  // The engine, the ignored sampling and a converted file are reported, and nothing else.
  expect(notices.filter((line) => !line.startsWith('engine ') && !/generation_config|is read from/.test(line))).toEqual(
    [],
  );
  expect(finished).toBe(plan.episodes);
  const lines = tracePaths(join(out, 'traces')).flatMap((path) => readTrace(path).episodes);
  return lines.sort((a, b) => a.task.index - b.task.index || a.task.seed - b.task.seed);
}
