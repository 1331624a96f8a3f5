/**
 * `npm run bench -- [<name>…] [--json] [flags]`: measures, never asserts. Each figure stands beside what limits it or what it
 * replaces; medians of interleaved runs. These figures move with the machine's load: compare ratios.
 */
import { availableParallelism, cpus, loadavg } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { runCommand } from '../../src/cli/fail.ts';
import { MOST, number, wholeNumber } from '../../src/cli/flags.ts';
import { newProgram, runAsScript } from '../../src/cli/program.ts';
import { UserError } from '../../src/core/errors.ts';
import { columns } from '../../src/learning/evaluation/table.ts';
import { compareAgainst } from './against.ts';
import type { Bench, BenchFlags, Figure, PrintingBench } from './contract.ts';

interface Entry {
  /** Flags that it takes beside `--json`. */
  readonly flags?: readonly (keyof BenchFlags)[];
  readonly load: () => Promise<{ readonly bench: Bench } | PrintingBench>;
}

/** Benches: each gives figures, or prints tables of its own. */
const benches: Readonly<Record<string, Entry>> = {
  cluster: {
    flags: ['seconds', 'rounds', 'parts', 'horizon'],
    load: async () => ({ print: (await import('./cluster.ts')).clusterBench }),
  },
  envs: { load: () => import('./envs.ts') },
  gateway: { load: () => import('./gateway.ts') },
  learner: { load: () => import('./learner.ts') },
  llm: {
    flags: ['python', 'seconds', 'only', 'bases', 'model'],
    load: async () => ({ print: (await import('./llm.ts')).llmBench }),
  },
  messages: { load: () => import('./messages.ts') },
  observe: { load: () => import('./observe.ts') },
  retrieval: {
    flags: ['passages'],
    load: async () => ({ print: (await import('./retrieval.ts')).retrievalBench }),
  },
  rise: { load: () => import('./rise.ts') },
  rollout: { load: () => import('./rollout.ts') },
  servers: { load: () => import('./servers.ts') },
  sessions: { load: () => import('./sessions.ts') },
  tensor: {
    flags: ['python', 'seconds', 'threads', 'rounds', 'engine', 'device', 'qwen'],
    load: async () => ({ print: (await import('./tensor.ts')).tensorBench }),
  },
};

/** Program of the benches. */
export function benchProgram(): Command {
  const known = Object.keys(benches);
  return newProgram('npm run bench --', 'Measure; compare ratios, figures move with the load of the machine.')
    .argument('[names...]', `benches: ${known.join(', ')} (default: all)`)
    .option('--json', 'one JSON object')
    .option('--against <commit>', 'benches that give figures: compare with the build of another commit, run in turn')
    .option('--python <path>', 'llm, tensor: Python with PyTorch, measured beside')
    .option('--seconds <n>', 'cluster, llm, tensor: time of one measurement', number(0, true))
    .option(
      '--only <work>',
      'llm: of load, prefill:<tokens>, decode:<rows>, lora:<rows>x<tokens>[:lean], between commas',
      work,
    )
    .option('--bases <kinds>', 'llm: of inputs, none, int8, int4, between commas', bases)
    .option('--model <folder>', 'llm: a model folder, in place of random weights')
    .option('--threads <n>', 'tensor: threads of the engine', wholeNumber(1, MOST.threads))
    .option('--rounds <n>', 'cluster, tensor, --against: rounds', wholeNumber(1, MOST.repeats))
    .addOption(
      new Option('--engine <name>', 'tensor: engine').choices([
        'auto',
        'onnxruntime-node',
        'onnxruntime-web',
        'tfjs',
        'reference',
      ]),
    )
    .addOption(new Option('--device <name>', 'tensor: device').choices(['cpu', 'webgpu', 'cuda']))
    .option('--no-qwen', "tensor: leave out the language model's shapes")
    .option('--parts <names>', `cluster: of ${CLUSTER_PARTS.join(', ')}, between commas (default: all)`, clusterParts)
    .option('--horizon <n>', 'cluster: most turns of an episode (default: 8)', wholeNumber(1, 1000))
    .option('--passages <n>', 'retrieval: also an index of so many made-up passages', wholeNumber(1, 100_000_000))
    .action((names: readonly string[], flags: BenchFlags, program: Command) =>
      runCommand(async () => {
        const wanted = names.length > 0 ? names : known;
        const unknown = names.find((name) => !known.includes(name));
        if (unknown !== undefined) {
          throw new UserError('BAD_ARGUMENT', `unknown bench '${unknown}'; known: ${known.join(', ')}`);
        }
        if (flags.against !== undefined) {
          refusePrinting(wanted);
          compareAgainst(wanted, flags.against, flags.rounds);
          return;
        }
        refuseIdleFlags(wanted, program);
        await measure(wanted, { ...flags, json: flags.json ?? false });
      }),
    );
}

