/** Command `longplay optimize-prompt`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { compact, estimate } from '../../console/numbers.ts';
import { err, out } from '../../console/terminal.ts';
import { isUserMistake, UserError } from '../../core/errors.ts';
import { columns, percent } from '../../learning/evaluation/table.ts';
import { openChatModel } from '../../policy/remote/chat-model.ts';
import {
  type HeldOutResult,
  optimizePrompt,
  type PromptSearchOutcome,
  planPromptSearch,
} from '../../run/prompt-search/optimize-prompt.ts';
import { SearchState, STATE_FILE } from '../../run/prompt-search/search-state.ts';
import { createRunFolder, readRunConfig } from '../../run/run-folder.ts';
import { acquireRunLock, releaseRunLock } from '../../run/run-lock.ts';
import { writeFileAtomic } from '../../storage/atomic-file.ts';
import { readConfigFile } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, MOST, refuseFlags, wholeNumber } from '../flags.ts';
import { firstSignal } from '../interrupt.ts';
import { ProgressLine } from '../progress-line.ts';

interface OptimizeFlags {
  readonly proposerUrl?: string;
  readonly proposerModel?: string;
  readonly budget: number;
  readonly minibatch: number;
  readonly selection: number;
  readonly heldOut: number;
  readonly horizon?: number;
  readonly seed: number;
  readonly out?: string;
  readonly resume?: string;
  readonly set: readonly string[];
  readonly json?: boolean;
}

/** Adds the command. */
export function optimizePromptCommand(program: Command): void {
  program
    .command('optimize-prompt')
    .description("search for a better system message of a configuration's language model; held-out tasks decide")
    .argument('[config]', 'configuration whose policy is a language model, here or behind a server')
    .option('--proposer-url <url>', 'OpenAI-compatible API of the model that writes prompts')
    .option('--proposer-model <name>', 'as that server calls it')
    .option(
      '--budget <episodes>',
      'episodes of the search; the held-out tasks come on top',
      wholeNumber(1, MOST.repeats),
      300,
    )
    .option(
      '--minibatch <tasks>',
      'tasks that a prompt is changed by, and first tested on',
      wholeNumber(1, MOST.held),
      3,
    )
    .option('--selection <tasks>', 'tasks that prompts are selected by', wholeNumber(1, MOST.held), 20)
    .option('--held-out <tasks>', 'tasks that decide', wholeNumber(2, MOST.held), 50)
    .option(
      '--horizon <turns>',
      "turns an episode may take; the configuration's evaluation by default",
      wholeNumber(1, MOST.held),
    )
    .option('--seed <n>', 'of tasks and sampling', wholeNumber(0, MOST.seed), 1)
    .option('--out <folder>', 'new folder of the search')
    .option('--resume <folder>', 'go on where a search stopped')
    .option('--set <key=value>', 'override a key of the configuration; give it once for each', collectFlag, [])
    .option('--json', 'one JSON object')
    .action((config: string | undefined, flags: OptimizeFlags, command: Command) =>
      runCommand(async () => {
        if (flags.resume !== undefined) refuseFlags(command, PLANNED, 'a search goes on as it was begun');
        await optimizeCommand(config, flags);
      }),
    );
}

/** Flags that a search keeps from its start. */
const PLANNED = ['proposerModel', 'budget', 'minibatch', 'selection', 'heldOut', 'horizon', 'seed', 'out'];

