/**
 * Tiny models whose every weight is another one, norms and biases too: in a model as it is drawn those are all ones and all
 * zeros, and one may stand for another. Run as a program it writes one as a GGUF file of each type, for
 * record-gguf-export.py:
 *
 *     npm run build && node dist/test/support/varied-model.js <folder>
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { Rng } from '../../src/core/rng.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { EXPORT_TYPES, exportGguf } from '../../src/policy/pretrained/gguf/export.ts';
import { openTrainedRows } from '../../src/policy/pretrained/merge.ts';
import { encodeSafetensors } from '../../src/storage/safetensors.ts';
import type { Json } from '../../src/text/templates/model-text.ts';

const TEXT = ['the cat sat on the mat and the dog sat on the log', 'get 4 oak logs', 'craft 1 oak planks'];

/** Writes the folder of a model. @param config fields of `config.json`; @param merges of its tokenizer */
export function writeVariedModel(folder: string, config: Json, merges = 40): void {
  const weights = writeTinyChatModel(folder, { text: TEXT, merges, config });
  const rng = Rng.fromSeed(5);
  const tensors = [...openModel(folder).shards.weights].map(([name, { shape }]) => {
    const data = weights[name]!.map((value) => value + 0.2 * rng.normal());
    return [name, { shape, data }] as const;
  });
  writeFileSync(join(folder, 'model.safetensors'), encodeSafetensors(Object.fromEntries(tensors), { format: 'pt' }));
}

/** Writes the folder of the model that is recorded. */
export function writeRecordedModel(folder: string): void {
  const sizes = { hidden_size: 32, num_attention_heads: 2, num_key_value_heads: 1, intermediate_size: 64 };
  writeVariedModel(folder, { model_type: 'llama', tie_word_embeddings: false, ...sizes }, 4);
}

const [, script, out] = process.argv;
if (script?.match(/varied-model\.[jt]s$/) && out !== undefined) {
  writeRecordedModel(join(out, 'folder'));
  const base = openModel(join(out, 'folder'));
  for (const type of EXPORT_TYPES) {
    exportGguf(join(out, `${type}.gguf`), base, { type, rows: openTrainedRows(base, {}), name: 'tiny' });
  }
}
