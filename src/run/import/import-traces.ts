/**
 * Import of traces: episodes that other programs have recorded, as a folder of traces that `view`, `replay`, `sft`, `dpo` and
 * `export` read. Sources are read record by record; what a trace cannot hold is counted in a report.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, extname, join, resolve, sep } from 'node:path';
import { readJsonFile } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { recordOf } from '../../core/record.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { explainWrite, makeFolder, writeFileAtomic } from '../../storage/atomic-file.ts';
import { parseLine, traceLine } from '../../storage/trace.ts';
import { TraceFiles } from '../../storage/trace-files.ts';
import { restoreEpisode } from '../atif-episode.ts';
import { discard } from '../run-folder.ts';
import { isAtif, readAtif } from './atif.ts';
import { Losses } from './losses.ts';
import { isMessageLog, makerOf, pairOf, readConversation, readPairs, sessionOf } from './message-logs.ts';
import {
  isLangfuse,
  isLangSmith,
  langfuseParts,
  langSmithParts,
  readLangfuse,
  readLangSmith,
} from './observation-tables.ts';
import { isOtel, otelParts, readOtel } from './otel.ts';
import { createTrajectory, digestOpening, pickReward, type ReadEpisode } from './read-episode.ts';
import { type BadRecord, groupParts, listFiles, type RecordPlace, readRecords } from './records.ts';

/** Formats that are imported. */
export const IMPORT_FORMATS = ['atif', 'otel', 'langfuse', 'langsmith', 'openai', 'anthropic'] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/** File of an imported folder that holds the report. */
export const IMPORT_FILE = 'import.json';

export interface ImportOptions {
  /** File, or folder of files. */
  readonly source: string;
  /** Folder to make; new. */
  readonly out: string;
  /** Format of the source; guessed where it is absent. */
  readonly from?: ImportFormat | undefined;
  /** Score that is the reward; by default `reward`, else the only one. */
  readonly score?: string | undefined;
  /** Called with notices for a person, one line each. */
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Called after each episode. */
  readonly onEpisode?: ((episodes: number) => void) | undefined;
}

/** Report of an import. */
export interface ImportReport {
  readonly format: 1;
  readonly from: ImportFormat;
  readonly isGuessed: boolean;
  readonly source: string;
  readonly files: number;
  readonly episodes: number;
  readonly turns: number;
  /** Conversations beyond the first of each episode: sub-agents, branches, compacted contexts. */
  readonly branches: number;
  /** Turns with token ids. */
  readonly tokenTurns: number;
  /** Episodes without a reward, which count as 0. */
  readonly unscored: number;
  /** Records that hold no call of a model. */
  readonly empty: number;
  /** Counts of what was left out, by field. */
  readonly lost: Readonly<Record<string, number>>;
  /** Lines or files that could not be read. */
  readonly bad: number;
  /** The first of them. */
  readonly badRecords: readonly BadRecord[];
}

/** Bad records that a report names; the others are counted. */
const MAX_BAD = 100;

/** Episode of a source, which is read when it is taken: what cannot be read is named with its place. */
interface Found {
  readonly at: RecordPlace;
  read(): ReadEpisode | Restored;
}

/** Episode that a document holds as it was. */
interface Restored {
  readonly restored: {
    readonly trajectory: Trajectory;
    readonly purpose: string;
    readonly label?: string | undefined;
  };
}

/**
 * Imports traces.
 * @throws {UserError} RUN_EXISTS, BAD_TRACE for a source without an episode or of no known format, NO_PERMISSION
 */
