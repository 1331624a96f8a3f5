/** `longplay envs`: the worlds that are there. */
import type { Command } from 'commander';
import { registry } from '../../../envs/registry.ts';
import { columns } from '../../evaluation/table.ts';
import { runCommand } from '../fail.ts';
import { loadWorld } from '../world.ts';

/** Adds the command. */
export function envs(program: Command): void {
  program
    .command('envs')
    .description('list the worlds')
    .option('--json', 'one JSON object')
    .action(({ json }: { json?: boolean }) =>
      runCommand(async () => {
        const worlds = await Promise.all(
          Object.keys(registry).map(async (id) => {
            const { env, module } = await loadWorld(id);
            const { tasks } = env;
            return {
              id,
              tasks: tasks.count,
              train: tasks.split('train').length,
              test: tasks.split('test').length,
              labels: tasks.labels,
              sets: Object.fromEntries(Object.entries(tasks.sets ?? {}).map(([name, of]) => [name, of.length])),
              smallPolicy: module.view !== undefined,
              oracle: module.createOracle !== undefined,
              description: env.description,
            };
          }),
        );
        if (json) {
          process.stdout.write(`${JSON.stringify(worlds)}\n`);
          return;
        }
        const rows = worlds.map((w) => [
          w.id,
          String(w.tasks),
          String(w.train),
          String(w.test),
          w.oracle ? 'yes' : 'no',
        ]);
        process.stdout.write(`${columns([['world', 'tasks', 'train', 'test', 'oracle'], ...rows]).join('\n')}\n`);
        for (const { id, description, labels, sets } of worlds) {
          process.stdout.write(`\n${id}: ${description}\n  sub-tasks: ${labels.join(', ')}\n`);
          for (const [name, count] of Object.entries(sets)) {
            process.stdout.write(`  evaluation.tasks: ${name} (${count} tasks)\n`);
          }
        }
      }),
    );
}
