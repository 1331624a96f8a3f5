/**
 * A whole rollout (env hosts, rollout, batching inference in threads) with the quickstart's policy from random weights.
 *
 * The limit it is compared with: the engine alone on the same batches, i.e. the tokens per second of the time spent
 * inside the engine's calls. What is lost to it is building inputs, sampling, messages and waiting for environments.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { loadRunConfig } from '../../src/config/load.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { evaluationPlan } from '../../src/run/evaluate-run.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { train } from '../../src/run/train.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import type { Bench, Figure } from './contract.ts';

/** Bench `rollout`. */
export const bench: Bench = async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  try {
    return [...(await rolloutFigures(dir)), ...(await firstRise(dir))];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

function quickstart(...overrides: string[]): RunConfig {
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

/**
 * Seconds from the start of training until success is significantly above what it was: the last 8 updates against the
 * first 4, z > 4 (two proportions).
 */
async function firstRise(dir: string): Promise<Figure[]> {
  const episodesPerUpdate = 64;
  const rows: MetricsRow[] = [];
  const metrics$ = new Subject<MetricsRow>();
  let risen: number | undefined;
  const start = performance.now();
  let halt = () => {};
  metrics$.subscribe((row) => {
    rows.push(row);
    if (rows.length < 16 || risen !== undefined) return;
    const [a, b] = [rows.slice(0, 4), rows.slice(-8)].map((part) => ({
      p: part.reduce((sum, { success }) => sum + (success ?? 0), 0) / part.length,
      n: part.length * episodesPerUpdate,
    })) as [{ p: number; n: number }, { p: number; n: number }];
    const pooled = (a.p * a.n + b.p * b.n) / (a.n + b.n);
    const z = (b.p - a.p) / Math.sqrt(pooled * (1 - pooled) * (1 / a.n + 1 / b.n));
    if (z <= 4) return;
    risen = (performance.now() - start) / 1000;
    halt();
  });
  // Uniform sampling: under the learnable one success stays near one half whatever is learnt.
  const config = quickstart('stop={minutes: 2}', 'tasks.sampling={type: uniform}', 'horizon={type: fixed, rounds: 8}');
  await train({
    config,
    dir: join(dir, 'run'),
    onMetrics: (row) => metrics$.next(row),
    onStarted: (run) => {
      halt = () => run.halt();
    },
  }).done;
  const last = rows.at(-1);
  return [
    {
      name: 'first significant rise of success',
      value: risen ?? Number.NaN,
      unit: 's after the start',
      note:
        risen === undefined ? 'none within two minutes' : `after ${last?.envSteps} env steps, ${last?.update} updates`,
    },
    {
      name: 'learner',
      value: medianOf(rows.map(({ learnerTokensPerSecond }) => learnerTokensPerSecond ?? 0)),
      unit: 'tokens/s',
      note: 'forward, backward and AdamW, beside the rollouts',
    },
  ];
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
