/** Mentions: the names, numbers and listed words of an English text, by their form alone. */
import { LIST_WORDS } from './wiki/words.ts';

/** Runs of capitalised words, numbers, and words of the embedded world's closed lists. */
const MENTION =
  /UTC[+-]\d\d:\d\d|\p{Lu}[\p{L}\p{M}\p{N}'’/_-]*(?: (?:of )?\p{Lu}[\p{L}\p{M}\p{N}'’/_-]*)*|\d+|\p{Ll}+/gu;
/** Words that begin sentences and questions; taken off the front of a mention. */
const STARTERS = new Set(
  (
    'The A An In On At By For Of To And From Its It His Her He She Their They This That There Who Whom Whose What Which ' +
    'Where When Why How Is Are Was Were Do Does Did Has Have Had Name Into Doc Title As One Some People Banks Chemists ' +
    'Clocks Letters Little Visitors'
  ).split(' '),
);
const LOWER = /^\p{Ll}/u;

/** Names, numbers and listed words of a text, in order, each once. */
export function mentionsOf(passage: string): Set<string> {
  const mentions = new Set<string>();
  for (const [run] of passage.matchAll(MENTION)) {
    if (LOWER.test(run)) {
      if (LIST_WORDS.has(run)) mentions.add(run);
      continue;
    }
    let mention = run;
    for (let blank = mention.indexOf(' '); STARTERS.has(blank < 0 ? mention : mention.slice(0, blank)); ) {
      mention = blank < 0 ? '' : mention.slice(blank + 1).replace(/^of /, '');
      blank = mention.indexOf(' ');
      if (mention === '') break;
    }
    if (mention !== '') mentions.add(mention);
  }
  return mentions;
}