async function optimizeCommand(path: string | undefined, flags: OptimizeFlags): Promise<void> {
  const dir = flags.resume === undefined ? await begin(path, flags) : checkResumed(path, flags.resume);
  const left = acquireRunLock(dir);
  if (left !== undefined) err.line(left);
  const line = new ProgressLine();
  const signal = firstSignal();
  try {
    const state = SearchState.open(dir);
    const config = readRunConfig(dir, flags.resume === undefined ? [] : flags.set);
    const { url, model } = state.plan.proposer;
    const proposer = openChatModel({ url: flags.proposerUrl ?? url, model, temperature: 1 });
    void signal.signal.then(() => proposer.close());
    const outcome = await optimizePrompt({
      dir,
      config,
      state,
      proposer,
      onNotice: (text) => err.line(text),
      onProgress: (text) => line.show(() => text),
      interrupted: signal.signal,
    }).finally(() => proposer.close());
    line.end();
    const chat = { ...config.policy.chat, system: outcome.best.prompt };
    const best = join(dir, 'best.yaml');
    if (outcome.best.prompt !== '') {
      writeFileAtomic(best, stringify({ ...config, policy: { ...config.policy, chat } }));
    }
    if (flags.json) out.json({ format: 1, search: dir, ...outcome });
    else print(outcome, best);
  } catch (thrown) {
    if (!isUserMistake(thrown)) {
      err.line(`what is finished is kept; go on with: longplay optimize-prompt --resume ${dir}`);
    }
    throw thrown;
  } finally {
    signal.stop();
    line.end();
    releaseRunLock(dir);
  }
}

/**
 * Begins a search.
 * @returns its folder
 * @throws {UserError} for a configuration, world or flag that cannot be used; nothing is then written
 */
async function begin(path: string | undefined, flags: OptimizeFlags): Promise<string> {
  const { proposerUrl, proposerModel, out: dir, budget, minibatch, seed } = flags;
  if (path === undefined) {
    throw new UserError('BAD_ARGUMENT', 'optimize-prompt: give a configuration, or --resume <folder>');
  }
  if (proposerUrl === undefined || proposerModel === undefined) {
    const need = '--proposer-url and --proposer-model name the model that writes prompts';
    throw new UserError('BAD_ARGUMENT', `optimize-prompt: ${need}`);
  }
  if (dir === undefined) throw new UserError('BAD_ARGUMENT', 'optimize-prompt: --out <folder>: name a new folder');
  const config = readConfigFile(path, flags.set);
  openChatModel({ url: proposerUrl, model: proposerModel }).close(); // refuses what it cannot use before anything is made
  const plan = await planPromptSearch(
    config,
    { selection: flags.selection, heldOut: flags.heldOut },
    {
      seed,
      budget,
      minibatch,
      horizon: flags.horizon ?? config.evaluation.horizons[0]!,
      proposer: { url: proposerUrl, model: proposerModel },
    },
  );
  createRunFolder(dir, config, { [STATE_FILE]: `${JSON.stringify(plan)}\n` });
  return dir;
}

function checkResumed(path: string | undefined, dir: string): string {
  if (path !== undefined) {
    throw new UserError('BAD_ARGUMENT', 'optimize-prompt: --resume has its own configuration; give one of them');
  }
  if (existsSync(join(dir, STATE_FILE))) return dir;
  throw new UserError('UNKNOWN_RUN', `${dir} is no search of prompts: it has no ${STATE_FILE}`);
}

function print({ best, candidates, spent, own, found, difference, isBetter }: PromptSearchOutcome, path: string): void {
  const pool = `${candidates} ${candidates === 1 ? 'prompt' : 'prompts'} in the pool after ${spent} episodes`;
  out.line(`${pool}; on tasks that no step has seen:\n`);
  const rowOf = (name: string, { success, score }: HeldOutResult) => [name, percent(success), compact(score)];
  const head = [`${own.success.n} held-out tasks`, 'success % [95 %]', 'mean return'];
  out.line(columns([head, rowOf('own prompt', own), rowOf('best prompt', found)]).join('\n'));
  out.line(`difference of returns by task: ${estimate(difference)}\n`);
  if (best.candidate === 0) out.line('no prompt did better on the selection tasks: the own one stays');
  else {
    out.line(isBetter ? 'the best prompt is better:' : 'the best prompt is not shown to be better on held-out tasks:');
    out.line(best.prompt);
    out.line(`\nwritten: ${path}: longplay eval ${path}`);
  }
}
