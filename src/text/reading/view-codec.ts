/**
 * View codec: a world's view and the word tokenizer, for policies trained from scratch. Its transcripts follow the view's
 * mode: an append view's only grow, a window view's are rendered anew every turn. Of several worlds each has its own view, and
 * one tokenizer has the words of all.
 */
import type { First } from '../../core/env.ts';
import type { AppendView, Rendered, SeenTurn, View, WindowView } from '../../core/view.ts';
import type { Answer, Codec } from './codec.ts';
import { ReceivedTranscript } from './received-transcript.ts';
import { MAX_MENTIONS, type Observed, type Prompt, type Transcript } from './transcript.ts';
import { ACT, END, PAD, WordTokenizer } from './word-tokenizer.ts';

/** Prompts kept for the members of a group and for tasks that come again, of openings up to so many UTF-16 units. */
const KEPT_PROMPTS = 256;
const KEPT_OPENING_CHARS = 16_384;

/** View of a world, with the prompts that were rendered by it. */
interface Rendering {
  readonly view: View;
  /** Prompts by opening observation; views are pure, so the same opening always reads the same. */
  readonly prompts: Map<string, Prompt>;
}

/** Codec of one view, or of the views of several worlds. Keeps recent prompts by their opening, so a group renders its own once. */
export class ViewCodec implements Codec {
  readonly id: string;
  readonly hash: string;
  readonly vocabSize: number;
  readonly longestToken: number;
  readonly sampled: { readonly from: number; readonly to: number };
  readonly end = END;
  readonly rendersAnew: boolean;
  readonly #tokenizer: WordTokenizer;
  /** Renderings by the names of their worlds; the one of a single view has no name. */
  readonly #renderings: ReadonlyMap<string | undefined, Rendering>;

