/**
 * Question    Is it the signal that limits TextCraft's policy, or what the small model learns to read? The same model
 *             imitates a planner that never errs, each episode seen once: reinforcement can hardly teach it faster.
 * Command     npm run experiment -- imitation [--episodes 12000] [--set policy.model.layers=5 …]
 * Does        Episodes of the scripted planner on the train goals of depth 1 to 3 under experiments/quickstart.yaml, so with
 *             names permuted in each and recipes recombined in seven of ten; one pass; then success on the train goals under their true
 *             names and recipes. A diagnosis: no policy of a result page is trained like that.
 * Prints      The mean loss of each eighth of the episodes, and success by depth, sampled and greedy.
 * Wall-clock  Two minutes for 12,000 episodes on two idle cores.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEnv, createOracle, prompt, view } from '../envs/textcraft/index.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { Rng } from '../src/core/rng.ts';
import type { EvaluationSummary } from '../src/learning/evaluation/summary.ts';
import { evaluationTable } from '../src/learning/evaluation/table.ts';
import { evaluateRun } from '../src/run/evaluate-run.ts';
import type { Demonstration } from '../src/run/offline/demonstrations.ts';
import { superviseRun } from '../src/run/offline/run.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { startRun } from '../src/run/start-run.ts';
import { localUrl, packageRoot } from '../src/runtime/module-url.ts';
import { loadNewest } from '../src/storage/checkpoint.ts';

const world = localUrl(new URL('envs/textcraft/index.js', packageRoot));
const HORIZON = 24;
const EIGHTHS = 8;

export interface ImitationOptions {
  readonly episodes: number;
  /** `key=value` that differ from experiments/quickstart.yaml. */
  readonly set?: readonly string[];
  /** Evaluated tasks: a split, or a named set of the world. Default `train`. */
  readonly evaluated?: string;
}

/** Imitation in a folder. @returns mean loss of each eighth of the steps, and the evaluations */
export async function imitate(
  dir: string,
  { episodes, set = [], evaluated = 'train' }: ImitationOptions,
): Promise<{ readonly losses: readonly number[]; readonly evaluations: readonly EvaluationSummary[] }> {
  const config = configOf(set, evaluated);
  createRunFolder(dir, config);
  const sums = Array.from({ length: EIGHTHS }, () => ({ loss: 0, steps: 0 }));
  await superviseRun(
    {
      config,
      dir,
      view,
      prompt,
      demonstrations: recordPlanned(config, episodes),
      epochs: 1,
      batch: 32,
      onStep({ done, total, loss }) {
        const eighth = sums[Math.floor(((done - 1) * EIGHTHS) / total)]!;
        eighth.loss += loss;
        eighth.steps++;
      },
    },
    () => {},
  );
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: world,
    learn: false,
    checkpoint: loadNewest(join(dir, 'checkpoints')),
  });
  try {
    const evaluations = await evaluateRun(run);
    return { losses: sums.filter(({ steps }) => steps > 0).map(({ loss, steps }) => loss / steps), evaluations };
  } finally {
    await run.stop();
  }
}

function configOf(set: readonly string[], evaluated: string): RunConfig {
  const path = new URL('experiments/quickstart.yaml', packageRoot);
  const tasks = evaluated === 'train' || evaluated === 'test' ? `split: ${evaluated}` : `tasks: ${evaluated}`;
  return loadRunConfig(readFileSync(path, 'utf8'), 'quickstart.yaml', [
    `evaluation={ horizons: [${HORIZON}], episodesPerTask: 2, ${tasks} }`,
    'trace.everyGroups=0',
    ...set,
  ]);
}

/** Episodes that the planner wins within the horizon by listed actions, each of another task and rule book. */
function recordPlanned({ seed, env: { options }, tasks: { labels } }: RunConfig, episodes: number): Demonstration[] {
  const env = createEnv(options);
  const solver = createOracle(options);
  const indices = env.tasks.split('train').filter((index) => labels?.includes(env.tasks.label(index)) ?? true);
  const rng = Rng.fromSeed(seed);
  const won: Demonstration[] = [];
  while (won.length < episodes) {
    const task = { env: 'textcraft', index: indices[rng.int(indices.length)]!, seed: 1 + rng.int(2 ** 31 - 2) };
    const session = env.open(task);
    const next = solver(task);
    const turns: { observation: string; action: string; actions: readonly string[] }[] = [];
    let { observation } = session.first;
    let action = next(session.first);
    let score = 0;
    while (action !== undefined && turns.length < HORIZON) {
      const actions = session.actions();
      if (!actions.includes(action)) break;
      turns.push({ observation, action, actions });
      const step = session.step(action);
      ({ observation } = step);
      score += step.reward;
      action = next(step);
    }
    if (score < 1) continue;
    const source = `planner ${task.index}/${task.seed}`;
    won.push({ source, task: String(task.index), turns, finalObservation: observation, score });
  }
  return won;
}

/** The study from the command line. */
export async function imitation(options: ImitationOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-imitation-'));
  try {
    const { losses, evaluations } = await imitate(join(folder, 'run'), options);
    console.log(`nats a choice, by eighths: ${losses.map((loss) => loss.toFixed(3)).join(' ')}`);
    console.log(evaluationTable(evaluations).join('\n'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
