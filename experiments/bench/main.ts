/**
 * `npm run bench [-- <name>…] [--json] [flags of the bench]`: measures, never asserts. Each figure stands beside what limits it or what it
 * replaces; medians of interleaved runs. These figures move with the machine's load: compare ratios.
 */
import { availableParallelism, cpus, loadavg } from 'node:os';
import { runCommand } from '../../src/cli/fail.ts';
import { UserError } from '../../src/core/errors.ts';
import { columns } from '../../src/evaluation/table.ts';
import type { Bench, Figure } from './contract.ts';

/** Each gives figures; one that has more to say prints its own tables. */
const benches: Readonly<
  Record<string, () => Promise<{ bench: Bench } | { print(args: readonly string[]): Promise<void> }>>
> = {
  envs: () => import('./envs.ts'),
  learner: () => import('./learner.ts'),
  llm: async () => ({ print: (await import('./llm.ts')).llmBench }),
  messages: () => import('./messages.ts'),
  observe: () => import('./observe.ts'),
  retrieval: async () => ({ print: (await import('./retrieval.ts')).retrievalBench }),
  rollout: () => import('./rollout.ts'),
  servers: () => import('./servers.ts'),
  tensor: async () => ({ print: (await import('./tensor.ts')).tensorBench }),
};

await runCommand(async () => {
  const args = process.argv.slice(2);
  const json = args.includes('--json');
  // Flags behind the names are for benches that print their own tables: `tensor --python /usr/bin/python3 --threads 1`.
  const first = args.findIndex((arg) => arg.startsWith('--') && arg !== '--json');
  const flags = first === -1 ? [] : args.slice(first).filter((arg) => arg !== '--json');
  const names = args.slice(0, first === -1 ? args.length : first).filter((arg) => arg !== '--json');
  const known = Object.keys(benches);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new UserError('BAD_ARGUMENT', `unknown bench '${unknown}'; known: ${known.join(', ')}`);
  }
  const results: Record<string, readonly Figure[]> = {};
  if (!json)
    process.stdout.write(
      `${cpus()[0]?.model}, ${availableParallelism()} cores, node ${process.versions.node}, load ${loadavg()[0]!.toFixed(1)}\n`,
    );
  for (const name of names.length > 0 ? names : known) {
    const loaded = await benches[name]!();
    if ('print' in loaded) {
      await loaded.print(json ? [...flags, '--json'] : flags);
      continue;
    }
    const figures = await loaded.bench();
    results[name] = figures;
    if (!json) process.stdout.write(`\n${name}\n${shown(figures).join('\n')}\n`);
  }
  if (json) process.stdout.write(`${JSON.stringify(results)}\n`);
});

function shown(figures: readonly Figure[]): string[] {
  return columns(
    figures.map(({ name, value, unit, reference, note }) => [
      `  ${name}`,
      `${amount(value)} ${unit}`,
      reference
        ? `${(reference.ratio ?? value / reference.value).toPrecision(3)}x ${reference.name} (${amount(reference.value)})`
        : '',
      note ?? '',
    ]),
  );
}

function amount(value: number): string {
  if (Math.abs(value) >= 10_000) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}
