/**
 * Question    Does a fresh policy that a trained one teaches (on-policy distillation, no reward) play like its teacher, in a
 *             quarter of the environment steps that reinforcement took?
 * Command     npm run experiment -- distillation        (--seeds 3 by default; --env-steps for another budget of the teacher)
 * Does        Trains experiments/quickstart.yaml by its reward: the teachers. Then three fresh policies of another seed have a
 *             quarter of the teacher's environment steps: one is taught at the longest horizon, one under TCOD's curriculum (F2B,
 *             the schedule `linear`), and one learns by the reward alone. A seed that is done is kept in
 *             experiments/results/distillation.json.
 * Prints      Success on the test tasks with 95 % intervals over seeds and tasks, paired differences to the teacher over seeds, each
 *             seed by itself; and writes experiments/results/distillation.md.
 * Expected    A student within 3 points of its teacher; reinforcement far behind after as many steps.
 * Wall-clock  Some twenty minutes a seed on two idle cores.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createEnv } from '../envs/textcraft/index.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { comparePaired } from '../src/learning/evaluation/over-seeds.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import {
  averageOver,
  bySeed,
  configureTrial,
  isSameConfig,
  type StudyOptions,
  type Trial,
  trainTrial,
} from './trial.ts';

const FILE = 'quickstart.yaml';
/** Share of the teacher's environment steps that the others have. */
const SHARE = 1 / 4;
/** Weights are played as they were saved last: after every tenth update, since a student makes few. */
const SAVED = 'checkpoint.everyUpdates=10';
/** Points that a student may be behind its teacher. */
const BAR = 3;

/** Policies that are compared, in the order of the table. */
const ARMS = ['teacher', 'student', 'student, TCOD', 'reward alone'] as const;
type Arm = (typeof ARMS)[number];

/** Finished seed: a run of each arm. */
interface DistilledSeed {
  readonly seed: number;
  readonly arms: Readonly<Record<Arm, Trial>>;
}

/** Kept figures of the study. */
interface Kept {
  readonly format: 1;
  /** Configuration of the teacher under seed 0. */
  readonly config: RunConfig;
  readonly seeds: readonly DistilledSeed[];
}

/** Runs what is left of the study. */
export async function distillation({ seeds, envSteps, settings: given = [] }: StudyOptions): Promise<void> {
  const settings = [SAVED, ...given];
  const { json } = resultFiles('distillation');
  const config = configureTrial(FILE, 0, envSteps, settings);
  const kept = existsSync(json) ? (JSON.parse(readFileSync(json, 'utf8')) as Kept) : undefined;
  const done = kept && isSameConfig(kept.config, config) ? [...kept.seeds] : [];
  for (let seed = 1; seed <= seeds; seed++) {
    if (done.some((one) => one.seed === seed)) continue;
    done.push(await trainSeed(seed, envSteps, settings));
    mkdirSync(new URL('.', json), { recursive: true });
    writeFileSync(json, `${JSON.stringify({ format: 1, config, seeds: done } satisfies Kept)}\n`);
    process.stdout.write(`distillation: seed ${seed} of ${seeds} is done\n`);
  }
  report(
    config,
    done.filter(({ seed }) => seed <= seeds),
  );
}

/** Trains the arms of one seed: the others begin from other random weights than the teacher. */
async function trainSeed(
  seed: number,
  envSteps: number | undefined,
  settings: readonly string[],
): Promise<DistilledSeed> {
  const others: Partial<Record<Arm, Trial>> = {};
  const teacher = await trainTrial(configureTrial(FILE, seed, envSteps, settings), {}, async (dir, trial) => {
    const budget = Math.floor(SHARE * trial.envSteps);
    for (const arm of ARMS.slice(1)) {
      const own = [...settings, ...settingsOf(arm, dir, trial)];
      others[arm] = await trainTrial(configureTrial(FILE, 1000 + seed, budget, own), {});
    }
  });
  return { seed, arms: { ...(others as Record<Arm, Trial>), teacher } };
}

