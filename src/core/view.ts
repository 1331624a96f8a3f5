/**
 * What the small from-scratch policy reads of a world. The raw observation stays the original's; a view renders
 * it short, because a small model pays for every token. Views are pure functions of the episode so far.
 */
import type { First } from './env.ts';

/**
 * A text cut into segments, so that actions can point at the places that mention them.
 * Segments are joined without a separator; each ends where a token ends.
 */
export interface Rendered {
  readonly segments: readonly string[];
  /**
   * The words the episode is about (the goal item, say). Every token of the episode that also occurs in `focus`
   * carries one extra input bit; empty for none.
   */
  readonly focus: string;
  /**
   * Where an action is mentioned: indices into `segments`, ascending, at most `maxMentions`; the last token of
   * each such segment is the mention. Empty when the text does not mention it.
   */
  mentions(action: string): readonly number[];
}

/** One finished turn as a view sees it. */
export interface SeenTurn {
  readonly action: string;
  readonly observation: string;
}

interface ViewBase {
  /** Name and revision, recorded in traces: a policy is only valid under the view it was trained on. */
  readonly id: string;
  /** Phrases that become one token each (item names, object names). Lower case. */
  readonly lexicon: readonly string[];
  /** Words of the world outside the lexicon that deserve a token of their own. */
  readonly words: readonly string[];
}

/** The prompt is read once (and shared by the group); every turn appends a few tokens to it. */
export interface AppendView extends ViewBase {
  readonly mode: 'append';
  prompt(first: First): Rendered;
  /** Text appended after a turn: the action in short and what came of it. */
  turn(turn: SeenTurn): string;
}

/** The whole text is rendered anew for every turn; nothing is kept between turns. */
export interface WindowView extends ViewBase {
  readonly mode: 'window';
  /** @param turns the finished turns, oldest first */
  render(first: First, turns: readonly SeenTurn[]): Rendered;
}

export type View = AppendView | WindowView;
