/** Command `longplay eval`. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { startRun } from '../../../actors/tree.ts';
import { loadRunConfig } from '../../config/load.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { UserError } from '../../core/errors.ts';
import { evaluationTable } from '../../evaluation/table.ts';
import { loadNewestOf } from '../../record/run-checkpoint.ts';
import { evaluateRun } from '../../run/evaluate-run.ts';
import { locatedEnv, moduleChange, worldUrl } from '../../run/find-world.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import { runCommand } from '../fail.ts';

interface EvalFlags {
  readonly set: readonly string[];
  readonly split?: 'train' | 'test';
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
    .option('--split <split>', 'train or test', oneOf(['train', 'test']))
    .option('--episodes <n>', 'sampled episodes of each task', count)
    .option('--horizon <turns...>', 'turns an episode may take', counts)
    .option('--greedy', 'only the best action instead of sampled ones')
    .option('--set <key=value...>', 'override a key of the configuration', [])
    .option('--json', 'one JSON object')
    .action((target: string, flags: EvalFlags) => runCommand(() => evalCommand(target, flags)));
}

async function evalCommand(target: string, flags: EvalFlags): Promise<void> {
  const overrides = [
    ...flags.set,
    ...(flags.split ? [`evaluation.split=${flags.split}`] : []),
    ...(flags.episodes ? [`evaluation.episodesPerTask=${flags.episodes}`] : []),
    ...(flags.horizon ? [`evaluation.horizons=[${flags.horizon.join(',')}]`] : []),
  ];
  const isRun = existsSync(target) && statSync(target).isDirectory();
  const config = isRun ? readRunConfig(target, overrides) : readConfig(target, overrides);
  if (!isRun && config.policy.kind === 'local') {
    throw new UserError(
      'BAD_ARGUMENT',
      `eval: ${target} is a configuration of a policy that has to be trained first; give the run's folder`,
    );
  }
  const changed = moduleChange(config.env);
  if (changed !== undefined) process.stderr.write(`${changed}\n`);
  const checkpoint = isRun ? loadNewestOf(target) : undefined;
  for (const warning of checkpoint?.warnings ?? []) process.stderr.write(`${warning}\n`);
  const run = await startRun({
    config: { ...config, trace: { ...config.trace, everyGroups: isRun ? config.trace.everyGroups : 0 } },
    dir: isRun ? target : '.',
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
    onNotice: (line) => process.stderr.write(`${line}\n`),
    ...(checkpoint ? { checkpoint } : {}),
  });
  try {
    const summaries = await evaluateRun(run, config, flags.greedy ? ['greedy'] : undefined);
    const text = flags.json
      ? JSON.stringify({
          format: 1,
          run: target,
          update: checkpoint?.update,
          split: config.evaluation.split,
          evaluations: summaries,
        })
      : evaluationTable(summaries).join('\n');
    process.stdout.write(`${text}\n`);
  } finally {
    await run.stop();
  }
}

function readConfig(path: string, overrides: readonly string[]): RunConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new UserError('UNKNOWN_RUN', `${path}: no such run or configuration`);
  }
  const config = loadRunConfig(text, path, overrides, (line) => void process.stderr.write(`${line}\n`));
  return { ...config, env: locatedEnv(config.env, dirname(path)) };
}

function oneOf(values: readonly string[]) {
  return (value: string): string => {
    if (!values.includes(value)) throw new InvalidArgumentError(`expected ${values.join(' or ')}`);
    return value;
  };
}

function count(value: string): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < 1) throw new InvalidArgumentError('expected a whole number ≥ 1');
  return n;
}

function counts(value: string, before: readonly number[] | undefined): readonly number[] {
  return [...(before ?? []), count(value)];
}