/** Settings of an arm beside the teacher's. */
function settingsOf(arm: Arm, teacher: string, { updates }: Trial): string[] {
  const quarter = Math.max(1, Math.floor((SHARE * updates) / 3));
  if (arm === 'reward alone') {
    return [`horizon={type: scaling_inter_stepwise, rounds: [8, 16, 24], steps_scaling_inter: ${quarter}}`];
  }
  const taught = [
    `learner.distillation={teacher: {type: run, path: ${JSON.stringify(teacher)}}}`,
    // Nothing compares episodes of one task, so a batch has more tasks.
    ...['rollout.groupSize=4', 'rollout.concurrentGroups=16', 'learner.groupsPerUpdate=8', 'learner.entropyCoef=0'],
  ];
  const horizon =
    arm === 'student, TCOD'
      ? `horizon={type: linear, rounds: [8, 24], steps_scaling_inter: ${quarter}}`
      : 'horizon={type: fixed, rounds: 24}';
  return [...taught, horizon];
}

function report(config: RunConfig, seeds: readonly DistilledSeed[]): void {
  if (seeds.length === 0) return;
  const { tasks } = createEnv();
  const test = tasks.split('test');
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const trialsOf = (arm: Arm) => seeds.map(({ arms }) => arms[arm]);
  const meansOf = (arm: Arm, kind: string) =>
    trialsOf(arm).map((trial) => averageOver([trial], 'rates', kind, test).value);
  const meanOf = (arm: Arm, kind: string) => averageOver(trialsOf(arm), 'rates', kind, test).value;
  const behind = (arm: Arm, kind: string): string => {
    const [own, its] = [meansOf(arm, kind), meansOf('teacher', kind)];
    if (own.length < 2) return points(own[0]! - its[0]!);
    const { value, low, high } = comparePaired(own, its);
    return `${points(value)} [${points(low)}, ${points(high)}]`;
  };
  const steps = (arm: Arm) => trialsOf(arm).reduce((sum, one) => sum + one.envSteps, 0) / seeds.length;
  const lines = [
    ...columns([
      ['success %, [95 %]', ...kinds, 'env steps'],
      ...ARMS.map((arm) => [
        arm,
        ...kinds.map((kind) => percent(averageOver(trialsOf(arm), 'rates', kind, test))),
        steps(arm).toFixed(0),
      ]),
    ]),
    '',
    ...columns([
      ['points from the teacher', ...kinds],
      ...ARMS.slice(1).map((arm) => [arm, ...kinds.map((kind) => behind(arm, kind))]),
    ]),
    ...ARMS.flatMap((arm) => ['', ...bySeed(`${arm}, by training seed`, trialsOf(arm), kinds, test)]),
    '',
    ...(['student', 'student, TCOD'] as const).map((arm) => {
      const missing = 100 * (meanOf('teacher', kinds[0]!) - meanOf(arm, kinds[0]!));
      const share = steps(arm) / steps('teacher');
      const met = missing <= BAR && share <= SHARE + 0.01 ? 'met' : 'not met';
      return `bar (${arm}, ${kinds[0]}): at most ${BAR} points behind, got ${missing.toFixed(1)}, in ${share.toFixed(2)} of the steps: ${met}`;
    }),
  ];
  const { markdown } = resultFiles('distillation');
  writeFileSync(
    markdown,
    `# On-policy distillation in TextCraft

**Question.** Does a fresh policy that a trained one teaches play like its teacher, in a quarter of the environment steps?

**Command.** \`npm run experiment -- distillation --seeds ${seeds.length}\` (a seed that is done is kept in distillation.json).

**Conditions.** The teachers are experiments/quickstart.yaml, trained by their reward at the end. The others start from other
random weights and have a quarter of the teacher's environment steps. Students learn from the reverse KL to the teacher alone
(\`learner.distillation\`), over the listed actions of each turn, without a reward: at 24 turns, or under TCOD's curriculum from 8
to 24 (\`horizon.type: linear\`). The last arm learns by the reward alone, its horizons in as many steps. All play the paper's
${test.length} test tasks, ${config.evaluation.episodesPerTask} sampled episodes each and one greedy. Means have 95 % intervals over seeds and tasks, differences over
seeds.

\`\`\`
${lines.join('\n')}
\`\`\`
`,
  );
  process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
}

/** Difference of shares in points, with its sign. */
function points(share: number): string {
  return `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(1)}`;
}