  /**
   * @param views the view, or the views of several worlds by name
   * @throws {RangeError} for a lexicon or word list that the tokenizer cannot hold
   */
  constructor(views: View | Map<string, View>) {
    const named = views instanceof Map ? views : new Map([[undefined, views]]);
    const all = [...named.values()];
    this.#renderings = new Map([...named].map(([name, view]) => [name, { view, prompts: new Map() }]));
    this.#tokenizer = new WordTokenizer({
      lexicon: all.flatMap(({ lexicon }) => lexicon),
      words: all.flatMap(({ words }) => words),
    });
    this.id = views instanceof Map ? [...views].map(([name, { id }]) => `${name}=${id}`).join(' ') : views.id;
    this.hash = this.#tokenizer.hash;
    this.vocabSize = this.#tokenizer.size;
    this.longestToken = this.#tokenizer.longestToken;
    this.sampled = { from: END, to: this.#tokenizer.size };
    this.rendersAnew = all.every(({ mode }) => mode === 'window');
  }

  open(first: Observed, world?: string): Transcript {
    const rendering = this.#renderingOf(world);
    const { view } = rendering;
    return view.mode === 'append'
      ? new AppendTranscript(view, this.#tokenizer, first, (opening) => this.#promptOf(rendering, opening))
      : new WindowTranscript(view, this.#tokenizer, first);
  }

  openText(text: string): Transcript {
    const ids = this.spell(text);
    if (ids.length === 0) throw new RangeError('view: the text has no token');
    const { prompt, tokens } = this.divide([...ids]);
    const nothing = { focus: [], mentions: new Map() };
    return new ReceivedTranscript({ prompt: Int32Array.from(prompt), after: Int32Array.from(tokens), ...nothing });
  }

  divide(ids: readonly number[], promptLength?: number): { readonly prompt: number[]; readonly tokens: number[] } {
    const marked = ids.indexOf(ACT);
    const length = promptLength ?? (marked < 1 ? ids.length : marked);
    return { prompt: ids.slice(0, length), tokens: length === ids.length ? [ACT] : ids.slice(length) };
  }

  spell(action: string): Int32Array {
    return this.#tokenizer.encode(action);
  }

  decode(ids: Iterable<number>): string {
    return this.#tokenizer.decode(ids).toWellFormed();
  }

  ends(run: readonly number[]): boolean {
    return run.at(-1) === END;
  }

  answer(run: readonly number[]): Answer {
    return { action: this.#tokenizer.decode(run).toWellFormed() };
  }

  /** @throws {RangeError} for a world that none of the views is of */
  #renderingOf(world: string | undefined): Rendering {
    const rendering = this.#renderings.get(undefined) ?? this.#renderings.get(world);
    if (rendering) return rendering;
    throw new RangeError(`view: no world ${world ?? 'named'} among ${[...this.#renderings.keys()].join(', ')}`);
  }

  #promptOf({ view, prompts }: Rendering, first: First): Prompt {
    const known = prompts.get(first.observation);
    if (known) return known;
    const prompt = promptOf(this.#tokenizer, (view as AppendView).prompt(first), true);
    if (first.observation.length > KEPT_OPENING_CHARS) return prompt;
    if (prompts.size >= KEPT_PROMPTS) prompts.clear();
    prompts.set(first.observation, prompt);
    return prompt;
  }
}

/** Transcript of a view: the bookkeeping of both modes. */
abstract class ViewTranscript implements Transcript {
  readonly table: string[];
  readonly tokens: number[] = [ACT];
  abstract readonly prompt: Prompt;
  protected readonly tokenizer: WordTokenizer;
  protected readonly first: First;
  /** Memory of a view that tracks. */
  protected state: unknown;
  /** Tokens that a context held, or that were sampled. */
  protected takenTokens = 0;
  protected isPromptTaken = false;
  readonly #view: View;

  constructor(view: View, tokenizer: WordTokenizer, { observation, newActions }: Observed) {
    this.#view = view;
    this.tokenizer = tokenizer;
    this.first = { kind: 'first', observation };
    this.table = [...newActions];
    this.state = view.track?.begin(this.first);
  }

  get situation(): string | undefined {
    return this.#view.track?.situation?.(this.state);
  }

  candidate(action: string): string {
    return this.#view.candidate ? this.#view.candidate(action, this.state) : action;
  }

  takeContext(): Int32Array {
    const { tokens, takenTokens: taken } = this;
    const head = this.isPromptTaken ? 0 : this.prompt.tokens.length;
    const context = new Int32Array(head + tokens.length - taken);
    if (head > 0) context.set(this.prompt.tokens);
    for (let i = taken; i < tokens.length; i++) context[head + i - taken] = tokens[i]!;
    this.takenTokens = tokens.length;
    this.isPromptTaken = true;
    return context;
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) this.tokens.push(id);
    this.takenTokens = this.tokens.length;
  }

  observe(action: string, { observation, newActions, partial }: Observed): void {
    for (const text of newActions) this.table.push(text);
    const turn: SeenTurn = partial ? { action, observation, partial } : { action, observation };
    if (this.#view.track) this.state = this.#view.track.reduce(this.state, turn);
    this.take(turn);
  }

  protected abstract take(turn: SeenTurn): void;
}

/** Transcript of append mode: the prompt once, then a few tokens and `<act>` for each turn. */
class AppendTranscript extends ViewTranscript {
  readonly prompt: Prompt;
  readonly #view: AppendView;

  constructor(view: AppendView, tokenizer: WordTokenizer, first: Observed, promptOf: (first: First) => Prompt) {
    super(view, tokenizer, first);
    this.#view = view;
    this.prompt = promptOf(this.first);
  }

  /** Text of a turn. A stage is read as its own text: the world has not moved, so its words would add nothing. */
  protected take(turn: SeenTurn): void {
    const text = turn.partial ? turn.action : this.#view.turn(turn, this.state);
    for (const id of this.tokenizer.encode(text)) this.tokens.push(id);
    this.tokens.push(ACT);
  }
}

/** Transcript of window mode: the text rendered whole for every turn, and one `<act>` after it. */
class WindowTranscript extends ViewTranscript {
  readonly #view: WindowView;
  readonly #turns: SeenTurn[] = [];
  /** Prompt, rendered when it is first read: turns that follow each other need no rendering between them. */
  #prompt: Prompt | undefined;

  constructor(view: WindowView, tokenizer: WordTokenizer, first: Observed) {
    super(view, tokenizer, first);
    this.#view = view;
  }

  get prompt(): Prompt {
    this.#prompt ??= promptOf(this.tokenizer, this.#view.render(this.first, this.#turns, this.state), false);
    return this.#prompt;
  }

  protected take(turn: SeenTurn): void {
    this.#turns.push(turn);
    this.#prompt = undefined;
    this.tokens.splice(0, this.tokens.length, ACT);
    this.takenTokens = 0;
    this.isPromptTaken = false;
  }
}

function promptOf(tokenizer: WordTokenizer, rendered: Rendered, shared: boolean): Prompt {
  const ids: number[] = [];
  const ends: number[] = [];
  for (const segment of rendered.segments) {
    for (const id of tokenizer.encode(segment, ids.at(-1) ?? PAD)) ids.push(id);
    ends.push(Math.max(0, ids.length - 1));
  }
  if (ids.length === 0) ids.push(ACT); // a model must read something
  const focus = new Set<number>();
  for (const id of tokenizer.encode(rendered.focus)) if (tokenizer.isWordlike(id)) focus.add(id);
  return {
    tokens: Int32Array.from(ids),
    shared,
    focus,
    mentions(action) {
      const segments = rendered.mentions(action).slice(0, MAX_MENTIONS);
      return segments.length > 0 ? segments.map((segment) => ends[segment]!) : [0];
    },
  };
}
