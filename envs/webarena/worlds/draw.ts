/** Small pieces that all worlds are drawn with: distinct names, dates, amounts. */
import type { Rng } from '../../../src/core/rng.ts';

/** The day every site takes for today; nothing reads a clock. */
const TODAY = '2023-06-12';
const TODAY_MS = Date.parse(`${TODAY}T00:00:00Z`);
const DAY_MS = 86_400_000;

/** Dates of the last days, newest first: making one from a number is slow. */
const DATES = Array.from({ length: 500 }, (_, days) => new Date(TODAY_MS - days * DAY_MS).toISOString().slice(0, 10));

/** `2023-05-30` for 13 days ago. @param days in [0, 500) */
export function daysAgo(days: number): string {
  return DATES[days]!;
}

/** Names of the months. */
export const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
] as const;

/** `May 2023` for `2023-05-30`. */
export function monthOf(date: string): string {
  return `${MONTHS[Number(date.slice(5, 7)) - 1]} ${date.slice(0, 4)}`;
}

/** `$12.50` for 1250. */
export function money(cents: number): string {
  return `$${(cents / 100).toFixed(2)}`;
}

/** Maker of texts that never makes the same one twice. */
export function distinct(make: () => string): () => string {
  const made = new Set<string>();
  return () => {
    for (let tries = 0; tries < 1000; tries++) {
      const text = make();
      if (made.has(text)) continue;
      made.add(text);
      return text;
    }
    throw new Error('webarena: the word lists are used up');
  };
}

/** Up to `n` of `items`, in the items' order. */
export function drawSome<T>(rng: Rng, items: readonly T[], n: number): T[] {
  const chosen = new Set(rng.shuffle(items).slice(0, n));
  return items.filter((item) => chosen.has(item));
}

/** Part of an address made of a text: `Blue Lamp` → `blue-lamp`. */
export function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}
