/**
 * Slots of an objective: the texts that it quotes, its numbers, and the word that it calls each by. `with the title "Lamp"
 * and 3 stars` has two: `Lamp`, called `title`, and `3`, called `stars`. What else bears that word (a field's label, a
 * column's header) is named by the objective: equality of words, whatever they mean.
 */

/** Slot of an objective. */
export interface Slot {
  readonly text: string;
  /** Words that stand beside it, as stems: the one before it, and before `to` and `on` the one before that. */
  readonly called: readonly string[];
  /** True where the word is the objective's first, a verb that orders: `Review "Lamp" …`. */
  readonly isOrder: boolean;
}

/** Pattern of a slot: a text in quotes, or a number. */
export const SLOT = /"([^"]+)"|\b\d+(?:[-.:]\d+)*\b/g;
const ARTICLES = new Set(['the', 'a', 'an', 'my', 'your', 'its']);
/** Words that mean little by themselves: the one before them counts too. */
const BRIDGES = new Set(['to', 'on']);

/** Slots kept: a group's members and all turns of an episode ask for the same ones. */
const kept = new Map<string, readonly Slot[]>();
const MAX_KEPT = 128;

/** Slots of an objective in the order in which they stand, each text once. */
export function slotsOf(objective: string): readonly Slot[] {
  const known = kept.get(objective);
  if (known) return known;
  const slots: Slot[] = [];
  let from = 0;
  for (const found of objective.matchAll(SLOT)) {
    const text = found[1] ?? found[0];
    const words = stems(objective.slice(from, found.index));
    const before = words.filter((word) => !ARTICLES.has(word));
    const isOrder = from === 0 && words.length === 1;
    from = found.index + found[0].length;
    if (slots.some((slot) => slot.text === text)) continue;
    // A number is as often called by the word after it: `3 stars`.
    const after = found[1] === undefined ? stems(objective.slice(from)).slice(0, 1) : [];
    const called = [...before.slice(BRIDGES.has(before.at(-1) ?? '') ? -2 : -1), ...after];
    slots.push({ text, called, isOrder });
  }
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(objective, slots);
  return slots;
}

/** Words of a text in lower case, without the plural's `s`. */
function stems(text: string): string[] {
  return (text.toLowerCase().match(/[a-z]+/g) ?? []).map(stem);
}

/** A word without the plural's `s`. */
export function stem(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}

/** True if a label has a word by which the objective calls the slot; after a first word alone, if it has no other. */
export function isCalled({ called, isOrder }: Slot, label: string): boolean {
  const words = stems(label);
  return isOrder ? words.join() === called.join() : words.some((word) => called.includes(word));
}
