/** Command `longplay eval`. */
import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Command } from 'commander';
import { chooseEngine } from '../../compute/engine/open.ts';
import { loadRunConfig } from '../../config/load.ts';
import { policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { err, out } from '../../console/terminal.ts';
import { readText } from '../../core/bounded-file.ts';
import { isUserMistake, messageOf, UserError } from '../../core/errors.ts';
import { evaluationTable } from '../../learning/evaluation/table.ts';
import { loadNewestOf } from '../../learning/learner/run-checkpoint.ts';
import { misreadNotice } from '../../policy/remote/usage.ts';
import { EvaluationProgress } from '../../run/evaluation-progress.ts';
import { moduleChanges, runUrl } from '../../run/find-world.ts';
import {
  isEvaluationFolder,
  isKept,
  type PreparedEvaluation,
  playEvaluation,
  resumeEvaluation,
  startEvaluation,
} from '../../run/play-evaluation.ts';
import { discard, freeRunName, readRunConfig, runDir } from '../../run/run-folder.ts';
import { locatePaths } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, counts, oneOf, refuseFlags, wholeNumber } from '../flags.ts';
import { firstSignal } from '../interrupt.ts';
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
  readonly resume?: boolean;
  readonly runs: string;
  readonly name?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function evaluate(program: Command): void {
  program
    .command('eval')
    .description('play held-out tasks with a trained policy: success, score and pass@k by sub-task')
    .argument('<run|config>', 'folder of a run or of an evaluation, or a configuration whose policy needs no training')
    .option('--split <split>', 'train or test, whatever the configuration names', oneOf(['train', 'test']))
    .option('--tasks <set|file>', "a named set of the world's tasks, or a file of task ids")
    .option('--paper', 'as the paper evaluates: its test ids, one sampled episode each, 30 and 20 turns')
    .option('--episodes <n>', 'sampled episodes of each task', wholeNumber(1))
    .option('--horizon <turns>', 'turns an episode may take; several between commas: 8,24', counts)
    .option('--greedy', 'only the best action instead of sampled ones')
    .option('--set <key=value>', 'override a key of the configuration; give it once for each', collectFlag, [])
    .option('--resume', 'go on where an evaluation stopped; finished episodes are not repeated')
    .option('--runs <folder>', "where a configuration's evaluations are kept", 'runs')
    .option('--name <name>', "name of a configuration's evaluation; by default eval-<configuration>")
    .option('--json', 'one JSON object')
    .action((target: string, flags: EvalFlags, command: Command) =>
      runCommand(() => evalCommand(target, flags, command)),
    );
}

/** Flags that an evaluation of its own folder keeps from its start. */
const PLANNED = ['split', 'tasks', 'paper', 'episodes', 'horizon', 'greedy', 'runs', 'name'];

async function evalCommand(target: string, flags: EvalFlags, command: Command): Promise<void> {
  const prepared = prepare(target, flags, command);
  const { dir, isOwn, config, checkpoint } = prepared;
  for (const changed of moduleChanges(config)) err.line(changed);
  for (const warning of checkpoint?.warnings ?? []) err.line(warning);
  if (policyKindOf(config).hasEngine) err.line((await chooseEngine(config.engine)).notice);
  const goOn = isOwn ? `longplay eval ${dir} --resume` : 'the same command and --resume';
  const line = new ProgressLine();
  const interrupted = firstSignal();
  try {
    const { summaries, missing, stopped, usage } = await playEvaluation(prepared, {
      onNotice: (text) => err.line(text),
      progress: new EvaluationProgress((text) => line.show(text)),
      interrupted: interrupted.signal,
    });
    line.end();
    if (flags.json) {
      const about = { run: isOwn ? dir : target, update: checkpoint?.update, ...describePlayed(config.evaluation) };
      out.json({ format: 1, ...about, evaluations: summaries });
    } else {
      const begun = summaries.filter(({ all }) => all.episodes > 0);
      if (begun.length > 0) out.line(evaluationTable(begun).join('\n'));
      if (isOwn) out.line(`evaluation ${dir}: longplay view ${dir}`);
    }
    if (!stopped) {
      for (const { name, all, failed } of summaries.filter(({ failed }) => failed > 0)) {
        err.line(`${name}: ${failed} of ${all.asked} episodes failed for good; traces say why`);
      }
    }
    const misread = usage && misreadNotice(usage);
    if (misread) err.line(misread);
    if (usage && usage.requests > 0 && usage.formatErrors >= usage.requests) process.exitCode = 1;
    if (missing === 0) return;
    process.exitCode = 1;
    if (dir === undefined) err.line(`${missing} episodes are missing; nothing is kept of a policy that is random`);
    else err.line(`${missing} episodes are missing; go on with: ${goOn}`);
  } catch (thrown) {
    const begun = dir !== undefined && existsSync(join(dir, 'traces'));
    // A fresh evaluation that the user's mistake kept from starting leaves nothing behind.
    if (!isUserMistake(thrown)) {
      if (begun) err.line(`finished episodes are kept; go on with: ${goOn}`);
    } else if (isOwn && !prepared.resume && !begun) discard(dir!);
    throw thrown;
  } finally {
    interrupted.stop();
    line.end();
  }
}

