/**
 * Word rules of NLTK's `word_tokenize`, on the whole text: its sentence splitter needs a data file and is not
 * imitated. Only the one-character rule of `must_include` asks for them.
 *
 * Source  NLTK 3.9, `nltk.tokenize.destructive.NLTKWordTokenizer` (Treebank rules)
 */
import { words } from './python.ts';

type Rule = readonly [pattern: RegExp, replacement: string];

const STARTING_QUOTES: readonly Rule[] = [
  [/([«“‘„]|`+)/gu, ' $1 '],
  [/^"/gu, '``'],
  [/(``)/gu, ' $1 '],
  [/([ ([{<])("|'{2})/gu, '$1 `` '],
  [/(')(?!re|ve|ll|m|t|s|d|n)([\p{L}\p{N}_])(?![\p{L}\p{N}_])/giu, '$1 $2'],
];
const PUNCTUATION: readonly Rule[] = [
  [/([^.])(\.)([\])}>"'»”’ ]*)\s*$/gu, '$1 $2 $3 '],
  [/([:,])(\P{Nd})/gu, ' $1 $2'],
  [/([:,])$/gu, ' $1 '],
  [/\.{2,}/gu, ' $& '],
  [/[;@#$%&]/gu, ' $& '],
  [/([^.])(\.)([\])}>"']*)\s*$/gu, '$1 $2$3 '],
  [/[?!]/gu, ' $& '],
  [/([^'])' /gu, "$1 ' "],
  [/[*]/gu, ' $& '],
  [/[\u2012-\u2015]/gu, ' $& '],
];
const BRACKETS: readonly Rule[] = [
  [/[\][(){}<>]/gu, ' $& '],
  [/--/gu, ' -- '],
];
const ENDING_QUOTES: readonly Rule[] = [
  [/([»”’])/gu, ' $1 '],
  [/''/gu, " '' "],
  [/"/gu, " '' "],
  [/\s+/gu, ' '],
  [/([^' ])('[sSmMdD]|') /gu, '$1 $2 '],
  [/([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) /gu, '$1 $2 '],
];
const CONTRACTIONS: readonly Rule[] = [
  ...[/\b(can)(not)\b/giu, /\b(d)('ye)\b/giu, /\b(gim)(me)\b/giu, /\b(gon)(na)\b/giu, /\b(got)(ta)\b/giu],
  ...[/\b(lem)(me)\b/giu, /\b(more)('n)\b/giu, /\b(wan)(na)(?=\s)/giu, / ('t)(is)\b/giu, / ('t)(was)\b/giu],
].map((pattern) => [pattern, ' $1 $2 '] as const);

/** Tokens of a text, as NLTK cuts one sentence. */
export function tokenize(text: string): string[] {
  let out = text;
  const apply = (rules: readonly Rule[]) => {
    for (const [pattern, replacement] of rules) out = out.replace(pattern, replacement);
  };
  apply(STARTING_QUOTES);
  apply(PUNCTUATION);
  apply(BRACKETS);
  out = ` ${out} `;
  apply(ENDING_QUOTES);
  apply(CONTRACTIONS);
  return words(out);
}
