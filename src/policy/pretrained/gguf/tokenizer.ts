/**
 * Tokenizer of a GGUF file as Hugging Face has it: `tokenizer.json` and `tokenizer_config.json`, with the chat template.
 *
 * Two kinds are read. `gpt2`: byte-level pairs, whose way of cutting text into words is named by `tokenizer.ggml.pre`.
 * `llama`: SentencePiece's pairs with bytes for what is unknown; merges follow from the scores, as transformers' own
 * converter finds them (`convert_slow_tokenizer.py`).
 */
import { describeValue } from '../../../core/describe-value.ts';
import { UserError } from '../../../core/errors.ts';
import type { Json } from '../../../text/templates/model-text.ts';
import type { GgufFile, GgufValue } from './file.ts';

/** Files of a tokenizer, and what `generation_config.json` says of it. */
export interface TokenizerFiles {
  readonly tokenizer: Json;
  readonly config: Json;
  /** Ids that end a turn; empty where the file names none. */
  readonly endTokens: readonly number[];
}

/** Kinds of tokens in `tokenizer.ggml.token_type`. */
export const CONTROL = 3;
export const USER_DEFINED = 4;

/** Special tokens of Phi-3 behind which a space is kept: behind its others it is dropped. */
const KEEPS_SPACE: ReadonlySet<string> = new Set(['<unk>', '<s>', '<|endoftext|>']);

