/** `longplay sft` and `longplay dpo`: training from recorded episodes, without an environment. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Command } from 'commander';
import { loadRunConfig } from '../../config/load.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { readDemonstrations } from '../../offline/demonstrations.ts';
import { type OfflineRequest, preferRun, superviseRun } from '../../offline/run.ts';
import { createRunFolder, freeRunName } from '../../run/run-folder.ts';
import { runCommand } from '../fail.ts';
import { loadWorld } from '../world.ts';

interface OfflineFlags {
  readonly data: readonly string[];
  readonly set: readonly string[];
  readonly name?: string;
  readonly runs: string;
  readonly epochs: string;
  readonly batch: string;
  readonly minScore?: string;
  readonly beta?: string;
  readonly json?: boolean;
}

/** Adds `sft`. */
export function sft(program: Command): void {
  offline(program, 'sft', 'train a policy to imitate recorded episodes')
    .option('--min-score <score>', 'leave out episodes that scored less')
    .action((path: string, flags: OfflineFlags) => runCommand(() => sftCommand(path, flags)));
}

/** Adds `dpo`. */
export function dpo(program: Command): void {
  offline(program, 'dpo', 'train a policy to prefer the better of two recorded episodes of a task')
    .option('--beta <beta>', 'how closely to stay to the weights it starts from', '0.1')
    .action((path: string, flags: OfflineFlags) => runCommand(() => dpoCommand(path, flags)));
}

function offline(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(`${description}; go on from its weights with --set policy.init=<run>`)
    .argument('<config>', 'configuration, YAML')
    .requiredOption('--data <file...>', 'traces (.jsonl) or AgentTraj-style JSON (.json)')
    .option('--epochs <n>', 'passes over the data', '4')
    .option('--batch <n>', 'episodes (or pairs) of one optimiser step', '32')
    .option('--set <key=value...>', 'override a key of the configuration', [])
    .option('--name <name>', "the run's name; by default the configuration's")
    .option('--runs <folder>', 'where runs live', 'runs')
    .option('--json', 'one JSON object per line');
}

async function sftCommand(path: string, flags: OfflineFlags): Promise<void> {
  const least = flags.minScore === undefined ? Number.NEGATIVE_INFINITY : numberOf('--min-score', flags.minScore);
  const request = await prepare(path, flags);
  const demonstrations = request.demonstrations.filter(({ score }) => score >= least);
  await superviseRun({ ...request, demonstrations }, (epoch) => report(flags, { ...epoch }));
  finish(flags, request, `${demonstrations.length} episodes`);
}

async function dpoCommand(path: string, flags: OfflineFlags): Promise<void> {
  const beta = numberOf('--beta', flags.beta!);
  if (!(beta > 0)) throw new UserError('BAD_ARGUMENT', `--beta: expected a number above 0, got ${flags.beta}`);
  const request = await prepare(path, flags);
  const pairs = await preferRun({ ...request, beta }, (epoch) => report(flags, { ...epoch }));
  finish(flags, request, `${pairs} pairs`);
}

async function prepare(path: string, flags: OfflineFlags): Promise<OfflineRequest> {
  const epochs = countOf('--epochs', flags.epochs);
  const batch = countOf('--batch', flags.batch);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `cannot read ${path}: ${messageOf(thrown)}`);
  }
  const config = loadRunConfig(text, path, flags.set);
  const { module } = await loadWorld(config.env.id, config.env.options);
  const demonstrations = flags.data.flatMap(readDemonstrations);
  const dir = join(flags.runs, flags.name ?? freeRunName(flags.runs, basename(path).replace(/\.ya?ml$/, '')));
  createRunFolder(dir, config);
  return { config, dir, view: module.view, demonstrations, epochs, batch };
}

function report({ json }: OfflineFlags, epoch: Readonly<Record<string, number>>): void {
  const words = Object.entries(epoch).map(([name, value]) => `${name}=${value.toPrecision(4)}`);
  process.stdout.write(`${json ? JSON.stringify(epoch) : words.join(' ')}\n`);
}

function finish({ json }: OfflineFlags, { dir }: OfflineRequest, learnt: string): void {
  process.stdout.write(json ? `${JSON.stringify({ run: dir, learnt })}\n` : `learnt from ${learnt}; run ${dir}\n`);
}

function countOf(flag: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new UserError('BAD_ARGUMENT', `${flag}: expected a whole number ≥ 1, got ${text}`);
}

function numberOf(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new UserError('BAD_ARGUMENT', `${flag}: expected a number, got ${text}`);
}
