/**
 * Parts of a `tokenizer.json` in forms that `@huggingface/tokenizers` runs as Hugging Face's own library (Rust) does. The
 * JavaScript library takes `\d` and `\s` of JavaScript in some of its parts, where Rust's digits are all of `\p{N}` and its
 * blanks are `\p{White_Space}`; and it reads one behaviour of a split alone. Its `Split` by a pattern is exact, so each
 * such part is written as one.
 */
import { describeValue } from '../../core/describe-value.ts';
import { isRecord } from '../../core/record.ts';
import type { Json } from './model-text.ts';

/** Cuts of GPT-2's byte-level tokenizer. */
const GPT2_PATTERN = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
/** Rust's `char::is_ascii_punctuation` and Unicode's class. */
const PUNCTUATION = String.raw`[\p{P}!-/:-@\[-\x60{-~]`;

/** Levels of parts within parts: real ones have three. */
const MAX_LEVELS = 32;

/**
 * Rewrites the pre-tokenizers and normalizers of a tokenizer.
 * @param tokenizer parsed `tokenizer.json`
 * @throws {Error} for a part that is not computed here as it is there
 */
export function rewriteParts(tokenizer: Json): Json {
  return {
    ...tokenizer,
    pre_tokenizer: dropUnknownBytes(rewritePreTokenizer(tokenizer.pre_tokenizer, 0), tokenizer.model),
    normalizer: rewriteNormalizer(tokenizer.normalizer, 0),
  };
}

function rewritePreTokenizer(part: unknown, level: number): unknown {
  if (!isRecord(part)) return part;
  if (level > MAX_LEVELS) throw new Error(`parts within parts; expected at most ${MAX_LEVELS} levels`);
  switch (part.type) {
    case 'Sequence': {
      const { pretokenizers: parts } = part;
      if (!Array.isArray(parts)) return part;
      return { ...part, pretokenizers: parts.map((one) => rewritePreTokenizer(one, level + 1)) };
    }
    case 'Digits':
      return splitBy(String.raw`\p{N}${part.individual_digits === true ? '' : '+'}`);
    case 'ByteLevel':
      return rewriteByteLevel(part);
    case 'Whitespace':
      return { ...splitBy(String.raw`\w+|[^\w\s]+`), behavior: 'Removed', invert: true };
    case 'WhitespaceSplit':
      return { ...splitBy(String.raw`\S+`), behavior: 'Removed', invert: true };
    case 'Punctuation':
      return rewriteSplit(PUNCTUATION, part.behavior ?? 'Isolated', false);
    case 'Split': {
      const { pattern, behavior, invert } = part;
      return rewriteSplit(patternOf(pattern), behavior, invert === true);
    }
    default:
      return part;
  }
}

/** Split whose matches, and what lies between them, are pieces each. */
function splitBy(regex: string): Json {
  return { type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false };
}

function patternOf(pattern: unknown): string {
  const { Regex: regex, String: text } = isRecord(pattern) ? pattern : {};
  if (typeof regex === 'string') return foldBeyondAscii(regex);
  if (typeof text === 'string') return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
  throw new Error(`a split by ${describeValue(pattern)}; expected a Regex or a String`);
}

/**
 * Lets the letters of `(?i:…)` match what Rust's patterns fold to them beyond ASCII: ſ is an s, and the Kelvin sign a k.
 * Groups that hold more than letters stay as they are.
 */
function foldBeyondAscii(regex: string): string {
  return regex.replace(/\(\?i:([^()[\]\\]*)\)/g, (_, body: string) => {
    return `(?i:${body.replace(/s/gi, '[sSſ]').replace(/k/gi, '[kK\u212a]')})`;
  });
}

/**
 * Writes each behaviour of a split as one whose pieces are its pattern's matches. A text without the pattern is one match:
 * looking for the pattern from each of its letters would take the square of its length.
 */
function rewriteSplit(regex: string, behavior: unknown, invert: boolean): Json {
  switch (behavior) {
    case 'Isolated':
      return splitBy(regex);
    case 'Removed':
      return { ...splitBy(regex), behavior, invert };
    case 'MergedWithPrevious':
      if (!invert) return splitBy(String.raw`(?:(?!${regex})[\s\S])*(?:${regex}|\z)`);
      break;
    case 'MergedWithNext':
      if (!invert) return splitBy(String.raw`(?:${regex})(?:(?!${regex})[\s\S])*`);
      break;
    case 'Contiguous':
      if (!invert) return splitBy(`(?:${regex})+`);
      break;
  }
  throw new Error(
    `a split with behavior ${describeValue(behavior)}${invert ? ' and invert' : ''}: it is not known here`,
  );
}

