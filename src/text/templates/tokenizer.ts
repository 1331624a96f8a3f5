/** Tokenizer: text ↔ token ids by a model's own `tokenizer.json`. */
import { createHash } from 'node:crypto';
import { Tokenizer } from '@huggingface/tokenizers';
import { messageOf, UserError } from '../../core/errors.ts';
import type { Json } from './model-text.ts';

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
}

/** Byte-pair tokenizer. It encodes two kinds of text: our own, and that of a world or a model. */
export class BpeTokenizer {
  readonly #trusted: Tokenizer;
  readonly #plain: Tokenizer;
  /** Ids of the special tokens, by text. */
  readonly special: ReadonlyMap<string, number>;
  /** Fingerprint of the vocabulary: equal for tokenizers that give every text the same ids. */
  readonly fingerprint: string;

  /**
   * @param json   parsed `tokenizer.json`
   * @param config parsed `tokenizer_config.json`
   * @param source named in errors: the folder
   * @throws {UserError} BAD_CHECKPOINT for a tokenizer that cannot be built
   */
  constructor(json: Json, config: Json, source: string) {
    try {
      this.#trusted = new Tokenizer(json, config);
      const added = (json.added_tokens ?? []) as readonly AddedToken[];
      this.special = new Map(added.filter(({ special }) => special).map(({ content, id }) => [content, id]));
      this.fingerprint = createHash('sha256').update(JSON.stringify(json)).digest('hex');
      this.#plain = new Tokenizer({ ...json, added_tokens: added.filter(({ special }) => !special) }, config);
    } catch (thrown) {
      throw new UserError('BAD_CHECKPOINT', `${source}: tokenizer.json cannot be used: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  /** Ids of trusted text: special tokens in it are encoded as such. Nothing is put before or behind. */
  encode(text: string): number[] {
    return ids(this.#trusted, text);
  }

  /** Ids of text that a world or a model wrote: special tokens in it are spelt out as letters, so that none is forged. */
  encodePlain(text: string): number[] {
    return ids(this.#plain, text);
  }

  /** Text of ids; an id that the tokenizer does not have decodes to nothing. */
  decode(tokens: ArrayLike<number>, { special = true }: { readonly special?: boolean } = {}): string {
    const list = Array.from(tokens);
    return list.length === 0 ? '' : this.#trusted.decode(list, { skip_special_tokens: !special });
  }
}

function ids(tokenizer: Tokenizer, text: string): number[] {
  return text === '' ? [] : tokenizer.encode(text, { add_special_tokens: false }).ids.map(Number);
}
