/** Exported language models: read back by us, and by transformers and peft where Python has them. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { f32, promptsOf } from '../../experiments/parity/llm-feeds.ts';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../src/compute/model/config.ts';
import { drawParameters, parameterSpecs } from '../../src/compute/model/parameters.ts';
import { forwardGraph } from '../../src/compute/model/programs.ts';
import { Rng } from '../../src/core/rng.ts';
import { loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import { runStateOf } from '../../src/learning/learner/run-state.ts';
import { readAdapter, writeAdapter } from '../../src/policy/pretrained/adapter.ts';
import { freeze } from '../../src/policy/pretrained/base.ts';
import { openModel, type PretrainedModel } from '../../src/policy/pretrained/folder.ts';
import { readGguf } from '../../src/policy/pretrained/gguf/file.ts';
import { readWeight } from '../../src/policy/pretrained/shards.ts';
import { exportPolicy } from '../../src/run/export-policy.ts';
import { readRunConfig } from '../../src/run/run-folder.ts';
import { openText } from '../../src/text/templates/model-text.ts';
import { playPlan } from '../support/play-plan.ts';
import { makePolicyRun } from '../support/policy-run.ts';
import { ggufOf, writeGguf } from '../support/write-gguf.ts';

const importsOf = (modules: string) =>
  ['python3', '/usr/bin/python3'].find((bin) => spawnSync(bin, ['-c', `import ${modules}`]).status === 0);
const python = importsOf('torch, transformers, peft');
if (!python) console.log('skipped: no Python here has torch, transformers and peft; exports are read back by us alone');

const dir = mkdtempSync(join(tmpdir(), 'longplay-export-'));
const ids = Array.from({ length: 24 }, (_, i) => (i * 37 + 5) % 250);
const adapter = '{rank: 4, alpha: 8, targets: [q_proj, v_proj, down_proj]}';
const moved = (values: Readonly<Record<string, Float32Array>>) => {
  const rng = Rng.fromSeed(3);
  for (const data of Object.values(values)) for (let i = 0; i < data.length; i++) data[i]! += 0.1 * rng.normal();
};

beforeAll(async () => {
  vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
  writeTinyChatModel(join(dir, 'model'));
  const settings = (more: readonly string[]) => [`policy.path=${join(dir, 'model')}`, ...more];
  await makePolicyRun(
    join(dir, 'lora'),
    'textcraft',
    settings(['policy.kind=checkpoint', `policy.adapter=${adapter}`]),
    moved,
  );
  await makePolicyRun(
    join(dir, 'beside'),
    'textcraft',
    settings(['policy.kind=server', `policy.adapter=${adapter}`, 'learner.offPolicy={type: truncated}']),
    moved,
  );
  await makePolicyRun(join(dir, 'full'), 'textcraft', settings(['policy.kind=checkpoint', 'policy.full=true']), moved);
}, 120_000);
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true });
});

/** Weights that a run trained. */
function trained(run: string) {
  const { identity, params } = runStateOf(loadNewestOf(join(dir, run)));
  return { lora: identity.model.adapter, values: params.values };
}

/** Next-token log-probabilities of `ids` under a model. */
async function logprobs(config: ModelConfig, values: Readonly<Record<string, Float32Array>> = {}): Promise<number[]> {
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const program = await engine.compile(forwardGraph(config));
  const weights = Object.fromEntries(
    parameterSpecs(config).map(({ name, shape }) => [name, f32(shape, values[name]!)]),
  );
  const out = await program.run({ ...promptsOf([ids]), ...weights });
  const logits = out.logits!.data as Float32Array;
  const width = config.vocabSize;
  const logprobs = ids.slice(1).map((id, t) => {
    const row = logits.subarray(t * width, (t + 1) * width);
    const peak = Math.max(...row);
    return row[id]! - peak - Math.log(row.reduce((sum, x) => sum + Math.exp(x - peak), 0));
  });
  await engine.dispose();
  return logprobs;
}

/** The same under the weights that a folder holds. */
function stored({ config, shards }: PretrainedModel): Promise<number[]> {
  return logprobs(config, Object.fromEntries([...shards.weights].map(([name, weight]) => [name, readWeight(weight)])));
}

function expectAlike(found: readonly number[], expected: readonly number[]): void {
  expect(found.length).toBe(expected.length);
  expect(Math.max(...found.map((x, i) => Math.abs(x - expected[i]!)))).toBeLessThan(1e-4);
}

/** What the run's own policy computes, beside its base. */
async function expectedOf(run: string): Promise<number[]> {
  const { lora, values } = trained(run);
  const model = openModel(join(dir, 'model'));
  return logprobs(lora ? { ...freeze(model), adapter: lora } : model.config, values);
}

