/**
 * Evaluators of WebArena: answers (string_match), addresses (url_match) and page contents (program_html). Every score
 * is 0 or 1; several evaluators multiply.
 *
 * Source   web-arena-x/webarena at f62e0b99, `evaluation_harness/{evaluators,helper_functions}.py`
 * Differs  `corrected`: numbers and words are compared whole, a dump of answers fails, addresses match by path and
 *          each alternative by its own query (see README.md). Of `func:` helpers there is `reddit_get_post_url`; none is evaluated as code.
 */

import { decodeHTML } from 'entities';
import { largestOf } from '../../src/core/extremes.ts';
import { strip } from '../../src/core/python-text.ts';
import type { Fidelity } from './grammar.ts';
import { parseQuery, str, urlparse } from './python.ts';
import { tokenize } from './tokenize.ts';

/** Error inside an evaluator: the episode has failed, whatever was answered. `name` is Python's class. */
export class EvaluatorError extends Error {
  constructor(name: 'AssertionError' | 'ValueError' | 'RuntimeError', message: string) {
    super(message);
    this.name = name;
  }
}

/** `eval` of a task's configuration, as in WebArena's files. */
export interface Evaluation {
  readonly eval_types: readonly string[];
  readonly reference_answers?: Readonly<Record<string, unknown>> | null;
  readonly reference_url?: string;
  readonly url_note?: string;
  readonly program_html?: readonly HtmlTarget[];
  readonly string_note?: string;
}

/** Page that program_html opens, what it selects there, and what that must contain. */
export interface HtmlTarget {
  readonly url: string;
  readonly locator: string;
  readonly required_contents: Readonly<Record<string, unknown>>;
  readonly prep_actions?: readonly string[];
}

/** Page as program_html uses it. */
export interface EvaluationPage {
  url(): string;
  goto(url: string): Promise<void>;
  content(): Promise<string>;
  /** Value of a JavaScript function's source, e.g. `() => document.title`. @throws when the page throws */
  evaluate(source: string): Promise<unknown>;
}

/** Judge of fuzzy answers: a language model's verdict, as free text. */
export type Judge = (question: {
  readonly kind: 'answer' | 'reason';
  readonly intent: string;
  readonly reference: string;
  readonly answer: string;
}) => Promise<string>;

/** Answer without white space and quotes around it, in lower case. */
export function cleanAnswer(answer: string): string {
  let text = strip(answer);
  if (text.startsWith("'") && text.endsWith("'")) text = text.slice(1, -1);
  else if (text.startsWith('"') && text.endsWith('"')) text = text.slice(1, -1);
  return text.toLowerCase();
}

/** Score (0 or 1) of an answer that has to be the reference, cleaned alike. */
export function exactMatch(reference: string, answer: string): number {
  return Number(cleanAnswer(answer) === cleanAnswer(reference));
}

/**
 * Score (0 or 1) of an answer that has to contain the reference, cleaned alike. @param tokenized whether a
 * one-character reference must be a word of the answer
 */
export function mustInclude(reference: string, answer: string, tokenized: boolean): number {
  const ref = cleanAnswer(reference);
  const pred = cleanAnswer(answer);
  if (tokenized && [...ref].length === 1 && tokenize(ref).length === 1) return Number(tokenize(pred).includes(ref));
  return Number(pred.includes(ref));
}

/**
 * Whole-word inclusion: numbers are compared as numbers (`0` in `$0.00`, not in `10`), other references must stand
 * between word borders.
 */
function mustIncludeWhole(reference: string, answer: string): number {
  const ref = cleanAnswer(reference);
  const pred = cleanAnswer(answer);
  if (ref === '') return 1;
  const number = plainNumber(ref);
  if (number !== undefined) return Number(numbersIn(pred).includes(number));
  for (let at = pred.indexOf(ref); at >= 0; at = pred.indexOf(ref, at + 1)) {
    if (isBorder(pred, at) && isBorder(pred, at + ref.length)) return 1;
  }
  return 0;
}

const WORD = /[\p{L}\p{N}_]/u;

function isBorder(text: string, at: number): boolean {
  return at === 0 || at === text.length || !WORD.test(text[at - 1]!) || !WORD.test(text[at]!);
}

/**
 * Digits of a number in English text: commas stand between groups of three (`1,234.5`), a dot before decimals. Any other comma
 * separates two numbers, so `12,34` is 12 and 34, and neither 1234 nor 12.34.
 */
const DIGITS = String.raw`(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?`;
const WHOLE_NUMBER = new RegExp(String.raw`^\$?-?${DIGITS}$`);
/** Digits inside a word or behind another number's dot are no number. */
const NUMBERS = new RegExp(String.raw`(?<![\w.])-?${DIGITS}(?!\d)`, 'g');

