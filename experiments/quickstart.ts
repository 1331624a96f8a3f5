/**
 * Question    Can an agent that knows nothing learn to craft, on two cores, within five minutes?
 * Command     npm start            (npm start -- --seed 2 for another seed)
 * Does        Trains a small transformer on TextCraft by RL alone: reward 0 or 1 at the end of an episode, no
 *             demonstrations, ScalingInter-RL stretching the horizon 8 → 16 → 24 turns. Then plays the paper's 100
 *             held-out test tasks, and so does a uniform random policy over the same lists of actions.
 * Expected    Sampled at horizon 24: depth 1 ≥ 95 %, depth 2 ≥ 90 % (random 71 and 11); at horizon 8: depth 1 ≥ 90 %
 *             (random 40). experiments/results/quickstart.md and textcraft.md have the figures.
 * Wall-clock  Under five minutes on two cores, the build and the evaluation included.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { trainAndReport } from '../src/cli/commands/train.ts';
import { runCommand } from '../src/cli/fail.ts';
import { collectFlag, MOST, wholeNumber } from '../src/cli/flags.ts';
import { newProgram, runAsScript } from '../src/cli/program.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { EvaluationSummary } from '../src/learning/evaluation/summary.ts';
import { freeRunName } from '../src/run/run-folder.ts';
import { packageRoot } from '../src/runtime/module-url.ts';

interface QuickstartFlags {
  readonly seed: number;
  readonly runs: string;
  readonly set?: readonly string[];
}

/** Program of the quickstart. */
export function quickstartProgram(): Command {
  return newProgram('npm start --', 'See a small policy learn TextCraft from random weights, within five minutes.')
    .option('--seed <n>', 'seed', wholeNumber(0, MOST.seed), 1)
    .option('--runs <folder>', 'folder of runs', 'runs')
    .option('--set <key=value>', 'override a key of experiments/quickstart.yaml; may be given again', collectFlag)
    .action((flags: QuickstartFlags) => runCommand(() => quickstart(flags)));
}

async function quickstart({ seed, runs, set = [] }: QuickstartFlags): Promise<void> {
  const started = performance.now();
  const path = new URL('experiments/quickstart.yaml', packageRoot);
  const config = loadRunConfig(readFileSync(path, 'utf8'), 'experiments/quickstart.yaml', [`seed=${seed}`, ...set]);
  const dir = join(runs, freeRunName(runs, `quickstart-seed${seed}`));
  const { evaluations } = await trainAndReport({ config, dir, resume: false, mode: 'async', json: false });
  const minutes = (performance.now() - started) / 60_000;
  process.stdout.write(`${resultLine(evaluations, minutes)}\n`);
}

/** `result h24 d1=… d2=… d3=… d4=… h8 d1=… greedy d1=… d2=… minutes=…`, success in per cent. */
function resultLine(evaluations: readonly EvaluationSummary[], minutes: number): string {
  const percent = (name: string, depth: number) => {
    const found = evaluations.find((one) => one.name === name)?.labels.find(({ label }) => label === `depth ${depth}`);
    return found ? (100 * found.success.value).toFixed(1) : 'nan';
  };
  const of = (name: string, depths: number[]) => depths.map((depth) => `d${depth}=${percent(name, depth)}`).join(' ');
  return [
    'result h24',
    of('h24 sampled', [1, 2, 3, 4]),
    'h8',
    of('h8 sampled', [1]),
    'greedy',
    of('h24 greedy', [1, 2]),
    `minutes=${minutes.toFixed(2)}`,
  ].join(' ');
}

await runAsScript(import.meta.url, quickstartProgram);