describe.each(['lora', 'beside', 'full'])('a run (%s)', (run) => {
  it('is a model folder in the form of Hugging Face, which computes the same', async () => {
    const out = join(dir, `${run}-hf`);
    const { update, notes } = exportPolicy(join(dir, run), readRunConfig(join(dir, run)), 'hf', out);
    expect([update, notes]).toEqual([7, []]);
    const read = openModel(out);
    const expected = await expectedOf(run);
    expectAlike(await stored(read), expected);
    // It is no copy of the base, and everything beside the weights is.
    const before = await stored(openModel(join(dir, 'model')));
    expect(Math.max(...before.map((x, i) => Math.abs(x - expected[i]!)))).toBeGreaterThan(0.1);
    expect(openText(out).template?.text).toBe(openText(join(dir, 'model')).template?.text);
    const config = (folder: string) => readFileSync(join(folder, 'config.json'), 'utf8');
    expect(config(out)).toBe(config(join(dir, 'model')));
    expect(() => exportPolicy(join(dir, run), readRunConfig(join(dir, run)), 'hf', out)).toThrow(/exists already/);
  });
});

describe.each(['lora', 'full'])('a run (%s) as a GGUF file', (run) => {
  it('computes the same', { timeout: 120_000 }, async () => {
    const out = join(dir, `${run}.gguf`);
    const config = readRunConfig(join(dir, run));
    const { update, notes } = exportPolicy(join(dir, run), config, 'gguf', out, { type: 'f32' });
    expect([update, notes]).toEqual([7, []]);
    const expected = await expectedOf(run);
    expectAlike(await stored(openModel(out)), expected);
    expect(() => exportPolicy(join(dir, run), config, 'gguf', out)).toThrow(/exists already/);
    // Halves, unless another type is asked for: alike, and not the same.
    const halves = join(dir, `${run}-halves.gguf`);
    exportPolicy(join(dir, run), config, 'gguf', halves);
    const rounded = await stored(openModel(halves));
    const off = Math.max(...rounded.map((x, i) => Math.abs(x - expected[i]!)));
    expect(off).toBeGreaterThan(1e-5);
    expect(off).toBeLessThan(0.05);
  });
});

it('a run beside a GGUF file keeps the file’s metadata, and without training its numbers', async () => {
  const source = join(dir, 'source.gguf');
  const { metadata, tensors } = ggufOf(join(dir, 'model'), 'qwen2');
  writeGguf(source, { metadata: { 'general.author': 'somebody', ...metadata }, tensors });
  const run = join(dir, 'beside-gguf');
  // An adapter as it begins: B is zero.
  await makePolicyRun(run, 'textcraft', [
    'policy.kind=checkpoint',
    `policy.path=${source}`,
    `policy.adapter=${adapter}`,
  ]);
  const out = join(dir, 'beside-gguf.gguf');
  exportPolicy(run, readRunConfig(run), 'gguf', out, { type: 'f32' });
  const [found, expected] = [readGguf(out), readGguf(source)];
  expect(found.metadata.get('general.author')).toBe('somebody');
  expect([...found.tensors.keys()]).toEqual([...expected.tensors.keys()]);
  const bytesOf = (path: string, { offset, bytes }: { readonly offset: number; readonly bytes: number }) =>
    readFileSync(path).subarray(offset, offset + bytes);
  for (const [name, tensor] of expected.tensors) {
    expect(Buffer.compare(bytesOf(out, found.tensors.get(name)!), bytesOf(source, tensor)), name).toBe(0);
  }
});

it('a GGUF file as policy.path acts as the run does', { timeout: 300_000 }, async () => {
  const plan = { format: 1, episodes: 4, split: 'test', horizon: 4, temperature: 0, seed: 5 } as const;
  const settings = [
    'policy.kind=checkpoint',
    'policy.masked=true',
    'policy.maxTokens=16',
    'policy.chat={format: action, contextTokens: 4096}',
    `policy.adapter=${adapter}`,
  ];
  const run = join(dir, 'acting');
  await makePolicyRun(run, 'textcraft', [`policy.path=${join(dir, 'model')}`, ...settings], moved);
  const file = join(dir, 'acting.gguf');
  exportPolicy(run, readRunConfig(run), 'gguf', file, { type: 'f32' });
  const opened = join(dir, 'opened');
  await makePolicyRun(opened, 'textcraft', [`policy.path=${file}`, ...settings]);
  const before = join(dir, 'before');
  await makePolicyRun(before, 'textcraft', [`policy.path=${join(dir, 'model')}`, ...settings]);
  const actionsOf = async (policyRun: string) => {
    const lines = await playPlan(`${policyRun}-played`, 'textcraft', { ...plan, policyRun }, []);
    return lines.map(({ turns }) => turns.map(({ action, response }) => [action, response?.text]));
  };
  const expected = await actionsOf(run);
  expect(expected.flat().length).toBeGreaterThan(8);
  expect(await actionsOf(opened)).toEqual(expected);
  // The base acts otherwise.
  expect(await actionsOf(before)).not.toEqual(expected);
});

