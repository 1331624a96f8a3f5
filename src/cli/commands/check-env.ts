/**
 * Command `longplay check-env`: checks a world against the laws, measures its costs and the success of simple agents.
 */
import type { Command } from 'commander';
import { reportLines } from '../../conformance/report.ts';
import { checkWatched } from '../../conformance/watch.ts';
import { out } from '../../console/terminal.ts';
import { worldUrl } from '../../run/find-world.ts';
import { runCommand } from '../fail.ts';
import { type EnvOptionFlags, envOptionsOf, MOST, wholeNumber, withEnvOptions } from '../flags.ts';

interface CheckFlags extends EnvOptionFlags {
  readonly cases: number;
  readonly seed: number;
  readonly episodes: number;
  readonly horizon: number;
  readonly deadline: number;
  readonly json?: boolean;
}

/** Adds the command. */
export function checkEnv(program: Command): void {
  const command = program
    .command('check-env')
    .description('check that an environment keeps the laws every environment must keep, and what it costs')
    .argument(
      '<module|id>',
      'a JavaScript module that exports createEnv, a world of this package, or openenv+http://<server>',
    )
    .option('--cases <n>', 'scripts each law is tried on', wholeNumber(1, MOST.repeats), 1000)
    .option('--seed <seed>', 'seed of the scripts; the same seed tries the same ones', wholeNumber(0, MOST.seed), 1)
    .option('--episodes <n>', 'episodes of the leak check', wholeNumber(10, MOST.repeats), 10_000)
    .option('--horizon <turns>', 'turns the agents may take', wholeNumber(1, MOST.held), 30)
    .option(
      '--deadline <seconds>',
      'longest time for one case before the env counts as hanging',
      wholeNumber(1, MOST.seconds),
      30,
    );
  withEnvOptions(command)
    .option('--json', 'one JSON object')
    .action((target: string, flags: CheckFlags) => runCommand(() => checkCommand(target, flags)));
}

async function checkCommand(target: string, flags: CheckFlags): Promise<void> {
  const { cases, seed, episodes, horizon } = flags;
  const options = envOptionsOf(flags);
  const url = worldUrl(target, options).href;
  const report = await checkWatched({ url, options, cases, seed, episodes, horizon }, flags.deadline * 1000);
  if (flags.json) out.json(report);
  else out.line(reportLines(report).join('\n'));
  if (!report.ok) process.exitCode = 1;
}
