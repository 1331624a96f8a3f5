/** The three dialects, by their ids. */
import { chat } from './chat.ts';
import type { Dialect, DialectId } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** Dialect of each id. */
export const DIALECTS: Readonly<Record<DialectId, Dialect>> = { chat, responses, messages };

/** Finds the dialect in whose form a path is refused: that of its route, or of chat completions. */
export function dialectOf(path: string): Dialect {
  if (/(?:^|\/)messages\b/.test(path)) return messages;
  return /(?:^|\/)responses\b/.test(path) ? responses : chat;
}
