/**
 * Plays recordings of the original environments again and counts where ours answers otherwise.
 *
 *     npm run parity -- textcraft ../shared/golden/textcraft/*.gz
 *
 * Prints the first difference of each file and, last, `episodes N, steps N, differences N` over all files. Exit
 * code 0 without differences, 1 with some, 2 for a command line or a file that cannot be used.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { parity as searchqa } from '../envs/searchqa/parity.ts';
import { messageOf, UserError } from '../src/core/errors.ts';
import type { Difference, Parity } from '../src/core/parity.ts';
import { replay as babyai } from './parity/babyai.ts';
import { replay as llm, recordingsIn } from './parity/llm.ts';
import { replay as textcraft } from './parity/textcraft.ts';

/** One line a world. */
const replays: Readonly<Record<string, Parity>> = { textcraft, babyai, searchqa, llm };

/** @returns the process's exit code */
export async function parity(args: readonly string[], print: (line: string) => void): Promise<number> {
  try {
    const [name, ...files] = args;
    const replay = name === undefined ? undefined : replays[name];
    const known = Object.keys(replays).join(' | ');
    if (name !== undefined && !replay) {
      throw new UserError('UNKNOWN_ENV', `no recordings of "${name}" can be played again; there is: ${known}`);
    }
    if (!replay || files.length === 0) {
      throw new UserError('BAD_ARGUMENT', `usage: npm run parity -- <${known}> <golden file>…`);
    }
    let [episodes, steps, differences] = [0, 0, 0];
    for (const file of name === 'llm' ? files.flatMap(recordingsIn) : files) {
      const records = readRecords(file);
      let first: Difference | undefined;
      let found = 0;
      const counts = await replay(
        records,
        (difference) => {
          first ??= difference;
          found++;
        },
        file,
      );
      print(`${file}: episodes ${counts.episodes}, steps ${counts.steps}, differences ${found}`);
      if (first) for (const line of shown(first)) print(line);
      episodes += counts.episodes;
      steps += counts.steps;
      differences += found;
    }
    print(`episodes ${episodes}, steps ${steps}, differences ${differences}`);
    return differences === 0 ? 0 : 1;
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown;
    print(thrown.message);
    return 2;
  }
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

function shown({ where, what, expected, got }: Difference): readonly string[] {
  const side = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
  return [`  first difference: ${where}: ${what}`, `    expected ${side(expected)}`, `    got      ${side(got)}`];
}

if (process.argv[1]?.match(/parity\.[jt]s$/)) {
  process.exitCode = await parity(process.argv.slice(2), (line) => console.log(line));
}
