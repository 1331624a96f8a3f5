/**
 * A whole rollout (env hosts, rollout, batching inference in threads) with the quickstart's policy from random weights.
 *
 * The limit it is compared with: the engine alone on the same batches, i.e. the tokens per second of the time spent
 * inside the engine's calls. What is lost to it is building inputs, sampling, messages and waiting for environments.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadRunConfig } from '../../src/config/load.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { evaluationPlan } from '../../src/run/evaluate-run.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import type { Bench, Figure } from './contract.ts';

/** Bench `rollout`. */
export const bench: Bench = async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  try {
    return await rolloutFigures(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

/** Configuration of the quickstart, with overrides. */
export function quickstart(...overrides: string[]): RunConfig {
  const text = readFileSync(new URL('experiments/quickstart.yaml', packageRoot), 'utf8');
  return loadRunConfig(text, 'quickstart.yaml', ['trace.everyGroups=0', ...overrides]);
}

/** Episodes in flight: four batches of 64, so that one is always ready while the others are on their way. */
const IN_FLIGHT = 256;

/** The 100 test tasks, 8 episodes each, horizon 24, five times after a warm-up. */
async function rolloutFigures(dir: string): Promise<Figure[]> {
  const config = quickstart(`rollout.concurrentGroups=${IN_FLIGHT / 8}`);
  const run = await startRun({ config, dir, mode: 'async', envModule: worldUrl('textcraft'), learn: false });
  try {
    const rates: { tokens: number; engine: number; share: number; around: number; steps: number; batch: number }[] = [];
    for (let repeat = -1; repeat < 5; repeat++) {
      const before = await run.inference();
      const start = performance.now();
      const record = await run.evaluate({ ...evaluationPlan(run.env, config, 24, 'sampled'), name: `bench ${repeat}` });
      const seconds = (performance.now() - start) / 1000;
      const after = await run.inference();
      const tokens = after.tokens - before.tokens;
      const engineSeconds = (after.engineMs - before.engineMs) / 1000;
      const steps = record.results.flatMap(({ turns }) => turns).reduce((a, b) => a + b, 0);
      if (repeat < 0) continue;
      rates.push({
        tokens: tokens / seconds,
        engine: tokens / engineSeconds,
        share: engineSeconds / seconds,
        around: (after.busyMs - before.busyMs) / 1000 / seconds - engineSeconds / seconds,
        steps: steps / seconds,
        batch: (after.turns - before.turns) / (after.calls - before.calls),
      });
    }
    const median = (key: keyof (typeof rates)[number]) => rates.map((rate) => rate[key]).sort((a, b) => a - b)[2]!;
    return [
      {
        name: 'rollout',
        value: median('tokens'),
        unit: 'tokens/s',
        note: `${IN_FLIGHT} episodes in flight`,
        reference: { name: 'the bare engine on the same batches', value: median('engine') },
      },
      {
        name: 'rollout',
        value: median('steps'),
        unit: 'env steps/s',
        reference: { name: "the original's HTTP step rate", value: 945 },
      },
      { name: 'share of the time inside the engine', value: 100 * median('share'), unit: '%' },
      {
        name: 'share of the time building inputs and sampling',
        value: 100 * median('around'),
        unit: '%',
        note: 'the rest: messages, and waiting for environments',
      },
      { name: 'turns per engine call', value: median('batch'), unit: 'turns' },
    ];
  } finally {
    await run.stop();
  }
}
