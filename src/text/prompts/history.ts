/**
 * History policy: the part of a long episode that a model is shown again. A turn (an observation and its answer) stays
 * whole or goes whole, and the first one stays longest: it holds the goal.
 */
export type HistoryPolicy =
  | { readonly type: 'full' }
  /** Window: the first turn and the newest `turns` others. */
  | { readonly type: 'window'; readonly turns: number }
  /**
   * Budget: as many of the newest turns as fit, beside everything else, into `promptTokens`; the first one before them.
   */
  | { readonly type: 'budget'; readonly promptTokens: number };

/**
 * Turns to show.
 * @param costs [T] tokens of each finished turn, oldest first
 * @param fixed tokens that are always there: instructions and the newest observation
 * @returns indices, ascending
 */
export function selectTurns(policy: HistoryPolicy, costs: readonly number[], fixed: number): readonly number[] {
  const all = costs.map((_, turn) => turn);
  if (policy.type === 'full' || costs.length === 0) return all;
  if (policy.type === 'window') {
    return all.filter((turn) => turn === 0 || turn >= costs.length - policy.turns);
  }
  let left = policy.promptTokens - fixed - costs[0]!;
  if (left < 0) return [];
  let from = costs.length;
  while (from > 1 && costs[from - 1]! <= left) left -= costs[--from]!;
  return all.filter((turn) => turn === 0 || turn >= from);
}

/** Characters of English text per token, on the low side: rather a turn too few than a prompt too long. */
const CHARS_PER_TOKEN = 3.5;
/** Tokens that a chat template adds to a message. */
const MESSAGE_TOKENS = 5;

/** Estimates the tokens of a message, rather too many than too few. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN) + MESSAGE_TOKENS;
}