/** Bytes of words by a pattern: the pattern as a split, behind the blank that may be put before a text. */
function rewriteByteLevel(part: Json): Json {
  if (part.use_regex === false) return part;
  const parts: Json[] = [splitBy(GPT2_PATTERN), { ...part, add_prefix_space: false, use_regex: false }];
  // Before a text that begins with no blank, as Rust adds it: to the whole, not to each word.
  if (part.add_prefix_space === true) {
    parts.unshift({ type: 'Replace', pattern: { Regex: String.raw`\A[^ ]` }, content: ' $&' });
  }
  return { type: 'Sequence', pretokenizers: parts };
}

/**
 * Drops bytes that a vocabulary does not have, before pairs are merged: Rust leaves them out first, JavaScript last, when
 * what stands around them was not merged.
 */
function dropUnknownBytes(preTokenizer: unknown, model: unknown): unknown {
  if (!isRecord(model) || model.type !== 'BPE' || model.unk_token != null || model.byte_fallback === true) {
    return preTokenizer;
  }
  const { vocab } = model;
  if (!isRecord(vocab) || !hasByteLevel(preTokenizer)) return preTokenizer;
  const missing = byteLetters().filter((letter) => !Object.hasOwn(vocab, letter));
  if (missing.length === 0) return preTokenizer;
  const codes = missing.map((letter) => `\\x{${letter.codePointAt(0)!.toString(16)}}`);
  const drop = { type: 'Replace', pattern: { Regex: `[${codes.join('')}]` }, content: '' };
  return { type: 'Sequence', pretokenizers: [preTokenizer, drop] };
}

function hasByteLevel(part: unknown): boolean {
  if (!isRecord(part)) return false;
  if (part.type === 'ByteLevel') return true;
  return Array.isArray(part.pretokenizers) && part.pretokenizers.some(hasByteLevel);
}

/** Printable letter of each byte, as byte-level tokenizers write them. @see Radford et al. 2019, §2.2 */
export function byteLetters(): readonly string[] {
  const isPrintable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
}

function rewriteNormalizer(part: unknown, level: number): unknown {
  if (!isRecord(part)) return part;
  if (level > MAX_LEVELS) throw new Error(`parts within parts; expected at most ${MAX_LEVELS} levels`);
  if (part.type === 'Sequence' && Array.isArray(part.normalizers)) {
    return { ...part, normalizers: part.normalizers.map((one) => rewriteNormalizer(one, level + 1)) };
  }
  // JavaScript's `$` names a part of what is replaced.
  if (part.type === 'Replace' && typeof part.content === 'string') {
    return { ...part, content: part.content.replaceAll('$', '$$$$') };
  }
  if (part.type === 'Strip') return rewriteStrip(part);
  return part;
}

/** Blanks at the ends of a text: U+0085 is one in Rust, U+FEFF is none. */
function rewriteStrip({ strip_left: left, strip_right: right }: Json): Json {
  const ends = [...(left ? [String.raw`\A\s+`] : []), ...(right ? [String.raw`\s+\z`] : [])];
  const normalizers = ends.map((regex) => ({ type: 'Replace', pattern: { Regex: regex }, content: '' }));
  return { type: 'Sequence', normalizers };
}

/** Text of a run of bytes as Rust makes it: a byte-order mark stays, and a run that is no UTF-8 is U+FFFD for each byte. */
const byteRuns = {
  decode(bytes: Uint8Array): string {
    try {
      return strict.decode(bytes);
    } catch {
      return '\ufffd'.repeat(bytes.length);
    }
  },
};
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Makes the `ByteFallback` of a tokenizer's decoder, wherever it stands in it, read bytes as Rust does. */
export function correctByteFallback(decoder: unknown, level = 0): void {
  // The library's parts are functions with properties.
  if ((typeof decoder !== 'function' && !isRecord(decoder)) || level > MAX_LEVELS) return;
  const { config, decoders } = decoder as { readonly config?: unknown; readonly decoders?: unknown };
  if (isRecord(config) && config.type === 'ByteFallback') Object.assign(decoder, { text_decoder: byteRuns });
  if (Array.isArray(decoders)) for (const one of decoders) correctByteFallback(one, level + 1);
}
