/**
 * Language models of Qwen2.5-0.5B's shape with random weights: reading, decoding and training under each kind of base,
 * against weights that are fed at every run and, with `--python <path>`, against plain PyTorch, and transformers with peft
 * where that Python has them.
 *
 *     npm run bench -- llm [--python /usr/bin/python3] [--seconds 4] [--only prefill:128,decode:1] [--bases int8,int4]
 *       [--model <folder>]
 *
 * `threads` is the memory of two threads with a session each over one base, pages that both map counted once. What ends in
 * `:unpacked` is without copies of the weights in the kernels' order (`engine.packing: false`).
 * `load` is the time from a process's start to its first token, from a base whose quantised file is there already.
 * `lora:…:lean` computes the vocabulary in parts and the layers again. `--model` takes a folder in the place of random
 * weights, and leaves the quantised file beside it.
 *
 * Every figure is tokens per processor second of one thread, each in a process of its own; other work on the machine
 * hardly moves it, and its ratios less.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { weightSpecs } from '../../src/compute/model/parameters.ts';
import { columns } from '../../src/learning/evaluation/table.ts';
import { readModelConfig } from '../../src/policy/pretrained/model-config.ts';
import { openText } from '../../src/text/templates/model-text.ts';
import { writeTinyChatModel } from '../tiny-chat-model.ts';
import type { BenchFlags } from './contract.ts';
import { measurePython, pythonWays } from './llm-torch.ts';
import type { LlmMeasurement, ThreadsMeasurement } from './llm-worker.ts';
import { median } from './median.ts';

/** @see https://huggingface.co/Qwen/Qwen2.5-0.5B (config.json) */
const QWEN = {
  hidden_size: 896,
  num_hidden_layers: 24,
  num_attention_heads: 14,
  num_key_value_heads: 2,
  intermediate_size: 4864,
  vocab_size: 151936,
  max_position_embeddings: 32768,
  rope_theta: 1e6,
};

const WORK = [
  ...['load', 'prefill:128', 'prefill:512', 'decode:1', 'decode:8'],
  ...['lora:1x128', 'lora:4x256', 'lora:4x256:lean', 'lora:1x2048:lean', 'threads'],
  ...['decode:1:unpacked', 'decode:8:unpacked', 'threads:unpacked'],
];
const BASES = ['inputs', 'none', 'int8', 'int4'] as const;

/** Runs the bench and prints its tables. */
export async function llmBench({
  python,
  seconds = 4,
  only = WORK,
  bases = BASES,
  model,
  json,
}: BenchFlags): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'longplay-llm-bench-'));
  const folder = model ?? scratch;
  const worker = new URL('./llm-worker.js', import.meta.url).pathname;
  const results: Record<string, Record<string, Figures>> = {};
  const threads: Record<string, { readonly one: number; readonly two: number }> = {};
  try {
    if (model === undefined) writeRandomModel(folder);
    textFigures(folder);
    const ways = python ? pythonWays(python) : [];
    const versions: Record<string, string> = {};
    for (const what of only) {
      if (what.startsWith('threads')) {
        for (const base of bases) {
          if (base === 'inputs') continue;
          const [one, two] = [1, 2].map((count) => measureHeld(worker, folder, base, what, count)) as [number, number];
          threads[`${base}${what.slice('threads'.length)}`] = { one, two };
          if (!json)
            console.log(`${what} ${base}: one ${one.toFixed(2)} GB, two ${two.toFixed(2)}, ${(two / one).toFixed(2)}x`);
        }
        continue;
      }
      const row: (typeof results)[string] = {};
      results[what] = row;
      for (const base of bases) {
        if ((/:(lean|unpacked)$/.test(what) || what === 'load') && base === 'inputs') continue;
        const options = { encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
        const args = [worker, folder, base, what, String(seconds)];
        if (what === 'load') execFileSync(process.execPath, args, options); // makes the quantised file
        const out = execFileSync(process.execPath, args, options);
        row[base] = figures(JSON.parse(out) as LlmMeasurement);
      }
      for (const way of what === 'load' || what.endsWith(':unpacked') ? [] : ways) {
        const measured = measurePython(python!, way, what, seconds);
        Object.assign(versions, measured.used);
        row[way] = figures({ ...measured, grownMb: 0, firstMs: 0, firstCpuMs: 0 });
      }
      if (!json) console.log(table(what, row).join('\n'));
    }
    const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
    const isOld = versions.torch !== undefined && !/^[2-9]/.test(versions.torch);
    if (!json && named.length > 0) {
      console.log(`${named.join(', ')}${isOld ? ': older than PyTorch 2, so nothing is claimed by its ratios' : ''}`);
    }
    if (json) console.log(JSON.stringify({ versions, results, threads }));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** 10^9 bytes that a process holds while some threads of it decode over one base. */
function measureHeld(worker: string, folder: string, base: string, what: string, threads: number): number {
  const args = [worker, folder, base, what.replace('threads', `threads:${threads}`), '3'];
  const out = execFileSync(process.execPath, args, { encoding: 'utf8' });
  return (JSON.parse(out) as ThreadsMeasurement).held;
}

/** A folder of the shape: half a billion numbers, drawn once as a block that is written over and over. */
function writeRandomModel(folder: string): void {
  writeTinyChatModel(folder);
  const json = { ...(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as object), ...QWEN };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(json));
  const specs = weightSpecs(readModelConfig(json, 'config.json'));
  const header: Record<string, object> = { __metadata__: { format: 'pt' } };
  let end = 0;
  for (const { name, shape } of specs) {
    const bytes = 4 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end + bytes] };
    end += bytes;
  }
  const text = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(8 + Math.ceil(text.length / 8) * 8, 0x20);
  head.writeBigUInt64LE(BigInt(head.length - 8));
  text.copy(head, 8);
  let state = 12345;
  const block = Float32Array.from({ length: 1 << 20 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state * 0.03) / 2 ** 31;
  });
  const ones = new Float32Array(1 << 13).fill(1);
  const fd = openSync(join(folder, 'model.safetensors'), 'w');
  writeSync(fd, head);
  for (const { shape } of specs) {
    const from = shape.length === 1 ? ones : block;
    for (let left = shape.reduce((a, b) => a * b, 1); left > 0; left -= from.length) {
      writeSync(fd, new Uint8Array(from.buffer, 0, 4 * Math.min(left, from.length)));
    }
  }
  closeSync(fd);
}

