/**
 * Control tokens of a chat model: the special tokens that its template writes. Text of a world or a model never becomes
 * one: its special tokens are broken up before it is rendered, and spelt out when the rendering is encoded.
 */
import type { BpeTokenizer } from '../templates/tokenizer.ts';

/** Sign that breaks special tokens in foreign text, so that it differs from the rendering; taken out again before encoding. */
export const BREAK = '\ue000';

/** Special tokens of a tokenizer, in renderings. */
export class ControlTokens {
  readonly #tokenizer: BpeTokenizer;
  readonly #pattern: RegExp;

  constructor(tokenizer: BpeTokenizer) {
    this.#tokenizer = tokenizer;
    const texts = [...tokenizer.special.keys()].sort((a, b) => b.length - a.length);
    const source = texts.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
    this.#pattern = new RegExp(source === '' ? '(?!)' : source, 'g');
  }

  /** Finds the first control token of a text; undefined where it has none. */
  findFirst(text: string): string | undefined {
    return text.match(this.#pattern)?.[0];
  }

  /** Id of a control token. @param token as `findFirst` returns it */
  idOf(token: string): number {
    return this.#tokenizer.special.get(token)!;
  }

  /** Breaks up what looks like a control token in foreign text. */
  breakUp(text: string): string {
    return text.replaceAll(BREAK, '').replace(this.#pattern, (token) => `${token[0]}${BREAK}${token.slice(1)}`);
  }

  /**
   * Encodes a rendering: control tokens become themselves, and the text between two of them is encoded at once, as the
   * template's own text is.
   */
  encode(text: string): number[] {
    const ids: number[] = [];
    let at = 0;
    const plain = (part: string) => {
      for (const id of this.#tokenizer.encodePlain(part.replaceAll(BREAK, ''))) ids.push(id);
    };
    for (const match of text.matchAll(this.#pattern)) {
      plain(text.slice(at, match.index));
      ids.push(this.#tokenizer.special.get(match[0])!);
      at = match.index + match[0].length;
    }
    plain(text.slice(at));
    return ids;
  }
}
