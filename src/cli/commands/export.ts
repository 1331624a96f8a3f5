/** Command `longplay export`: episodes for other trainers and tools. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { extname, join } from 'node:path';
import { type Command, Option } from 'commander';
import { longplayVersion } from '../../cluster/identity.ts';
import { whole } from '../../console/numbers.ts';
import { err, out as stdout } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { EXPORT_TYPES, type ExportType } from '../../policy/pretrained/gguf/export.ts';
import { fetchModel } from '../../policy/pretrained/hub.ts';
import { atifDocument } from '../../run/atif-episode.ts';
import { EXPORT_FORMS, type ExportForm, exportPolicy } from '../../run/export-policy.ts';
import {
  agentTraj,
  chatRecords,
  conversationRows,
  preferenceRecord,
  templateRecords,
} from '../../run/export-traces.ts';
import { pairUp } from '../../run/offline/preference.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import { explainWrite, makeFolder, writeAll, writeFileAtomic, writeWhole } from '../../storage/atomic-file.ts';
import { writeConversations } from '../../storage/conversation-parquet.ts';
import { writeParquet } from '../../storage/parquet.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { type StoredEpisode, TraceStore } from '../../storage/trace-store.ts';
import { reportLosses, runCommand } from '../fail.ts';
import { refuseFlags } from '../flags.ts';
import { ProgressLine } from '../progress-line.ts';

const FORMATS = ['agenttraj', 'chatml', 'trl', 'dpo', 'atif', 'verl', 'parquet'] as const;
type Format = (typeof FORMATS)[number];

/** Formats by the ending of the file to write; the first is the default. */
const BY_ENDING: Readonly<Record<string, readonly Format[]>> = {
  '.json': ['agenttraj'],
  '.jsonl': ['chatml', 'trl', 'dpo', 'atif'],
  '.parquet': ['parquet', 'verl'],
};

/** Formats of a binary file. */
const BINARY: readonly Format[] = ['parquet', 'verl'];

interface ExportFlags {
  readonly format?: Format;
  readonly to?: ExportForm;
  readonly type?: ExportType;
  readonly out: string;
  readonly purpose?: string;
  readonly success?: boolean;
}

/** Adds the command. */
export function exportTraces(program: Command): void {
  program
    .command('export')
    .description('write recorded episodes, or a trained language model, for other trainers and tools')
    .argument('<trace>', 'a run, its traces folder, or a trace file')
    .addOption(
      new Option(
        '--format <format>',
        'AgentTraj JSON; ChatML JSONL (for Axolotl, prime-rl); the same for TRL and Unsloth, arguments as objects; pairs of better and worse episodes of a task (for TRL’s DPO); ATIF as JSONL, or a folder of documents; Parquet with a conversation a row for verl, or a turn a row; by default what the ending of --out names',
      ).choices(FORMATS),
    )
    .addOption(
      new Option(
        '--to <form>',
        "instead of episodes, a run's language model: a Hugging Face folder, its adapter in peft's form, or a GGUF file for llama.cpp",
      ).choices(EXPORT_FORMS),
    )
    .addOption(new Option('--type <type>', "type of a GGUF file's matrices; f16 by default").choices(EXPORT_TYPES))
    .requiredOption('--out <path>', 'where to write')
    .option('--purpose <purpose>', 'only episodes of this purpose: train, or the name of an evaluation')
    .option('--success', 'only episodes that solved their task')
    .action((path: string, flags: ExportFlags, command: Command) =>
      runCommand(async () => {
        if (flags.to !== 'gguf') refuseFlags(command, ['type'], 'it is about GGUF files; use --to gguf');
        if (flags.to === undefined) return exportCommand(path, flags);
        refuseFlags(command, ['format', 'purpose', 'success'], 'it is about episodes, and --to writes a model');
        await exportModel(path, flags.to, flags);
      }),
    );
}

async function exportModel(run: string, to: ExportForm, { out, type }: ExportFlags): Promise<void> {
  const config = readRunConfig(run);
  await fetchModel(config.policy.path, (notice) => err.line(notice));
  const line = new ProgressLine();
  const onProgress = (bytes: number, of: number) =>
    line.show(() => `${whole(bytes / 2 ** 20)} of ${whole(of / 2 ** 20)} MiB → ${out}`);
  const { update, notes } = explainWrite(out, () => exportPolicy(run, config, to, out, { type, onProgress }));
  line.end();
  for (const note of notes) err.line(note);
  stdout.line(`update ${update} → ${out}`);
}

/** Format to write. @throws {UserError} BAD_ARGUMENT where neither flag nor ending names one, or they differ */
function formatOf({ format, out }: ExportFlags): Format {
  if (out === '-') throw new UserError('BAD_ARGUMENT', '--out -: expected a file, e.g. episodes.jsonl');
  if (/\.gguf$/i.test(out))
    throw new UserError('BAD_ARGUMENT', `--out ${out}: its ending names a model; use --to gguf`);
  const fitting = BY_ENDING[extname(out).toLowerCase()];
  if (format === undefined && !fitting) {
    const endings = Object.keys(BY_ENDING).join(', ');
    throw new UserError('BAD_ARGUMENT', `--out ${out}: its ending names no format (${endings}); give --format`);
  }
  // JSON is JSON, whatever its ending; Parquet is not.
  if (format !== undefined && fitting && BINARY.includes(format) !== BINARY.includes(fitting[0]!)) {
    throw new UserError('BAD_ARGUMENT', `--out ${out}: its ending names ${fitting[0]}, --format names ${format}`);
  }
  return format ?? fitting![0]!;
}

