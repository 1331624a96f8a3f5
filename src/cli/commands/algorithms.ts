/** Command `longplay algorithms`: lists policy losses, estimators of advantages, aggregations and corrections. */
import type { Command } from 'commander';
import { listAlgorithms } from '../../config/algorithms.ts';
import { EQUIVALENTS } from '../../config/equivalents.ts';
import { out } from '../../console/terminal.ts';
import { runCommand } from '../fail.ts';

/** Adds the command. */
export function algorithms(program: Command): void {
  program
    .command('algorithms')
    .description('list the policy losses, advantages, aggregations and off-policy corrections, with papers and keys')
    .option('--json', 'one JSON object')
    .action(({ json }: { json?: boolean }) =>
      runCommand(async () => {
        const parts = listAlgorithms();
        if (json) {
          out.json({
            parts: parts.map(({ title, path, algorithms }) => ({ title, path, algorithms })),
            equivalents: EQUIVALENTS,
          });
          return;
        }
        for (const { title, path, discriminator, algorithms } of parts) {
          out.line(`${title}: --set '${path}={${discriminator}: …}'`);
          for (const { name, title, links, summary, use, knobs } of algorithms) {
            out.line(`\n  ${name}: ${title}${links.length === 0 ? '' : ` (${links.join(', ')})`}`);
            out.line(`    what  ${summary}`);
            out.line(`    when  ${use}`);
            for (const knob of knobs) {
              const fallback = knob.default === '' ? '' : `; default ${knob.default.replaceAll('`', '')}`;
              out.line(`    key   ${knob.path}: ${knob.type.replaceAll('`', '')}${fallback}`);
            }
          }
          out.line('');
        }
        out.line('ALGORITHMS.md has the same, and the keys of verl, TRL and prime-rl that mean the same.');
      }),
    );
}
