/** The three dialects, by their ids. */
import { chat } from './chat.ts';
import type { Dialect, DialectId } from './dialect.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

/** Dialect of each id. */
export const DIALECTS: Readonly<Record<DialectId, Dialect>> = { chat, responses, messages };
