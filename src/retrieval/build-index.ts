/**
 * Builds an index file from a corpus on disk: passages are read once in segments, each written down as it is done, then
 * merged. A build that was ended, by SIGKILL too, goes on behind its last segment; the corpus before it is read again
 * only to see that it is the same one. Memory: one segment and the dictionary, never the corpus.
 */
import { createHash, type Hash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { readText } from '../core/bounded-file.ts';
import { describeValue } from '../core/describe-value.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { makeFolder } from '../storage/atomic-file.ts';
import { ANALYZERS, type AnalyzerName } from './analyzer.ts';
import { type Bm25Options, DEFAULT_BM25 } from './bm25.ts';
import { readLines, readPassage } from './corpus.ts';
import { INDEX_VERSION, type IndexHeader, MAGIC } from './index-layout.ts';
import { IndexWriter, writeAll } from './index-writer.ts';
import type { IndexOptions } from './memory-index.ts';
import { mergePairs } from './merge.ts';
import { SegmentBuilder } from './segment.ts';
import { SegmentFile, writeSegment } from './segment-file.ts';

/** Progress of a build. */
export interface BuildProgress {
  readonly phase: 'reading' | 'merging';
  /** Bytes of the corpus file read, or pairs merged. */
  readonly done: number;
  readonly total: number;
  /** Passages indexed so far, those of an earlier start included. */
  readonly passages: number;
  /** Passages of these that an earlier start had indexed. */
  readonly resumed: number;
}

export interface BuildOptions extends IndexOptions {
  /** Bytes of passages in a segment. Default 48 MiB, or a 48th of the corpus if that is more. */
  readonly segmentBytes?: number;
  readonly onProgress?: (progress: BuildProgress) => void;
}

interface Settings extends Bm25Options {
  readonly version: number;
  readonly analyzer: AnalyzerName;
}

const SEGMENTS = 48;
const MIN_SEGMENT = 48 * 2 ** 20;
/** Lines between two reports. */
const REPORT_EVERY = 2048;

/**
 * Builds `out` from `corpus`; unfinished work lies in the folder `<out>.building` until it is done.
 * @throws {UserError} for a corpus that cannot be read, a line that is no passage, an id that stands twice, or work of
 *   another corpus or of other options
 */
export async function buildIndex(corpus: string, out: string, options: BuildOptions = {}): Promise<IndexHeader> {
  const { analyzer = 'plain', k1 = DEFAULT_BM25.k1, b = DEFAULT_BM25.b, lengths = DEFAULT_BM25.lengths } = options;
  const size = sizeOf(corpus);
  const folder = `${out}.building`;
  const settings: Settings = { version: INDEX_VERSION, analyzer, k1, b, lengths };
  prepareFolder(folder, settings);
  const segmentBytes = options.segmentBytes ?? Math.max(MIN_SEGMENT, size / SEGMENTS);
  const job = new Job(corpus, size, folder, settings, segmentBytes, options.onProgress);
  try {
    await job.read();
    await job.checkIds();
    const header = job.merge();
    renameSync(join(folder, ROWS), out);
    syncFolder(join(out, '..'));
    rmSync(folder, { recursive: true, force: true });
    return header;
  } finally {
    job.close();
  }
}

function sizeOf(corpus: string): number {
  try {
    return statSync(corpus).size;
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `cannot read the corpus ${corpus}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

const SETTINGS = 'settings.json';
/** File that grows into the index: magic, rows, then everything else. */
const ROWS = 'index';

function prepareFolder(folder: string, settings: Settings): void {
  const file = join(folder, SETTINGS);
  const text = `${JSON.stringify(settings)}\n`;
  if (existsSync(file)) {
    const found = readText(file);
    if (found === text) return;
    const unlike = `${folder} holds an unfinished index with other options (${found.trim()})`;
    throw new UserError('BAD_ARGUMENT', `${unlike}; finish it with those, or remove the folder`);
  }
  try {
    makeFolder(folder);
    writeFileSync(`${file}.draft`, text);
    renameSync(`${file}.draft`, file);
  } catch (thrown) {
    throw new UserError(
      'NO_PERMISSION',
      `cannot write ${folder}: ${messageOf(thrown)}; choose another place with --out`,
    );
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

class Job {
  readonly #corpus: string;
  readonly #size: number;
  readonly #folder: string;
  readonly #settings: Settings;
  readonly #segmentBytes: number;
  readonly #onProgress: ((progress: BuildProgress) => void) | undefined;
  readonly #segments: SegmentFile[] = [];
  readonly #rows: number;
  readonly #hash: Hash = createHash('sha256');
  #rowsEnd: number = MAGIC.length;
  #passages = 0;
  #resumed = 0;

  constructor(
    corpus: string,
    size: number,
    folder: string,
    settings: Settings,
    segmentBytes: number,
    onProgress: ((progress: BuildProgress) => void) | undefined,
  ) {
    this.#corpus = corpus;
    this.#size = size;
    this.#folder = folder;
    this.#settings = settings;
    this.#segmentBytes = segmentBytes;
    this.#onProgress = onProgress;
    const names = readdirSync(folder).filter((name) => /^segment-\d+$/.test(name));
    for (const name of names.sort()) this.#segments.push(new SegmentFile(join(folder, name)));
    for (const { rowBytes } of this.#segments) {
      this.#resumed += rowBytes.length;
      for (const bytes of rowBytes) this.#rowsEnd += bytes;
    }
    this.#rows = openSync(join(folder, ROWS), existsSync(join(folder, ROWS)) ? 'r+' : 'w+');
    ftruncateSync(this.#rows, this.#rowsEnd);
    writeSync(this.#rows, MAGIC, 0, MAGIC.length, 0);
  }

  /** Reads the corpus: what has a segment already is compared, the rest gets new ones. */
  async read(): Promise<void> {
    let draft = new Draft(this.#resumed, ANALYZERS[this.#settings.analyzer]);
    const before = this.#segments.length;
    let checked = 0;
    for await (const { row, bytes, read } of readLines(this.#corpus)) {
      this.#hash.update(bytes);
      if (row % REPORT_EVERY === 0) this.#report('reading', read, this.#size, Math.max(row, this.#resumed));
      if (row < this.#resumed) {
        const segment = this.#segments[checked]!;
        if (row + 1 < segment.first + segment.lengths.length) continue;
        if (this.#hash.copy().digest('hex') !== segment.corpusSha256) this.#refuseCorpus();
        checked++;
        continue;
      }
      draft.add(bytes, readPassage(bytes, `${this.#corpus}: line ${row + 1}`));
      if (draft.bytes < this.#segmentBytes) continue;
      this.#finish(draft);
      draft = new Draft(row + 1, ANALYZERS[this.#settings.analyzer]);
    }
    if (checked < before) this.#refuseCorpus(); // it has become shorter
    if (draft.size > 0) this.#finish(draft);
    this.#passages = this.#segments.reduce((sum, { lengths }) => sum + lengths.length, 0);
    if (this.#passages === 0) throw new UserError('BAD_ARGUMENT', `${this.#corpus} holds no passage`);
  }

  /**
   * Checks ids.
   * @throws {UserError} when two passages have one id
   */
  async checkIds(): Promise<void> {
    const hashes = new BigUint64Array(this.#passages);
    let at = 0;
    for (const { idHashes } of this.#segments) {
      const both = new BigUint64Array(idHashes.buffer, idHashes.byteOffset, idHashes.length / 2);
      hashes.set(both, at);
      at += both.length;
    }
    hashes.sort();
    const twice = new Set<bigint>();
    for (let i = 1; i < hashes.length; i++) if (hashes[i] === hashes[i - 1]) twice.add(hashes[i]!);
    if (twice.size === 0) return;
    const seen = new Map<string, number>();
    for await (const { row, bytes } of readLines(this.#corpus)) {
      const { id } = readPassage(bytes, `${this.#corpus}: line ${row + 1}`);
      const hash = hashId(id);
      if (!twice.has(new BigUint64Array(hash.buffer)[0]!)) continue;
      const first = seen.get(id);
      if (first !== undefined) {
        const lines = `lines ${first + 1} and ${row + 1}`;
        throw new UserError('BAD_ARGUMENT', `${this.#corpus}: ${lines} both have the id ${describeValue(id, 80)}`);
      }
      seen.set(id, row);
    }
  }

  /** Merges: writes everything behind the rows. */
  merge(): IndexHeader {
    const pairs = this.#segments.reduce((sum, segment) => sum + segment.pairs, 0);
    const { lengths, rowStart } = this.#tables();
    const writer = new IndexWriter(this.#rows, this.#rowsEnd, this.#hash.digest('hex'));
    writer.write('rowStart', rowStart);
    const [passages, impacts] = [writer.open('passages', 4 * pairs), writer.open('impacts', 4 * pairs)];
    let done = 0;
    let reported = 0;
    const dictionary = mergePairs(this.#segments, lengths, this.#settings, (rows, shares) => {
      passages.write(rows);
      impacts.write(shares);
      done += rows.length;
      if (done - reported < 1 << 20) return;
      reported = done;
      this.#report('merging', done, pairs, this.#passages);
    });
    writer.close(passages);
    writer.close(impacts);
    for (const name of ['pairStart', 'upper', 'termStart', 'terms', 'table'] as const) {
      writer.write(name, dictionary[name]);
    }
    const header = writer.finish({
      ...this.#settings,
      passages: this.#passages,
      terms: dictionary.upper.length,
      pairs,
      tokens: lengths.reduce((sum, n) => sum + n, 0),
    });
    this.#report('merging', pairs, pairs, this.#passages);
    return header;
  }

  close(): void {
    for (const segment of this.#segments) segment.close();
    closeSync(this.#rows);
  }

  /** Finishes a segment: rows first, then the segment that refers to them, each on the disk before the next. */
  #finish(draft: Draft): void {
    const rows = draft.rows();
    writeAll(this.#rows, rows, this.#rowsEnd);
    this.#rowsEnd += rows.length;
    fsyncSync(this.#rows);
    const file = join(this.#folder, `segment-${String(this.#segments.length).padStart(5, '0')}`);
    const { rowBytes, idHashes } = draft.tables();
    const head = { rowBytes, idHashes, corpusBytes: this.#rowsEnd, corpusSha256: this.#hash.copy().digest('hex') };
    writeSegment(file, draft.builder.finish(), head);
    syncFolder(this.#folder);
    this.#segments.push(new SegmentFile(file));
  }

  #tables(): { lengths: Uint32Array; rowStart: Float64Array } {
    const lengths = new Uint32Array(this.#passages);
    const rowStart = new Float64Array(this.#passages + 1);
    let row = 0;
    for (const segment of this.#segments) {
      lengths.set(segment.lengths, row);
      for (const bytes of segment.rowBytes) {
        rowStart[row + 1] = rowStart[row]! + bytes;
        row++;
      }
    }
    return { lengths, rowStart };
  }

  #report(phase: BuildProgress['phase'], done: number, total: number, passages: number): void {
    this.#onProgress?.({ phase, done, total, passages, resumed: this.#resumed });
  }

  #refuseCorpus(): never {
    const other = `${this.#folder} holds unfinished work on another corpus than ${this.#corpus} is now`;
    throw new UserError('BAD_ARGUMENT', `${other}; remove the folder to index it anew`);
  }
}

/** Draft of a segment that is being read. */
class Draft {
  readonly builder: SegmentBuilder;
  bytes = 0;
  readonly #lines: Uint8Array[] = [];
  readonly #ids: Uint32Array[] = [];

  constructor(first: number, analyzer: (text: string) => string[]) {
    this.builder = new SegmentBuilder(first, analyzer);
  }

  get size(): number {
    return this.#lines.length;
  }

  add(line: Uint8Array, { id, contents }: { readonly id: string; readonly contents: string }): void {
    this.#lines.push(line.slice());
    this.#ids.push(hashId(id));
    this.bytes += line.length;
    this.builder.add(contents);
  }

  rows(): Buffer {
    return Buffer.concat(this.#lines);
  }

  tables(): { rowBytes: Uint32Array; idHashes: Uint32Array } {
    const idHashes = new Uint32Array(2 * this.#ids.length);
    for (const [i, hash] of this.#ids.entries()) idHashes.set(hash, 2 * i);
    return { rowBytes: Uint32Array.from(this.#lines, ({ length }) => length), idHashes };
  }
}

/** Hash of an id: two FNV-1a hashes of different starts. */
function hashId(id: string): Uint32Array {
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  for (let i = 0; i < id.length; i++) {
    a = Math.imul(a ^ id.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ id.charCodeAt(i), 0x85ebca6b) ^ (b >>> 15);
  }
  return Uint32Array.of(a, b);
}
