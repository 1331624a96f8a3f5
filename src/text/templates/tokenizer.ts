/** Tokenizer: text ↔ token ids by a model's own `tokenizer.json`. */
import { createHash } from 'node:crypto';
import { Tokenizer } from '@huggingface/tokenizers';
import { messageOf, UserError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import { callWithin } from './deadline.ts';
import type { Json } from './model-text.ts';
import { byteLetters, correctByteFallback, rewriteParts } from './pre-tokenizers.ts';

/** Milliseconds that the patterns of a tokenizer may take over one text. */
const PATTERN_MS = 700;
/** UTF-16 units of the longest pattern; the longest in use has some hundreds. */
const MAX_PATTERN_CHARS = 10_000;

const CONTRACTIONS = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`;
const REST = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const UPPER = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const LOWER = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const SIGNS = String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`;
/**
 * Patterns known to take time in proportion to the text, as tokenizers in use have them: Qwen 2 to 3, Llama 3, GPT-2,
 * Mistral NeMo, Phi-4-mini, and a few that replace one text. Any other one may backtrack without end, and runs where it can be stopped.
 */
const LINEAR: ReadonlySet<string> = new Set([
  String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|${REST}`,
  String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${REST}`,
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*|\p{N}|${SIGNS}|${REST}`,
  String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${CONTRACTIONS}?|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${CONTRACTIONS}?|\p{N}{1,3}|${SIGNS}|${REST}`,
  String.raw`\p{N}{1,3}`,
  ' ',
]);

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
}

/** Byte-pair tokenizer. It encodes two kinds of text: our own, and that of a world or a model. */
export class BpeTokenizer {
  readonly #trusted: Tokenizer;
  readonly #plain: Tokenizer;
  /** True where its patterns need not end. */
  readonly #isGuarded: boolean;
  readonly #source: string;
  /** Ids of the special tokens, by text. */
  readonly special: ReadonlyMap<string, number>;
  readonly #json: Json;
  /** Fingerprint of the vocabulary: equal for tokenizers that give every text the same ids. */
  readonly fingerprint: string;

