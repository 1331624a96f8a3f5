/**
 * Journal of a run: what the scheduler launched and what came back, in the order in which it was taken, on the learner's
 * own disk. With a checkpoint it is the whole truth about a run: the entries after it, folded into its state, are the
 * state in which the run was killed, and the learner, handed the same groups in the same order, makes the same weights.
 *
 * `<run>/journal/<entry>.jsonl`, a file from each checkpoint on, named by its first entry. Each line is the start of the SHA-256 of its JSON,
 * a blank and the JSON: a flipped bit is noticed, a line that a kill cut off is left out.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../core/errors.ts';
import { FAILURE_CAUSES } from '../core/failure.ts';
import type { FailedAttempt, GaveUp, GroupTicket, PlayedGroup } from '../core/ticket.ts';
import { nodeDisk } from './atomic-file.ts';
import { wholeBytes, wholeLines } from './lines.ts';
import { ticketSchema } from './ticket-schema.ts';
import { plainTrajectory, reviveTrajectory } from './trace.ts';
import { firstIssue, trajectorySchema } from './trajectory-schema.ts';

export type JournalEntry = Launched | PlayedEntry | UpdatedEntry;

/** Launched groups; written before any of them is played. */
export interface Launched {
  readonly type: 'launched';
  readonly tickets: readonly GroupTicket[];
}

/** Played groups and failed attempts; written before the learner gets the groups. */
export interface PlayedEntry {
  readonly type: 'played';
  readonly groups: readonly JournaledGroup[];
  readonly gaveUp: readonly GaveUp[];
  readonly failed: readonly FailedAttempt[];
  /** Milliseconds of training so far. */
  readonly elapsedMs: number;
}

export interface JournaledGroup extends PlayedGroup {
  /** Share of the run that was done when it finished, in [0, 1]; the learner gets it with the group. */
  readonly progress: number;
}

/** Update that was made of the groups before it. */
export interface UpdatedEntry {
  readonly type: 'updated';
  readonly version: number;
  /** Digest of its weights (`digestOf` in src/learning/learner/weights-file.ts). */
  readonly digest: string;
}

const JOURNAL_FORMAT = 1;
const HEADER = { format: 'longplay-journal', version: JOURNAL_FORMAT };

/** Hexadecimal digits of a line's hash. */
const HASH = 16;

const count = z.int().min(0);
const failureSchema = z.looseObject({ cause: z.enum(FAILURE_CAUSES), where: z.string(), message: z.string() });
const entrySchema = z.discriminatedUnion('type', [
  z.looseObject({ n: count, type: z.literal('launched'), tickets: z.array(ticketSchema) }),
  z.looseObject({
    n: count,
    type: z.literal('played'),
    groups: z.array(
      z.looseObject({
        group: count,
        trajectories: z.array(trajectorySchema).min(1),
        envSteps: count,
        progress: z.number().min(0).max(1),
      }),
    ),
    gaveUp: z.array(z.looseObject({ group: count, failure: failureSchema, attempts: count })),
    failed: z.array(z.looseObject({ group: count, failure: failureSchema })),
    elapsedMs: z.number().min(0),
  }),
  z.looseObject({ n: count, type: z.literal('updated'), version: count, digest: z.string() }),
]);

/** Journal that is read, from a checkpoint on. */
export interface ReadJournal {
  /** Entries after the checkpoint, in order. */
  readonly entries: readonly JournalEntry[];
  /** Number of the last entry. */
  readonly position: number;
}

/** Appends entries. A disk that refuses throws, and nothing of the entry stays. */
export class Journal {
  readonly #dir: string;
  readonly #write: typeof writeSync;
  #position: number;
  #file: number | undefined;
  #bytes = 0;

  /**
   * @param position number of the last entry that is there, 0 before the first
   * @param write    for tests: the system's, or one that fails
   */
  constructor(dir: string, position: number, write: typeof writeSync = writeSync) {
    this.#dir = dir;
    this.#position = position;
    this.#write = write;
  }

  /** Number of the last entry. */
  get position(): number {
    return this.#position;
  }

