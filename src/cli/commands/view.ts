/** Command `longplay view`: a page over runs, served on this machine or written as one file. */
import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { err, out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { runSources, viewRuns } from '../../run/view-runs.ts';
import { writeWhole } from '../../storage/atomic-file.ts';
import { reportHtml } from '../../viewer/report.ts';
import { reportLosses, runCommand } from '../fail.ts';
import { port, refuseFlags, wholeNumber } from '../flags.ts';
import { awaitSignal } from '../interrupt.ts';

interface ViewFlags {
  readonly port: number;
  readonly out?: string;
  readonly episodes: number;
}

/** Adds the command. */
export function view(program: Command): void {
  program
    .command('view')
    .description('look at runs: curves, episodes turn by turn, groups side by side, where the time went')
    .argument('<run...>', 'runs, or trace files')
    .option('--port <port>', 'of the loopback address; 0 picks a free one', port, 7333)
    .option('--out <file>', 'write one HTML file instead, to keep or to send')
    .option('--episodes <n>', 'with --out: episodes of a run that are in it with their turns', wholeNumber(0), 200)
    .action((paths: string[], flags: ViewFlags, command: Command) =>
      runCommand(async () => {
        if (flags.out === undefined)
          refuseFlags(command, ['episodes'], 'the page shows all of them; it needs --out <file>');
        else refuseFlags(command, ['port'], '--out writes a file and serves nothing');
        await viewCommand(paths, flags);
      }),
    );
}

async function viewCommand(paths: readonly string[], flags: ViewFlags): Promise<void> {
  if (flags.out !== undefined) {
    const sources = runSources(paths);
    reportLosses({ losses: sources.flatMap(({ losses }) => losses) });
    const html = await reportHtml(sources, { episodes: flags.episodes });
    try {
      writeWhole(flags.out, (draft) => writeFileSync(draft, html));
    } catch (thrown) {
      throw new UserError('NO_PERMISSION', `cannot write ${flags.out}: ${messageOf(thrown)}`);
    }
    out.line(`${flags.out} (${(Buffer.byteLength(html) / 1e6).toFixed(1)} MB)`);
    return;
  }
  const server = await viewRuns(paths, flags.port, (line) => err.line(line));
  out.line(`${server.url}  (Ctrl-C ends it)`);
  await awaitSignal();
  await server.close();
}
