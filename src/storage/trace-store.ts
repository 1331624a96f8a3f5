/**
 * Trace store: many episodes, opened fast and read one at a time. The index files list the episodes and their places;
 * turns are read only when asked for. Follows a run that is still writing.
 */
import { closeSync, existsSync, fstatSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openFile } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { LONGEST_LINE, wholeLines } from './lines.ts';
import { createDamagedError, creditTurns, parseLine, readHeader, type TraceLine } from './trace.ts';
import { traceName, traceNumbers } from './trace-files.ts';
import { type EpisodeSummary, indexPath, parseIndex, type Span, summaryOf } from './trace-index.ts';

/** An episode of a store. */
export interface StoredEpisode extends EpisodeSummary, Span {
  /** Place in the store, in [0, size). */
  readonly at: number;
  readonly file: string;
  /** Index within its group, in the order of the trace. */
  readonly member: number;
}

interface Followed {
  readonly path: string;
  /** Bytes of the trace, and of its index, that are taken in. */
  traceBytes: number;
  indexBytes: number;
  /** Lines of the trace that are taken in, the header among them. */
  lines: number;
  config: unknown;
}

interface CreditSpan extends Span {
  readonly file: string;
}

export class TraceStore {
  readonly #path: string;
  readonly #files = new Map<string, Followed>();
  readonly #episodes: StoredEpisode[] = [];
  readonly #texts = new Map<string, string>();
  /** Members so far, by purpose and by group. */
  readonly #members = new Map<string, Map<number, number>>();
  /** Credits: the places of training groups' advantages. */
  readonly #credits = new Map<number, CreditSpan>();

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Opens a store.
   * @param path a trace file, a `traces` folder, or a run
   * @throws {UserError} BAD_TRACE when there is no trace, or it is damaged before its end
   */
  static open(path: string): TraceStore {
    const store = new TraceStore(path);
    if (store.#paths().length === 0) {
      throw new UserError(
        'BAD_TRACE',
        `${path}: no trace here; expected a trace file, a traces folder or a run that has one`,
      );
    }
    store.refresh();
    return store;
  }

  /** Opens a store as `open` does, for a run that may not have a trace yet. */
  static follow(path: string): TraceStore {
    const store = new TraceStore(path);
    store.refresh();
    return store;
  }

  get size(): number {
    return this.#episodes.length;
  }

  /** Bytes of traces that have been taken in. */
  get bytes(): number {
    return [...this.#files.values()].reduce((sum, { traceBytes }) => sum + traceBytes, 0);
  }

  get episodes(): readonly StoredEpisode[] {
    return this.#episodes;
  }

  /** Files whose last line is not whole: it is being written, or a kill cut it off. Such a line is left out. */
  get unfinished(): readonly string[] {
    return this.#paths().filter((path) => statSync(path).size > (this.#files.get(path)?.traceBytes ?? 0));
  }

  /** Configuration of the run, from the newest header; `undefined` where there is no trace yet. */
  get config(): unknown {
    return [...this.#files.values()].at(-1)?.config;
  }

  /** Refreshes: reads what was written since. @returns the number of new episodes */
  refresh(): number {
    const before = this.size;
    for (const path of this.#paths()) {
      let file = this.#files.get(path);
      if (!file) {
        file = { path, traceBytes: 0, indexBytes: 0, lines: 0, config: undefined };
        if (!this.#readHeader(file)) continue;
        this.#files.set(path, file);
      }
      this.#readIndex(file);
      this.#readRest(file);
    }
    return this.size - before;
  }

  /** Reads a whole episode, with its advantages where an update has consumed it. @throws {UserError} BAD_TRACE */
  read(at: number): TraceLine {
    const stored = this.#readStored(at);
    const { episode, fault = 'the index beside it lists an episode there' } = parseLine(readSpan(stored.file, stored));
    if (!episode) throw createDamagedError(stored.file, `the line at byte ${stored.offset}`, fault);
    const credit = stored.purpose === 'train' ? this.#credits.get(stored.group) : undefined;
    if (!credit) return episode;
    const own = parseLine(readSpan(credit.file, credit)).credit;
    const advantages = own?.groups.find(({ group }) => group === stored.group)?.advantages[stored.member];
    return advantages ? creditTurns(episode, advantages) : episode;
  }

  /** Line of an episode as the trace has it, not parsed. @throws {UserError} BAD_TRACE where its file is gone */
  line(at: number): string {
    const stored = this.#readStored(at);
    return readSpan(stored.file, stored);
  }

  #readStored(at: number): StoredEpisode {
    const stored = this.#episodes[at];
    if (!stored) throw new RangeError(`episode ${at} is not in [0, ${this.size})`);
    return stored;
  }

  /** Group of an episode: its members, in order. @throws {RangeError} for an episode that is not there */
  groupOf(at: number): StoredEpisode[] {
    const one = this.#readStored(at);
    return this.#episodes.filter(({ group, purpose }) => group === one.group && purpose === one.purpose);
  }

  /** Shares one copy of a text that many episodes have. */
  #intern(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }

  #paths(): string[] {
    const path = this.#path;
    if (!existsSync(path)) throw new UserError('BAD_TRACE', `${path} does not exist`);
    if (!statSync(path).isDirectory()) return [path];
    const dir = basename(path) === 'traces' || !existsSync(join(path, 'traces')) ? path : join(path, 'traces');
    return traceNumbers(dir).map((number) => join(dir, traceName(number)));
  }

  #readHeader(file: Followed): boolean {
    const [first] = wholeLines(file.path, 0, 1);
    if (!first) return false; // being written
    file.config = readHeader(first.text ?? '', file.path).config;
    file.traceBytes = first.length + 1;
    file.lines = 1;
    return true;
  }

