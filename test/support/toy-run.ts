/** Trains on a toy world in serial mode, in a folder of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import type { Run, RunOptions } from '../../actors/tree.ts';
import { type RunConfig, type RunConfigInput, runConfigSchema } from '../../src/config/run-config.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { startRun } from '../../src/run/start-run.ts';
import type { ToyWorld } from './toy-worlds.ts';

const module = new URL('./toy-worlds.ts', import.meta.url);

export type ToyConfig = Partial<Omit<RunConfigInput, 'env'>>;

/** A configuration that learns a toy world within seconds. */
export function toyConfig(world: ToyWorld, config: ToyConfig = {}): RunConfig {
  return runConfigSchema.parse({
    seed: 1,
    ...config,
    env: { id: 'toy', options: { world } },
    tasks: { sampling: { type: 'uniform' }, ...config.tasks },
    horizon: config.horizon ?? { type: 'fixed', rounds: 8 },
    policy: { ...config.policy, model: { hiddenSize: 16, layers: 1, maxPositions: 128, ...config.policy?.model } },
    rollout: { groupSize: 8, concurrentGroups: 4, envThreads: 1, ...config.rollout },
    learner: { groupsPerUpdate: 4, maxLag: 0, learningRate: 0.01, warmupSteps: 5, ...config.learner },
    checkpoint: { everyUpdates: 1_000_000, ...config.checkpoint },
    trace: { everyGroups: 0, ...config.trace },
  });
}

export interface ToyRun {
  readonly run: Run;
  readonly rows: MetricsRow[];
  readonly notices: string[];
}

/** Starts a run, hands it to `use`, stops it. */
export async function withToyRun<T>(
  config: RunConfig,
  dir: string,
  use: (toy: ToyRun) => Promise<T>,
  options: Partial<RunOptions> = {},
): Promise<T> {
  const metrics$ = new Subject<MetricsRow>();
  const rows: MetricsRow[] = [];
  const notices: string[] = [];
  metrics$.subscribe((row) => rows.push(row));
  const onNotice = (line: string) => notices.push(line);
  const run = await startRun({
    config,
    dir,
    mode: 'serial',
    envModule: module,
    learn: true,
    metrics$,
    onNotice,
    ...options,
  });
  try {
    return await use({ run, rows, notices });
  } finally {
    await run.stop();
  }
}

/** A folder that is gone afterwards. */
export async function inFolder<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-toy-'));
  try {
    return await use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** `inFolder`, for what is synchronous. */
export function inFolderSync<T>(use: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-toy-'));
  try {
    return use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Trains and evaluates by sampling. @returns mean return per episode over the toy's tasks, and the metrics */
export function learnToy(
  config: RunConfig,
  envModule = module,
): Promise<{ readonly score: number; readonly rows: readonly MetricsRow[] }> {
  return inFolder((dir) =>
    withToyRun(
      config,
      dir,
      async ({ run, rows }) => {
        await run.train();
        const horizon = rows.at(-1)!.horizon!;
        const tasks = Array.from({ length: 60 }, (_, seed) => ({ env: 'toy', index: seed % 4, seed: 1000 + seed }));
        const record = await run.evaluate({ name: 'toy', tasks, episodes: 1, horizon, temperature: 1, seed: 3 });
        const returns = record.results.flatMap((result) => result.returns);
        return { score: returns.reduce((sum, one) => sum + one, 0) / returns.length, rows };
      },
      { envModule },
    ),
  );
}
