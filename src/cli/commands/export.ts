/** Command `longplay export`: episodes for other trainers and tools. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { extname } from 'node:path';
import { type Command, Option } from 'commander';
import { whole } from '../../console/numbers.ts';
import { err, out as stdout } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { exportPolicy } from '../../policy/export-policy.ts';
import { agentTraj, chatRecord } from '../../record/export.ts';
import { writeParquet } from '../../record/parquet.ts';
import type { TraceLine } from '../../record/trace.ts';
import { TraceStore } from '../../record/trace-store.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import { runCommand } from '../fail.ts';
import { ProgressLine } from '../progress-line.ts';

type Format = 'agenttraj' | 'chatml' | 'parquet';

/** Formats by the ending of the file to write. */
const BY_ENDING: Readonly<Record<string, Format>> = {
  '.json': 'agenttraj',
  '.jsonl': 'chatml',
  '.parquet': 'parquet',
};

interface ExportFlags {
  readonly format?: Format;
  readonly to?: 'hf' | 'adapter';
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
        'AgentTraj JSON, ChatML JSONL, or Parquet with a row per turn; by default what the ending of --out says',
      ).choices(['agenttraj', 'chatml', 'parquet']),
    )
    .addOption(
      new Option(
        '--to <form>',
        "instead of episodes, a run's language model: a Hugging Face folder, or its adapter in peft's form",
      ).choices(['hf', 'adapter']),
    )
    .requiredOption('--out <path>', 'where to write')
    .option('--purpose <purpose>', 'only episodes of this purpose: train, or the name of an evaluation')
    .option('--success', 'only episodes that solved their task')
    .action((path: string, flags: ExportFlags) =>
      runCommand(async () => (flags.to ? exportModel(path, flags.to, flags.out) : exportCommand(path, flags))),
    );
}

function exportModel(run: string, to: 'hf' | 'adapter', out: string): void {
  const { update, notes } = exportPolicy(run, readRunConfig(run), to, out);
  for (const note of notes) err.line(note);
  stdout.line(`update ${update} → ${out}`);
}

/** @throws {UserError} BAD_ARGUMENT where neither flag nor ending says which, or they differ */
function formatOf({ format, out }: ExportFlags): Format {
  const ending = extname(out).toLowerCase();
  const named = BY_ENDING[ending];
  if (format === undefined && named === undefined) {
    const endings = Object.keys(BY_ENDING).join(', ');
    throw new UserError('BAD_ARGUMENT', `--out ${out}: its ending names no format (${endings}); say --format`);
  }
  if (format !== undefined && (format === 'parquet') !== (named === 'parquet') && named !== undefined) {
    throw new UserError('BAD_ARGUMENT', `--out ${out}: its ending says ${named}, --format says ${format}`);
  }
  return format ?? named!;
}

function exportCommand(path: string, flags: ExportFlags): void {
  const format = formatOf(flags);
  const store = TraceStore.open(path);
  const chosen = store.episodes.filter(
    ({ purpose, success }) => (flags.purpose === undefined || purpose === flags.purpose) && (!flags.success || success),
  );
  if (chosen.length === 0) {
    const purposes = [...new Set(store.episodes.map(({ purpose }) => purpose))].join(', ');
    throw new UserError('BAD_ARGUMENT', `${path}: no episode matches; it holds ${store.size} of purpose ${purposes}`);
  }
  let turns = 0;
  let done = 0;
  const line = new ProgressLine();
  const episodes = function* (): Generator<TraceLine> {
    for (const { at } of chosen) {
      const episode = store.read(at);
      turns += episode.turns.length;
      done++;
      line.show(() => `${whole(done)} of ${whole(chosen.length)} episodes, ${whole(turns)} turns → ${flags.out}`);
      yield episode;
    }
  };
  try {
    if (format === 'parquet') writeParquet(flags.out, episodes());
    else writeText(flags.out, format, episodes());
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === undefined || thrown instanceof UserError) throw thrown;
    throw new UserError('NO_PERMISSION', `cannot write ${flags.out}: ${messageOf(thrown)}`);
  } finally {
    line.end();
  }
  stdout.line(`${chosen.length} episodes, ${turns} turns → ${flags.out}`);
}

/** Writes text forms episode by episode: AgentTraj as one JSON list, ChatML as one object per line. */
function writeText(path: string, format: 'agenttraj' | 'chatml', episodes: Iterable<TraceLine>): void {
  const file = openSync(path, 'w');
  try {
    let first = true;
    for (const episode of episodes) {
      if (format === 'chatml') writeSync(file, `${JSON.stringify(chatRecord(episode))}\n`);
      else writeSync(file, `${first ? '[\n' : ',\n'}${JSON.stringify(agentTraj(episode))}`);
      first = false;
    }
    if (format === 'agenttraj') writeSync(file, '\n]\n');
  } finally {
    closeSync(file);
  }
}
