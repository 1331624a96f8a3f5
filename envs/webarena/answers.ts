/**
 * Typed answers: what a task asks for, and whether a text gives it. One value of one type, in any usual notation; a list
 * of guesses is no answer.
 */
import { cleanAnswer, mustInclude } from './evaluate.ts';
import { MONTHS, money } from './worlds/draw.ts';
import { kilometres } from './worlds/map.ts';

/** Answer that a task asks for: one value of one type. */
export type Answer =
  | { readonly type: 'number'; readonly value: number }
  /** Cents. */
  | { readonly type: 'money'; readonly value: number }
  /** `2023-05-30` */
  | { readonly type: 'date'; readonly value: string }
  /** Metres, rounded to 100. */
  | { readonly type: 'distance'; readonly value: number }
  | { readonly type: 'minutes'; readonly value: number }
  | { readonly type: 'yesno'; readonly value: boolean }
  | { readonly type: 'text'; readonly value: string }
  /** The task cannot be done: `N/A`. */
  | { readonly type: 'none' };

/** An answer in words may be this many times as long as the right one, plus `SLACK` characters. */
const LENGTH_FACTOR = 2;
const SLACK = 24;

/** Text of an answer, as one would write it and as a page shows it. */
export function answerText(answer: Answer): string {
  switch (answer.type) {
    case 'number':
    case 'text':
    case 'date':
      return String(answer.value);
    case 'money':
      return money(answer.value);
    case 'distance':
      return kilometres(answer.value);
    case 'minutes':
      return `${answer.value} minutes`;
    case 'yesno':
      return answer.value ? 'Yes' : 'No';
    case 'none':
      return 'N/A';
  }
}

/** True if `given` states the answer and nothing that contradicts it. */
export function accepts(answer: Answer, given: string): boolean {
  const text = cleanAnswer(given);
  if (text.length > LENGTH_FACTOR * answerText(answer).length + SLACK) return false;
  switch (answer.type) {
    case 'number':
      return pickOnly(numbersIn(text)) === answer.value;
    case 'money':
      return Math.round((pickOnly(numbersIn(text)) ?? Number.NaN) * 100) === answer.value;
    case 'date':
      return pickOnly(datesIn(text)) === answer.value;
    case 'distance': {
      const value = pickOnly(distancesIn(text));
      return value !== undefined && Math.round(value / 100) === Math.round(answer.value / 100);
    }
    case 'minutes':
      return minutesOf(text) === answer.value;
    case 'yesno':
      return (answer.value ? YES : NO).test(text) && !(answer.value ? /\bno\b/ : /\byes\b/).test(text);
    case 'text':
      return contains(text, answer.value.toLowerCase());
    case 'none':
      return /^(n\/a|na|not achievable|impossible|unachievable)\.?$/.test(text);
  }
}

/** Accepts as WebArena's own evaluator does: inclusion, one character as a word. */
export function acceptsOriginal(answer: Answer, given: string): boolean {
  if (answer.type === 'none') return cleanAnswer(given) === 'n/a';
  return mustInclude(answerText(answer), given, true) === 1;
}

const YES = /^yes\b/;
/** `no`, alone or before a sentence of its own: "no idea" and "no reviews were found" answer nothing. */
const NO = /^no(?:$|[.,;:!]|\s+[-–—]|\s+(?:it|there|they|he|she|we|you|i|the|this|that|these|those)\b)/;

function pickOnly<T>(values: readonly T[]): T | undefined {
  const distinct = new Set(values);
  return distinct.size === 1 ? values[0] : undefined;
}

/** Numbers that stand alone; digits inside a word or a longer number do not count. */
function numbersIn(text: string): number[] {
  const found = text.matchAll(/(?<![\w.,-])-?\$?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,-]\d)/g);
  return Array.from(found, ([digits]) => Number(digits.replace(/[$,]/g, '')));
}

const MONTH = MONTHS.map((name) => name.slice(0, 3).toLowerCase());

function iso(year: string, month: number, day: string): string {
  return `${year}-${String(month).padStart(2, '0')}-${day.padStart(2, '0')}`;
}

/** Dates in the usual notations, as `2023-05-30`. */
function datesIn(text: string): string[] {
  const dates = Array.from(text.matchAll(/\b(\d{4})-(\d{1,2})-(\d{1,2})\b/g), ([, year, month, day]) =>
    iso(year!, Number(month), day!),
  );
  for (const [, name, day, year] of text.matchAll(/\b([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b/g)) {
    if (MONTH.includes(name!)) dates.push(iso(year!, MONTH.indexOf(name!) + 1, day!));
  }
  for (const [, day, name, year] of text.matchAll(/\b(\d{1,2})(?:st|nd|rd|th)?\.? ([a-z]{3})[a-z]*,? (\d{4})\b/g)) {
    if (MONTH.includes(name!)) dates.push(iso(year!, MONTH.indexOf(name!) + 1, day!));
  }
  for (const [, month, day, year] of text.matchAll(/\b(\d{1,2})\/(\d{1,2})\/(\d{4})\b/g))
    dates.push(iso(year!, Number(month), day!));
  return dates;
}

/** Metres. */
function distancesIn(text: string): number[] {
  const found = text.matchAll(/(?<![\w.])(\d+(?:,\d{3})*(?:\.\d+)?) ?(km|kilomet(?:er|re)s?|m|met(?:er|re)s?)\b/g);
  return Array.from(
    found,
    ([, digits, unit]) => Number(digits!.replaceAll(',', '')) * (unit!.startsWith('k') ? 1000 : 1),
  );
}

function minutesOf(text: string): number | undefined {
  const hours = pickOnly(Array.from(text.matchAll(/(\d+) ?h(?:ours?|rs?)?\b/g), ([, n]) => Number(n)));
  const rest = Array.from(text.matchAll(/(\d+) ?m(?:in(?:ute)?s?)?\b/g), ([, n]) => Number(n));
  if (hours === undefined && rest.length === 0) return pickOnly(numbersIn(text));
  const minutes = rest.length === 0 ? 0 : pickOnly(rest);
  return minutes === undefined ? undefined : 60 * (hours ?? 0) + minutes;
}

const WORD = /[\p{L}\p{N}_]/u;

/** True if `text` has `wanted` between word borders. */
function contains(text: string, wanted: string): boolean {
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const end = at + wanted.length;
    if ((at === 0 || !WORD.test(text[at - 1]!)) && (end === text.length || !WORD.test(text[end]!))) return true;
  }
  return false;
}
