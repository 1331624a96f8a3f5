/**
 * Question    Does stretching the horizon (ScalingInter-RL) beat a fixed short and a fixed long one?
 * Command     npm run experiment -- textcraft-horizon            (--seeds 5 --env-steps 90000 by default)
 * Does        Trains TextCraft from scratch under three schedules, five seeds each, the same number of environment
 *             steps, and plays the 100 held-out tasks at horizon 24, sampled, while training and at the end.
 * Prints      Success over seeds: interquartile mean with 95 % bootstrap intervals, by depth; and writes
 *             experiments/results/textcraft-horizon.{json,md,svg}.
 * Expected    No claim: the result is stated as it is.
 * Wall-clock  About ten minutes on two cores.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import type { Run } from '../actors/tree.ts';
import { loadRunConfig } from '../src/config/load.ts';
import { Rng } from '../src/core/rng.ts';
import { bootstrap, type Estimated, interquartileMean } from '../src/evaluation/intervals.ts';
import { type EvaluationSummary, summarise } from '../src/evaluation/summary.ts';
import { columns, percent } from '../src/evaluation/table.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import { evaluationPlan } from '../src/run/evaluate-run.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { train } from '../src/run/train.ts';
import { packageRoot } from '../src/runtime/thread.ts';
import { type Curve, plotCurves } from './plot.ts';
import { resultFiles } from './results.ts';

/** Difference between the arms; everything else is experiments/quickstart.yaml. */
const arms = [
  { name: 'fixed 8', horizon: 'horizon={type: fixed, rounds: 8}' },
  { name: 'fixed 24', horizon: 'horizon={type: fixed, rounds: 24}' },
  {
    name: 'scaling 8→16→24',
    horizon: 'horizon={type: scaling_inter_stepwise, rounds: [8, 16, 24], steps_scaling_inter: 40}',
  },
] as const;
/** Evaluations along the way, the last one at the end. */
const POINTS = 6;
const HORIZON = 24;

interface Options {
  readonly seeds: number;
  readonly envSteps: number;
}

interface Trial {
  readonly arm: string;
  readonly seed: number;
  readonly curve: readonly { readonly envSteps: number; readonly success: number }[];
  readonly final: EvaluationSummary;
  readonly minutes: number;
}

/** Runs the study. */
export async function textcraftHorizon({ seeds, envSteps }: Options): Promise<void> {
  const trials: Trial[] = [];
  const total = seeds * arms.length;
  const started = performance.now();
  for (let seed = 1; seed <= seeds; seed++) {
    // Seeds outside, arms inside: what slows the machine for a while slows all arms alike.
    for (const arm of arms) {
      trials.push(await trial(arm, seed, envSteps));
      const left = ((performance.now() - started) / trials.length) * (total - trials.length);
      process.stdout.write(
        `${trials.length}/${total} ${arm.name} seed ${seed}: ${percent(trials.at(-1)!.final.all.success)} · ${Math.ceil(left / 60_000)} min left\n`,
      );
    }
  }
  report(trials, envSteps);
}

