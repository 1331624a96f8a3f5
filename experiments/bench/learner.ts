/**
 * Learner bench: the cost of an update under every algorithm, and the gain of asynchronous training.
 *
 * Updates: one batch of 8 groups of 8 recorded TextCraft episodes, the quickstart's model, two epochs; the limit it is
 * compared with is the engine alone, i.e. the time inside its programs (where there are replicas, that of one engine: an
 * update may be faster than it). Groups without a signal are not left out, so
 * that every algorithm does the same work.
 *
 * Asynchrony: the quickstart's configuration to the same number of updates, synchronous (`maxLag` 0) and up to two or
 * four versions behind with as many groups in flight as that admits, then the held-out tasks with the weights it came to;
 * in TextCraft itself, whose step costs microseconds, and behind a latency with a heavy tail. Runs are interleaved and
 * their order alternates.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { view } from '../../envs/textcraft/index.ts';
import type { EstimatorConfig } from '../../src/algo/estimators.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { timeEngine } from '../../src/compute/engine/timed.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Group } from '../../src/core/trajectory.ts';
import { summarise } from '../../src/learning/evaluation/summary.ts';
import { trainerOptions } from '../../src/learning/learner/options.ts';
import { Trainer } from '../../src/learning/learner/trainer.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { setUpLocalPolicy } from '../../src/policy/setup.ts';
import { evaluationPlan } from '../../src/run/evaluate-run.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { loadNewest } from '../../src/storage/checkpoint.ts';
import { readTrace } from '../../src/storage/trace.ts';
import { tracePaths } from '../../src/storage/trace-files.ts';
import type { Bench, Figure } from './contract.ts';
import { median } from './median.ts';

/** Groups of one update. */
const GROUPS = 8;
/** Measured updates of each algorithm, after one that warms up. */
const REPEATS = 3;
/** Runs of each lag in each world, each under a seed of its own. */
const SEEDS = 2;
/** The first is what the others are compared with. */
const LAGS = [0, 2, 4] as const;

