/** Index files: equal to an index in memory, from one thread or four, resumable wherever they were ended, and checked. */
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { Rng } from '../../src/core/rng.ts';
import { buildIndex } from '../../src/retrieval/build-index.ts';
import { checkCorpus, indexOver, readIndex, readIndexHeader } from '../../src/retrieval/index-file.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const long = process.env.LONGPLAY_LONG === '1';
const folder = temporaryFolder('index-file');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const rng = Rng.fromSeed(3);
const vocabulary = Array.from({ length: 400 }, (_, i) => `w${i}é`);
const draw = () => vocabulary[Math.floor(400 * rng.float() ** 3)]!;
const contents = Array.from(
  { length: 1500 },
  () => `"${draw()}"\n${Array.from({ length: rng.int(120) }, draw).join(' ')}`,
);
const passages = contents.map((text, i) => ({ id: `p${i}`, contents: text, more: i }));
const queries = Array.from({ length: 200 }, () => Array.from({ length: 1 + rng.int(6) }, draw).join(' '));
const lines = `${passages.map((passage) => JSON.stringify(passage)).join('\n')}\n`;
const corpus = join(folder, 'corpus.jsonl');
writeFileSync(corpus, lines);
const memory = indexPassages(passages);
const expected = queries.map((query) => memory.search(query, 5));
/** Small enough for several segments. */
const segmentBytes = 100_000;

