/** Command `longplay envs`: lists worlds. */
import type { Command } from 'commander';
import { registry } from '../../../envs/registry.ts';
import { out } from '../../console/terminal.ts';
import { columns } from '../../learning/evaluation/table.ts';
import { worldUrl } from '../../run/find-world.ts';
import { localUrl } from '../../runtime/module-url.ts';
import { isServedWorld } from '../../world/env-id.ts';
import { loadWorld } from '../../world/open-world.ts';
import { runCommand } from '../fail.ts';

/** Adds the command. */
export function envs(program: Command): void {
  program
    .command('envs')
    .description('list the worlds')
    .argument(
      '[env...]',
      'worlds to list: ids, modules, or openenv+http://host:port; all of this package where none is named',
    )
    .option('--json', 'one JSON object')
    .action((named: readonly string[], { json }: { json?: boolean }) =>
      runCommand(async () => {
        const worlds = await Promise.all(
          (named.length > 0 ? named : Object.keys(registry)).map(async (id) => {
            const world = await loadWorld(localUrl(worldUrl(id)), id);
            const env = world.createEnv?.();
            const tasks = env?.tasks ?? world.agentgym!.client.tasks;
            return {
              id,
              tasks: tasks.count,
              train: tasks.split('train').length,
              test: tasks.split('test').length,
              labels: tasks.labels,
              sets: Object.fromEntries(Object.entries(tasks.sets ?? {}).map(([name, of]) => [name, of.length])),
              rules: env !== undefined && !isServedWorld(id),
              smallPolicy: world.view !== undefined,
              oracle: world.createOracle !== undefined,
              description: env?.description ?? world.description ?? '',
            };
          }),
        );
        if (json) {
          out.json(worlds);
          return;
        }
        const rows = worlds.map((w) => [
          w.id,
          String(w.tasks),
          String(w.train),
          String(w.test),
          w.rules ? 'here' : 'a server',
          w.oracle ? 'yes' : 'no',
        ]);
        out.line(columns([['world', 'tasks', 'train', 'test', 'played', 'oracle'], ...rows]).join('\n'));
        for (const { id, description, labels, sets } of worlds) {
          out.line(`\n${id}: ${description}\n  sub-tasks: ${labels.join(', ')}`);
          for (const [name, count] of Object.entries(sets)) {
            out.line(`  evaluation.tasks: ${name} (${count} tasks)`);
          }
        }
      }),
    );
}
