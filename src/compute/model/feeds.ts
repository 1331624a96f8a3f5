/** Inputs of the graphs that rollout and learner build alike, packed and padded as the graphs declare them. */
import { largestOf } from '../../core/extremes.ts';
import type { Codec } from '../../text/reading/codec.ts';
import { type Candidate, MAX_MENTIONS, type Prompt } from '../../text/reading/transcript.ts';
import type { HostTensor } from '../engine/engine.ts';
import type { ModelConfig, SameLineBias } from './config.ts';

/** Id that stands before the first token where the model looks back (`tokenShift`), and pads layouts. */
export const PAD = 0;

/** Spelling of action texts: all that feeds need of a codec. */
export type Speller = Pick<Codec, 'spell'>;

/** Feed of i32 numbers; of a pool that is longer than the shape, the first values. */
export function i32(shape: readonly number[], data: Int32Array): HostTensor {
  const size = sizeOf(shape);
  return { dtype: 'i32', shape, data: size === data.length ? data : data.subarray(0, size) };
}

/** Feed of f32 numbers; of a pool that is longer than the shape, the first values. */
export function f32(shape: readonly number[], data: Float32Array): HostTensor {
  const size = sizeOf(shape);
  return { dtype: 'f32', shape, data: size === data.length ? data : data.subarray(0, size) };
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/** Steps 0, 1, … n − 1. */
export function steps(n: number): HostTensor {
  return i32(
    [n],
    Int32Array.from({ length: n }, (_, t) => t),
  );
}

/** Feeds of the prompt part: packed tokens and layout for prompts padded to `longest`. */
export function promptFeeds(
  config: ModelConfig,
  prompts: readonly Pick<Prompt, 'tokens' | 'focus'>[],
  longest: number,
): Record<string, HostTensor> {
  const N = prompts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const ids = new Int32Array(N);
  const previous = [new Int32Array(N), new Int32Array(N)] as const;
  const focus = new Float32Array(N);
  const positions = new Int32Array(N);
  const index = new Int32Array(prompts.length * longest).fill(-1);
  const inverse = new Int32Array(N);
  const mask = new Float32Array(prompts.length * longest).fill(-1e9);
  let n = 0;
  prompts.forEach((prompt, g) => {
    const { previous1, previous2 } = previousTokens(prompt.tokens);
    ids.set(prompt.tokens, n);
    previous[0].set(previous1, n);
    previous[1].set(previous2, n);
    prompt.tokens.forEach((id, t) => {
      focus[n] = prompt.focus.has(id) ? 1 : 0;
      positions[n] = t;
      index[g * longest + t] = n;
      inverse[n] = g * longest + t;
      mask[g * longest + t] = 0;
      n++;
    });
  });
  const feeds: Record<string, HostTensor> = {
    'prompt.ids': { dtype: 'i32', shape: [N], data: ids },
    'prompt.positions': { dtype: 'i32', shape: [N], data: positions },
    'prompt.index': { dtype: 'i32', shape: [prompts.length, longest], data: index },
    'prompt.inverse': { dtype: 'i32', shape: [N], data: inverse },
    'prompt.mask': { dtype: 'f32', shape: [prompts.length, longest], data: mask },
  };
  for (let i = 0; i < config.tokenShift; i++) {
    feeds[`prompt.previous${i + 1}`] = { dtype: 'i32', shape: [N], data: previous[i]! };
  }
  if (config.focusBit) feeds['prompt.focus'] = { dtype: 'f32', shape: [N, 1], data: focus };
  if (config.sameTokenBias !== undefined) {
    const padded = new Int32Array(prompts.length * longest).fill(-1);
    for (const [g, prompt] of prompts.entries()) padded.set(prompt.tokens, g * longest);
    feeds['prompt.padded'] = i32([prompts.length, longest], padded);
  }
  if (!config.prefixBidirectional || config.sameTokenBias !== undefined) feeds['prompt.steps'] = steps(longest);
  if (config.sameLineBias !== undefined) {
    const lines = new Int32Array(prompts.length * longest).fill(-1);
    for (const [g, prompt] of prompts.entries()) lines.set(linesOf(prompt.tokens, config.sameLineBias), g * longest);
    feeds['prompt.lines'] = i32([prompts.length, longest], lines);
  }
  return feeds;
}

/** Number of the line that each token stands in. */
function linesOf(tokens: Int32Array, { newline }: SameLineBias): Int32Array {
  let line = 0;
  return tokens.map((id) => (id === newline ? ++line : line));
}

/** Feeds of the action texts: their different pieces, and how often each text has each. */
export function actionFeeds(
  config: ModelConfig,
  speller: Speller,
  actions: readonly { readonly text: string; readonly focus: ReadonlySet<number> }[],
): Record<string, HostTensor> {
  const numbers = new Map<number, number>(); // of each piece, by its key, which is exact for 160,000 words
  const ids: number[] = [];
  const previous: readonly [number[], number[]] = [[], []];
  const focused: number[] = [];
  const encoded = actions.map(({ text, focus }) => {
    const tokens = speller.spell(text);
    return Int32Array.from(tokens, (id, t) => {
      const before = config.tokenShift > 0 && t > 0 ? tokens[t - 1]! : PAD;
      const beforeThat = config.tokenShift > 1 && t > 1 ? tokens[t - 2]! : PAD;
      const bit = config.focusBit && focus.has(id) ? 1 : 0;
      const key = ((id * config.vocabSize + before) * config.vocabSize + beforeThat) * 2 + bit;
      let piece = numbers.get(key);
      if (piece === undefined) {
        piece = ids.length;
        numbers.set(key, piece);
        ids.push(id);
        previous[0].push(before);
        previous[1].push(beforeThat);
        focused.push(bit);
      }
      return piece;
    });
  });
  if (ids.length === 0) {
    ids.push(PAD); // only empty texts: a piece that stands in none
    for (const column of previous) column.push(PAD);
    focused.push(0);
  }
  const U = ids.length;
  const counts = new Float32Array(actions.length * U);
  encoded.forEach((pieces, row) => {
    for (const piece of pieces) counts[row * U + piece]!++;
  });
  const feeds: Record<string, HostTensor> = {
    'actions.ids': i32([U], Int32Array.from(ids)),
    'actions.counts': f32([actions.length, U], counts),
  };
  for (let i = 0; i < config.tokenShift; i++) {
    feeds[`actions.previous${i + 1}`] = i32([U], Int32Array.from(previous[i]!));
  }
  if (config.focusBit) feeds['actions.focus'] = f32([U, 1], Float32Array.from(focused));
  return feeds;
}

/** Prompt and the candidates that can be chosen after it. */
export interface Choosable {
  readonly prompt: Prompt;
  readonly candidates: readonly Candidate[];
}

/**
 * Feeds of the candidates: every different text and every different list of mentions once, which text and which list each
 * candidate has, and the packed rows of the prompt in each list. All is padded to the longest; a padding candidate has
 * the first list, a padding list no mention.
 */
export function candidateFeeds(
  config: ModelConfig,
  speller: Speller,
  groups: readonly Choosable[],
): Record<string, HostTensor> {
  const G = groups.length;
  const C = largestOf(
    groups.map(({ candidates }) => candidates.length),
    1,
  );
  const different = new DifferentTexts(speller);
  const texts = new Int32Array(G * C);
  const listOf = new Int32Array(G * C);
  const books = groups.map(({ candidates, prompt }, g) => {
    const book = new MentionBook(prompt);
    candidates.forEach(({ action, read }, c) => {
      texts[g * C + c] = different.row(read, prompt.focus);
      listOf[g * C + c] = book.listOf(action);
    });
    return book;
  });
  const I = largestOf(
    books.map(({ lists }) => lists.length),
    1,
  );
  const M = largestOf(
    books.flatMap(({ lists }) => lists.map((list) => list.length)),
    1,
  );
  const rows = new Int32Array(G * I * M);
  const mentionMask = new Float32Array(rows.length).fill(-1e9);
  let offset = 0; // where the group's prompt begins among the packed prompt tokens
  books.forEach(({ lists }, g) => {
    lists.forEach((list, i) => {
      list.forEach((position, m) => {
        rows[(g * I + i) * M + m] = offset + position;
        mentionMask[(g * I + i) * M + m] = 0;
      });
    });
    offset += groups[g]!.prompt.tokens.length;
  });
  if (different.texts.length === 0) different.row('', new Set());
  return {
    ...actionFeeds(config, speller, different.texts),
    'candidates.texts': i32([G * C], texts),
    'candidates.lists': i32([G, C], listOf),
    'candidates.mentions': i32([rows.length], rows),
    'candidates.mentionMask': f32([G, I, M], mentionMask),
  };
}

/** Different lists of mentions of a prompt, in the order in which actions were asked for. */
export class MentionBook {
  /** Positions in the prompt of each list, MAX_MENTIONS at most. */
  readonly lists: (readonly number[])[] = [];
  readonly #prompt: Pick<Prompt, 'mentions'>;
  readonly #byAction = new Map<string, number>();
  readonly #byPlaces = new Map<string, number>();

  constructor(prompt: Pick<Prompt, 'mentions'>) {
    this.#prompt = prompt;
  }

  /** Number of the list of an action. The prompt defines where the action is mentioned. */
  listOf(action: string): number {
    const known = this.#byAction.get(action);
    if (known !== undefined) return known;
    const places = this.#prompt.mentions(action).slice(0, MAX_MENTIONS);
    const key = places.join();
    const list = this.#byPlaces.get(key) ?? this.lists.push(places) - 1;
    this.#byPlaces.set(key, list);
    this.#byAction.set(action, list);
    return list;
  }
}

/** Candidate texts that differ in what the model reads of them: their tokens, and which of them carry the focus bit. */
class DifferentTexts {
  readonly texts: { readonly text: string; readonly focus: ReadonlySet<number> }[] = [];
  readonly #speller: Speller;
  readonly #rows = new Map<string, number>();

  constructor(speller: Speller) {
    this.#speller = speller;
  }

  row(text: string, focus: ReadonlySet<number>): number {
    let key = `${text}\n`;
    for (const id of this.#speller.spell(text)) key += focus.has(id) ? '1' : '0';
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const row = this.texts.push({ text, focus }) - 1;
    this.#rows.set(key, row);
    return row;
  }
}

/** Window: a prompt that is read whole, and the one token after it, which decides. */
export interface Window extends Choosable {
  readonly deciding: number;
}

/** Feeds of windows. */
export function windowFeeds(
  config: ModelConfig,
  speller: Speller,
  windows: readonly Window[],
): Record<string, HostTensor> {
  const n = windows.length;
  const lengths = windows.map(({ prompt }) => prompt.tokens.length);
  const mapWindows = (value: (window: Window) => number) => i32([n], Int32Array.from(windows, value));
  const feeds: Record<string, HostTensor> = {
    ...promptFeeds(
      config,
      windows.map(({ prompt }) => prompt),
      largestOf(lengths),
    ),
    'tokens.ids': mapWindows(({ deciding }) => deciding),
    'tokens.positions': i32([n], Int32Array.from(lengths)),
    'episodes.index': i32([n, 1, 1], steps(n).data as Int32Array),
    'episodes.inverse': steps(n),
    'episodes.steps': steps(1),
    'decisions.index': i32([n, 1], steps(n).data as Int32Array),
    'decisions.inverse': steps(n),
    ...candidateFeeds(config, speller, windows),
  };
  if (config.sameTokenBias !== undefined) {
    feeds['episodes.padded'] = i32(
      [n, 1, 1],
      Int32Array.from(windows, ({ deciding }) => deciding),
    );
  }
  if (config.tokenShift > 0) feeds['tokens.previous1'] = mapWindows(({ prompt }) => prompt.tokens.at(-1) ?? PAD);
  if (config.tokenShift > 1) feeds['tokens.previous2'] = mapWindows(({ prompt }) => prompt.tokens.at(-2) ?? PAD);
  if (config.focusBit) {
    feeds['tokens.focus'] = f32(
      [n, 1],
      Float32Array.from(windows, ({ prompt, deciding }) => (prompt.focus.has(deciding) ? 1 : 0)),
    );
  }
  return feeds;
}

/** Previous and one-before-previous token of each position of a sequence. */
function previousTokens(tokens: ArrayLike<number>) {
  const n = tokens.length;
  const previous1 = new Int32Array(n);
  const previous2 = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    previous1[i] = i > 0 ? tokens[i - 1]! : PAD;
    previous2[i] = i > 1 ? tokens[i - 2]! : PAD;
  }
  return { previous1, previous2 };
}
