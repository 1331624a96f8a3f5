/** Recorded sequences as inputs of our programs: the first token is the prompt, every later one may be a decision. */
import type { HostTensor } from '../../src/compute/engine/engine.ts';

export type Feeds = Record<string, HostTensor>;

const i32 = (shape: readonly number[], data: ArrayLike<number>): HostTensor => ({
  dtype: 'i32',
  shape,
  data: Int32Array.from(data),
});

export const f32 = (shape: readonly number[], data: ArrayLike<number>): HostTensor => ({
  dtype: 'f32',
  shape,
  data: data instanceof Float32Array ? data : Float32Array.from(data),
});

const count = (n: number) => [...Array(n).keys()];

/** Prompts of equal standing, padded to the longest: what `forwardGraph` and `prefillGraph` read. */
export function promptsOf(prompts: readonly (readonly number[])[]): Feeds {
  const P = Math.max(...prompts.map(({ length }) => length));
  const at = prompts.flatMap((prompt, g) => prompt.map((_, t) => g * P + t));
  const index = new Int32Array(prompts.length * P).fill(-1);
  const mask = new Float32Array(index.length).fill(-1e9);
  for (const [n, place] of at.entries()) {
    index[place] = n;
    mask[place] = 0;
  }
  return {
    'prompt.ids': i32([at.length], prompts.flat()),
    'prompt.positions': i32(
      [at.length],
      prompts.flatMap((prompt) => count(prompt.length)),
    ),
    'prompt.index': i32([prompts.length, P], index),
    'prompt.inverse': i32([at.length], at),
    'prompt.mask': f32([prompts.length, P], mask),
    'prompt.steps': i32([P], count(P)),
  };
}

/** Columns that the loss is given of the decision that chose token t + 1 of a sequence. */
export type DecisionColumns = Readonly<Record<string, (sequence: number, t: number) => number>>;

/**
 * Sequences as episodes of one member each. Decision t ≥ 1 chose ids[t + 1]; what follows the very first token is given.
 * @returns feeds, and where each row comes from
 */
export function sequencesOf(
  sequences: readonly (readonly number[])[],
  columns: DecisionColumns = {},
): { readonly feeds: Feeds; readonly rows: readonly (readonly [sequence: number, t: number])[] } {
  const G = sequences.length;
  const T = Math.max(1, ...sequences.map(({ length }) => length - 1));
  const ids: number[] = [];
  const positions: number[] = [];
  const inverse: number[] = [];
  const index = new Int32Array(G * T).fill(-1);
  const deciding: number[] = [];
  const rows: [number, number][] = [];
  for (const [g, sequence] of sequences.entries()) {
    for (let t = 1; t < sequence.length; t++) {
      index[g * T + t - 1] = ids.length;
      inverse.push(g * T + t - 1);
      if (t + 1 < sequence.length) {
        rows.push([g, t]);
        deciding.push(ids.length);
      }
      ids.push(sequence[t]!);
      positions.push(t);
    }
  }
  const back = new Int32Array(ids.length).fill(-1);
  for (const [row, n] of deciding.entries()) back[n] = row;
  const feeds: Feeds = {
    ...promptsOf(sequences.map(([first]) => [first!])),
    'tokens.ids': i32([ids.length], ids),
    'tokens.positions': i32([ids.length], positions),
    'episodes.index': i32([G, 1, T], index),
    'episodes.inverse': i32([ids.length], inverse),
    'episodes.steps': i32([T], count(T)),
    'decisions.index': i32([rows.length], deciding),
    'decisions.inverse': i32([ids.length], back),
    'decisions.chosen': i32(
      [rows.length, 1],
      rows.map(([g, t]) => sequences[g]![t + 1]!),
    ),
  };
  for (const [name, value] of Object.entries(columns)) {
    feeds[`decisions.${name}`] = f32(
      [rows.length],
      rows.map(([g, t]) => value(g, t)),
    );
  }
  return { feeds, rows };
}

/** Scalars `<prefix>.<name>`. */
export function scalarsOf(prefix: string, values: Readonly<Record<string, number>>): Feeds {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, f32([], [value])]));
}
