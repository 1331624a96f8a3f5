/**
 * Word rules of NLTK's `word_tokenize`, on the whole text: its sentence splitter needs a data file and is not
 * imitated. Only the one-character rule of `must_include` asks for them.
 *
 * Source  NLTK 3.10, `nltk.tokenize.destructive.NLTKWordTokenizer` (Treebank rules)
 */
import { split } from '../../src/core/python-text.ts';

type Rule = readonly [pattern: RegExp, replacement: string];

const STARTING_QUOTES: readonly Rule[] = [
  [/([«“‘„]|`+)/gu, ' $1 '],
  [/^"/gu, '``'],
  [/(``)/gu, ' $1 '],
  [/([ ([{<])("|'{2})/gu, '$1 `` '],
  [/(?<![\p{L}\p{N}_])(')(?!(?:re|ve|ll|m|t|s|d|n)(?![\p{L}\p{N}_]))(?=[\p{L}\p{N}_])/giu, '$1 '],
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
/** Word characters of Python's `\w`; JavaScript's `\b` knows ASCII alone. */
const WORD = '[\\p{L}\\p{N}_]';
const [START, END] = [`(?<!${WORD})`, `(?!${WORD})`];
const CONTRACTIONS: readonly Rule[] = [
  ...['(can)(not)', "(d)('ye)", '(gim)(me)', '(gon)(na)', '(got)(ta)', '(lem)(me)', "(more)('n)"].map(
    (pattern): Rule => [new RegExp(`${START}${pattern}${END}`, 'giu'), ' $1 $2 '],
  ),
  [new RegExp(`${START}(wan)(na)(?=\\s)`, 'giu'), ' $1 $2 '],
  [new RegExp(` ('t)(is)${END}`, 'giu'), ' $1 $2 '],
  [new RegExp(` ('t)(was)${END}`, 'giu'), ' $1 $2 '],
];

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
  return split(out);
}