interface Figures {
  readonly rate: number;
  readonly peak: number;
  readonly grownMb: number;
  readonly firstMs: number;
  readonly firstCpuMs: number;
}

function figures({ tokens, times, ...memoryAndStart }: LlmMeasurement): Figures {
  return { rate: (1000 * tokens) / median(times.map(([, cpu]) => cpu)), ...memoryAndStart };
}

function table(what: string, row: Readonly<Record<string, Figures>>): string[] {
  const head = [
    '',
    'tokens/CPU-s',
    'x inputs',
    ...(row.torch ? ['x torch'] : []),
    ...(row.transformers ? ['x transformers'] : []),
    'peak GB',
    'MB grown',
    'first result s',
    'CPU s',
  ];
  const ratio = (rate: number, other: { rate: number } | undefined) => (other ? (rate / other.rate).toFixed(2) : '');
  const lines = Object.entries(row).map(([base, { rate, peak, grownMb, firstMs, firstCpuMs }]) => [
    base,
    rate.toFixed(1),
    ratio(rate, row.inputs),
    ...(row.torch ? [ratio(rate, row.torch)] : []),
    ...(row.transformers ? [ratio(rate, row.transformers)] : []),
    peak.toFixed(1),
    firstMs > 0 ? grownMb.toFixed(0) : '',
    firstMs > 0 ? (firstMs / 1000).toFixed(1) : '',
    firstMs > 0 ? (firstCpuMs / 1000).toFixed(1) : '',
  ]);
  return ['', what, ...columns([head, ...lines])];
}

/** Speed of tokenizer and template on text like a world's. */
function textFigures(folder: string): void {
  const { tokenizer, template } = openText(folder);
  const text = 'Crafting commands:\ncraft 4 oak planks using 1 oak log\n\nGoal: craft wooden pickaxe.\n'.repeat(200);
  const time = (run: () => void) => {
    run();
    const start = process.cpuUsage();
    for (let i = 0; i < 5; i++) run();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 5e6;
  };
  const encode = time(() => void tokenizer.encodePlain(text));
  const messages = Array.from({ length: 20 }, (_, i) => ({
    role: i % 2 ? 'assistant' : 'user',
    content: text.slice(0, 200),
  }));
  const render = time(() => void template!.render(messages));
  console.log(
    `tokenizer ${(text.length / encode / 1e6).toFixed(2)} M characters/s, 20 messages rendered in ${(1000 * render).toFixed(2)} ms`,
  );
}
