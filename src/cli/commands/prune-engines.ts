/** Command `longplay prune-engines`. */
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { listUnusedEngineFiles, removeUnusedFiles } from '../../run/prune-engines.ts';
import { runCommand } from '../fail.ts';

/** Adds the command. */
export function pruneEngines(program: Command): void {
  program
    .command('prune-engines')
    .description(
      'remove what the installed engines never load on this machine: binaries for other platforms, builds for browsers; npm ci brings them back',
    )
    .option('--dry-run', 'say what would be removed, and remove nothing')
    .option('--json', 'one JSON object')
    .action(({ dryRun = false, json = false }: { readonly dryRun?: boolean; readonly json?: boolean }) =>
      runCommand(async () => {
        const listed = listUnusedEngineFiles();
        if (!dryRun) removeUnusedFiles(listed);
        const packages = listed.map(({ package: name, folder, files, bytes, kept }) => {
          return { package: name, folder, files: files.length, bytes, kept };
        });
        if (json) {
          out.json({ removed: !dryRun, packages });
          return;
        }
        for (const { package: name, files, bytes, kept } of packages) {
          const what =
            files === 0
              ? 'nothing to remove'
              : `${dryRun ? 'would remove' : 'removed'} ${files} files, ${mebibytes(bytes)}`;
          out.line(`${name}: ${what}; ${mebibytes(kept)} are loaded here`);
        }
        if (packages.length === 0)
          out.line('no engine of this machine is installed: longplay doctor says how to get one');
      }),
    );
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