/** Refuses flags that no wanted bench takes. @throws {UserError} */
function refuseIdleFlags(wanted: readonly string[], program: Command): void {
  for (const option of program.options) {
    const flag = option.attributeName() as keyof BenchFlags;
    if (flag === 'json' || program.getOptionValueSource(flag) !== 'cli') continue;
    const takers = Object.keys(benches).filter((name) => benches[name]!.flags?.includes(flag));
    if (takers.some((name) => wanted.includes(name))) continue;
    throw new UserError(
      'BAD_ARGUMENT',
      `${option.long} is a flag of ${takers.join(' and ')}, not of ${wanted.join(', ')}`,
    );
  }
}

/** Refuses benches that print tables of their own: only figures can be compared with another build's. @throws {UserError} */
function refusePrinting(wanted: readonly string[]): void {
  const comparable = Object.keys(benches).filter((name) => !benches[name]!.flags);
  const printing = wanted.find((name) => !comparable.includes(name));
  if (printing === undefined) return;
  throw new UserError('BAD_ARGUMENT', `--against compares ${comparable.join(', ')}, not ${printing}`);
}

/** Parts of the bench of clusters. */
const CLUSTER_PARTS = ['broker', 'calls', 'weights', 'seam', 'scaling', 'churn'] as const;

/** Parses them. @throws {InvalidArgumentError} */
function clusterParts(text: string): readonly string[] {
  const list = text.split(',');
  const wrong = list.find((one) => !CLUSTER_PARTS.some((part) => part === one));
  if (wrong === undefined) return list;
  throw new InvalidArgumentError(`Expected some of ${CLUSTER_PARTS.join(', ')}, got '${wrong}'.`);
}

/** Parses kinds of base. @throws {InvalidArgumentError} */
function bases(text: string): readonly string[] {
  const list = text.split(',');
  const wrong = list.find((one) => !['inputs', 'none', 'int8', 'int4'].includes(one));
  if (wrong === undefined) return list;
  throw new InvalidArgumentError(`Expected some of inputs, none, int8, int4, got '${wrong}'.`);
}

/** Parses the work of the bench of language models. @throws {InvalidArgumentError} */
function work(text: string): readonly string[] {
  const list = text.split(',');
  const wrong = list.find(
    (one) =>
      !/^(load|threads(:unpacked)?|prefill:[1-9]\d*|decode:[1-9]\d*(:unpacked)?|lora:[1-9]\d*x[1-9]\d*(:lean)?)$/.test(
        one,
      ),
  );
  if (wrong === undefined) return list;
  throw new InvalidArgumentError(
    `Expected load, threads[:unpacked], prefill:128, decode:8[:unpacked], lora:4x256[:lean], got '${wrong}'.`,
  );
}

async function measure(names: readonly string[], flags: BenchFlags): Promise<void> {
  const { json } = flags;
  const results: Record<string, readonly Figure[]> = {};
  if (!json) {
    const machine = `${cpus()[0]?.model}, ${availableParallelism()} cores, node ${process.versions.node}`;
    process.stdout.write(`${machine}, load ${loadavg()[0]!.toFixed(1)}\n`);
  }
  for (const name of names) {
    const loaded = await benches[name]!.load();
    if ('print' in loaded) {
      await loaded.print(flags);
      continue;
    }
    const figures = await loaded.bench();
    results[name] = figures;
    if (!json) process.stdout.write(`\n${name}\n${formatFigure(figures).join('\n')}\n`);
  }
  if (json) process.stdout.write(`${JSON.stringify(results)}\n`);
}

function formatFigure(figures: readonly Figure[]): string[] {
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

await runAsScript(import.meta.url, benchProgram);