function exportCommand(path: string, flags: ExportFlags): void {
  const format = formatOf(flags);
  const store = TraceStore.open(path);
  reportLosses(store);
  const chosen = store.episodes.filter(
    ({ purpose, success }) => (flags.purpose === undefined || purpose === flags.purpose) && (!flags.success || success),
  );
  if (chosen.length === 0) {
    const purposes = [...new Set(store.episodes.map(({ purpose }) => purpose))].join(', ');
    throw new UserError('BAD_ARGUMENT', `${path}: no episode matches; it holds ${store.size} of purpose ${purposes}`);
  }
  const line = new ProgressLine();
  if (format === 'dpo') {
    const pairs = writing(flags.out, (draft) => writePairs(draft, flags.out, store, chosen, line));
    line.end();
    stdout.line(`${pairs} pairs of ${chosen.length} episodes → ${flags.out}`);
    return;
  }
  let turns = 0;
  let done = 0;
  const episodes = function* (): Generator<TraceLine> {
    for (const { at } of chosen) {
      const episode = store.read(at);
      turns += episode.turns.length;
      done++;
      line.show(() => `${whole(done)} of ${whole(chosen.length)} episodes, ${whole(turns)} turns → ${flags.out}`);
      yield episode;
    }
  };
  // A document of ATIF is a file; JSON lines hold many.
  if (format === 'atif' && extname(flags.out) === '') writeDocuments(flags.out, episodes());
  else
    writing(flags.out, (draft) =>
      format === 'parquet'
        ? writeParquet(draft, episodes())
        : format === 'verl'
          ? writeConversations(draft, flatten(episodes(), conversationRows))
          : writeText(draft, format, episodes()),
    );
  line.end();
  stdout.line(`${chosen.length} episodes, ${turns} turns → ${flags.out}`);
}

/** Writes a whole file, or none. @throws {UserError} NO_PERMISSION where it cannot be written */
function writing<T>(path: string, write: (draft: string) => T): T {
  return explainWrite(path, () => writeWhole(path, write));
}

/**
 * Writes the best episode of each task with its worst, the second best with the second worst, and so on.
 * @returns the pairs written
 * @throws {UserError} BAD_ARGUMENT where no two episodes of a task differ in their return
 */
function writePairs(
  draft: string,
  path: string,
  store: TraceStore,
  chosen: readonly StoredEpisode[],
  line: ProgressLine,
): number {
  const scored = chosen.map(({ at, env, index, seed, return: score }) => ({
    at,
    score,
    task: `${env} ${index} ${seed}`,
  }));
  const pairs = pairUp(scored);
  if (pairs.length === 0) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${path}: no two of ${chosen.length} episodes are of one task and differ in return`,
    );
  }
  const file = openSync(draft, 'w');
  let written = 0;
  try {
    for (const [done, pair] of pairs.entries()) {
      line.show(() => `${whole(done)} of ${whole(pairs.length)} pairs → ${path}`);
      const record = preferenceRecord(store.read(pair.chosen.at), store.read(pair.rejected.at));
      if (!record) continue;
      writeAll(file, `${JSON.stringify(record)}\n`);
      written++;
    }
  } finally {
    closeSync(file);
  }
  return written;
}

/** Writes documents of ATIF, a file each, into a new folder. @throws {UserError} RUN_EXISTS, NO_PERMISSION */
function writeDocuments(folder: string, episodes: Iterable<TraceLine>): void {
  if (existsSync(folder))
    throw new UserError('RUN_EXISTS', `${folder} exists already; choose another place with --out`);
  const version = longplayVersion();
  explainWrite(folder, () => {
    makeFolder(folder);
    let written = 0;
    for (const episode of episodes) {
      const name = `${String(written++).padStart(6, '0')}.json`;
      writeFileAtomic(join(folder, name), `${JSON.stringify(atifDocument(episode, version))}\n`);
    }
  });
}

function* flatten<T>(episodes: Iterable<TraceLine>, rowsOf: (episode: TraceLine) => readonly T[]): Generator<T> {
  for (const episode of episodes) yield* rowsOf(episode);
}

/** Records of an episode, one a line, by format. */
const RECORDS: Readonly<Record<'chatml' | 'trl' | 'atif', (episode: TraceLine, version: string) => readonly object[]>> =
  {
    chatml: chatRecords,
    trl: templateRecords,
    atif: (episode, version) => [atifDocument(episode, version)],
  };

/** Writes text forms episode by episode: AgentTraj as one JSON list, the others as one object per line. */
function writeText(path: string, format: keyof typeof RECORDS | 'agenttraj', episodes: Iterable<TraceLine>): void {
  const file = openSync(path, 'w');
  try {
    const version = longplayVersion();
    let first = true;
    for (const episode of episodes) {
      if (format !== 'agenttraj') {
        for (const record of RECORDS[format](episode, version)) writeAll(file, `${JSON.stringify(record)}\n`);
      } else writeAll(file, `${first ? '[\n' : ',\n'}${JSON.stringify(agentTraj(episode))}`);
      first = false;
    }
    if (format === 'agenttraj') writeAll(file, '\n]\n');
  } finally {
    closeSync(file);
  }
}
