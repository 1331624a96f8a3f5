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

/** A text cut at its mentions: `[text, mention, text, …, text]`, texts possibly empty. */
export function cutAtMentions(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(MENTION)) {
    const mention = LOWER.test(run) ? (LIST_WORDS.has(run) ? run : '') : stripStarters(run);
    if (mention === '') continue;
    const end = index + run.length;
    pieces.push(text.slice(from, end - mention.length), mention);
    from = end;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** Name at the end of a run of capitalised words. */
function stripStarters(run: string): string {
  let mention = run;
  for (let blank = mention.indexOf(' '); STARTERS.has(blank < 0 ? mention : mention.slice(0, blank)); ) {
    mention = blank < 0 ? '' : mention.slice(blank + 1).replace(/^of /, '');
    blank = mention.indexOf(' ');
    if (mention === '') break;
  }
  return mention;
}

/** Names, numbers and listed words of a text, in order, each once. */
export function mentionsOf(passage: string): Set<string> {
  return new Set(cutAtMentions(passage).filter((_, i) => i % 2 === 1));
}
