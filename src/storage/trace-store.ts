/**
 * Trace store: many episodes, opened fast and read one at a time. The index files list the episodes and their places;
 * turns are read only when asked for. Follows a run that is still writing.
 */
import { closeSync, existsSync, fstatSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openFile } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { LONGEST_LINE, wholeBytes, wholeLines } from './lines.ts';
import { createDamagedError, creditTurns, parseLine, readHeader, type TraceLine } from './trace.ts';
import { tracePaths } from './trace-files.ts';
import { type EpisodeSummary, indexPath, parseIndex, type Span, summaryOf } from './trace-index.ts';

/** An episode of a store. */
export interface StoredEpisode extends EpisodeSummary, Span {
  /** Place in the store, in [0, size). */
  readonly at: number;
  readonly file: string;
  /** Index within its group, in the order of the trace. */
  readonly member: number;
}

/** Loss of a trace file. */
export interface TraceLoss {
  readonly file: string;
  /** Episodes that its index lists behind its end. */
  readonly episodes: number;
  /** Episodes that its index lists. */
  readonly listed: number;
}

/** Describes a loss, in one line. */
export function describeLoss({ file, episodes, listed }: TraceLoss): string {
  if (episodes > 0)
    return `${file}: ${episodes} of the ${listed} episodes that its index lists are lost: its end is gone`;
  return `${file}: its last line is cut off and left out`;
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

/** Line of credit in a store. */
export interface StoredCredit extends Span {
  /** Policy version after the update that gave it. */
  readonly update: number;
  readonly groups: readonly number[];
}

export class TraceStore {
  readonly #path: string;
  readonly #files = new Map<string, Followed>();
  readonly #episodes: StoredEpisode[] = [];
  readonly #texts = new Map<string, string>();
  /**
   * Members so far, by file and purpose and by group. A group is written at once and lies in one file; another process may
   * have written one of its own under the same number.
   */
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
      const [lost = `${path}: no trace here`] = store.losses.map(describeLoss);
      throw new UserError('BAD_TRACE', `${lost}; expected a trace file, a traces folder or a run that has one`);
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

  /** Losses: files that end before what their index lists, or within a line. What is lost is left out. */
  get losses(): readonly TraceLoss[] {
    const held = new Map<string, number>();
    for (const { file } of this.#episodes) held.set(file, (held.get(file) ?? 0) + 1);
    return this.#paths(true).flatMap((file) => lossOf(file, held.get(file) ?? 0) ?? []);
  }

  /** Lines of credit, in no order; each is read from its trace. @throws {UserError} BAD_TRACE */
  get credits(): readonly StoredCredit[] {
    const spans = new Map([...this.#credits.values()].map((span) => [`${span.offset} ${span.file}`, span]));
    return [...spans.values()].map((span) => {
      const { credit, fault = 'the index beside it lists credit there' } = parseLine(readSpan(span.file, span));
      if (!credit) throw createDamagedError(span.file, `the line at byte ${span.offset}`, fault);
      return { ...spanOf(span), update: credit.update, groups: credit.groups.map(({ group }) => group) };
    });
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
    return this.#episodes.filter(
      ({ group, purpose, file }) => group === one.group && purpose === one.purpose && file === one.file,
    );
  }

  /** Shares one copy of a text that many episodes have. */
  #intern(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }

  /** Paths of the trace files. @param lost those of which only the index is left, too */
  #paths(lost = false): string[] {
    const path = this.#path;
    if (!existsSync(path)) throw new UserError('BAD_TRACE', `${path} does not exist`);
    if (!statSync(path).isDirectory()) return [path];
    const dir = basename(path) === 'traces' || !existsSync(join(path, 'traces')) ? path : join(path, 'traces');
    return tracePaths(dir, undefined, lost);
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
    const key = `${file} ${summary.purpose}`;
    let groups = this.#members.get(key);
    if (!groups) this.#members.set(key, (groups = new Map()));
    const member = groups.get(summary.group) ?? 0;
    groups.set(summary.group, member + 1);
    const env = this.#intern(summary.env);
    const purpose = this.#intern(summary.purpose);
    const label = this.#intern(summary.label);
    this.#episodes.push({ ...summary, env, purpose, label, at: this.#episodes.length, member, offset, length, file });
  }
}

/** Loss of a file; undefined where it is whole. @param held episodes that were read from it */
function lossOf(file: string, held: number): TraceLoss | undefined {
  const index = indexPath(file);
  const ends: number[] = [];
  if (index !== file && existsSync(index)) {
    for (const { text } of newText(index, 0)) {
      for (const line of parseIndex(text)) if (line.kind === 'episode') ends.push(line.offset + line.length);
    }
  }
  // Looked at after the index, which is written after it: of a run that goes on, nothing is taken for lost.
  const isThere = existsSync(file);
  const size = isThere ? statSync(file).size : 0;
  // An index is a cache, and may lie: what was read from the trace is there.
  const episodes = Math.max(0, Math.min(ends.filter((end) => end >= size).length, ends.length - held));
  if (episodes === 0 && (!isThere || wholeBytes(file) === size)) return undefined;
  return { file, episodes, listed: ends.length };
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