export function importTraces(options: ImportOptions): ImportReport {
  const { source, out, onNotice = () => {}, onEpisode } = options;
  const files = listFiles(source);
  if (existsSync(out)) throw new UserError('RUN_EXISTS', `${out} exists already; choose another place with --out`);
  const from = options.from ?? guessFormat(files, source);
  if (!options.from) onNotice(`${source} seems to be ${from}; --from names another format`);
  const losses = new Losses();
  const badRecords: BadRecord[] = [];
  let bad = 0;
  const onBad = (one: BadRecord) => {
    if (bad++ < MAX_BAD) badRecords.push(one);
  };
  const count = { episodes: 0, turns: 0, branches: 0, tokenTurns: 0, unscored: 0, empty: 0 };
  const tasks = new Map<string, number>();
  const numbers = new Set<number>();
  const traces = new TraceFiles({
    dir: join(out, 'traces'),
    config: { imported: { from, source: basename(resolve(source)) } },
  });
  const write = ({ trajectory, purpose, label }: Restored['restored']) => {
    // What is written is what a reader takes.
    const { fault } = parseLine(traceLine(trajectory, purpose, label).trimEnd());
    if (fault !== undefined) throw new Error(fault);
    explainWrite(out, () => traces.episodes([trajectory], purpose, label));
    numbers.add(trajectory.episode);
    count.episodes++;
    count.turns += trajectory.turns.length;
    count.tokenTurns += trajectory.turns.filter(({ decision }) => decision?.kind === 'tokens').length;
    onEpisode?.(count.episodes);
  };
  const take = ({ at, read: readFound }: Found) => {
    const read = readFound();
    if ('restored' in read) return write(read.restored);
    if (read.calls.length === 0) {
      count.empty++;
      onBad({ ...placeOf(at), why: 'it holds no call of a model with its reply' });
      return;
    }
    const score = pickReward(read.scores, options.score);
    const given = read.calls.some(({ facts }) => facts.reward !== undefined);
    if (score === undefined && !given) count.unscored++;
    const opening = digestOpening(read);
    const index = tasks.get(opening) ?? tasks.size;
    let episode = count.episodes;
    while (numbers.has(episode)) episode++;
    write({ trajectory: createTrajectory(read, { episode, index, score }), purpose: 'rollout', label: read.id });
    tasks.set(opening, index);
    count.branches += Math.max(0, countConversations(read) - 1);
  };
  try {
    explainWrite(out, () => makeFolder(out));
    for (const found of findEpisodes(from, files, losses, onBad)) {
      try {
        take(found);
      } catch (thrown) {
        if (thrown instanceof UserError) throw thrown;
        onBad({ ...placeOf(found.at), why: messageOf(thrown) });
      }
    }
  } catch (thrown) {
    traces.close();
    if (count.episodes === 0) discard(out);
    throw thrown;
  }
  traces.close();
  if (count.episodes === 0) {
    discard(out);
    const [first] = badRecords;
    const why = first ? `; ${describeBad(first)}` : '';
    throw new UserError('BAD_TRACE', `${source}: expected episodes of ${from}, found none${why}`);
  }
  const facts = { format: 1, from, isGuessed: options.from === undefined, source, files: files.length } as const;
  const report: ImportReport = { ...facts, ...count, lost: losses.list(), bad, badRecords };
  explainWrite(out, () => writeFileAtomic(join(out, IMPORT_FILE), `${JSON.stringify(report, null, 2)}\n`));
  return report;
}

/** Describes a bad record in one line. */
export function describeBad({ file, line, why }: BadRecord): string {
  return `${file}${line > 0 ? `:${line}` : ''}: ${why}`;
}

/** Conversations of an episode: calls that nothing continues. */
function countConversations({ calls }: ReadEpisode): number {
  const continued = new Set(calls.map(({ parent }) => parent));
  return calls.filter((_, place) => !continued.has(place)).length;
}

/** Records that are looked at to guess a format. */
const GUESSED_BY = 20;

/** Guesses a format by the first records. @throws {UserError} BAD_TRACE where none fits */
function guessFormat(files: readonly string[], source: string): ImportFormat {
  let looked = 0;
  for (const file of files) {
    for (const { value } of readRecords(file, () => {})) {
      const format = formatOf(value);
      if (format) return format;
      if (++looked >= GUESSED_BY) break;
    }
    if (looked >= GUESSED_BY) break;
  }
  throw new UserError(
    'BAD_TRACE',
    `${source}: it is of no format that is known (${IMPORT_FORMATS.join(', ')}); --from names one`,
  );
}

function formatOf(value: unknown): ImportFormat | undefined {
  if (isOtel(value)) return 'otel';
  if (isAtif(value)) return 'atif';
  if (isLangSmith(value)) return 'langsmith';
  const [row] = Array.isArray(recordOf(value)?.data) ? (recordOf(value)!.data as unknown[]) : [value];
  if (isLangfuse(row)) return 'langfuse';
  return isMessageLog(value) ? makerOf(value) : undefined;
}