describe('an index file', () => {
  it('finds what an index in memory finds, whatever the segments, packed or not', async () => {
    const packed = join(folder, 'corpus.jsonl.gz');
    writeFileSync(packed, gzipSync(lines));
    const bytes: Buffer[] = [];
    for (const [file, size] of [
      [corpus, segmentBytes],
      [corpus, 2 ** 30],
      [packed, 30_000],
    ] as const) {
      const out = join(folder, `same-${bytes.length}.index`);
      await buildIndex(file, out, { segmentBytes: size });
      const index = indexOver(readIndex(out));
      expect(queries.map((query) => index.search(query, 5))).toEqual(expected);
      expect(index.passage(1499)).toEqual(passages[1499]);
      expect(existsSync(`${out}.building`)).toBe(false);
      bytes.push(readFileSync(out));
    }
    expect(bytes[1]!.equals(bytes[0]!) && bytes[2]!.equals(bytes[0]!)).toBe(true);
  });

  it('is searched by four threads over one copy', { timeout: 60_000 }, async () => {
    const out = join(folder, 'threads.index');
    await buildIndex(corpus, out, { segmentBytes });
    const shared = readIndex(out);
    const url = new URL('dist/src/retrieval/index-file.js', packageRoot);
    const code = `import { parentPort, workerData } from 'node:worker_threads';
      const { indexOver } = await import(workerData.url);
      const index = indexOver(workerData.shared);
      parentPort.postMessage(workerData.queries.map((query) => index.search(query, 5)));`;
    const source = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
    const answers = Array.from({ length: 4 }, () => {
      const worker = new Worker(source, { workerData: { url: url.href, shared, queries } });
      return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    });
    for (const answer of await Promise.all(answers)) expect(answer).toEqual(expected);
  });

  const kills = long ? 50 : 8;
  it(`goes on after SIGKILL at ${kills} instants, to the same bytes`, { timeout: 300_000 }, async () => {
    const whole = join(folder, 'whole.index');
    await buildIndex(corpus, whole, { segmentBytes: 20_000 });
    const out = join(folder, 'killed.index');
    const module = new URL('dist/src/retrieval/build-index.js', packageRoot).href;
    const code = `const { buildIndex } = await import(${JSON.stringify(module)});
      process.stdout.write('.'); // loaded: from here on the instants count
      await buildIndex(${JSON.stringify(corpus)}, ${JSON.stringify(out)}, { segmentBytes: 20000 });`;
    const start = async () => {
      if (existsSync(out)) rmSync(out);
      const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      await new Promise((resolve) => child.stdout.once('data', resolve));
      return { child, ended };
    };
    const began = performance.now();
    await (await start()).ended;
    const wholeMs = performance.now() - began; // a machine's own measure of when to kill
    let killed = 0;
    const instants = Rng.fromSeed(11);
    for (let i = 0; i < kills; i++) {
      const { child, ended } = await start();
      const timer = setTimeout(() => child.kill('SIGKILL') && killed++, instants.int(Math.ceil(0.6 * wholeMs)));
      await ended;
      clearTimeout(timer);
      // Now and then the work is started afresh, so that early instants are met too; the last is gone on with.
      if (i % 5 === 4 && i < kills - 1) rmSync(`${out}.building`, { recursive: true, force: true });
    }
    expect(killed).toBeGreaterThan(kills / 4);
    let resumed = 0;
    await buildIndex(corpus, out, { segmentBytes: 20_000, onProgress: (at) => void (resumed = at.resumed) });
    console.log(`${killed} of ${kills} killed; the last start went on behind ${resumed} passages`);
    expect(readFileSync(out).equals(readFileSync(whole))).toBe(true);
  });

  it('is refused in one line where it is cut off, changed, of another version, of another corpus, or none', async () => {
    const out = join(folder, 'good.index');
    await buildIndex(corpus, out, { segmentBytes });
    const size = readFileSync(out).length;
    const spoilt = (name: string, spoil: (file: string) => void) => {
      const file = join(folder, name);
      copyFileSync(out, file);
      spoil(file);
      return () => readIndex(file);
    };
    const flip = (at: number) => (file: string) => {
      const bytes = readFileSync(file);
      bytes[at]! ^= 1;
      writeFileSync(file, bytes);
    };
    expect(spoilt('short', (file) => truncateSync(file, size - 1))).toThrow(/is cut off; build it again/);
    expect(spoilt('shorter', (file) => truncateSync(file, 100))).toThrow(/is cut off/);
    expect(spoilt('empty', (file) => truncateSync(file, 0))).toThrow(/is no index/);
    expect(spoilt('header', flip(size - 200))).toThrow(/is damaged/);
    const { impacts } = readIndexHeader(out).arrays;
    expect(spoilt('array', flip(impacts.offset + 9))).toThrow(/is damaged \(its impacts\)/);
    expect(spoilt('text', (file) => writeFileSync(file, 'hello'))).toThrow(/is no index/);
    expect(() => readIndex(join(folder, 'nowhere'))).toThrow(/cannot read the index/);
    const other = join(folder, 'other.jsonl');
    writeFileSync(other, lines.replace('"p7"', '"p-7"'));
    const { header } = readIndex(out);
    await expect(checkCorpus(header, out, corpus)).resolves.toBeUndefined();
    await expect(checkCorpus(header, out, other)).rejects.toThrow(/was built from another corpus/);
  });

  it('is not built from a corpus with a broken line, a missing field or an id that stands twice', async () => {
    const build = (name: string, text: string) => {
      const file = join(folder, `${name}.jsonl`);
      writeFileSync(file, text);
      return buildIndex(file, join(folder, `${name}.index`), { segmentBytes: 10 });
    };
    const row = (id: unknown, more: object = { contents: 'x' }) => JSON.stringify({ id, ...more });
    await expect(build('torn', `${row('a')}\n{"id": "b", "cont`)).rejects.toThrow(
      /line 2: expected a JSON object a line/,
    );
    await expect(build('field', `${row('a')}\n${row('b', { text: 'x' })}\n`)).rejects.toThrow(
      /line 2: the field "contents" must be a text, got nothing/,
    );
    await expect(build('id', `${row(undefined)}\n`)).rejects.toThrow(/line 1: the field "id" must be/);
    await expect(build('twice', `${row('a')}\n${row('b')}\n${row('a')}\n`)).rejects.toThrow(
      /lines 1 and 3 both have the id "a"/,
    );
    await expect(build('none', '\n\n')).rejects.toThrow(/holds no passage/);
    await expect(buildIndex(join(folder, 'nowhere.jsonl'), join(folder, 'x.index'))).rejects.toThrow(
      /cannot read the corpus/,
    );
    writeFileSync(join(folder, 'no.jsonl.gz'), 'no gzip');
    await expect(buildIndex(join(folder, 'no.jsonl.gz'), join(folder, 'y.index'))).rejects.toThrow(/no\.jsonl\.gz: /);
  });

  it('is not finished from work on another corpus or with other options', async () => {
    const file = join(folder, 'changing.jsonl');
    const out = join(folder, 'changing.index');
    const broken = lines.split('\n').slice(0, 900).join('\n');
    writeFileSync(file, `${broken}\n{"id": "broken"}\n`);
    await expect(buildIndex(file, out, { segmentBytes: 20_000 })).rejects.toThrow(/line 901/);
    await expect(buildIndex(file, out, { segmentBytes: 20_000, k1: 2 })).rejects.toThrow(
      /unfinished index with other options/,
    );
    writeFileSync(file, lines.replace('"p3"', '"p-3"'));
    await expect(buildIndex(file, out, { segmentBytes: 20_000 })).rejects.toThrow(/on another corpus than/);
    writeFileSync(file, lines.split('\n').slice(0, 30).join('\n'));
    await expect(buildIndex(file, out, { segmentBytes: 20_000 })).rejects.toThrow(/on another corpus than/);
    writeFileSync(file, lines);
    await buildIndex(file, out, { segmentBytes: 20_000 });
    expect(indexOver(readIndex(out)).search(queries[0]!, 5)).toEqual(expected[0]);
  });
});