/** Way in which a tokenizer cuts text into words. */
export interface WordRule {
  readonly normalizer: Json | null;
  readonly preTokenizer: Json;
  /** True where a word that is a token is never cut, whatever the merges are. */
  readonly ignoreMerges?: boolean;
}

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const REST = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const UPPER = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const LOWER = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const LETTERS = String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`;

const PATTERNS = {
  qwen2: String.raw`${CONTRACTIONS}|${LETTERS}|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|${REST}`,
  llama3: String.raw`${CONTRACTIONS}|${LETTERS}|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${REST}`,
  tekken: String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${REST}`,
  gpt4o: String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${CONTRACTIONS}?|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${CONTRACTIONS}?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${REST}`,
} as const;

/** Bytes as letters; with the pattern of GPT-2 or after one of another tokenizer. */
function byteLevel(usePattern: boolean): Json {
  return { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: usePattern };
}

function splitBy(pattern: string): Json {
  const split = { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false };
  return { type: 'Sequence', pretokenizers: [split, byteLevel(false)] };
}

const GPT2: WordRule = { normalizer: null, preTokenizer: byteLevel(true) };
const QWEN2: WordRule = { normalizer: { type: 'NFC' }, preTokenizer: splitBy(PATTERNS.qwen2) };
const LLAMA3: WordRule = { normalizer: null, preTokenizer: splitBy(PATTERNS.llama3) };
const SINGLE_DIGITS: WordRule = {
  normalizer: null,
  preTokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel(true)] },
};

/** Rules by llama.cpp's names (`llama-vocab.cpp`). */
export const WORD_RULES: Readonly<Record<string, WordRule>> = {
  'gpt-2': GPT2,
  smollm: SINGLE_DIGITS,
  starcoder: SINGLE_DIGITS,
  qwen2: QWEN2,
  'deepseek-r1-qwen': QWEN2,
  'llama-bpe': { ...LLAMA3, ignoreMerges: true },
  'llama-v3': { ...LLAMA3, ignoreMerges: true },
  llama3: { ...LLAMA3, ignoreMerges: true },
  'smaug-bpe': LLAMA3,
  tekken: { normalizer: null, preTokenizer: splitBy(PATTERNS.tekken), ignoreMerges: true },
  dbrx: LLAMA3,
  'gpt-4o': { normalizer: null, preTokenizer: splitBy(PATTERNS.gpt4o) },
};

/**
 * Reads the tokenizer of a file.
 * @throws {UserError} BAD_CHECKPOINT naming the entry
 */
export function readTokenizer({ file, metadata }: Pick<GgufFile, 'file' | 'metadata'>): TokenizerFiles {
  const refuse = (what: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${file}: ${what}`);
  };
  const entry = (name: string) => metadata.get(`tokenizer.ggml.${name}`);
  const list = <T extends GgufValue>(name: string, isOne: (value: GgufValue) => value is T): readonly T[] => {
    const value = entry(name);
    if (value === undefined) refuse(`it has no tokenizer: tokenizer.ggml.${name} is missing`);
    if (Array.isArray(value) && value.every(isOne)) return value;
    return refuse(
      `tokenizer.ggml.${name} is ${describeValue(value)}, expected a list of ${isOne === isText ? 'texts' : 'numbers'}`,
    );
  };
  const kind = entry('model');
  if (kind === undefined) refuse('it has no tokenizer: tokenizer.ggml.model is missing');
  if (kind !== 'gpt2' && kind !== 'llama') {
    refuse(`tokenizer.ggml.model is ${describeValue(kind)}, expected "gpt2" or "llama"`);
  }
  const tokens = list('tokens', isText);
  const types = entry('token_type') === undefined ? tokens.map(() => 1) : list('token_type', isNumber);
  if (types.length !== tokens.length)
    refuse(`tokenizer.ggml.token_type has ${types.length} values for ${tokens.length} tokens`);
  const textOf = (name: string): string | undefined => {
    const id = entry(`${name}_token_id`);
    return typeof id === 'number' ? tokens[id] : undefined;
  };
  const addsBos = entry('add_bos_token') === true;
  // A file does not say it; llama.cpp knows it by the model (`llama-vocab.cpp`).
  const stripsAfter = kind === 'llama' && metadata.get('general.architecture') === 'phi3';
  // Control tokens are in the vocabulary too: Hugging Face's own library gives those that are not new ids, behind it.
  const vocab: Record<string, number> = Object.create(null);
  const added: Json[] = [];
  for (const [id, content] of tokens.entries()) {
    const type = types[id]!;
    vocab[content] ??= id;
    if ((type !== CONTROL && type !== USER_DEFINED) || content === '') continue;
    added.push({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: stripsAfter && !KEEPS_SPACE.has(content),
      normalized: false,
      special: type === CONTROL,
    });
  }
  const parts = kind === 'gpt2' ? bytePairs() : sentencePieces();
  function bytePairs() {
    const pre = entry('pre');
    const rule = typeof pre === 'string' && Object.hasOwn(WORD_RULES, pre) ? WORD_RULES[pre]! : undefined;
    if (!rule) {
      return refuse(`tokenizer.ggml.pre is ${describeValue(pre)}, expected ${Object.keys(WORD_RULES).join(', ')}`);
    }
    const merges = list('merges', isText).map((pair) => {
      // A part never holds a space, which is written Ġ: the one behind the first letter cuts.
      const at = pair.indexOf(' ', 1);
      return at < 0
        ? refuse(`tokenizer.ggml.merges has ${describeValue(pair)}, expected two parts`)
        : [pair.slice(0, at), pair.slice(at + 1)];
    });
    return {
      normalizer: rule.normalizer,
      pre_tokenizer: rule.preTokenizer,
      decoder: byteLevel(true),
      model: { ...BPE, ignore_merges: rule.ignoreMerges ?? false, vocab, merges },
    };
  }
  function sentencePieces() {
    const scores = list('scores', isNumber);
    if (scores.length !== tokens.length)
      refuse(`tokenizer.ggml.scores has ${scores.length} values for ${tokens.length} tokens`);
    const prefixes = entry('add_space_prefix') !== false;
    const replace = (from: string, to: string) => ({ type: 'Replace', pattern: { String: from }, content: to });
    const before = prefixes ? [{ type: 'Prepend', prepend: '▁' }] : [];
    const after = prefixes ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : [];
    const ranked = tokens
      .map((content, id) => [content, scores[id]!] as const)
      .filter(([,], id) => types[id] !== CONTROL);
    return {
      normalizer: { type: 'Sequence', normalizers: [...before, replace(' ', '▁')] },
      pre_tokenizer: null,
      decoder: {
        type: 'Sequence',
        decoders: [replace('▁', ' '), { type: 'ByteFallback' }, { type: 'Fuse' }, ...after],
      },
      model: {
        ...BPE,
        unk_token: textOf('unknown') ?? null,
        fuse_unk: true,
        byte_fallback: true,
        vocab,
        merges: mergesOf(ranked, vocab),
      },
    };
  }
  const bos = textOf('bos');
  const named = Object.fromEntries(
    [
      ['bos_token', bos],
      ['eos_token', textOf('eos')],
      ['unk_token', textOf('unknown')],
      ['pad_token', textOf('padding')],
    ].filter(([, text]) => text !== undefined),
  );
  const template = templateOf(metadata);
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: added,
      ...parts,
      post_processor: addsBos && bos !== undefined ? beginWith(bos, entry('bos_token_id') as number) : null,
    },
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      add_bos_token: addsBos,
      ...named,
      ...(template === undefined ? {} : { chat_template: template }),
    },
    endTokens: [...new Set(['eos', 'eot', 'eom'].map((name) => entry(`${name}_token_id`)).filter(isNumber))],
  };
}