function plainNumber(text: string): number | undefined {
  return WHOLE_NUMBER.test(text) ? Number(text.replace(/[$,]/g, '')) : undefined;
}

function numbersIn(text: string): number[] {
  return Array.from(text.matchAll(NUMBERS), ([digits]) => Number(digits.replaceAll(',', '')));
}

/** An answer may be this many times as long as all references together, plus `SLACK` characters. */
const DUMP_FACTOR = 8;
const SLACK = 80;

/** Score (0 or 1) of an answer by a task's `reference_answers`: exact_match, must_include, fuzzy_match. */
export async function stringMatch(
  evaluation: Evaluation,
  intent: string,
  answer: string,
  judge: Judge,
  fidelity: Fidelity = 'original',
): Promise<number> {
  const pred = cleanAnswer(answer);
  let score = 1;
  for (const [approach, value] of Object.entries(evaluation.reference_answers ?? {})) {
    if (approach === 'exact_match') score *= exactMatch(String(value), pred);
    else if (approach === 'must_include') score *= includesAll(asList(value), pred, fidelity);
    else if (approach === 'fuzzy_match' && value === 'N/A') {
      score *= exactMatch('N/A', pred);
      if (score !== 1) score = await reasonMatches(intent, evaluation.string_note ?? '', pred, judge);
    } else if (approach === 'fuzzy_match') {
      for (const reference of asList(value)) score *= await answerMatches(intent, reference, pred, judge);
    }
  }
  return score;
}

/** Score of an answer that has to contain every reference. Corrected, ` |OR| ` stands between alternatives of one reference. */
function includesAll(references: readonly string[], pred: string, fidelity: Fidelity): number {
  if (fidelity === 'original') {
    return references.reduce((score, ref) => score * mustInclude(ref, pred, references.length === 1), 1);
  }
  const length = references.reduce((sum, ref) => sum + ref.length, 0);
  if (pred.length > DUMP_FACTOR * length + SLACK) return 0;
  return references.reduce(
    (score, ref) => score * largestOf(ref.split(' |OR| ').map((one) => mustIncludeWhole(one, pred))),
    1,
  );
}

/** @throws {EvaluatorError} as the original's `assert isinstance(value, list)` */
function asList(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new EvaluatorError('AssertionError', '');
  return value.map(String);
}

async function answerMatches(intent: string, reference: string, answer: string, judge: Judge): Promise<number> {
  const verdict = (await judge({ kind: 'answer', intent, reference, answer })).toLowerCase();
  if (verdict.includes('partially correct') || verdict.includes('incorrect')) return 0;
  if (!verdict.includes('correct')) throw new EvaluatorError('AssertionError', '');
  return 1;
}

async function reasonMatches(intent: string, reference: string, answer: string, judge: Judge): Promise<number> {
  const verdict = (await judge({ kind: 'reason', intent, reference, answer })).toLowerCase();
  if (verdict.includes('different')) return 0;
  if (!verdict.includes('same')) throw new EvaluatorError('AssertionError', '');
  return 1;
}

interface Address {
  readonly base: string;
  readonly query: ReadonlyMap<string, readonly string[]>;
}

function addressOf(url: string): Address {
  const { netloc, path, query } = urlparse(url);
  return { base: netloc + path, query: parseQuery(query) };
}

/**
 * Score (0 or 1) of the last page's address by a task's `reference_url`. @throws {EvaluatorError} for a rule other
 * than `GOLD in PRED`
 */
export function urlMatch(evaluation: Evaluation, pageUrl: string, fidelity: Fidelity = 'original'): number {
  const rule = evaluation.url_note ?? 'GOLD in PRED';
  if (rule !== 'GOLD in PRED') throw new EvaluatorError('ValueError', `Unknown matching rule: ${rule}`);
  const pred = addressOf(stripSlashes(pageUrl));
  const references = (evaluation.reference_url ?? '').split(' |OR| ').map((url) => addressOf(stripSlashes(url)));
  if (fidelity === 'corrected') return Number(references.some((reference) => isAt(reference, pred)));
  if (!references.some(({ base }) => pred.base.includes(base))) return 0;
  const pooled = new Map<string, string[]>();
  for (const { query } of references) {
    for (const [key, values] of query) pooled.set(key, [...(pooled.get(key) ?? []), ...values]);
  }
  return Number([...pooled].every(([key, values]) => values.some((value) => pred.query.get(key)?.includes(value))));
}

/** The same page, with at least the reference's own query. */
function isAt(reference: Address, pred: Address): boolean {
  const same = stripSlashes(reference.base) === stripSlashes(pred.base);
  return (
    same && [...reference.query].every(([key, values]) => values.some((value) => pred.query.get(key)?.includes(value)))
  );
}

