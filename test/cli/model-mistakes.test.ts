/** Mistakes in a model, as a person meets them: one line with what to do, exit code 2, nothing left behind. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { encodeGguf, ggufOf } from '../support/write-gguf.ts';

const llm = fileURLToPath(new URL('experiments/llm.yaml', packageRoot));
const dir = temporaryFolder('model-mistakes');
const good = join(dir, 'good');
beforeAll(() => {
  writeTinyChatModel(good, { config: { model_type: 'llama' } });
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Model like the good one, but for one thing. */
function broken(harm: (folder: string) => void): string {
  const folder = join(dir, 'broken');
  rmSync(folder, { recursive: true, force: true });
  cpSync(good, folder, { recursive: true });
  harm(folder);
  return folder;
}

function edit(folder: string, name: string, change: (text: string) => string): void {
  const file = join(folder, name);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}

/** Model with another value in its `config.json`. @param json as it is written there */
function configured(field: string, json: string): string {
  const change = (text: string) => JSON.stringify({ ...JSON.parse(text), [field]: '@' }).replace('"@"', json);
  return broken((folder) => edit(folder, 'config.json', change));
}

function gguf(make: (whole: Buffer) => Uint8Array): string {
  const file = join(dir, 'model.gguf');
  const { metadata, tensors } = ggufOf(good, 'llama');
  writeFileSync(file, make(encodeGguf(metadata, tensors)));
  return file;
}

const endless = '{"type":"Split","pattern":{"Regex":"(\\\\w+\\\\s?)+$|x"},"behavior":"Isolated","invert":false}';

describe('a model', () => {
  it.each<readonly [what: string, model: () => string, message: RegExp]>([
    ['that is not there', () => join(dir, 'nothing'), /there is no such file or folder; expected a model's folder/],
    [
      'without a tokenizer',
      () => broken((folder) => rmSync(join(folder, 'tokenizer.json'))),
      /tokenizer\.json is missing/,
    ],
    [
      'without a template',
      () => broken((folder) => rmSync(join(folder, 'chat_template.jinja'))),
      /no chat template .*; use an instruct model/,
    ],
    ['of an unknown family', () => configured('model_type', '"rwkv7"'), /model_type is "rwkv7", expected llama, qwen2/],
    [
      'of a million layers',
      () => configured('num_hidden_layers', '1000000'),
      /num_hidden_layers is 1000000, expected a whole number in/,
    ],
    [
      'whose layer_types are no list',
      () => configured('layer_types', '"full_attention"'),
      /layer_types is "full_attention", expected/,
    ],
    [
      'with an infinite number',
      () => configured('rope_theta', '1e999'),
      /rope_theta is Infinity, expected a positive number/,
    ],
    [
      'whose context is smaller than the prompt',
      () => configured('max_position_embeddings', '64'),
      /the instructions of textcraft take \d+ tokens and an answer 200 .*, and the model reads 64; expected at least \d+/,
    ],
    [
      'whose pattern never ends',
      () =>
        broken((folder) =>
          edit(folder, 'tokenizer.json', (text) =>
            JSON.stringify({ ...JSON.parse(text), pre_tokenizer: JSON.parse(endless) }),
          ),
        ),
      /it did not end within 0\.7 s/,
    ],
    [
      'whose template never ends',
      () =>
        broken((folder) =>
          writeFileSync(
            join(folder, 'chat_template.jinja'),
            '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}',
          ),
        ),
      /it did not end within 0\.7 s/,
    ],
    [
      'in a GGUF file that is cut short',
      () => gguf((whole) => whole.subarray(0, whole.length / 2)),
      /model\.gguf: cut short: tensor/,
    ],
    [
      'in a GGUF file of an unknown family',
      () =>
        gguf((whole) => {
          whole.write('rwkvx', whole.indexOf('llama'));
          return whole;
        }),
      /general\.architecture is "rwkvx", expected llama/,
    ],
    ['in a file of another kind', () => llm, /llm\.yaml: no GGUF file: it begins with/],
    ['named on the hub as nothing is', () => 'hf:nobody', /expected hf:owner\/name/],
  ])('%s is refused in one line', (_what, make, message) => {
    const model = make();
    const runs = join(dir, 'runs');
    const set = ['--set', `policy.path=${model}`, '--set', 'policy.quantize=none'];
    const trained = longplay('train', llm, ...set, '--runs', runs);
    // The engine is announced before the model is read.
    const lines = trained.stderr
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('engine '));
    expect(lines).toEqual([expect.stringMatching(message)]);
    expect(lines[0]).toMatch(/^longplay: /);
    expect(trained.status).toBe(2);
    expect(existsSync(join(runs, 'llm'))).toBe(false);
  });
});
