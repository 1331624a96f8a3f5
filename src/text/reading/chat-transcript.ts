/**
 * Transcript of a language model's episode: the questions it was asked, its answers, and their token ids. It grows by the
 * template's joint; where that cannot be, the conversation is rendered anew with the newest turns that fit.
 */
import type { Answer } from './codec.ts';
import type { Observed, Prompt, Transcript } from './transcript.ts';

/** Rendering of conversations as token ids: what a transcript needs of its codec. */
export interface Conversation {
  /** Id that ends an answer. */
  readonly end: number;
  /** Renders an observation as a question. @param table texts of the episode's actions @param error of the last answer */
  formatQuestion(observed: Observed, table: readonly string[], error: string | undefined): string;
  /** Renders a whole conversation, up to the position that decides. @returns its ids */
  render(questions: readonly string[], answers: readonly string[]): number[];
  /** Renders what lies between an answer and the next one; `undefined` where the template does not show the answer as it is. */
  joint(question: string, answer: string): number[] | undefined;
  /** True when a sequence of this length leaves room for an answer. */
  fits(length: number): boolean;
  /** True for an id that ends an answer. */
  isEnd(id: number | undefined): boolean;
  /** Divides ids into the prompt and the tokens after it. */
  divide(ids: readonly number[]): { readonly prompt: readonly number[]; readonly tokens: number[] };
  /** Ids of an action as an answer. */
  spell(action: string): Int32Array;
  /** Text of ids. */
  decode(ids: Iterable<number>): string;
  /** Reads an answer. @param stop texts that end it before them */
  answer(run: readonly number[], transcript?: undefined, stop?: readonly string[]): Answer;
}

const NO_FOCUS: ReadonlySet<number> = new Set();
const NOWHERE: readonly number[] = [0];

/** Transcript of one conversation. */
export class ChatTranscript implements Transcript {
  prompt!: Prompt;
  tokens: number[] = [];
  readonly table: string[] = [];
  readonly #codec: Conversation;
  readonly #stop: readonly string[] | undefined;
  /** Questions that the model was asked, and its answers to all but the last. */
  readonly #questions: string[] = [];
  readonly #answers: string[] = [];
  /** Run of ids sampled since the last question. */
  #run: number[] = [];
  #unread: number[] = [];

  /** @param first observation; absent for a text whose `ids` are given */
  constructor(codec: Conversation, first: Observed | undefined, ids?: readonly number[]) {
    this.#codec = codec;
    this.#stop = first?.stop;
    if (!first) {
      this.#begin(ids!, true);
      return;
    }
    for (const text of first.newActions) this.table.push(text);
    this.#questions.push(codec.formatQuestion(first, this.table, undefined));
    this.#begin(codec.render(this.#questions, []), true);
  }

  candidate(action: string): string {
    return action;
  }

  takeContext(): Int32Array {
    const context = Int32Array.from(this.#unread);
    this.#unread = [];
    return context;
  }

  /** One by one: what is spread over a call's arguments may not be long. */
  #read(ids: readonly number[]): void {
    for (const id of ids) {
      this.tokens.push(id);
      this.#unread.push(id);
    }
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) {
      this.tokens.push(id);
      this.#run.push(id);
    }
  }

  observe(action: string, observed: Observed): void {
    const run = this.#run;
    this.#run = [];
    for (const text of observed.newActions) this.table.push(text);
    // An answer that was not sampled here (of a demonstration, or lost in a restart) is its action.
    const sampled = run.length > 0 ? this.#codec.answer(run, undefined, this.#stop) : undefined;
    const answer = sampled?.text ?? this.#codec.decode(this.#codec.spell(action));
    if (run.length === 0) {
      const spelt = [...this.#codec.spell(action), this.#codec.end];
      this.#read(spelt);
    }
    this.#answers.push(answer);
    this.#questions.push(this.#codec.formatQuestion(observed, this.table, sampled?.formatError));
    const joint = this.#codec.joint(this.#questions.at(-1)!, answer);
    if (joint) {
      // An answer that was cut off is ended for it; that end is given, not sampled.
      if (run.length > 0 && !this.#codec.isEnd(run.at(-1))) joint.unshift(this.#codec.end);
      if (this.#codec.fits(this.prompt.tokens.length + this.tokens.length + joint.length)) {
        this.#read(joint);
        return;
      }
    }
    this.#renew();
  }

  /**
   * Renews the conversation, rendered from the start: the first turn, and as many of the newest as leave room for an
   * answer.
   */
  #renew(): void {
    const turns = this.#answers.length;
    for (let from = 1; from <= turns; from++) {
      const kept = [0, ...Array.from({ length: turns - from }, (_, i) => from + i)];
      const questions = [...kept.map((turn) => this.#questions[turn]!), this.#questions.at(-1)!];
      const ids = this.#codec.render(
        questions,
        kept.map((turn) => this.#answers[turn]!),
      );
      if (!this.#codec.fits(ids.length) && from < turns) continue;
      this.#begin(ids, false);
      return;
    }
  }

  #begin(ids: readonly number[], shared: boolean): void {
    const { prompt, tokens } = this.#codec.divide(ids);
    this.prompt = { tokens: Int32Array.from(prompt), shared, focus: NO_FOCUS, mentions: () => NOWHERE };
    this.tokens = tokens;
    this.#unread = [...prompt, ...tokens];
  }
}
