/**
 * Analyzers: text → the tokens that are indexed and searched. The same one must read passages and queries, so an index
 * keeps the name of its own.
 */
import { stemmer } from 'stemmer';

/**
 * Name of an analyzer. `plain`: runs of letters and digits, lower case. `english`: like Lucene's English chain, which
 * Pyserini's indexes use.
 */
export type AnalyzerName = 'plain' | 'english';
/** Analyzer: the tokens of a text in order, each well-formed and of at most 255 UTF-16 units; what is longer is cut. */
export type Analyzer = (text: string) => string[];

const RUNS = /[\p{L}\p{N}]+/gu;
const ASCII_RUNS = /[a-z0-9]+/g;
/** Words, an apostrophe inside one kept. */
const WORDS = /[\p{L}\p{N}\p{M}_]+(?:['’][\p{L}\p{N}\p{M}_]+)*/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII's
const ASCII = /^[\x00-\x7f]*$/;
const MAX_UNITS = 255;

/** Stop words, Lucene's 33 English ones. */
const STOP_WORDS = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such that the their then there these they this ' +
    'to was will with'
  ).split(' '),
);

/** Plain analyzer: runs of letters and digits of any script, lower case. */
function plain(text: string): string[] {
  const lower = text.toLowerCase();
  return boundTokens(lower.match(ASCII.test(lower) ? ASCII_RUNS : RUNS) ?? []);
}

/** English analyzer: words without a possessive 's, lower case, without stop words, stemmed by Porter's algorithm. */
function english(text: string): string[] {
  const tokens: string[] = [];
  for (const word of boundTokens(text.match(WORDS) ?? [])) {
    const token = word.replace(/['’][sS]$/, '').toLowerCase();
    if (!STOP_WORDS.has(token)) tokens.push(token.length > 2 ? stemmer(token) : token);
  }
  return boundTokens(tokens);
}

/** Bounds the length of tokens, never cutting inside a surrogate pair. */
function boundTokens(tokens: string[]): string[] {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (token.length <= MAX_UNITS) continue;
    const last = token.charCodeAt(MAX_UNITS - 1);
    tokens[i] = token.slice(0, last >= 0xd800 && last < 0xdc00 ? MAX_UNITS - 1 : MAX_UNITS);
  }
  return tokens;
}

export const ANALYZERS: Readonly<Record<AnalyzerName, Analyzer>> = { plain, english };
