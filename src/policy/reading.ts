/**
 * From what a view renders to what the model reads: token ids, the focus bit, and where actions are mentioned.
 * Rollout and learner both go through here, so they cannot read an episode differently.
 */
import type { Rendered, SeenTurn, View } from '../core/view.ts';
import { ACT, PAD, type Tokenizer } from './tokenizer.ts';

/** Mentions of one action that the pointer looks at; more add cost and little else. */
export const MAX_MENTIONS = 6;

/** A prompt (or a window) as tokens. */
export interface PromptReading {
  /** [P] */
  readonly tokens: Int32Array;
  /** Token ids that carry the focus bit wherever they occur in the episode. */
  readonly focus: ReadonlySet<number>;
  /** Token positions in the prompt that mention the action: 1 … MAX_MENTIONS of them, position 0 where there is none. */
  mentions(action: string): readonly number[];
}

export function readRendered(tokenizer: Tokenizer, rendered: Rendered): PromptReading {
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
    focus,
    mentions(action) {
      const segments = rendered.mentions(action).slice(0, MAX_MENTIONS);
      return segments.length > 0 ? segments.map((segment) => ends[segment]!) : [0];
    },
  };
}

/** Tokens appended after a turn under an append view, the marker of the next decision included. */
export function readTurn(tokenizer: Tokenizer, view: View & { mode: 'append' }, turn: SeenTurn): Int32Array {
  return Int32Array.from([...tokenizer.encode(view.turn(turn)), ACT]);
}

/** The previous and the one-before-previous token of each position, `before` continuing a sequence. */
export function previousTokens(tokens: ArrayLike<number>, before: readonly [number, number] = [PAD, PAD]) {
  const n = tokens.length;
  const previous1 = new Int32Array(n);
  const previous2 = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    previous1[i] = i > 0 ? tokens[i - 1]! : before[0];
    previous2[i] = i > 1 ? tokens[i - 2]! : i === 1 ? before[0] : before[1];
  }
  return { previous1, previous2 };
}