  #readIndex(file: Followed): void {
    const path = indexPath(file.path);
    if (path === file.path || !existsSync(path)) return;
    for (const { text, bytes } of newText(path, file.indexBytes)) {
      file.indexBytes += bytes;
      this.#takeIndex(file, text);
    }
  }

  #takeIndex(file: Followed, text: string): void {
    const { size } = statSync(file.path);
    for (const line of parseIndex(text)) {
      // Lines of a trace follow each other; one that lies elsewhere was taken already, or its index is not to be believed.
      if (line.offset !== file.traceBytes || line.offset + line.length >= size || line.length > LONGEST_LINE) continue;
      if (line.kind === 'episode') this.#add(line.summary, line, file.path);
      else for (const group of line.groups) this.#credits.set(group, { ...spanOf(line), file: file.path });
      file.traceBytes = line.offset + line.length + 1;
      file.lines++;
    }
  }

  /** Reads the lines that the index does not have: a trace without one, or the lines of an instant ago. */
  #readRest(file: Followed): void {
    for (const { text, offset, length } of wholeLines(file.path, file.traceBytes)) {
      const { episode, credit, fault } = parseLine(text);
      if (fault !== undefined) throw createDamagedError(file.path, `line ${file.lines + 1}`, fault);
      const span = { offset, length };
      for (const { group } of credit?.groups ?? []) this.#credits.set(group, { ...span, file: file.path });
      if (episode) this.#add(summaryOf(episode), span, file.path);
      file.traceBytes = offset + length + 1;
      file.lines++;
    }
  }

  #add(summary: EpisodeSummary, { offset, length }: Span, file: string): void {
    let groups = this.#members.get(summary.purpose);
    if (!groups) this.#members.set(summary.purpose, (groups = new Map()));
    const member = groups.get(summary.group) ?? 0;
    groups.set(summary.group, member + 1);
    const env = this.#intern(summary.env);
    const purpose = this.#intern(summary.purpose);
    const label = this.#intern(summary.label);
    this.#episodes.push({ ...summary, env, purpose, label, at: this.#episodes.length, member, offset, length, file });
  }
}

function spanOf({ offset, length }: Span): Span {
  return { offset, length };
}

/** @throws {UserError} BAD_TRACE where the file is gone: a run that goes on writing removes its oldest ones */
function readSpan(path: string, { offset, length }: Span): string {
  let fd: number;
  try {
    fd = openFile(path);
  } catch (thrown) {
    throw new UserError('BAD_TRACE', `cannot read the episode: ${messageOf(thrown)}; its trace was removed meanwhile`);
  }
  try {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, length, offset));
  } finally {
    closeSync(fd);
  }
}

const CHUNK = 4 * 1024 * 1024;

/** New lines of a file as texts: whole ones from a byte on, many at a time. */
function* newText(path: string, from: number): Generator<{ readonly text: string; readonly bytes: number }> {
  const fd = openFile(path);
  try {
    const left = fstatSync(fd).size - from;
    if (left <= 0) return;
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, left)); // an index line is far shorter
    for (let at = from; ; ) {
      const got = readSync(fd, chunk, 0, chunk.length, at);
      const bytes = chunk.subarray(0, got).lastIndexOf(10) + 1;
      if (bytes === 0) return;
      at += bytes;
      yield { text: chunk.toString('utf8', 0, bytes - 1), bytes };
    }
  } finally {
    closeSync(fd);
  }
}