  /** @throws what the system throws (`code` ENOSPC, …) */
  append(entry: JournalEntry): void {
    const file = this.#open();
    const line = lineOf({ n: this.#position + 1, ...plainEntry(entry) });
    try {
      this.#put(file, line);
    } catch (thrown) {
      ftruncateSync(file, this.#bytes); // or the next line would stand behind half of this one
      throw thrown;
    }
    this.#bytes += line.length;
    this.#position++;
  }

  /** Returns once every entry is on the disk. @throws what the system throws */
  sync(): void {
    if (this.#file !== undefined) fsyncSync(this.#file);
  }

  /** Removes files whose entries are all in a state. @param position of the state, as `SchedulerState.journal` has it */
  trim(position: number): void {
    const firsts = files(this.#dir);
    for (const [i, first] of firsts.entries()) {
      const next = firsts[i + 1];
      if (next !== undefined && next <= position + 1) nodeDisk.remove(join(this.#dir, `${first}.jsonl`));
    }
  }

  /** Closes the file; the next entry begins another. */
  close(): void {
    if (this.#file === undefined) return;
    fsyncSync(this.#file);
    closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): number {
    if (this.#file !== undefined) return this.#file;
    nodeDisk.makeFolder(this.#dir);
    this.#mend();
    // Anew, should there be one: it holds no whole entry, or this number would be taken.
    // To append: after a refusal the next line has to stand at the end, wherever the last write got to.
    const file = openSync(join(this.#dir, `${this.#position + 1}.jsonl`), 'a');
    try {
      ftruncateSync(file, 0);
      const header = lineOf(HEADER);
      this.#put(file, header);
      this.#bytes = header.length;
      nodeDisk.syncFolder(this.#dir);
    } catch (thrown) {
      closeSync(file);
      throw thrown;
    }
    this.#file = file;
    return file;
  }

  /** Cuts off a last line that a kill left half written: behind another file it would be damage. */
  #mend(): void {
    const newest = files(this.#dir).at(-1);
    if (newest === undefined || newest > this.#position) return;
    const path = join(this.#dir, `${newest}.jsonl`);
    const whole = wholeBytes(path);
    if (whole < statSync(path).size) truncateSync(path, whole);
  }

  #put(file: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += this.#write(file, bytes, at, bytes.length - at);
  }
}

/**
 * Reads the journal after a checkpoint. Changes nothing: a last line that is not whole is left out, and stays; it may be
 * one that a training process is writing.
 * @param position its `SchedulerState.journal`; 0 where it has none
 * @throws {UserError} BAD_CHECKPOINT for a journal that is damaged before its end, or lacks entries
 */
export function readJournal(dir: string, position: number): ReadJournal {
  const entries: JournalEntry[] = [];
  let at = position;
  const firsts = files(dir);
  for (const [i, first] of firsts.entries()) {
    const next = firsts[i + 1];
    if (next !== undefined && next <= position + 1) continue;
    const path = join(dir, `${first}.jsonl`);
    if (!existsSync(path)) {
      throw new UserError('BAD_CHECKPOINT', `${path} was removed meanwhile by the process that trains; try again`);
    }
    for (const { line, value } of linesOf(path, next === undefined)) {
      const { n, ...entry } = checkEntry(value, path, line);
      if (n <= position) continue;
      if (n !== at + 1) throw createDamagedError(path, line, `expected entry ${at + 1}, got ${n}`);
      at = n;
      entries.push(reviveEntry(entry as JournalEntry));
    }
  }
  return { entries, position: at };
}

/** Digests of the weights that entries name, by version; of two of one version the later. */
export function digestsOf(entries: readonly JournalEntry[]): Map<number, string> {
  return new Map(entries.flatMap((one) => (one.type === 'updated' ? [[one.version, one.digest] as const] : [])));
}

/** Numbers of the entries that files begin with, ascending. */
function files(dir: string): number[] {
  const names = nodeDisk.list(dir).flatMap((name) => /^(\d+)\.jsonl$/.exec(name)?.[1] ?? []);
  return names.map(Number).sort((a, b) => a - b);
}

function lineOf(value: object): Buffer {
  const json = JSON.stringify(value);
  return Buffer.from(`${hashOf(json)} ${json}\n`);
}

function hashOf(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, HASH);
}

/** Lines of a file after its header. @param last true for the file that a kill may have cut */
function linesOf(path: string, last: boolean): { readonly line: number; readonly value: unknown }[] {
  const values: { readonly line: number; readonly value: unknown }[] = [];
  let whole = 0;
  for (const { text = '', offset, length } of wholeLines(path)) {
    const line = values.length + 1;
    const json = text.slice(HASH + 1);
    if (text.slice(0, HASH) !== hashOf(json)) throw createDamagedError(path, line, 'its hash is another');
    values.push({ line, value: JSON.parse(json) as unknown });
    whole = offset + length + 1;
  }
  if (!last && whole < statSync(path).size) throw createDamagedError(path, values.length + 1, 'it is cut off');
  const [header, ...rest] = values;
  const { format, version } = (header?.value ?? HEADER) as Partial<typeof HEADER>;
  if (format !== HEADER.format || version !== JOURNAL_FORMAT) {
    throw createDamagedError(path, 1, `expected a journal of version ${JOURNAL_FORMAT}, got ${format} ${version}`);
  }
  return rest;
}

function checkEntry(value: unknown, path: string, line: number): { readonly n: number } & JournalEntry {
  const found = entrySchema.safeParse(value);
  if (!found.success) throw createDamagedError(path, line, firstIssue(found.error));
  return value as { readonly n: number } & JournalEntry;
}

function createDamagedError(path: string, line: number, what: string): UserError {
  return new UserError(
    'BAD_CHECKPOINT',
    `${path}: line ${line}: ${what}; remove the journal's folder to go on from the checkpoint alone`,
  );
}

function plainEntry(entry: JournalEntry): object {
  if (entry.type !== 'played') return entry;
  const groups = entry.groups.map((group) => ({ ...group, trajectories: group.trajectories.map(plainTrajectory) }));
  return { ...entry, groups };
}

function reviveEntry(entry: JournalEntry): JournalEntry {
  if (entry.type !== 'played') return entry;
  const groups = entry.groups.map((group) => ({ ...group, trajectories: group.trajectories.map(reviveTrajectory) }));
  return { ...entry, groups };
}
