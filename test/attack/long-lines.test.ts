/**
 * A line of a gigabyte (a sparse file of zeros) in each file that is read by the line, and files without an end:
 * reported in one line or passed over, in bounded memory. A process of its own reads them, so that its peak can be
 * measured.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-long-lines-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const whole = process.env.LONGPLAY_LONG === '1';
/** Bytes of a line: more than a string may hold; a gigabyte in the long form. */
const LINE = whole ? 2 ** 30 : 5.4e8;
/** Bytes of a file that is too long by its bound alone. */
const BOUNDED = whole ? 2 ** 30 : 2 ** 28 + 1;

/** A file with zeros between its beginning and its end, which take no place on the disk. */
function long(name: string, beginning: string, end: string, bytes = BOUNDED): string {
  const path = join(dir, name);
  const file = openSync(path, 'w');
  writeSync(file, beginning);
  ftruncateSync(file, bytes);
  writeSync(file, end, bytes);
  closeSync(file);
  return path;
}

const header = '{"format":"longplay-trace","version":1,"config":{}}\n';
const rows = '{"update":1,"success":0.5}\n';
const later = '\n{"update":2,"success":0.5}\n{"update":3,"success":0.5}\n';
mkdirSync(join(dir, 'run'));
mkdirSync(join(dir, 'journal'));

/** [file, code that reads it as `path`, what comes of it] */
const readers: readonly (readonly [string, string, RegExp])[] = [
  [
    long('episode.jsonl', header, '\n', LINE),
    `TraceStore.open(path)`,
    /episode\.jsonl: line 2 is no line of a trace: it is longer than 268435456 bytes; the file is damaged$/,
  ],
  [long('header.jsonl', '', '\n'), `TraceStore.open(path)`, /expected a trace of version 1/],
  [long('unfinished.jsonl', header, ''), `'episodes ' + TraceStore.open(path).size`, /^episodes 0$/],
  [long('run/metrics.jsonl', rows, later, LINE), `cutMetrics(dirname(path), 2), 'cut'`, /^cut$/],
  [
    join(dir, 'run', 'metrics.jsonl'), // after it was cut
    `'rows ' + new RunSource(dirname(path), 0, async () => ({})).info.rows`,
    /^rows 2$/,
  ],
  [long('journal/1.jsonl', '', '\n', LINE), `readJournal(dirname(path), 0)`, /1\.jsonl: line 1: its hash is another/],
  [long('corpus.jsonl', '', '\n'), `await all(readLines(path))`, /line 1 is longer than 16777216 bytes/],
  [
    long('questions.jsonl', '[', '\n'),
    `fileQuestions({ test: path }, undefined)`,
    /cannot read the questions of .*questions\.jsonl: it is longer than 268435456 bytes/,
  ],
  ['/dev/zero', `readConfigFile(path, [])`, /cannot read \/dev\/zero: expected a file, found a device/],
];

it('is reported in one line or passed over, and costs no more memory than the longest line that is read', {
  timeout: 120_000,
}, () => {
  const modules = {
    TraceStore: 'src/storage/trace-store.js',
    cutMetrics: 'src/metrics/metrics-file.js',
    readJournal: 'src/storage/journal.js',
    RunSource: 'src/viewer/run-source.js',
    readLines: 'src/retrieval/corpus.js',
    fileQuestions: 'envs/searchqa/data-files.js',
    readConfigFile: 'src/cli/config-file.js',
  };
  const imports = Object.entries(modules).map(
    ([name, file]) => `import { ${name} } from ${JSON.stringify(new URL(`dist/${file}`, packageRoot).href)};`,
  );
  const code = `
    import { dirname } from 'node:path';
    ${imports.join('\n')}
    const all = async (list) => { for await (const one of list) void one; };
    const results = [];
    const tried = async (path, read) => {
      try { results.push(String(await read(path))); }
      catch (thrown) { results.push(thrown.constructor.name + ' ' + thrown.message); }
    };
    ${readers.map(([path, read]) => `await tried(${JSON.stringify(path)}, async (path) => (${read}));`).join('\n')}
    console.log(JSON.stringify({ results, peakMb: process.resourceUsage().maxRSS / 1024 }));`;
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
  expect(ran.stderr).toBe('');
  const { results, peakMb } = JSON.parse(ran.stdout) as { results: string[]; peakMb: number };
  expect(results).toEqual(readers.map(([, , expected]) => expect.stringMatching(expected)));
  for (const line of results) expect(line).not.toContain('\n');
  expect(peakMb).toBeLessThan(256 + 250); // 100 of it are node and the modules
  const updates = readFileSync(join(dir, 'run', 'metrics.jsonl'))
    .subarray(-28)
    .toString();
  expect(updates).toBe('\n{"update":2,"success":0.5}\n'); // the row of update 3 is gone, the damaged line is not
});