/** Formats whose records are put together by trace. */
const GROUPED = {
  otel: { partsOf: otelParts, read: readOtel },
  langfuse: { partsOf: langfuseParts, read: readLangfuse },
  langsmith: { partsOf: langSmithParts, read: readLangSmith },
} as const;

function* findEpisodes(
  from: ImportFormat,
  files: readonly string[],
  losses: Losses,
  onBad: (bad: BadRecord) => void,
): Generator<Found> {
  if (from === 'otel' || from === 'langfuse' || from === 'langsmith') {
    const { partsOf, read } = GROUPED[from];
    for (const { parts, first } of groupParts(files, partsOf, onBad))
      yield { at: first, read: () => read(parts, losses) };
    return;
  }
  if (from === 'atif') {
    for (const file of files) yield* findDocuments(file, losses, onBad);
    return;
  }
  for (const file of files) yield* findConversations(file, losses, onBad);
}

function* findDocuments(file: string, losses: Losses, onBad: (bad: BadRecord) => void): Generator<Found> {
  for (const at of readRecords(file, onBad)) {
    if (!isAtif(at.value)) {
      // Results of a trial lie beside its trajectory.
      if (at.line > 0 || !isTrialFile(at.value)) onBad({ ...placeOf(at), why: 'it is no document of ATIF' });
      continue;
    }
    yield { at, read: () => readDocument(at.value, file, losses) };
  }
}

/** Reads a document of ATIF: as it was where we have written it, else as an episode to be converted. */
function readDocument(value: unknown, file: string, losses: Losses): ReadEpisode | Restored {
  const restored = restoreEpisode(value);
  if (restored) {
    const { purpose, label, ...trajectory } = restored;
    return { restored: { trajectory, purpose, label } };
  }
  const read = readAtif(value, { losses, open: (path) => openBeside(file, path) });
  return { ...read, scores: { ...readTrialRewards(file), ...read.scores } };
}

/** Opens the file of a sub-agent: in the document's folder or below, nowhere else, and by its name alone beside it. */
function openBeside(file: string, path: string): unknown {
  const folder = dirname(resolve(file));
  const named = resolve(folder, path);
  const isWithin = named.startsWith(folder + sep);
  return (isWithin ? quietJson(named) : undefined) ?? quietJson(join(folder, basename(path)));
}

function placeOf({ file, line }: RecordPlace): Omit<BadRecord, 'why'> {
  return { file, line };
}

/** True for the other files of a trial's folder: its configuration and its results. */
function isTrialFile(value: unknown): boolean {
  const { trial_name: trial, verifier_result: result, task, agent } = recordOf(value) ?? {};
  return trial !== undefined || result !== undefined || (task !== undefined && agent !== undefined);
}

/** Rewards of a trial of Harbor, whose `result.json` lies beside the folder of its agent. */
function readTrialRewards(file: string): Record<string, number> {
  const result = recordOf(quietJson(join(dirname(dirname(resolve(file))), 'result.json')));
  const rewards = recordOf(recordOf(result?.verifier_result)?.rewards) ?? {};
  const entries = Object.entries(rewards).filter((one): one is [string, number] => Number.isFinite(one[1]));
  return Object.fromEntries(entries);
}

function quietJson(path: string): unknown {
  if (extname(path) !== '.json' || !existsSync(path)) return undefined;
  try {
    return readJsonFile(path);
  } catch {
    return undefined;
  }
}

/** Finds the episodes of a message log: a conversation each, or pairs by their sessions. */
function* findConversations(file: string, losses: Losses, onBad: (bad: BadRecord) => void): Generator<Found> {
  let hasPairs = false;
  for (const at of readRecords(file, onBad)) {
    if (pairOf(at.value)) hasPairs = true;
    else if (isMessageLog(at.value)) yield { at, read: () => readConversation(at.value, losses) };
    else
      onBad({ ...placeOf(at), why: 'it is neither a conversation ({ messages }) nor a pair ({ request, response })' });
  }
  if (!hasPairs) return;
  const partsOf = (value: unknown) => (pairOf(value) ? [{ key: sessionOf(value) ?? '', part: value }] : []);
  for (const { key, parts, first } of groupParts([file], partsOf, () => {})) {
    yield { at: first, read: () => ({ ...readPairs(parts, losses), ...(key === '' ? {} : { id: key }) }) };
  }
}
