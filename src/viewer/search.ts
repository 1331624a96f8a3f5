/**
 * Search: a text in what an episode observed, answered and did. Pure, without imports: it runs in the server, and in the
 * page of a report.
 */
import type { EpisodeRow, TextMatch } from './api.ts';

/** Longest text that is looked for; the rest of it is left out. */
const MAX_NEEDLE = 200;
/** Characters that are shown before and after what was found. */
const BEFORE = 40;
const AFTER = 100;

/** Texts of an episode that are searched. */
export interface SearchedEpisode {
  readonly turns: readonly {
    readonly observation: string;
    readonly action: string;
    readonly response?: { readonly text: string } | undefined;
  }[];
  readonly finalObservation: string;
}

/** Needle of a text: without the space around it, in small letters, bounded; empty where nothing is asked for. */
export function needleOf(text: string): string {
  return text.trim().slice(0, MAX_NEEDLE).toLowerCase();
}

/** True for a text that asks for numbers of episodes, groups or tasks. */
export function asksForNumber(text: string): boolean {
  return /^\d+$/.test(text.trim());
}

/**
 * Match in the row of an episode: its sub-task or purpose.
 * @param needle from `needleOf`, not empty
 */
export function matchRow({ label, purpose }: EpisodeRow, needle: string): TextMatch | undefined {
  const inLabel = excerptAround(label, needle);
  if (inLabel) return { turn: 0, part: 'sub-task', ...inLabel, turns: 0 };
  const inPurpose = excerptAround(purpose, needle);
  return inPurpose && { turn: 0, part: 'purpose', ...inPurpose, turns: 0 };
}

/** Match in the turns of an episode, the first; small and capital letters are the same. */
export function matchTurns({ turns, finalObservation }: SearchedEpisode, needle: string): TextMatch | undefined {
  let first: Omit<TextMatch, 'turns'> | undefined;
  let count = 0;
  for (let t = 0; t <= turns.length; t++) {
    const { observation, response, action } = turns[t] ?? { observation: finalObservation, action: '' };
    const parts = [
      ['observation', observation],
      ['answer', response?.text ?? ''],
      ['action', action],
    ] as const;
    let here: Omit<TextMatch, 'turns'> | undefined;
    for (const [part, text] of parts) {
      if (here) break;
      const found = excerptAround(text, needle);
      if (found) here = { turn: t, part, ...found };
    }
    if (!here) continue;
    first ??= here;
    count++;
  }
  return first && { ...first, turns: count };
}

/**
 * Quick refusal: false where a line of a trace cannot hold the needle in any of its texts, so that it need not be parsed.
 * A line with escapes that other writers may use for what ours writes plainly is never refused.
 */
export function mayHold(line: string, needle: string): boolean {
  if (/\\[u/]/.test(line)) return true;
  return line.toLowerCase().includes(JSON.stringify(needle).slice(1, -1).toLowerCase());
}

/** Pieces of a text cut at each place of the needle: every second piece is one. */
export function cutAt(text: string, needle: string): string[] {
  const small = text.toLowerCase();
  if (needle === '' || small.length !== text.length) return [text]; // some letters grow when they become small
  const pieces: string[] = [];
  let from = 0;
  for (let at = small.indexOf(needle); at >= 0; at = small.indexOf(needle, from)) {
    pieces.push(text.slice(from, at), text.slice(at, at + needle.length));
    from = at + needle.length;
  }
  return [...pieces, text.slice(from)];
}

function excerptAround(text: string, needle: string): Pick<TextMatch, 'before' | 'found' | 'after'> | undefined {
  const small = text.toLowerCase();
  const at = small.indexOf(needle);
  if (at < 0) return undefined;
  const whole = small.length === text.length ? text : small;
  const end = at + needle.length;
  return {
    before: whole.slice(Math.max(0, at - BEFORE), at),
    found: whole.slice(at, end),
    after: whole.slice(end, end + AFTER),
  };
}
