/**
 * Word tokenizer of the local policy: one token per phrase of the world's lexicon (an item name), per
 * small integer and per known word; a few punctuation marks; and bytes for everything else, so that
 * `decode(encode(s)) === s` for every string, lone surrogates included.
 *
 * Between two adjacent word-like tokens one space is implied; every other character is spelt out.
 */
import { largestOf } from '../../core/extremes.ts';
import { seedFrom } from '../../core/rng.ts';

/** Pads layouts, and stands before the first token of a sequence. */
export const PAD = 0;
/** Marks the position at which the policy decides. */
export const ACT = 1;
/** Ends a run of sampled tokens. */
export const END = 2;
/** Tokens that no text becomes: encoded text never contains one of them. */
const SPECIALS = ['<pad>', '<act>', '<end>', '<bos>'];
const MARKS = [', ', ': ', '. ', '; ', '\n'];
const NUMBERS = 100;
const FIRST_BYTE = SPECIALS.length;
const FIRST_MARK = FIRST_BYTE + 256;
const FIRST_WORDLIKE = FIRST_MARK + MARKS.length;
/** UTF-16 units of text kept in the encode cache in all, and of one text: worlds repeat short texts, clients long ones. */
const CACHE_CHARS = 2 ** 21;
const CACHED_TEXT_CHARS = 1024;

/** Words of a world, as its view declares them. */
export interface Vocabulary {
  /** Phrases that become one token each; lower case, words separated by one space. */
  readonly lexicon: readonly string[];
  /** Single words, or single punctuation marks set off by spaces, that become one token each. */
  readonly words: readonly string[];
}

/** Word tokenizer: text ↔ token ids of one vocabulary; immutable but for a bounded cache of encoded texts. */
export class WordTokenizer {
  /** Number of token ids; ids are 0 … size − 1. */
  readonly size: number;
  /** Identifies the vocabulary; a checkpoint is only valid under the same one. */
  readonly hash: string;
  readonly #wordlike: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;
  /** Phrases by their first word, longest first. */
  readonly #phrases = new Map<string, string[]>();
  /** Encoded texts: of those that stand alone, and of those that continue a word. */
  readonly #cached = { alone: new Map<string, Int32Array>(), glued: new Map<string, Int32Array>() };
  #cachedChars = 0;

