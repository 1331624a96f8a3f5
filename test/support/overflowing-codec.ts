/**
 * Codec for tests whose context fills up, as a chat's does: transcripts grow until they are `limit` tokens long, and are
 * then rendered anew as a prompt of their own, which keeps the opening and the newest turn.
 */
import type { Codec } from '../../src/text/reading/codec.ts';
import type { Observed, Prompt, Transcript } from '../../src/text/reading/transcript.ts';

export class OverflowingCodec implements Codec {
  readonly id: string;
  readonly hash: string;
  readonly vocabSize: number;
  readonly sampled: Codec['sampled'];
  readonly rendersAnew = false;
  readonly end: number;
  readonly #inner: Codec;
  readonly #limit: number;

  /** @param inner one whose transcripts only grow */
  constructor(inner: Codec, limit: number) {
    this.#inner = inner;
    this.#limit = limit;
    ({ hash: this.hash, vocabSize: this.vocabSize, sampled: this.sampled, end: this.end } = inner);
    this.id = `${inner.id}, at most ${limit} tokens`;
  }

  open(first: Observed): Transcript {
    return new OverflowingTranscript(this.#inner.open(first), this.#limit);
  }

  openText(text: string): Transcript {
    return this.#inner.openText(text);
  }

  divide(ids: readonly number[], promptLength?: number) {
    return this.#inner.divide(ids, promptLength);
  }

  spell(action: string): Int32Array {
    return this.#inner.spell(action);
  }

  decode(ids: Iterable<number>): string {
    return this.#inner.decode(ids);
  }

  ends(run: readonly number[]): boolean {
    return this.#inner.ends(run);
  }

  answer(run: readonly number[]) {
    return this.#inner.answer(run);
  }
}

class OverflowingTranscript implements Transcript {
  prompt: Prompt;
  tokens: number[];
  #hasSentPrompt = false;
  #sent = 0;
  readonly #inner: Transcript;
  readonly #limit: number;

  constructor(inner: Transcript, limit: number) {
    this.#inner = inner;
    this.#limit = limit;
    this.prompt = inner.prompt;
    this.tokens = [...inner.tokens];
  }

  get table(): readonly string[] {
    return this.#inner.table;
  }

  candidate(action: string): string {
    return this.#inner.candidate(action);
  }

  takeContext(): Int32Array {
    const context = [...(this.#hasSentPrompt ? [] : this.prompt.tokens), ...this.tokens.slice(this.#sent)];
    this.#hasSentPrompt = true;
    this.#sent = this.tokens.length;
    return Int32Array.from(context);
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) this.tokens.push(id);
    this.#sent = this.tokens.length;
  }

  observe(action: string, observed: Observed): void {
    const before = this.#inner.tokens.length;
    this.#inner.observe(action, observed);
    const fresh = this.#inner.tokens.slice(before);
    this.tokens.push(...fresh);
    if (this.tokens.length <= this.#limit) return;
    const opening = this.#inner.prompt;
    this.prompt = { ...opening, shared: false, tokens: Int32Array.from([...opening.tokens, ...fresh.slice(0, -1)]) };
    this.tokens = fresh.slice(-1);
    this.#sent = 0;
    this.#hasSentPrompt = false;
  }
}
