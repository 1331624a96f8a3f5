/** `npm run experiment -- <name>`: runs a study. */
import type { Command } from 'commander';
import { runCommand } from '../src/cli/fail.ts';
import { collectFlag, MOST, number, wholeNumber } from '../src/cli/flags.ts';
import { newProgram, runAsScript } from '../src/cli/program.ts';
import { agents } from './agents.ts';
import { type ClusterStudy, cluster } from './cluster.ts';
import { distillation } from './distillation.ts';
import { fromScratch } from './from-scratch.ts';
import { horizon } from './horizon.ts';
import { type ImitationOptions, imitation } from './imitation.ts';
import { type LlmTinyFlags, llmTiny } from './llm-tiny.ts';
import { type LmOptions, lm } from './lm.ts';
import { sciworld } from './sciworld.ts';
import { searchqa } from './searchqa.ts';
import { tau2, terminal } from './tool-worlds.ts';
import type { StudyOptions } from './trial.ts';
import { webarena } from './webarena.ts';

interface CellFlags {
  readonly cells?: number;
  readonly minutes?: number;
}

/** Program of the studies, each a command with flags of its own. */
export function experimentProgram(): Command {
  const program = newProgram('npm run experiment --', 'Run a study; what is done is kept in experiments/results.');
  const inCells = (name: string, about: string, run: (flags: CellFlags) => Promise<void>) =>
    program
      .command(name)
      .description(about)
      .option('--cells <n>', 'cells to train now, all that are missing by default; 0 writes the page', wholeNumber(0))
      .option('--minutes <n>', 'begin no cell after this time', number(0, true))
      .action((flags: CellFlags) => runCommand(() => run(flags)));
  inCells('textcraft', 'TextCraft from scratch: three seeds an arm', (flags) =>
    fromScratch({ world: 'textcraft', ...flags }),
  );
  inCells('babyai', 'BabyAI from scratch: three seeds an arm', (flags) => fromScratch({ world: 'babyai', ...flags }));
  inCells('horizon', 'horizons: four schedules, two worlds, ten seeds', horizon);
  const inSeeds = (name: string, about: string, run: (flags: StudyOptions) => Promise<void>) =>
    program
      .command(name)
      .description(about)
      .option('--seeds <n>', 'seeds', wholeNumber(1, MOST.repeats), 3)
      .option('--env-steps <n>', "budget of a seed in environment steps (default: the configuration's)", wholeNumber(1))
      .action((flags: StudyOptions) => runCommand(() => run(flags)));
  inSeeds('agents', 'programs that call a model, as they are: AI SDK and Python', agents);
  inSeeds('distillation', 'TextCraft: a fresh policy taught by a trained one, in a quarter of the steps', distillation);
  inSeeds('searchqa', 'SearchQA from scratch', searchqa);
  inSeeds('sciworld', 'SciWorld from scratch: the paper’s tasks, and ScienceWorld’s own protocol', sciworld);
  inSeeds('terminal', 'the terminal from scratch: unseen tasks, and unseen families', terminal);
  inSeeds('tau2', 'τ²-bench’s carrier without a user, from scratch', tau2);
  inSeeds('webarena', 'WebArena’s embedded sites from scratch', webarena);
  program
    .command('cluster')
    .description('TextCraft by one process, and by a learner with workers: does it learn alike?')
    .option('--seeds <n>', 'seeds', wholeNumber(1, MOST.repeats), 3)
    .option('--updates <n>', 'updates of a run', wholeNumber(1), 600)
    .option('--workers <n>', 'workers', wholeNumber(1, MOST.threads), 2)
    .action((flags: ClusterStudy) => runCommand(() => cluster(flags)));
  program
    .command('llm-tiny')
    .description('a tiny chat model: fine-tuned a little on the planner, then by reinforcement learning')
    .option('--seed <n>', 'seed', wholeNumber(0, MOST.seed), 1)
    .option('--adapter', 'train an adapter instead of all weights')
    .action((flags: LlmTinyFlags) => runCommand(() => llmTiny(flags)));
  program
    .command('lm')
    .description('a real language model in TextCraft: a few demonstrations, then reinforcement')
    .requiredOption('--model <path>', 'GGUF file of the model')
    .option('--seeds <n>', 'seeds', wholeNumber(1, MOST.repeats), 3)
    .option('--all-demonstrations', 'imitate the planner on all training tasks too, without reinforcement')
    .option('--set <key=value>', 'a key of experiments/lm.yaml; may be given again', collectFlag, [])
    .action((flags: LmOptions) => runCommand(() => lm(flags)));
  program
    .command('imitation')
    .description('TextCraft’s small model imitates the planner: what it learns to read, whatever the signal')
    .option('--episodes <n>', 'episodes, each seen once', wholeNumber(1, MOST.repeats), 12_000)
    .option('--set <key=value>', 'a key of experiments/quickstart.yaml, e.g. policy.model.layers=5', collectFlag, [])
    .action((flags: ImitationOptions) => runCommand(() => imitation(flags)));
  return program;
}

await runAsScript(import.meta.url, experimentProgram);
