/**
 * Plays recordings of the original environments again and counts where ours answers otherwise.
 *
 *     npm run parity -- textcraft ../shared/golden/textcraft/*.gz
 *
 * Prints the first difference of each file and, last, `episodes N, steps N, differences N` over all files. Exit
 * code 0 without differences, 1 with some, 2 for a command line or a file that cannot be used.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { registry } from '../envs/registry.ts';
import { runCommand } from '../src/cli/fail.ts';
import { newProgram, runAsScript } from '../src/cli/program.ts';
import { messageOf, UserError } from '../src/core/errors.ts';
import type { Difference, Parity } from '../src/core/parity.ts';
import { worldUrl } from '../src/run/find-world.ts';
import { localUrl } from '../src/runtime/module-url.ts';
import { serveInline } from '../src/serve/agentgym/inline-server.ts';
import { loadWorld } from '../src/world/open-world.ts';
import { replay as llm, recordingsIn } from './parity/llm.ts';

/** Program of the re-player. */
export function parityProgram(): Command {
  return newProgram('npm run parity --', 'Play recordings of the original environments again, and count what differs.')
    .argument('<what>', `world (${Object.keys(registry).join(', ')}), or llm: recordings of Hugging Face`)
    .argument('<recordings...>', 'files (.json, .jsonl, also .gz) or folders of them')
    .action((what: string, paths: readonly string[]) =>
      runCommand(async () => {
        const differences = await parity(what, paths, (line) => console.log(line));
        if (differences > 0) process.exitCode = 1;
      }),
    );
}

/**
 * Re-plays recordings.
 * @param name of a world, or `llm`
 * @returns the number of differences
 * @throws {UserError} for a world without a re-player, and for a file that is no recording
 */
export async function parity(name: string, paths: readonly string[], print: (line: string) => void): Promise<number> {
  const { replay, files } = await replayer(name, paths);
  let [episodes, steps, differences] = [0, 0, 0];
  for (const file of files) {
    const records = readRecords(file);
    let first: Difference | undefined;
    let found = 0;
    const onDifference = (difference: Difference) => {
      first ??= difference;
      found++;
    };
    const counts = await naming(file, () => replay(records, onDifference, file, serveInline));
    print(`${file}: episodes ${counts.episodes}, steps ${counts.steps}, differences ${found}`);
    if (first) for (const line of formatValue(first)) print(line);
    episodes += counts.episodes;
    steps += counts.steps;
    differences += found;
  }
  print(`episodes ${episodes}, steps ${steps}, differences ${differences}`);
  return differences;
}

/** Runs what may refuse a file, and names the file in the refusal. */
async function naming<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof UserError) || thrown.message.includes(file)) throw thrown;
    throw new UserError(thrown.code, `${file}: ${thrown.message}`, { cause: thrown });
  }
}

/** The re-player of a world, or of language models, and its recordings. @throws {UserError} */
async function replayer(
  name: string,
  paths: readonly string[],
): Promise<{ readonly replay: Parity; readonly files: readonly string[] }> {
  if (name === 'llm') return { replay: llm, files: paths.flatMap(recordingsIn) };
  const { parity: replay } = await loadWorld(localUrl(worldUrl(name)), name);
  if (replay) return { replay, files: paths.flatMap(recordingsAt) };
  throw new UserError('UNKNOWN_ENV', `no recordings of '${name}' can be played again: it exports no \`parity\``);
}

/** The recordings that a path stands for: the file itself, or all of a folder. @throws {UserError} where there is none */
function recordingsAt(path: string): readonly string[] {
  if (!existsSync(path) || !statSync(path).isDirectory()) return [path];
  const found = readdirSync(path)
    .filter((name) => /\.jsonl?(\.gz)?$/.test(name))
    .map((name) => join(path, name))
    .sort();
  if (found.length > 0) return found;
  throw new UserError('BAD_TRACE', `${path}: no recordings (.json, .jsonl, also .gz) in this folder`);
}

/**
 * The JSON values of a recording: one a line in `.jsonl`, one in all otherwise; gzip or plain.
 * @throws {UserError} for a file that cannot be read or is neither
 */
export function readRecords(file: string): readonly unknown[] {
  try {
    const bytes = readFileSync(file);
    const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8');
    const values = /\.jsonl(\.gz)?$/.test(file) ? text.split('\n').filter((line) => line.trim() !== '') : [text];
    return values.map((value) => JSON.parse(value));
  } catch (thrown) {
    throw new UserError('BAD_TRACE', `${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function formatValue({ where, what, expected, got }: Difference): readonly string[] {
  const side = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
  return [`  first difference: ${where}: ${what}`, `    expected ${side(expected)}`, `    got      ${side(got)}`];
}

await runAsScript(import.meta.url, parityProgram);
