/** Command `longplay doctor`: reports what this machine has and what each engine lacks. */

import { availableParallelism, cpus, totalmem } from 'node:os';
import { type Command, Option } from 'commander';
import type { EngineOptions } from '../../compute/engine/engine.ts';
import { openEngine } from '../../compute/engine/open.ts';
import { defineGraph } from '../../compute/tensor/graph.ts';
import { matmul } from '../../compute/tensor/ops.ts';
import { input } from '../../compute/tensor/tensor.ts';
import { err, out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { largestOf } from '../../core/extremes.ts';
import { firstLineOf } from '../../core/first-line.ts';
import { columns } from '../../learning/evaluation/table.ts';
import { fetchModel } from '../../policy/pretrained/hub.ts';
import { locateModel } from '../../policy/pretrained/locate.ts';
import { checkModel } from '../../run/check-model.ts';
import { worldUrl } from '../../run/find-world.ts';
import { playSample } from '../../run/play-sample.ts';
import { runCommand } from '../fail.ts';
import { refuseFlags } from '../flags.ts';

interface CheckResult {
  readonly engine: string;
  readonly works: boolean;
  readonly detail: string;
}

interface DoctorFlags {
  readonly json?: boolean;
  readonly model?: string;
  readonly quantize: 'none' | 'int8' | 'int4';
  readonly env: string;
  readonly server?: string;
  readonly api: 'vllm' | 'sglang';
  readonly servedModel?: string;
}

const CANDIDATES: readonly EngineOptions[] = [
  { name: 'onnxruntime-node', device: 'cpu' },
  { name: 'onnxruntime-node', device: 'webgpu' },
  { name: 'onnxruntime-node', device: 'cuda' },
  { name: 'onnxruntime-web', device: 'cpu' },
  { name: 'tfjs', device: 'cpu' },
  { name: 'reference', device: 'cpu' },
];

/** Adds the command. */
export function doctor(program: Command): void {
  program
    .command('doctor')
    .description('show what this machine has: cores, engines, GPU, and what each lacks')
    .option('--model <path>', 'try a pretrained model here: load, write, score again, one LoRA step, a few episodes')
    .addOption(new Option('--quantize <bits>', "of the model's base").choices(['none', 'int8', 'int4']).default('none'))
    .option('--env <id>', 'with --model: world of which it plays a few episodes', 'textcraft')
    .option('--server <url>', 'with --model: try a vLLM or SGLang over the same base too')
    .addOption(new Option('--api <api>', 'what the server speaks').choices(['vllm', 'sglang']).default('vllm'))
    .option('--served-model <name>', 'the base as the server calls it; the folder where absent')
    .option('--json', 'one JSON object')
    .action((flags: DoctorFlags, command: Command) =>
      runCommand(async () => {
        const { json } = flags;
        if (flags.server === undefined) {
          refuseFlags(
            command,
            ['api', 'servedModel'],
            'without a server there is nothing to check; name one with --server <url>',
          );
        }
        if (flags.model !== undefined) {
          await modelTable(flags.model, flags);
          return;
        }
        refuseFlags(command, ['quantize', 'env'], 'it needs --model <path>, which is tried');
        if (flags.server !== undefined) {
          throw new UserError('BAD_ARGUMENT', 'doctor: --server needs --model <path>: the base that the server has');
        }
        const findings: CheckResult[] = [];
        for (const options of CANDIDATES) findings.push(await tryEngine(options));
        const machine = {
          node: process.versions.node,
          platform: `${process.platform}/${process.arch}`,
          cores: availableParallelism(),
          cpu: cpus()[0]?.model ?? 'unknown',
          memoryGiB: Math.round(totalmem() / 2 ** 30),
        };
        const auto = await describeChosen();
        if (json) {
          out.json({ ...machine, engines: findings, auto });
          return;
        }
        out.line(
          `node ${machine.node} on ${machine.platform}, ${machine.cores} cores (${machine.cpu}), ${machine.memoryGiB} GiB\n`,
        );
        const rows = findings.map(({ engine, works, detail }) => [engine, works ? 'ok' : '–', detail]);
        out.line(
          columns([['engine', '', ''], ...rows.map(([a, b]) => [a!, b!, ''])])
            .map((line, i) => (i === 0 ? line : `${line}  ${rows[i - 1]![2]}`))
            .join('\n'),
        );
        out.line(`\nauto: ${auto}`);
      }),
    );
}

/** Shows what is under way, where somebody looks. */
function announce(what: string): void {
  if (err.isTTY) err.status(what);
}

/** Table of a model's checks, to send back. */
async function modelTable(
  folder: string,
  { quantize, env, server, api, servedModel, json }: DoctorFlags,
): Promise<void> {
  await fetchModel(folder, (notice) => err.line(notice));
  locateModel(folder); // a mistake in the path is no finding
  const engine = { name: 'auto' } as const;
  const options =
    server === undefined ? undefined : { api, url: server, model: servedModel ?? folder, attemptMs: 120_000 };
  worldUrl(env); // a misspelt world is a mistake, and no finding
  announce(`trying ${folder}: load, write, score again, one LoRA step`);
  const sound = await checkModel(folder, quantize, engine, options);
  announce(`trying ${folder}: a few episodes of ${env}`);
  const checks = sound.every(({ ok }) => ok) ? [...sound, ...(await playSample(folder, quantize, env))] : sound;
  if (err.isTTY) err.status(undefined);
  if (json) out.json({ model: folder, quantize, checks });
  else {
    const width = largestOf(checks.map(({ what }) => what.length));
    for (const { what, ok, found } of checks) out.line(`${what.padEnd(width)}  ${ok ? 'ok' : 'NO'}  ${found}`);
  }
  if (checks.some(({ ok }) => !ok)) process.exitCode = 1;
}

/** Tries an engine on a two-by-two product: an engine that loads may still not compute. */
async function tryEngine(options: EngineOptions): Promise<CheckResult> {
  const name = `${options.name}/${options.device}`;
  try {
    const engine = await openEngine(options);
    const graph = defineGraph({ y: matmul(input('a', [2, 2]), input('b', [2, 2])) });
    const program = await engine.compile(graph);
    const square = { dtype: 'f32', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } as const;
    const { y } = await program.run({ a: square, b: square });
    const values = (y!.data ?? (await y!.read()).data) as Float32Array;
    const right = [7, 10, 15, 22].every((value, i) => Math.abs(values[i]! - value) < 1e-4);
    await program.dispose();
    await engine.dispose();
    return {
      engine: name,
      works: right,
      detail: right ? `${engine.threads} threads` : `computed ${Array.from(values)}, expected 7,10,15,22`,
    };
  } catch (thrown) {
    return { engine: name, works: false, detail: firstLineOf(messageOf(thrown)) };
  }
}

async function describeChosen(): Promise<string> {
  const engine = await openEngine({ name: 'auto' });
  const text = `${engine.name}/${engine.device}: ${engine.reason}`;
  await engine.dispose();
  return text;
}
