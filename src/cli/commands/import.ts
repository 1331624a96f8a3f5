/** Command `longplay import`: episodes that other programs have recorded, as traces. */
import { basename, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { whole } from '../../console/numbers.ts';
import { err, out as stdout } from '../../console/terminal.ts';
import {
  describeBad,
  IMPORT_FILE,
  IMPORT_FORMATS,
  type ImportFormat,
  importTraces,
} from '../../run/import/import-traces.ts';
import { freeRunName } from '../../run/run-folder.ts';
import { runCommand } from '../fail.ts';
import { ProgressLine } from '../progress-line.ts';

interface ImportFlags {
  readonly from?: ImportFormat;
  readonly out?: string;
  readonly score?: string;
  readonly json?: boolean;
}

/** Bad records that are printed, one line each; the report names more. */
const SHOWN_BAD = 5;

/** Adds the command. */
export function importCommand(program: Command): void {
  program
    .command('import')
    .description('read episodes that other programs have recorded as traces, for view, replay, sft, dpo and export')
    .argument('<source>', 'a file of JSON or JSON lines, or a folder of them')
    .addOption(
      new Option('--from <format>', 'format of the source; guessed where it is left out').choices(IMPORT_FORMATS),
    )
    .option('--out <folder>', 'folder to make; by default runs/<name of the source>')
    .option('--score <name>', 'score that is the reward; by default the one called reward, else the only one')
    .option('--json', 'print the report, with what was lost by field, as one JSON object')
    .action((source: string, flags: ImportFlags) => runCommand(async () => importSource(source, flags)));
}

function importSource(source: string, { from, score, json, out }: ImportFlags): void {
  const name = basename(resolve(source)).replace(/\.\w+$/, '');
  const dir = out ?? join('runs', freeRunName('runs', name));
  const line = new ProgressLine();
  const report = importTraces({
    source,
    out: dir,
    from,
    score,
    onNotice: (notice) => err.line(notice),
    onEpisode: (episodes) => line.show(() => `${whole(episodes)} episodes → ${dir}`),
  });
  line.end();
  const { episodes, turns, branches, tokenTurns, unscored, lost, bad, badRecords } = report;
  for (const one of badRecords.slice(0, SHOWN_BAD)) err.line(`left out: ${describeBad(one)}`);
  if (bad > SHOWN_BAD) err.line(`left out: ${bad - SHOWN_BAD} more; ${join(dir, IMPORT_FILE)} names the first of them`);
  if (bad > 0) process.exitCode = 1;
  if (json) {
    stdout.json({ ...report, out: dir });
    return;
  }
  const more = [
    ...(branches > 0 ? [`${branches} branches`] : []),
    ...(tokenTurns > 0 ? [`${tokenTurns} turns with token ids`] : []),
    ...(unscored > 0 ? [`${unscored} without a reward, which count as 0`] : []),
  ];
  stdout.line(`${[`${episodes} episodes`, `${turns} turns`, ...more].join(', ')} → ${dir}`);
  for (const [field, n] of Object.entries(lost)) stdout.line(`  lost: ${field}  ${n}`);
}
