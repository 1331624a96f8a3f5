/**
 * Views: the text that the local policy reads. The raw observation stays the original's; a view renders
 * it short, because a small model pays for every token. Views are pure functions of the episode so far.
 */
import type { First } from './env.ts';

/**
 * Rendered text, cut into segments so that actions can point at the places that mention them. Segments are joined
 * without a separator; each ends where a token ends.
 */
export interface Rendered {
  readonly segments: readonly string[];
  /**
   * Focus: the words that the episode is about (e.g. the goal item). Every token of the episode that also occurs in
   * `focus` carries one extra input bit; empty for none.
   */
  readonly focus: string;
  /**
   * Mentions of an action: indices into `segments`, ascending, at most `maxMentions`; the last token of each such
   * segment is the mention. Empty when the text does not mention it.
   */
  mentions(action: string): readonly number[];
}

/** Finished turn as a view sees it: the action and what came of it. */
export interface SeenTurn {
  readonly action: string;
  readonly observation: string;
  /** True when the action was a stage, not yet a whole action: the world has not moved, and lists the next stage. */
  readonly partial?: true;
}

/** Memory of an episode, folded turn by turn: plain data, never changed in place. */
export interface Track<S> {
  begin(first: First): S;
  /** @param turn a partial one too */
  reduce(state: S, turn: SeenTurn): S;
  /**
   * Name of the situation that the memory is in, equal where the episode stands at the same point whatever way led
   * there. GiGPO compares the decisions of a group that were taken in one. The last observation without it.
   */
  situation?(state: S): string;
}

interface ViewBase<S> {
  /** Name and revision, recorded in traces: a policy is only valid under the view it was trained on. */
  readonly id: string;
  /** Phrases that become one token each (item names, object names). Lower case. */
  readonly lexicon: readonly string[];
  /** Words of the world outside the lexicon that deserve a token of their own. */
  readonly words: readonly string[];
  /** Memory handed to the functions below as `state`; without it they get `undefined`. */
  readonly track?: Track<S>;
  /**
   * Text that the policy reads of a listed action, which may restate what concerns it (`get 2 oak log held 1`). The
   * action itself without it; what is played is always the listed text.
   */
  candidate?(action: string, state: S): string;
}

/** View of append mode: a prompt read once (and shared by the group), to which every turn appends a few tokens. */
export interface AppendView<S = unknown> extends ViewBase<S> {
  readonly mode: 'append';
  prompt(first: First): Rendered;
  /**
   * Text appended after a turn: the action in short and what came of it.
   * @param state memory after the turn
   */
  turn(turn: SeenTurn, state: S): string;
}

/** View of window mode: a text rendered anew for every turn; nothing but `state` is kept between turns. */
export interface WindowView<S = unknown> extends ViewBase<S> {
  readonly mode: 'window';
  /**
   * @param turns the finished turns, oldest first
   * @param state memory after the last of them
   */
  render(first: First, turns: readonly SeenTurn[], state: S): Rendered;
}

/** View of a world: the text that the local policy reads. */
export type View = AppendView | WindowView;
