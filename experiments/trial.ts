/** One training seed of a study: a run in a temporary folder, then every evaluated task played. */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRun } from '../actors/tree.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { evaluationPlan } from '../src/run/evaluate-run.ts';
import { worldUrl } from '../src/run/find-world.ts';
import { createRunFolder } from '../src/run/run-folder.ts';

/** Success rate of every evaluated task, by evaluation (`h20 sampled`, …). */
export type Rates = Readonly<Record<string, Readonly<Record<number, number>>>>;

/** One training seed. */
export interface Trial {
  readonly seed: number;
  readonly updates: number;
  readonly envSteps: number;
  readonly minutes: number;
  /** Processor seconds of all threads while training: on a busy machine minutes say little. */
  readonly cpuSeconds: number;
  readonly rates: Rates;
}

/** Trains a configuration and plays its evaluated tasks. */
export async function train(config: RunConfig): Promise<Trial> {
  let status: { version: number; envSteps: number; elapsedMs: number } | undefined;
  let cpuSeconds = 0;
  const rates = await played(config, ['sampled', 'greedy'], async (run) => {
    const before = process.cpuUsage();
    status = (await run.train()).status;
    const { user, system } = process.cpuUsage(before);
    cpuSeconds = (user + system) / 1e6;
  });
  const { version: updates, envSteps, elapsedMs } = status!;
  return { seed: config.seed, updates, envSteps, minutes: elapsedMs / 60_000, cpuSeconds, rates };
}

/** Plays the evaluated tasks at each horizon, after training where `before` trains. */
export async function played(
  config: RunConfig,
  kinds: readonly ('sampled' | 'greedy')[],
  before?: (run: Awaited<ReturnType<typeof startRun>>) => Promise<void>,
): Promise<Rates> {
  const dir = join(tmpdir(), `longplay-${config.env.id}-${process.pid}-${config.policy.kind}-${config.seed}`);
  createRunFolder(dir, config);
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: before !== undefined,
    onNotice: (line) => process.stderr.write(`${line}\n`),
  });
  try {
    await before?.(run);
    const rates: Record<string, Record<number, number>> = {};
    for (const horizon of config.evaluation.horizons) {
      for (const kind of kinds) {
        const plan = evaluationPlan(run.env, config, horizon, kind);
        const { results } = await run.evaluate(plan);
        const of: Record<number, number> = (rates[plan.name] = {});
        for (const { task, successes } of results) {
          if (successes.length > 0) of[task.index] = successes.filter(Boolean).length / successes.length;
        }
      }
    }
    return rates;
  } finally {
    await run.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}