  /** @throws {RangeError} for an entry that is neither one punctuation mark nor made of words, numbers and single spaces */
  constructor({ lexicon, words }: Vocabulary) {
    const wordlike = new Set<string>();
    for (let n = 0; n < NUMBERS; n++) wordlike.add(String(n));
    for (const entry of [...words, ...lexicon]) {
      if (!/^([a-z0-9]+( [a-z0-9]+)*|[!-/:-@[-^`{-~])$/.test(entry)) {
        throw new RangeError(
          `tokenizer: '${entry}' is neither one mark nor made of lower-case words, digits and single spaces`,
        );
      }
      wordlike.add(entry);
    }
    this.#wordlike = [...wordlike];
    this.#ids = new Map(this.#wordlike.map((text, i) => [text, FIRST_WORDLIKE + i]));
    for (const entry of this.#wordlike) {
      const head = entry.split(' ', 1)[0]!;
      const list = this.#phrases.get(head);
      if (list) list.push(entry);
      else this.#phrases.set(head, [entry]);
    }
    for (const list of this.#phrases.values()) list.sort((a, b) => b.length - a.length);
    this.size = FIRST_WORDLIKE + this.#wordlike.length;
    this.hash = seedFrom(['tokenizer@1', ...this.#wordlike].join('|'))
      .toString(16)
      .padStart(8, '0');
  }

  /** UTF-16 units of text that one token stands for at most, the space before it included. */
  get longestToken(): number {
    return 1 + largestOf(this.#wordlike.map(({ length }) => length));
  }

  /** Id of a phrase, word or number that has a token of its own. */
  idOf(wordlike: string): number | undefined {
    return this.#ids.get(wordlike);
  }

  /** True when `id` is a phrase, word or number, as opposed to a mark, a byte or a special token. */
  isWordlike(id: number): boolean {
    return id >= FIRST_WORDLIKE && id < this.size;
  }

  /**
   * Encodes a text.
   * @param text any string
   * @param after the id of the token before it, when `text` continues a sequence: a leading space after a word
   *   is then implied rather than spelt
   */
  encode(text: string, after: number = PAD): Int32Array {
    const glued = this.isWordlike(after);
    const cache = glued ? this.#cached.glued : this.#cached.alone;
    const known = cache.get(text);
    if (known) return known;
    const ids = Int32Array.from(this.#scan(text, glued));
    if (text.length > CACHED_TEXT_CHARS) return ids;
    if (this.#cachedChars > CACHE_CHARS) {
      this.#cached.alone.clear();
      this.#cached.glued.clear();
      this.#cachedChars = 0;
    }
    this.#cachedChars += text.length + 16; // an empty text takes room too
    cache.set(text, ids);
    return ids;
  }

  /** Text of a token sequence; special tokens are left out. */
  decode(ids: Iterable<number>): string {
    let text = '';
    let bytes: number[] = [];
    let afterWord = false;
    const flush = () => {
      if (bytes.length > 0) text += bytesToText(bytes);
      bytes = [];
    };
    for (const id of ids) {
      if (id < FIRST_BYTE) continue;
      if (id < FIRST_MARK) {
        bytes.push(id - FIRST_BYTE);
        afterWord = false;
        continue;
      }
      flush();
      if (id < FIRST_WORDLIKE) {
        text += MARKS[id - FIRST_MARK]!;
        afterWord = false;
      } else {
        const word = this.#wordlike[id - FIRST_WORDLIKE];
        if (word === undefined) throw new RangeError(`tokenizer: id ${id} is not in [0, ${this.size})`);
        text += afterWord ? ` ${word}` : word;
        afterWord = true;
      }
    }
    flush();
    return text;
  }

  #scan(text: string, glued: boolean): number[] {
    const ids: number[] = [];
    let afterWord = glued;
    let i = 0;
    while (i < text.length) {
      const start = afterWord && text[i] === ' ' ? i + 1 : i;
      // Two words in a row need the space between them; right after a word nothing word-like can follow unspaced.
      const word = afterWord && start === i ? undefined : this.#wordAt(text, start);
      if (word !== undefined) {
        ids.push(this.#ids.get(word)!);
        i = start + word.length;
        afterWord = true;
        continue;
      }
      afterWord = false;
      const mark = MARKS.findIndex((candidate) => text.startsWith(candidate, i));
      if (mark >= 0) {
        ids.push(FIRST_MARK + mark);
        i += MARKS[mark]!.length;
        continue;
      }
      const code = text.codePointAt(i)!;
      for (const byte of codePointToBytes(code)) ids.push(FIRST_BYTE + byte);
      i += code > 0xffff ? 2 : 1;
    }
    return ids;
  }

  /** Longest word-like entry that starts at `i` and is bounded on both sides. */
  #wordAt(text: string, i: number): string | undefined {
    if (i < text.length && !isWordChar(text.charCodeAt(i))) return this.#ids.has(text[i]!) ? text[i] : undefined;
    if (i > 0 && isWordChar(text.charCodeAt(i - 1))) return undefined;
    let end = i;
    while (end < text.length && isWordChar(text.charCodeAt(end))) end++;
    if (end === i) return undefined;
    const candidates = this.#phrases.get(text.slice(i, end));
    return candidates?.find(
      (entry) => text.startsWith(entry, i) && !isWordChar(text.charCodeAt(i + entry.length)), // NaN past the end
    );
  }
}

function isWordChar(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95;
}

/**
 * Encodes a code point as UTF-8, with lone surrogates encoded like any other code point (WTF-8), so that nothing is
 * lost.
 */
function codePointToBytes(code: number): number[] {
  if (code < 0x80) return [code];
  if (code < 0x800) return [0xc0 | (code >> 6), 0x80 | (code & 63)];
  if (code < 0x10000) return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
  return [0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
}

/** Decodes bytes, the inverse of the above; bytes that form no code point (a policy may sample any) become U+FFFD. */
function bytesToText(bytes: readonly number[]): string {
  let text = '';
  for (let i = 0; i < bytes.length; ) {
    const lead = bytes[i]!;
    const length =
      lead < 0x80
        ? 1
        : lead >= 0xf0 && lead < 0xf5
          ? 4
          : lead >= 0xe0 && lead < 0xf0
            ? 3
            : lead >= 0xc2 && lead < 0xe0
              ? 2
              : 0;
    const tail = bytes.slice(i + 1, i + length);
    if (length === 0 || tail.length !== length - 1 || tail.some((byte) => byte >> 6 !== 2)) {
      text += '\ufffd';
      i++;
      continue;
    }
    let code = length === 1 ? lead : lead & (0xff >> (length + 1));
    for (const byte of tail) code = (code << 6) | (byte & 63);
    text += code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
    i += length;
  }
  return text;
}