const BPE = {
  type: 'BPE',
  dropout: null,
  unk_token: null,
  continuing_subword_prefix: null,
  end_of_word_suffix: null,
  fuse_unk: false,
  byte_fallback: false,
  ignore_merges: false,
} as const;

/** Merges of SentencePiece's pairs: every cut of a token into two others, the better scored token first. */
function mergesOf(
  scored: readonly (readonly [token: string, score: number])[],
  vocab: Readonly<Record<string, number>>,
): (readonly [string, string])[] {
  const found: (readonly [left: string, right: string, score: number])[] = [];
  for (const [token, score] of scored) {
    const letters = [...token];
    const cuts: (readonly [string, string, number])[] = [];
    for (let at = letters[0]?.length ?? 0, i = 1; i < letters.length; at += letters[i++]!.length) {
      const left = token.slice(0, at);
      const right = token.slice(at);
      if (left in vocab && right in vocab) cuts.push([left, right, score]);
    }
    cuts.sort((a, b) => vocab[a[0]]! - vocab[b[0]]! || vocab[a[1]]! - vocab[b[1]]!);
    for (const one of cuts) found.push(one);
  }
  const length = (text: string) => [...text].length;
  return found
    .sort((a, b) => b[2] - a[2] || length(b[0]) - length(a[0]) || length(b[1]) - length(a[1]))
    .map(([left, right]) => [left, right]);
}

/** Templates of the file: a text, or the named ones with the default among them. */
function templateOf(metadata: ReadonlyMap<string, GgufValue>): Json | readonly Json[] | string | undefined {
  const plain = metadata.get('tokenizer.chat_template');
  const named = [...metadata]
    .filter(([key, value]) => key.startsWith('tokenizer.chat_template.') && typeof value === 'string')
    .map(([key, template]) => ({ name: key.slice('tokenizer.chat_template.'.length), template }));
  if (typeof plain !== 'string') return named.length > 0 ? named : undefined;
  return named.length > 0 ? [{ name: 'default', template: plain }, ...named] : plain;
}

function beginWith(content: string, id: number): Json {
  const first = { SpecialToken: { id: content, type_id: 0 } };
  return {
    type: 'TemplateProcessing',
    single: [first, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [
      first,
      { Sequence: { id: 'A', type_id: 0 } },
      { ...first, SpecialToken: { id: content, type_id: 1 } },
      { Sequence: { id: 'B', type_id: 1 } },
    ],
    special_tokens: { [content]: { id: content, ids: [id], tokens: [content] } },
  };
}

function isText(value: GgufValue): value is string {
  return typeof value === 'string';
}

function isNumber(value: GgufValue | undefined): value is number {
  return typeof value === 'number';
}
