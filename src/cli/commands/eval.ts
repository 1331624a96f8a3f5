/** Command `longplay eval`. */
import { existsSync, statSync } from 'node:fs';
import type { Command } from 'commander';
import { chooseEngine } from '../../compute/engine/open.ts';
import { loadRunConfig } from '../../config/load.ts';
import { policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { err, out } from '../../console/terminal.ts';
import { readText } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { evaluationTable } from '../../learning/evaluation/table.ts';
import { loadNewestOf } from '../../learning/learner/run-checkpoint.ts';
import { misreadNotice } from '../../policy/remote/usage.ts';
import { evaluateRun } from '../../run/evaluate-run.ts';
import { EvaluationProgress } from '../../run/evaluation-progress.ts';
import { worldUrl } from '../../run/find-world.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import { startRun } from '../../run/start-run.ts';
import { moduleChange } from '../../world/env-id.ts';
import { locatePaths } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, counts, oneOf, wholeNumber } from '../flags.ts';
import { ProgressLine } from '../progress-line.ts';
import { tasksIn } from '../task-ids.ts';

interface EvalFlags {
  readonly set: readonly string[];
  readonly split?: 'train' | 'test';
  readonly tasks?: string;
  readonly paper?: boolean;
  readonly episodes?: number;
  readonly horizon?: readonly number[];
  readonly greedy?: boolean;
  readonly json?: boolean;
}

/** Adds the command. */
export function evaluate(program: Command): void {
  program
    .command('eval')
    .description('play held-out tasks with a trained policy: success, score and pass@k by sub-task')
    .argument('<run|config>', "a run's folder, or a configuration whose policy needs no training")
    .option('--split <split>', 'train or test, whatever the configuration names', oneOf(['train', 'test']))
    .option('--tasks <set|file>', "a named set of the world's tasks, or a file of task ids")
    .option('--paper', 'as the paper evaluates: its test ids, one sampled episode each, 30 and 20 turns')
    .option('--episodes <n>', 'sampled episodes of each task', wholeNumber(1))
    .option('--horizon <turns>', 'turns an episode may take; several between commas: 8,24', counts)
    .option('--greedy', 'only the best action instead of sampled ones')
    .option('--set <key=value>', 'override a key of the configuration; give it once for each', collectFlag, [])
    .option('--json', 'one JSON object')
    .action((target: string, flags: EvalFlags) => runCommand(() => evalCommand(target, flags)));
}

async function evalCommand(target: string, flags: EvalFlags): Promise<void> {
  const isRun = existsSync(target) && statSync(target).isDirectory();
  const read = isRun ? readRunConfig(target, flags.set) : readConfig(target, flags.set);
  const config = { ...read, evaluation: applyFlags(read.evaluation, flags) };
  const { learns, isLanguageModel, hasEngine } = policyKindOf(config);
  if (!isRun && learns && !isLanguageModel) {
    throw new UserError(
      'BAD_ARGUMENT',
      `eval: ${target} is a configuration of a policy that has to be trained first; give the run's folder`,
    );
  }
  const changed = moduleChange(config.env);
  if (changed !== undefined) err.line(changed);
  const checkpoint = isRun ? loadNewestOf(target) : undefined;
  for (const warning of checkpoint?.warnings ?? []) err.line(warning);
  if (hasEngine) err.line((await chooseEngine(config.engine)).notice);
  const line = new ProgressLine();
  const progress = new EvaluationProgress((text) => line.show(text));
  const run = await startRun({
    config: { ...config, trace: { ...config.trace, everyGroups: isRun ? config.trace.everyGroups : 0 } },
    dir: isRun ? target : '.',
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
    onNotice: (line) => err.line(line),
    onEpisodes: (trajectories, purpose) => progress.recordFinished(trajectories, purpose),
    checkpoint,
  });
  try {
    const summaries = await evaluateRun(run, config, kinds(flags), progress);
    line.end();
    if (flags.json) {
      out.json({
        format: 1,
        run: target,
        update: checkpoint?.update,
        ...describePlayed(config.evaluation),
        evaluations: summaries,
      });
    } else out.line(evaluationTable(summaries).join('\n'));
    for (const { name, all, failed } of summaries.filter(({ failed }) => failed > 0)) {
      err.line(`${name}: ${failed} of ${all.asked} episodes failed for good; traces say why`);
      process.exitCode = 1;
    }
    const { remote } = await run.inference();
    const misread = remote && misreadNotice(remote);
    if (misread) err.line(misread);
    if (remote && remote.requests > 0 && remote.formatErrors >= remote.requests) process.exitCode = 1;
  } finally {
    line.end();
    await run.stop();
  }
}

/** The turns that AgentGym-RL's scripts allow in its text worlds, and those of its appendix. */
const PAPER_HORIZONS = [30, 20];

/** The configuration's evaluation as the flags change it. */
function applyFlags(configured: RunConfig['evaluation'], flags: EvalFlags): RunConfig['evaluation'] {
  const { split, tasks, paper, episodes, horizon, greedy } = flags;
  const among = Object.entries({ '--split': split, '--tasks': tasks, '--paper': paper }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (among.length > 1) {
    throw new UserError('BAD_ARGUMENT', `eval: ${among.join(' and ')} both name what to play: give one of them`);
  }
  if (paper && (episodes !== undefined || horizon !== undefined || greedy)) {
    throw new UserError(
      'BAD_ARGUMENT',
      'eval: --paper sets how often, how long and at what temperature: give it alone',
    );
  }
  const { tasks: named, ...rest } = configured;
  const evaluation = {
    ...rest,
    ...(episodes === undefined ? {} : { episodesPerTask: episodes }),
    ...(horizon === undefined ? {} : { horizons: [...horizon] }),
  };
  if (paper) return { ...evaluation, split: 'test', episodesPerTask: 1, horizons: PAPER_HORIZONS };
  if (split) return { ...evaluation, split };
  if (tasks !== undefined) return { ...evaluation, tasks: tasksIn(tasks) };
  return named === undefined ? evaluation : { ...evaluation, tasks: named };
}

/** The split or the tasks that were played, as the JSON names them. */
function describePlayed({ split, tasks }: RunConfig['evaluation']): object {
  return tasks === undefined ? { split } : { tasks };
}

/** Sampled, greedy, or as configured. */
function kinds({ greedy, paper }: EvalFlags): readonly ('sampled' | 'greedy')[] | undefined {
  if (paper) return ['sampled'];
  return greedy ? ['greedy'] : undefined;
}

function readConfig(path: string, overrides: readonly string[]): RunConfig {
  let text: string;
  try {
    text = readText(path);
  } catch (thrown) {
    throw new UserError('UNKNOWN_RUN', `no such run or configuration: ${messageOf(thrown)}`);
  }
  const config = loadRunConfig(text, path, overrides);
  return locatePaths(config, path);
}
