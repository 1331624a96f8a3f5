/** Command `longplay preflight`: finds out what a run has to expect, before hours of a GPU are bought. */

import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { requireOneWorld } from '../../config/worlds.ts';
import { duration } from '../../console/numbers.ts';
import { err, out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { largestOf } from '../../core/extremes.ts';
import { HARDWARE, UTILISATION } from '../../run/preflight/hardware.ts';
import { type PreflightReport, preflight } from '../../run/preflight/preflight.ts';
import { exitCodeOf } from '../../run/preflight/verdicts.ts';
import { writeFileAtomic } from '../../storage/atomic-file.ts';
import { readConfigFile } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, MOST, number, oneOf, share } from '../flags.ts';
import { onFirstSignal } from '../interrupt.ts';
import { ProgressLine } from '../progress-line.ts';

interface PreflightFlags {
  readonly set: readonly string[];
  readonly minutes: number;
  readonly hardware: readonly string[];
  readonly price?: number;
  readonly utilisation: number;
  readonly out?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function preflightCommand(program: Command): void {
  const name = oneOf(Object.keys(HARDWARE));
  program
    .command('preflight')
    .description(
      'find out what a run has to expect, before it is started: failures, easy rewards, learning, time, cost',
    )
    .argument('<config>', 'YAML of a run')
    .option('--set <key=value>', 'override a configuration key', collectFlag, [])
    .option('--minutes <minutes>', 'bound of the whole', number(0, true), 3)
    .option(
      '--hardware <name>',
      `compute the time on ${Object.keys(HARDWARE).join(', ')}; give it once for each`,
      (text: string, before: readonly string[]) => [...before, name(text)],
      [],
    )
    .option('--price <per hour>', 'price of an hour of the hardware', number(0))
    .option('--utilisation <share>', "share of the hardware's peak that is reached", share, UTILISATION)
    .option('--out <file>', 'write the report as JSON too')
    .option('--json', 'one JSON object')
    .action((path: string, flags: PreflightFlags) => runCommand(() => preflightFile(path, flags)));
}

async function preflightFile(path: string, flags: PreflightFlags): Promise<void> {
  const { set, minutes, hardware, price, utilisation, json } = flags;
  if (price !== undefined && hardware.length === 0) {
    throw new UserError('BAD_ARGUMENT', 'preflight: --price: it needs --hardware, whose hours are counted');
  }
  if (utilisation === 0) throw new UserError('BAD_ARGUMENT', 'preflight: --utilisation: expected a number above 0');
  if (minutes > MOST.minutes) {
    throw new UserError('BAD_ARGUMENT', `preflight: --minutes: expected at most ${MOST.minutes}, got ${minutes}`);
  }
  if (flags.out !== undefined) refuseUnwritable(flags.out);
  const config = readConfigFile(path, set);
  requireOneWorld(config, 'preflight');
  const progress = new ProgressLine();
  const interrupt = new AbortController();
  const stopListening = onFirstSignal(() => interrupt.abort());
  let report: PreflightReport;
  try {
    report = await preflight({
      ...{ config, minutes, hardware, utilisation, pricePerHour: price, interrupt: interrupt.signal },
      onProgress: (what, secondsLeft) => progress.show(() => `${what}; ${duration(secondsLeft)} left`),
    });
  } finally {
    progress.end();
    stopListening();
  }
  if (json) out.json({ format: 1, ...report });
  else for (const line of reportLines(report)) out.line(line);
  if (report.interrupted) err.line('longplay: interrupted; what was not found out is left out');
  process.exitCode = report.interrupted ? 1 : exitCodeOf(report.rows);
  // Last, so that a disk which refuses it takes nothing of the report away.
  if (flags.out !== undefined) writeReport(flags.out, report);
}

/** Refuses a file that cannot be written, before minutes are spent. @throws {UserError} NO_PERMISSION */
function refuseUnwritable(path: string): void {
  try {
    accessSync(dirname(resolve(path)), constants.W_OK);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `preflight: cannot write ${path}: ${messageOf(thrown)}`);
  }
}

/** Writes the report as JSON. @throws {UserError} NO_PERMISSION for what the system refuses */
function writeReport(path: string, report: PreflightReport): void {
  try {
    writeFileAtomic(path, `${JSON.stringify({ format: 1, ...report }, null, 2)}\n`);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `preflight: cannot write ${path}: ${messageOf(thrown)}`);
  }
}

/** Lines of a report: verdict, part and name, then what was found and what to do. */
function reportLines({ rows, seconds }: PreflightReport): string[] {
  const width = largestOf(rows.map(({ part, name }) => `${part}: ${name}`.length));
  const count = (verdict: string) => rows.filter((row) => row.verdict === verdict).length;
  return [
    ...rows.flatMap(({ part, name, found, advice, verdict }) => [
      `${verdict.padEnd(4)}  ${`${part}: ${name}`.padEnd(width)}  ${found}`,
      ...(verdict === 'ok' ? [] : [`      ${' '.repeat(width)}  ${advice}`]),
    ]),
    '',
    `${count('ok')} ok, ${count('look')} to look at, ${count('stop')} to stop for; ${duration(seconds)}`,
  ];
}