function stripSlashes(url: string): string {
  let end = url.length;
  while (end > 0 && url[end - 1] === '/') end--;
  return url.slice(0, end);
}

/** The post a forum address belongs to: its first three parts after the host, where they begin with `f`. */
export function redditPostUrl(url: string): string {
  const { scheme, netloc, path } = urlparse(url);
  const parts = path.split('/');
  if (parts.length < 4 || parts[1] !== 'f') return url;
  const [, forum, name, id] = parts;
  return `${scheme}://${netloc}/${forum}/${name}/${id}/`;
}

/** Score (0 or 1) of page contents by a task's `program_html`. */
export async function programHtml(evaluation: Evaluation, page: EvaluationPage): Promise<number> {
  let score = 1;
  for (const target of evaluation.program_html ?? []) {
    const url = targetUrl(target.url, page);
    if (url !== 'last') await page.goto(url);
    const selected = unescapeHtml(await select(target, page));
    score *= containsRequired(target.required_contents, selected);
  }
  return score;
}

function targetUrl(url: string, page: EvaluationPage): string {
  return url.startsWith('func') ? call((url.split('func:')[1] ?? '').replaceAll('__last_url__', page.url())) : url;
}

async function select(target: HtmlTarget, page: EvaluationPage): Promise<string> {
  const { locator } = target;
  if (strip(locator) === '') return page.content();
  if (locator.startsWith('document.') || locator.startsWith('[...document.')) {
    try {
      for (const action of target.prep_actions ?? []) await page.evaluate(`() => ${action}`);
    } catch {
      // The original goes on with what is there.
    }
    try {
      return str(await page.evaluate(`() => ${locator}`));
    } catch {
      return '';
    }
  }
  if (locator.startsWith('func:')) return call(locator.split('func:')[1]!.replaceAll('__page__', 'page'));
  throw new EvaluatorError('ValueError', `Unknown locator: ${locator}`);
}

const POST_URL = /^reddit_get_post_url\((['"])(.*)\1\)$/;

/** @throws {EvaluatorError} for a helper other than `reddit_get_post_url` */
function call(source: string): string {
  const url = POST_URL.exec(strip(source))?.[2];
  if (url === undefined) throw new EvaluatorError('RuntimeError', `Unknown helper: ${source}`);
  return redditPostUrl(url);
}

function containsRequired(required: Readonly<Record<string, unknown>>, selected: string): number {
  if ('exact_match' in required) return exactMatch(String(required.exact_match), selected);
  if (!('must_include' in required)) {
    const keys = Object.keys(required).map((key) => `'${key}'`);
    throw new EvaluatorError('ValueError', `Unknown required_contents: dict_keys([${keys.join(', ')}])`);
  }
  return asList(required.must_include).reduce((score, content) => {
    return score * largestOf(content.split(' |OR| ').map((alternative) => mustInclude(alternative, selected, false)));
  }, 1);
}

/** Character references that Python's `html.unescape` drops. */
function isDropped(code: number): boolean {
  const control = (code >= 1 && code <= 8) || (code >= 0xe && code <= 0x1f) || (code >= 0x7f && code <= 0x9f);
  return control || code === 0xb || (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) === 0xfffe;
}

/** Windows-1252 characters that numeric references 128–159 stand for; Python keeps the five that have none. */
const C1 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Python's `html.unescape`. */
function unescapeHtml(text: string): string {
  return text.replace(/&(?:#(\d+);?|#[xX]([0-9a-fA-F]+);?|([^\t\n\f <&#;]{1,32};?))/g, (all, decimal, hex, name) => {
    if (name !== undefined) return decodeHTML(all);
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    if (code >= 0x80 && code <= 0x9f) return C1[code - 0x80]!;
    if (code === 0xd) return '\r';
    if (code === 0 || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return '\ufffd';
    return isDropped(code) ? '' : String.fromCodePoint(code);
  });
}

/** End of an episode as evaluators see it. */
export interface Outcome {
  readonly intent: string;
  readonly answer: string;
  readonly page: EvaluationPage;
  readonly judge: Judge;
}

/**
 * Product of all evaluators a task names.
 * @throws {EvaluatorError} or whatever page and judge throw: a failure of the episode, never a reward
 */
export async function evaluate(evaluation: Evaluation, outcome: Outcome, fidelity: Fidelity): Promise<number> {
  let score = 1;
  for (const type of evaluation.eval_types) {
    if (type === 'string_match') {
      score *= await stringMatch(evaluation, outcome.intent, outcome.answer, outcome.judge, fidelity);
    } else if (type === 'url_match') score *= urlMatch(evaluation, outcome.page.url(), fidelity);
    else if (type === 'program_html') score *= await programHtml(evaluation, outcome.page);
    else throw new EvaluatorError('ValueError', `eval_type ${type} is not supported`);
  }
  return score;
}
