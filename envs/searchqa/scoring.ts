/**
 * Scores of an answer and of a whole conversation. Answers are compared after SQuAD's normalisation.
 *
 * @see Search-R1 `verl/utils/reward_score/qa_em.py` and `qa_em_format.py` (AgentGym has copies of both); F1 after
 *   FlashRAG `metrics.py`
 */
import { split, strip } from '../../src/core/python-text.ts';
import { contentsOf, extractAnswer, TAGS } from './grammar.ts';

/** One right answer, or several; a text counts as a list of one. */
export type Golden = string | readonly string[];

const PUNCTUATION = /[!-/:-@[-`{-~]/g;
/** Python's `\b(a|an|the)\b`, whose word characters are letters and numbers of any script, and `_`. */
const ARTICLES = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;

/** SQuAD's normalisation: lower case, no ASCII punctuation, no articles, single blanks; in this order. */
export function normalize(answer: string): string {
  return split(answer.toLowerCase().replace(PUNCTUATION, '').replace(ARTICLES, ' ')).join(' ');
}

/** Exact match of the prediction with a golden answer, both normalised. */
export function exactMatch(prediction: string, golden: Golden): boolean {
  const normalized = normalize(prediction);
  return answers(golden).some((answer) => normalize(answer) === normalized);
}

/** Golden answer as a substring of the prediction, both normalised; an empty one is in every prediction. */
export function subMatch(prediction: string, golden: Golden): boolean {
  const normalized = normalize(prediction);
  return answers(golden).some((answer) => normalized.includes(normalize(answer)));
}

/** Overlap of two bags of tokens, each in [0, 1]. */
export interface Overlap {
  readonly f1: number;
  readonly precision: number;
  readonly recall: number;
}

const CLOSED = new Set(['yes', 'no', 'noanswer']);

/** Best overlap over the golden answers, each figure on its own; none where one side alone is yes, no or noanswer. */
export function tokenOverlap(prediction: string, golden: Golden): Overlap {
  const best = { f1: 0, precision: 0, recall: 0 };
  const predicted = normalize(prediction);
  const tokens = split(predicted);
  for (const answer of answers(golden).map(normalize)) {
    if (predicted !== answer && (CLOSED.has(predicted) || CLOSED.has(answer))) continue;
    const wanted = split(answer);
    const shared = countShared(tokens, wanted);
    if (shared === 0) continue;
    const precision = shared / tokens.length;
    const recall = shared / wanted.length;
    best.precision = Math.max(best.precision, precision);
    best.recall = Math.max(best.recall, recall);
    best.f1 = Math.max(best.f1, (2 * precision * recall) / (precision + recall));
  }
  return best;
}

function countShared(a: readonly string[], b: readonly string[]): number {
  const left = new Map<string, number>();
  for (const token of a) left.set(token, (left.get(token) ?? 0) + 1);
  let shared = 0;
  for (const token of b) {
    const n = left.get(token) ?? 0;
    if (n > 0) {
      shared++;
      left.set(token, n - 1);
    }
  }
  return shared;
}

/** Search-R1's outcome score of a whole text: 1 for a right last answer, `formatScore` for another, 0 for none. */
export function outcomeScore(
  text: string,
  golden: Golden,
  options: { minAnswers?: number; formatScore?: number; match?: typeof exactMatch } = {},
): number {
  const { minAnswers = 1, formatScore = 0, match = exactMatch } = options;
  const answer = extractAnswer(text, minAnswers);
  if (answer === undefined) return 0;
  return match(answer, golden) ? 1 : formatScore;
}

/** Worth of a conversation's form beside its answer; Search-R1's scripts train with 0.2, 0.1 and 0. */
export interface FormatWeights {
  /** A valid sequence with a wrong answer or none; taken off a right one that is not valid. Default 0. */
  readonly structure?: number;
  /** An answer that is wrong, in a sequence that is not valid. Default 0. */
  readonly final?: number;
  /** On top of `structure` where a passage that was read holds a golden answer. Default 0. */
  readonly retrieval?: number;
}

/**
 * Search-R1's score of answer and form over a whole conversation.
 * @param options `minAnswers` is `min` of `extractAnswer`; `original` keeps two defects: an end-of-turn mark behind the
 *   answer makes the sequence invalid, and a golden answer given as one text is looked for letter by letter
 */
export function formatScore(
  text: string,
  golden: Golden,
  weights: FormatWeights,
  options: { minAnswers?: number; original?: boolean } = {},
): number {
  const { structure = 0, final = 0, retrieval = 0 } = weights;
  const { minAnswers = 1, original = false } = options;
  const { valid } = checkSequence(original ? text : text.replace(END_MARKS, ''));
  const answer = extractAnswer(text, minAnswers);
  if (answer !== undefined && exactMatch(answer, golden)) return valid ? 1 : 1 - structure;
  if (valid) return retrievalHolds(text, golden, original) ? structure + retrieval : structure;
  return answer === undefined ? 0 : final;
}

/** Marks that a chat template puts behind a turn, and white space among them. */
const END_MARKS = /(?:<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|<\/s>|\s)+$/;

/** True where a passage that was read holds a golden answer, both normalised. */
export function retrievalHolds(text: string, golden: Golden, original = false): boolean {
  const wanted = (typeof golden === 'string' && original ? [...golden] : answers(golden)).map(normalize);
  return contentsOf(text, 'information').some((block) => {
    const read = normalize(strip(block));
    return wanted.some((answer) => read.includes(answer));
  });
}

/** Verdict on the form think → search → information → … → think → answer. */
export interface SequenceCheck {
  readonly valid: boolean;
  /** The original's words. */
  readonly reason: string;
}

const ASSISTANT = '<|im_start|>assistant';
const PIECES = /(<\/?(?:think|search|information|answer)>)/;
const IS_TAG = /^<\/?(?:think|search|information|answer)>/;

/** State → tag → next state. */
const NEXT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  start: { '<think>': 'in_think' },
  information: { '<think>': 'in_think' },
  in_think: { '</think>': 'after_think' },
  after_think: { '<search>': 'in_search', '<answer>': 'in_answer' },
  in_search: { '</search>': 'after_search' },
  after_search: { '<information>': 'in_information' },
  in_information: { '</information>': 'information' },
  in_answer: { '</answer>': 'end' },
};

/** Checks what stands behind the first assistant mark. */
export function checkSequence(text: string): SequenceCheck {
  const refuse = (reason: string) => ({ valid: false, reason });
  const marker = text.indexOf(ASSISTANT);
  if (marker < 0) return refuse('Missing assistant marker');
  const content = text.slice(marker + ASSISTANT.length);
  for (const tag of TAGS) {
    const [opened, closed] = [count(content, `<${tag}>`), count(content, `</${tag}>`)];
    if (opened !== closed) return refuse(`Mismatch in ${tag} tags: ${opened} opening vs ${closed} closing tags`);
  }
  let state = 'start';
  for (const piece of content.split(PIECES)) {
    const words = strip(piece);
    if (words === '') continue;
    if (IS_TAG.test(piece)) {
      const next = NEXT[state]?.[piece];
      if (next === undefined) return refuse(`Unexpected tag ${piece} in state ${state}`);
      state = next;
    } else if (state === 'end') return refuse('Unexpected content in state end');
    else if (!state.startsWith('in_')) {
      return refuse(`Unexpected content '${words}' between tags (state: ${state})`);
    }
  }
  return state === 'end'
    ? { valid: true, reason: 'Valid sequence format' }
    : refuse(`Incomplete sequence, ended in state ${state}`);
}

function count(text: string, part: string): number {
  let n = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) n++;
  return n;
}

function answers(golden: Golden): readonly string[] {
  return typeof golden === 'string' ? [golden] : golden;
}