/**
 * Prepares the evaluation of a run, of a configuration, or of an evaluation's folder that is to go on.
 * @throws {UserError} where one of them cannot be evaluated, or not resumed
 */
function prepare(target: string, flags: EvalFlags, command: Command): PreparedEvaluation {
  const { resume = false } = flags;
  const isRun = existsSync(target) && statSync(target).isDirectory();
  if (isRun && isEvaluationFolder(target)) {
    if (!resume) {
      const cure = '--resume goes on with it; to begin anew, evaluate its configuration again';
      throw new UserError('BAD_ARGUMENT', `eval: ${target} is an evaluation: ${cure}`);
    }
    refuseFlags(command, PLANNED, 'an evaluation goes on as it was begun; for other flags begin a new one');
    return resumeEvaluation(target, flags.set);
  }
  const read = isRun ? readRunConfig(target, flags.set) : readConfig(target, flags.set);
  const config = withFlags(read, flags);
  const played = kinds(flags) ?? (config.evaluation.greedy ? (['sampled', 'greedy'] as const) : (['sampled'] as const));
  if (isRun) {
    refuseFlags(command, ['runs', 'name'], "an evaluation of a run is kept in the run's folder");
    const checkpoint = loadNewestOf(target);
    return { dir: target, isOwn: false, config, kinds: played, checkpoint, resume };
  }
  const { learns, isLanguageModel } = policyKindOf(config);
  if (learns && !isLanguageModel) {
    throw new UserError(
      'BAD_ARGUMENT',
      `eval: ${target} is a configuration of a policy that has to be trained first; give the run's folder`,
    );
  }
  const base = `eval-${basename(target).replace(/\.[^.]*$/, '')}`;
  if (resume) {
    const why = isKept(config)
      ? `give the folder that its evaluation has: longplay eval ${join(flags.runs, base)} --resume`
      : 'nothing is kept of a policy that is random; evaluate it again';
    throw new UserError('BAD_ARGUMENT', `eval: ${target} is a configuration, which is not resumed: ${why}`);
  }
  if (!isKept(config)) {
    refuseFlags(command, ['runs', 'name'], 'nothing is kept of a policy that is random');
    return { dir: undefined, isOwn: false, config, kinds: played, checkpoint: undefined, resume };
  }
  runUrl(config);
  return startEvaluation(runDir(flags.runs, flags.name ?? freeRunName(flags.runs, base)), config, played);
}

/** The turns that AgentGym-RL's scripts allow in its text worlds, and those of its appendix. */
const PAPER_HORIZONS = [30, 20];

/** Configuration whose evaluation, and that of each of several worlds, is as the flags change it. */
function withFlags(config: RunConfig, flags: EvalFlags): RunConfig {
  const evaluation = applyFlags(config.evaluation, flags);
  if (config.worlds === undefined) return { ...config, evaluation };
  if (flags.tasks !== undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      'eval: --tasks names tasks of one world, and the run has several; leave it out',
    );
  }
  const worlds = config.worlds.map((world) => {
    const { split, tasks, episodesPerTask, horizons } = applyFlags(
      { ...config.evaluation, ...world.evaluation },
      flags,
    );
    return { ...world, evaluation: { split, episodesPerTask, horizons, ...(tasks === undefined ? {} : { tasks }) } };
  });
  return { ...config, evaluation, worlds };
}

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