  /**
   * @param json   parsed `tokenizer.json`
   * @param config parsed `tokenizer_config.json`
   * @param source named in errors: the folder
   * @throws {UserError} BAD_CHECKPOINT for a tokenizer that cannot be built
   */
  constructor(json: Json, config: Json, source: string) {
    this.#source = source;
    this.#json = json;
    try {
      const patterns = [...patternsIn(json, 0)];
      const long = patterns.find(({ length }) => length > MAX_PATTERN_CHARS);
      if (long) throw new Error(`a pattern of ${long.length} characters; expected at most ${MAX_PATTERN_CHARS}`);
      this.#isGuarded = !patterns.every((pattern) => LINEAR.has(pattern));
      const rewritten = rewriteParts(json);
      this.#trusted = new Tokenizer(rewritten, config);
      correctByteFallback(this.#trusted.decoder);
      const added = (json.added_tokens ?? []) as readonly AddedToken[];
      this.special = new Map(added.filter(({ special }) => special).map(({ content, id }) => [content, id]));
      this.fingerprint = createHash('sha256').update(JSON.stringify(json)).digest('hex');
      const plain = { ...rewritten, added_tokens: added.filter(({ special }) => !special) };
      this.#plain = new Tokenizer(withoutSpecialWords(plain, this.special), config);
    } catch (thrown) {
      throw new UserError('BAD_CHECKPOINT', `${source}: tokenizer.json cannot be used: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  /** Ids of trusted text: special tokens in it are encoded as such. Nothing is put before or behind. */
  encode(text: string): number[] {
    return this.#call(() => ids(this.#trusted, text));
  }

  /** Ids of text that a world or a model wrote: special tokens in it are spelt out as letters, so that none is forged. */
  encodePlain(text: string): number[] {
    return this.#call(() => ids(this.#plain, text));
  }

  /**
   * Bytes of each token, by id; undefined for an id without one. Special tokens have the bytes of their text.
   * @returns undefined for a vocabulary that is neither of bytes nor of pieces with a byte fallback
   */
  bytesOfTokens(): readonly (Uint8Array | undefined)[] | undefined {
    const { model, decoder, added_tokens: added = [] } = this.#json;
    const { vocab } = model as { readonly vocab: Readonly<Record<string, number>> };
    const bytesOf = bytesBy(decoder);
    if (!bytesOf) return undefined;
    const bytes: (Uint8Array | undefined)[] = [];
    for (const [token, id] of Object.entries(vocab)) bytes[id] = bytesOf(token);
    for (const { id, content } of added as readonly AddedToken[]) bytes[id] = Buffer.from(content);
    return bytes;
  }

  /** Text of ids; an id that the tokenizer does not have decodes to nothing. */
  decode(tokens: ArrayLike<number>, { special = true }: { readonly special?: boolean } = {}): string {
    const list = Array.from(tokens);
    if (list.length === 0) return '';
    return this.#call(() => this.#trusted.decode(list, { skip_special_tokens: !special }).toWellFormed());
  }

  /** Runs the tokenizer. @throws {UserError} BAD_CHECKPOINT where its parts cannot be run, or a pattern does not end */
  #call<T>(work: () => T): T {
    try {
      return this.#isGuarded ? callWithin(PATTERN_MS, work) : work();
    } catch (thrown) {
      throw new UserError(
        'BAD_CHECKPOINT',
        `${this.#source}: tokenizer.json cannot be used on a text: ${messageOf(thrown)}`,
        { cause: thrown },
      );
    }
  }
}

/** Way from the spelling of a token in a vocabulary to its bytes, by the decoder that goes with it. */
function bytesBy(decoder: unknown): ((token: string) => Uint8Array | undefined) | undefined {
  const types = new Set(decoderTypes(decoder, 0));
  if (types.has('ByteLevel')) {
    const byteOf = new Map(byteLetters().map((letter, byte) => [letter, byte]));
    return (token) => {
      const bytes = [...token].map((letter) => byteOf.get(letter));
      return bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes) : undefined;
    };
  }
  if (!types.has('ByteFallback')) return undefined;
  return (token) => {
    const [, byte] = /^<0x([\dA-F]{2})>$/.exec(token) ?? [];
    return byte === undefined ? Buffer.from(token.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
  };
}

function* decoderTypes(part: unknown, level: number): Generator<unknown> {
  if (!isRecord(part) || level > MAX_LEVELS) return;
  yield part.type;
  if (Array.isArray(part.decoders)) for (const one of part.decoders) yield* decoderTypes(one, level + 1);
}

/** Parts of a tokenizer that hold patterns. */
const PARTS = ['normalizer', 'pre_tokenizer', 'post_processor', 'decoder'];
/** Levels of parts within parts: real ones have three. */
const MAX_LEVELS = 32;

/** Regular expressions of a tokenizer. */
function* patternsIn(json: Json, level: number): Generator<string> {
  if (level > MAX_LEVELS) throw new Error(`parts within parts; expected at most ${MAX_LEVELS} levels`);
  for (const [name, value] of Object.entries(json)) {
    if (level === 0 && !PARTS.includes(name)) continue;
    if (name === 'Regex' && typeof value === 'string') yield value;
    else if (typeof value === 'object' && value !== null) yield* patternsIn(value as Json, level + 1);
  }
}

/**
 * Takes special tokens out of a vocabulary whose words are looked up before they are cut (`ignore_merges`): a word of
 * their spelling would be one.
 */
function withoutSpecialWords(json: Json, special: ReadonlyMap<string, number>): Json {
  const model = json.model as Json;
  const vocab = model.vocab as Readonly<Record<string, number>>;
  if (model.ignore_merges !== true || ![...special.keys()].some((content) => Object.hasOwn(vocab, content)))
    return json;
  const kept = Object.fromEntries(Object.entries(vocab).filter(([content]) => !special.has(content)));
  return { ...json, model: { ...model, vocab: kept } };
}

function ids(tokenizer: Tokenizer, text: string): number[] {
  return text === '' ? [] : tokenizer.encode(text, { add_special_tokens: false }).ids.map(Number);
}