describe('a model whose files hold projections as one', () => {
  const model = join(dir, 'fused');
  const settings = (kind: string, adapter: string) => [
    ...[
      `policy.path=${model}`,
      `policy.kind=${kind}`,
      `policy.adapter=${adapter}`,
      'learner.offPolicy={type: truncated}',
    ],
  ];
  beforeAll(() => {
    writeTinyChatModel(model, { config: { model_type: 'phi3' } });
  });

  it.each(['policy.full=true', `policy.adapter=${adapter}`, 'policy.adapter={rank: 2, alpha: 4, targets: all}'])(
    'is written in that form, %s',
    async (setting) => {
      const run = join(dir, `fused-${setting.length}`);
      await makePolicyRun(run, 'textcraft', [`policy.path=${model}`, 'policy.kind=checkpoint', setting], moved);
      const { identity, params } = runStateOf(loadNewestOf(run));
      const lora = identity.model.adapter;
      const base = openModel(model);
      const expected = await logprobs(lora ? { ...freeze(base), adapter: lora } : base.config, params.values);
      exportPolicy(run, readRunConfig(run), 'hf', `${run}-hf`);
      const read = openModel(`${run}-hf`);
      expectAlike(await stored(read), expected);
      const before = await stored(base);
      expect(Math.max(...before.map((x, i) => Math.abs(x - expected[i]!)))).toBeGreaterThan(0.1);
      if (!lora) return;
      // Beside the files' own matrices an adapter has the ranks of the parts together.
      exportPolicy(run, readRunConfig(run), 'adapter', `${run}-adapter`);
      const { lora: whole, values } = readAdapter(`${run}-adapter`, base.config);
      const written = JSON.parse(readFileSync(join(`${run}-adapter`, 'adapter_config.json'), 'utf8'));
      expect(written.target_modules).toEqual(expect.arrayContaining(['qkv_proj', 'down_proj']));
      expect(written.r).toBe(lora.rank * (lora.targets.length > 3 ? 3 : 2));
      expectAlike(await logprobs({ ...freeze(base), adapter: whole }, values), expected);
    },
  );

  it('takes an adapter to a server, and begins with one of such a model', async () => {
    const init = join(dir, 'fused-all-adapter');
    const of = { rank: 2, alpha: 3, targets: ALL_PROJECTIONS, rslora: true };
    const { config } = openModel(model);
    const drawn = drawParameters(parameterSpecs({ ...freeze(openModel(model)), adapter: of }), 5);
    moved(drawn);
    writeAdapter(init, { ...config, adapter: of }, drawn, model);
    const run = join(dir, 'fused-server');
    await makePolicyRun(run, 'textcraft', settings('server', `{init: ${init}}`), (values) => {
      expect(Object.keys(values).sort()).toEqual(Object.keys(drawn).sort());
    });
    const base = freeze(openModel(model));
    const { lora, values } = trained('fused-server');
    expect(lora).toMatchObject({ rank: 6, rslora: true });
    expectAlike(await logprobs({ ...base, adapter: lora! }, values), await logprobs({ ...base, adapter: of }, drawn));
  });
});

it('an adapter is what the run trained, in the form of peft', () => {
  const out = join(dir, 'adapter');
  exportPolicy(join(dir, 'lora'), readRunConfig(join(dir, 'lora')), 'adapter', out);
  const { lora, values } = trained('lora');
  const read = readAdapter(out, openModel(join(dir, 'model')).config);
  expect(read.values).toEqual(values);
  expect({ ...read.lora, targets: new Set(read.lora.targets) }).toEqual({ ...lora, targets: new Set(lora!.targets) });
  const full = () => exportPolicy(join(dir, 'full'), readRunConfig(join(dir, 'full')), 'adapter', join(dir, 'none'));
  expect(full).toThrow(/there is no adapter; use --to hf/);
  expect(existsSync(join(dir, 'none'))).toBe(false);
});

it.skipIf(!python)(
  'transformers and peft read both, and compute the same',
  async () => {
    const out = join(dir, 'for-python');
    const lora = join(dir, 'lora');
    exportPolicy(lora, readRunConfig(lora), 'hf', join(out, 'hf'));
    exportPolicy(lora, readRunConfig(lora), 'adapter', join(out, 'adapter'));
    const script = fileURLToPath(new URL('../support/hf-logprobs.py', import.meta.url));
    const expected = await expectedOf('lora');
    for (const more of [[join(out, 'hf')], [join(dir, 'model'), join(out, 'adapter')]]) {
      const { status, stdout, stderr } = spawnSync(python!, [script, JSON.stringify(ids), ...more], {
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(stderr);
      expectAlike(JSON.parse(stdout) as number[], expected);
    }
  },
  120_000,
);