/** Bench `learner`: figures of updates and of asynchrony. */
export const bench: Bench = async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  try {
    const groups = await readRecorded(dir);
    const figures: Figure[] = [];
    for (const [name, overrides] of Object.entries(updates))
      figures.push(...(await updateFigures(name, overrides, groups)));
    for (const world of worlds) figures.push(...(await asyncFigures(world, dir)));
    return figures;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

const critic = 'learner.valueCoef=0.5';

/** Every algorithm by its own name … */
const algorithms: Readonly<Record<EstimatorConfig['algorithm'], readonly string[]>> = {
  grpo: [],
  dr_grpo: ['learner.estimator={algorithm: dr_grpo, aggregation: {type: constant, tokens: 24}}'],
  rloo: ['learner.estimator={algorithm: rloo}'],
  reinforce_pp: ['learner.estimator={algorithm: reinforce_pp}'],
  ppo: ['learner.estimator={algorithm: ppo, truncation: bootstrap}', critic],
  gigpo: ['learner.estimator={algorithm: gigpo}'],
  hgpo: ['learner.estimator={algorithm: hgpo}'],
  max_rl: ['learner.estimator={algorithm: max_rl}'],
  pass_at_k: ['learner.estimator={algorithm: pass_at_k, k: 2}'],
  agent_evol: ['learner.estimator={algorithm: agent_evol}'],
};

/** … and what costs more than the algorithm itself. */
const updates: Readonly<Record<string, readonly string[]>> = {
  ...algorithms,
  'dapo (grpo, clip-higher, 4 minibatches)': ['learner.clipHigh=0.28', 'learner.minibatches=4'],
  'grpo, KL to a reference': ['learner.kl={in: loss}'],
  'grpo, GSPO': ['learner.policyLoss={type: gspo}'],
  'grpo, truncated importance weights': ['learner.offPolicy={type: truncated}'],
  'grpo, in passes of 1,500 tokens': ['learner.maxTokens=1500'],
  'grpo, the same by two replicas': ['learner.maxTokens=1500', 'engine.learnerReplicas=2'],
};

function quickstart(...overrides: readonly string[]): RunConfig {
  const text = readFileSync(new URL('experiments/quickstart.yaml', packageRoot), 'utf8');
  return loadRunConfig(text, 'quickstart.yaml', ['trace.everyGroups=0', 'metrics.tensorboard=false', ...overrides]);
}

/** The groups of one update of an untrained policy, horizon 16. */
async function readRecorded(root: string): Promise<Group[]> {
  const dir = join(root, 'recorded');
  mkdirSync(dir);
  const config = quickstart(
    'horizon={type: fixed, rounds: 16}',
    'stop={updates: 1}',
    'learner.maxLag=0',
    'trace={everyGroups: 1, maxShare: 1}',
  );
  const run = await startRun({ config, dir, mode: 'async', envModule: worldUrl('textcraft'), learn: true });
  await run.train();
  await run.stop();
  const groups = new Map<number, Group>();
  for (const trajectory of tracePaths(join(dir, 'traces')).flatMap((path) => readTrace(path).episodes)) {
    const { group, task, horizon } = trajectory;
    const trajectories = [...(groups.get(group)?.trajectories ?? []), trajectory];
    groups.set(group, { group, task, horizon, trajectories });
  }
  return [...groups.values()].slice(0, GROUPS);
}

async function updateFigures(name: string, overrides: readonly string[], groups: readonly Group[]): Promise<Figure[]> {
  const config = quickstart('learner.filterGroups=false', ...overrides);
  const { model, params, codec } = setUpLocalPolicy(config, view, undefined);
  const { engine, computing } = timeEngine(
    await openEngine({ name: config.engine.name, device: config.engine.device, threads: config.engine.learnerThreads }),
    systemClock,
  );
  const options = { ...trainerOptions(config, model), codec };
  // One version on, the recorded decisions are older: importance weights have to be measured.
  const trainer = await Trainer.create(engine, options, { params: { ...params, version: 1 } });
  const rates: { updates: number; tokens: number; engine: number }[] = [];
  for (let repeat = -1; repeat < REPEATS; repeat++) {
    const before = computing.ms;
    const start = performance.now();
    const { tokens, broken } = await trainer.update(groups, 0);
    const seconds = (performance.now() - start) / 1000;
    if (broken) throw new Error(`${name}: ${broken.where}: ${broken.message}`);
    const engineSeconds = (computing.ms - before) / 1000;
    if (repeat >= 0) rates.push({ updates: 1 / seconds, tokens: tokens / seconds, engine: tokens / engineSeconds });
  }
  await trainer.dispose();
  await engine.dispose();
  const of = (key: 'updates' | 'tokens' | 'engine') => median(rates.map((rate) => rate[key]));
  return [
    {
      name,
      value: of('tokens'),
      unit: 'tokens/s',
      reference: { name: 'the engine alone', value: of('engine') },
      note: `${of('updates').toPrecision(3)} updates/s of ${groups.length} groups`,
    },
  ];
}

interface World {
  readonly name: string;
  readonly envModule: URL;
  readonly updates: number;
}

const worlds: readonly World[] = [
  { name: 'light', envModule: worldUrl('textcraft'), updates: 40 },
  { name: 'heavy-tailed latency', envModule: new URL('./slow-textcraft.js', import.meta.url), updates: 24 },
];

interface Outcome {
  readonly seconds: number;
  /** Share of the learner's time that it waited for groups. */
  readonly idle: number;
  /** On the held-out tasks, sampled. */
  readonly success: number;
}

async function asyncFigures(world: World, root: string): Promise<Figure[]> {
  const outcomes = new Map<number, Outcome[]>(LAGS.map((maxLag) => [maxLag, []]));
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const maxLag of seed % 2 === 0 ? LAGS.toReversed() : LAGS) {
      const dir = join(root, `${world.name}-${seed}-${maxLag}`.replaceAll(' ', '-'));
      mkdirSync(dir);
      outcomes.get(maxLag)!.push(await trainRun(world, maxLag, seed, dir));
    }
  }
  const of = (maxLag: number, key: keyof Outcome) => median(outcomes.get(maxLag)!.map((one) => one[key]));
  const figures = (maxLag: number): Figure[] => {
    const sync = (key: keyof Outcome, scale = 1) =>
      maxLag === 0 ? {} : { reference: { name: 'synchronous', value: scale * of(0, key) } };
    const at = `${world.name}, maxLag ${maxLag}`;
    const faster = `T_sync / T_async = ${(of(0, 'seconds') / of(maxLag, 'seconds')).toPrecision(3)}`;
    return [
      {
        name: `${at}: to ${world.updates} updates`,
        value: of(maxLag, 'seconds'),
        unit: 's',
        ...sync('seconds'),
        ...(maxLag === 0 ? {} : { note: faster }),
      },
      { name: `${at}: learner idle`, value: 100 * of(maxLag, 'idle'), unit: '%', ...sync('idle', 100) },
      { name: `${at}: success then`, value: 100 * of(maxLag, 'success'), unit: '%', ...sync('success', 100) },
    ];
  };
  return LAGS.flatMap(figures);
}

async function trainRun({ envModule, updates }: World, maxLag: number, seed: number, dir: string): Promise<Outcome> {
  const config = quickstart(
    `seed=${seed}`,
    'horizon={type: fixed, rounds: 16}',
    `stop={updates: ${updates}}`,
    `learner.maxLag=${maxLag}`,
    `rollout.concurrentGroups=${GROUPS * (maxLag + 1)}`,
    `learner.groupsPerUpdate=${GROUPS}`,
    'evaluation.episodesPerTask=1',
  );
  const metrics$ = new Subject<MetricsRow>();
  const rows: MetricsRow[] = [];
  metrics$.subscribe((row) => rows.push(row));
  const run = await startRun({ config, dir, mode: 'async', envModule, learn: true, metrics$ });
  const start = performance.now();
  await run.train();
  const seconds = (performance.now() - start) / 1000;
  await run.save();
  await run.stop();
  // Played without the latency: the weights are what counts.
  const checkpoint = loadNewest(join(dir, 'checkpoints'));
  const quick = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl('textcraft'),
    learn: false,
    checkpoint,
  });
  const record = await quick.evaluate(evaluationPlan(quick.env, config, 16, 'sampled'));
  const success = summarise(record, quick.env.tasks).all.success.value;
  await quick.stop();
  let [idle, total] = [0, 0];
  rows.forEach(({ learnerIdle = 0, elapsed = 0 }, i) => {
    const ms = elapsed - (rows[i - 1]?.elapsed ?? 0);
    idle += learnerIdle * ms;
    total += ms;
  });
  return { seconds, idle: idle / total, success };
}