async function trial(arm: (typeof arms)[number], seed: number, envSteps: number): Promise<Trial> {
  const text = readFileSync(new URL('experiments/quickstart.yaml', packageRoot), 'utf8');
  const config = loadRunConfig(text, 'quickstart.yaml', [
    arm.horizon,
    `seed=${seed}`,
    `stop={envSteps: ${envSteps}}`,
    `evaluation={horizons: [${HORIZON}], greedy: false, randomBaseline: false, episodesPerTask: 4}`,
    'trace.everyGroups=0',
  ]);
  const dir = join(tmpdir(), `longplay-horizon-${process.pid}-${seed}-${arm.name.replaceAll(/\W+/g, '-')}`);
  createRunFolder(dir, config);
  const metrics$ = new Subject<MetricsRow>();
  const curve: { envSteps: number; success: number }[] = [];
  const points: Promise<void>[] = [];
  let run: Run | undefined;
  let next = 1;
  metrics$.subscribe((row) => {
    if (!run || next >= POINTS || (row.envSteps ?? 0) < (next * envSteps) / POINTS) return;
    const at = row.envSteps!;
    const plan = evaluationPlan(run.env, config, HORIZON, 'sampled');
    const { env } = run;
    points.push(
      run.evaluate({ ...plan, name: `at ${next++}/${POINTS}`, episodes: 1 }).then((record) => {
        curve.push({ envSteps: at, success: summarise(record, env.tasks).all.success.value });
      }),
    );
  });
  const started = performance.now();
  try {
    const { evaluations } = await train({
      config,
      dir: join(dir, 'run'),
      onMetrics: (row) => metrics$.next(row),
      onStarted: (one) => {
        run = one;
      },
      beforeEvaluation: () => Promise.all(points),
    }).done;
    const final = evaluations[0]!;
    curve.push({ envSteps, success: final.all.success.value });
    return { arm: arm.name, seed, curve, final, minutes: (performance.now() - started) / 60_000 };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function report(trials: readonly Trial[], envSteps: number): void {
  const rng = Rng.fromSeed(1);
  const over = (values: readonly number[]): Estimated => bootstrap(values, interquartileMean, rng);
  const labels = ['all', ...trials[0]!.final.labels.map(({ label }) => label)];
  const own = (arm: string) => trials.filter((one) => one.arm === arm);
  const rate = (one: Trial, label: string) =>
    label === 'all'
      ? one.final.all.success.value
      : (one.final.labels.find((part) => part.label === label)?.success.value ?? Number.NaN);
  const rows = [
    ['success %, IQM over seeds [95 % bootstrap]', ...labels, 'minutes'],
    ...arms.map(({ name }) => [
      name,
      ...labels.map((label) => percent(over(own(name).map((one) => rate(one, label))))),
      (own(name).reduce((sum, one) => sum + one.minutes, 0) / own(name).length).toFixed(1),
    ]),
  ];
  const seeds = own(arms[0].name).length;
  const curves = arms.map(({ name }): Curve => ({ name, points: meanCurve(own(name)) }));
  const table = columns(rows).join('\n');
  const { json, markdown, svg } = resultFiles('textcraft-horizon');
  mkdirSync(new URL('.', json), { recursive: true });
  writeFileSync(json, `${JSON.stringify({ envSteps, seeds, trials }, null, 1)}\n`);
  writeFileSync(
    svg,
    plotCurves({
      title: `Held-out success at horizon ${HORIZON}, ${seeds} seeds`,
      x: 'environment steps',
      y: 'success',
      curves,
    }),
  );
  writeFileSync(
    markdown,
    `# Horizon schedules at equal environment steps\n\nTextCraft from scratch, ${seeds} seeds, ${envSteps} training steps each; the 100 held-out tasks, sampled, horizon ${HORIZON}, 4 episodes a task.\nRepeat with \`npm run experiment -- textcraft-horizon --seeds ${seeds} --env-steps ${envSteps}\`.\n\n\`\`\`\n${table}\n\`\`\`\n\n![curves](textcraft-horizon.svg)\n`,
  );
  process.stdout.write(`${table}\nwritten: ${svg.pathname}\n`);
}

/** Mean over seeds, point by point, with the range of the seeds as band. */
function meanCurve(trials: readonly Trial[]): Curve['points'] {
  return Array.from({ length: POINTS }, (_, i) => {
    const at = trials.flatMap(({ curve }) => curve[i] ?? []);
    const successes = at.map(({ success }) => success);
    return {
      x: at.reduce((sum, { envSteps }) => sum + envSteps, 0) / at.length,
      y: successes.reduce((sum, success) => sum + success, 0) / at.length,
      low: Math.min(...successes),
      high: Math.max(...successes),
    };
  }).filter(({ x }) => !Number.isNaN(x));
}
