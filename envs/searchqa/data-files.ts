/**
 * Question files of Search-R1 and FlashRAG: Parquet or JSONL with `question` and `golden_answers` (or
 * `reward_model.ground_truth.target`), and `data_source`, the set. Rows keep the order of the file, so an item's id is
 * AgentGym's where the file is.
 */
import { execFileSync } from 'node:child_process';
import { closeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { MAX_DATA_BYTES, openFile, readBounded } from '../../src/core/bounded-file.ts';
import { describeValue } from '../../src/core/describe-value.ts';
import { messageOf, UserError } from '../../src/core/errors.ts';
import { parseJson } from '../../src/core/json-text.ts';
import type { DataFiles } from './options.ts';
import { type Question, type Questions, runOf, type SetRun, tableOf } from './questions.ts';
import { asQuestion } from './text.ts';

interface Row extends Question {
  readonly set: string;
}

/** Table of questions over the files, test first. @throws {UserError} for a file or a row that cannot be used */
export function fileQuestions(files: DataFiles, train: readonly string[] | undefined): Questions {
  const rows: Row[] = [];
  const runs: SetRun[] = [];
  for (const split of ['test', 'train'] as const) {
    const file = files[split];
    if (file === undefined) continue;
    for (const row of readRows(file)) {
      rows.push(row);
      const last = runs.at(-1);
      if (last && last.set === row.set && last.split === split)
        runs[runs.length - 1] = { ...last, count: last.count + 1 };
      else runs.push({ set: row.set, count: 1, split });
    }
  }
  return {
    tasks: tableOf(runs, train),
    longest: rows.reduce((most, { question }) => Math.max(most, question.length), 0),
    at(index) {
      runOf(index, [0], rows.length);
      return rows[index]!;
    },
  };
}

/** Reads the rows of a file. @throws {UserError} */
function readRows(file: string): Row[] {
  let values: readonly unknown[];
  try {
    values = /\.parquet$/.test(file) ? parquetRows(file) : jsonRows(readBounded(file, MAX_DATA_BYTES));
  } catch (thrown) {
    const why =
      messageOf(thrown)
        .split('\n')
        .filter((line) => line !== '')
        .at(-1) ?? '';
    throw new UserError('BAD_ARGUMENT', `cannot read the questions of ${file}: ${printable(why, 300)}`, {
      cause: thrown,
    });
  }
  if (values.length === 0) throw new UserError('BAD_ARGUMENT', `${file} holds no questions`);
  return values.map((value, i) => rowOf(value, `${file}: row ${i + 1}`, basename(file).replace(/\..*$/, '')));
}

function jsonRows(bytes: Buffer): unknown[] {
  const text = (
    bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes, { maxOutputLength: MAX_DATA_BYTES }) : bytes
  ).toString('utf8');
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line, i) => {
    try {
      return parseJson(line);
    } catch (thrown) {
      throw new Error(`line ${i + 1}: ${messageOf(thrown)}`);
    }
  });
}

/**
 * Parquet is read in a process of its own, because its reader is asynchronous and a task table is needed at once.
 * Prints the rows as JSON.
 */
const READER = `
const { asyncBufferFromFile, parquetReadObjects } = await import(process.argv[1]);
const file = await asyncBufferFromFile(process.argv[2]);
const rows = await parquetReadObjects({ file });
process.stdout.write(JSON.stringify(rows, (_, value) => typeof value === 'bigint' ? Number(value) : value));
`;

function parquetRows(file: string): unknown[] {
  closeSync(openFile(file)); // what is no file is refused by its name
  const hyparquet = createRequire(import.meta.url).resolve('hyparquet');
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', READER, hyparquet, file], {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return parseJson(text) as unknown[];
}

function rowOf(value: unknown, where: string, fallback: string): Row {
  const row = (value ?? {}) as Record<string, unknown>;
  const { question, data_source: set = fallback } = row;
  if (typeof question !== 'string' || question.trim() === '') refuse(where, 'question', 'a text', question);
  const target = (row.reward_model as { ground_truth?: { target?: unknown } } | undefined)?.ground_truth?.target;
  const answers = row.golden_answers ?? target;
  const list = typeof answers === 'string' ? [answers] : answers;
  if (!Array.isArray(list) || list.length === 0 || !list.every((answer) => typeof answer === 'string')) {
    return refuse(where, 'golden_answers', 'a list of texts', answers);
  }
  if (typeof set !== 'string') refuse(where, 'data_source', 'a text', set);
  return { question: asQuestion(question), answers: list as string[], set };
}

function refuse(where: string, field: string, expected: string, got: unknown): never {
  throw new UserError(
    'BAD_ARGUMENT',
    `${where}: the field "${field}" must be ${expected}, got ${printable(describeValue(got, 80), 90)}`,
  );
}

/** Printable beginning of a foreign text, on one line and without a terminal's commands. */
function printable(text: string, length: number): string {
  return text.slice(0, length).replace(/[\s\p{Cc}]+/gu, ' ');
}
