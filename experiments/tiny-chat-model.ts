/**
 * Makes a tiny chat model in a folder as Hugging Face would write it: random weights of the Qwen2 block, a byte-level BPE
 * tokenizer of our own and a ChatML template. It stands for a real model wherever the path is tested and not the model.
 *
 *     npm run build && node dist/experiments/tiny-chat-model.js <folder> [file with text to learn merges from]
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawParameters } from '../src/compute/model/parameters.ts';
import { fileSpecs } from '../src/policy/pretrained/fused.ts';
import { readModelConfig } from '../src/policy/pretrained/model-config.ts';
import { encodeSafetensors } from '../src/storage/safetensors.ts';
import type { Json } from '../src/text/templates/model-text.ts';

export interface TinyModelOptions {
  /** Lines that merges are learned from; none: bytes alone. */
  readonly text?: readonly string[];
  /** Merges to learn, at most; 0 by default. */
  readonly merges?: number;
  /** Fields of config.json besides the defaults. */
  readonly config?: Json;
  /** uint32 */
  readonly seed?: number;
}

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;

/** Qwen2's way of cutting text into words. */
const WORD =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

const TEMPLATE =
  "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endfor %}" +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

/** Writes the folder. @returns the weights, by name */
export function writeTinyChatModel(folder: string, options: TinyModelOptions = {}): Record<string, Float32Array> {
  const { text = [], merges = 0, config = {}, seed = 1 } = options;
  const { vocab, pairs } = learnMerges(text, merges);
  const first = vocab.length;
  const json: Json = {
    architectures: ['Qwen2ForCausalLM'],
    model_type: 'qwen2',
    hidden_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 160,
    vocab_size: Math.ceil((first + SPECIAL.length + 1) / 32) * 32, // larger than the tokenizer's, as Qwen2.5's is
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    hidden_act: 'silu',
    torch_dtype: 'float32',
    bos_token_id: null,
    eos_token_id: first,
    ...config,
  };
  const specs = fileSpecs(readModelConfig(json, 'config.json'));
  const weights = drawParameters(specs, seed);
  const tensors = Object.fromEntries(specs.map(({ name, shape }) => [name, { shape, data: weights[name]! }]));
  const added = SPECIAL.map((content, i) => ({
    id: first + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: { type: 'NFC' },
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: WORD }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocab.map((token, id) => [token, id])),
      merges: pairs,
    },
  };
  const tokenizerConfig = {
    added_tokens_decoder: Object.fromEntries(added.map(({ id, ...token }) => [id, token])),
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    tokenizer_class: 'Qwen2Tokenizer',
  };
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'config.json': JSON.stringify(json, null, 2),
    'generation_config.json': JSON.stringify(
      { eos_token_id: [first + 2, first], temperature: 0.7, top_p: 0.8 },
      null,
      2,
    ),
    'model.safetensors': encodeSafetensors(tensors, { format: 'pt' }),
    'tokenizer.json': JSON.stringify(tokenizer),
    'tokenizer_config.json': JSON.stringify(tokenizerConfig, null, 2),
    'chat_template.jinja': TEMPLATE,
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return weights;
}

/** Byte-pair merges by frequency, most frequent first. @returns all tokens in the order of their ids, and the pairs */
function learnMerges(
  text: readonly string[],
  count: number,
): { readonly vocab: readonly string[]; readonly pairs: readonly (readonly [string, string])[] } {
  const letters = byteLetters();
  const words = new Map<string, { symbols: string[]; times: number }>();
  const cut = new RegExp(WORD.replace('(?i:', '(?:'), 'gu');
  for (const line of text) {
    for (const [word] of line.matchAll(cut)) {
      const known = words.get(word);
      if (known) known.times++;
      else words.set(word, { symbols: [...Buffer.from(word)].map((byte) => letters[byte]!), times: 1 });
    }
  }
  const vocab = [...letters].sort();
  const pairs: [string, string][] = [];
  while (pairs.length < count) {
    const times = new Map<string, number>();
    for (const word of words.values()) {
      for (let i = 1; i < word.symbols.length; i++) {
        const pair = `${word.symbols[i - 1]} ${word.symbols[i]}`;
        times.set(pair, (times.get(pair) ?? 0) + word.times);
      }
    }
    const [best] = [...times].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
    if (!best || best[1] < 2) break;
    const [left, right] = best[0].split(' ') as [string, string];
    pairs.push([left, right]);
    vocab.push(left + right);
    for (const word of words.values()) word.symbols = merge(word.symbols, left, right);
  }
  return { vocab, pairs };
}

function merge(symbols: readonly string[], left: string, right: string): string[] {
  const out: string[] = [];
  for (const symbol of symbols) {
    if (out.at(-1) === left && symbol === right) out[out.length - 1] = left + right;
    else out.push(symbol);
  }
  return out;
}

/** A printable letter for each byte, as byte-level BPE writes them. @see Radford et al. 2019, §2.2 */
function byteLetters(): readonly string[] {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

if (process.argv[1]?.match(/tiny-chat-model\.[jt]s$/)) {
  const [folder, file] = process.argv.slice(2);
  if (!folder) {
    console.error('usage: node dist/experiments/tiny-chat-model.js <folder> [text file]');
    process.exitCode = 2;
  } else {
    const text = file ? readFileSync(file, 'utf8').split('\n') : [];
    writeTinyChatModel(folder, { text, merges: 200 });
    console.log(`${folder}: a tiny chat model with random weights`);
  }
}
