/** WebArena's evaluators: what each pays, in both fidelities, and what is an error and never a reward. */
import { describe, expect, it } from 'vitest';
import {
  cleanAnswer,
  type Evaluation,
  type EvaluationPage,
  evaluate,
  exactMatch,
  type Judge,
  programHtml,
  redditPostUrl,
  stringMatch,
  urlMatch,
} from '../../../envs/webarena/evaluate.ts';

const unreachable: Judge = () => Promise.reject(new Error('judge unreachable'));
/** Makes a judge that always answers the same and records its questions. */
function fixedJudge(verdict: string) {
  const questions: unknown[] = [];
  const judge: Judge = async (question) => {
    questions.push(question);
    return verdict;
  };
  return { judge, questions };
}
const answers = (reference_answers: Record<string, unknown>, rest: Partial<Evaluation> = {}): Evaluation => ({
  eval_types: ['string_match'],
  reference_answers,
  ...rest,
});

describe('cleaning an answer', () => {
  it.each([
    ['  Yes ', 'yes'],
    ["'Yes'", 'yes'],
    ['"Yes"', 'yes'],
    [`'Yes"`, `'yes"`],
    ["'", ''],
    ['"it"s"', 'it"s'],
  ])('%j is %j', (text, expected) => {
    expect(cleanAnswer(text)).toBe(expected);
  });

  it('lets answers match in any case and in quotes', () => {
    expect(exactMatch('Ada Dahl', '"ada dahl"')).toBe(1);
    expect(exactMatch('Ada Dahl', 'Ada  Dahl')).toBe(0);
  });
});

describe('answers', () => {
  const score = (reference: Record<string, unknown>, answer: string, fidelity: 'original' | 'corrected' = 'original') =>
    stringMatch(answers(reference), 'intent', answer, unreachable, fidelity);

  it.each([
    [{ exact_match: '557m' }, '557m', 1],
    [{ exact_match: '557m' }, 'It is 557m', 0],
    [{ must_include: ['a', 'bc'] }, 'abc', 1],
    [{ must_include: ['ab', 'cd'] }, 'ab', 0],
    [{ must_include: [] }, 'anything', 1],
    [{}, 'anything', 1],
    [{ exact_match: 'x', must_include: ['x'] }, 'x', 1],
    [{ exact_match: 'x', must_include: ['y'] }, 'x', 0],
  ])('%j of %j: %i', async (reference, answer, expected) => {
    expect(await score(reference, answer)).toBe(expected);
  });

  it.each([
    ['$0.00', '0', 1],
    ['10', '0', 0],
    ['1,024', '1024', 1],
    ['-5', '5', 0],
    ['5.0', '5', 1],
    ['version 5', '5', 1],
    ['v5', '5', 0],
    ['The Ladle', 'ladle', 1],
    ['Ladles', 'ladle', 0],
    ['naïve', 'na', 0],
  ])('corrected: %j includes %j: %i', async (answer, reference, expected) => {
    expect(await score({ must_include: [reference] }, answer, 'corrected')).toBe(expected);
  });

  it('corrected: a dump of everything includes nothing', async () => {
    const dump = Array.from({ length: 60 }, (_, i) => `item ${i}`).join(', ');
    expect(await score({ must_include: ['item 7'] }, dump, 'original')).toBe(1);
    expect(await score({ must_include: ['item 7'] }, dump, 'corrected')).toBe(0);
  });

  it.each([{ must_include: 'text' }, { fuzzy_match: 7 }])('%j is an error of the task', async (reference) => {
    await expect(score(reference, 'x')).rejects.toMatchObject({ name: 'AssertionError' });
  });
});

describe('answers that a model judges', () => {
  it.each([
    ['correct', 1],
    ['The answer is CORRECT.', 1],
    ['incorrect', 0],
    ['partially correct', 0],
  ])('a verdict "%s" pays %i', async (verdict, expected) => {
    const { judge, questions } = fixedJudge(verdict);
    expect(await stringMatch(answers({ fuzzy_match: ['4 days'] }), 'How long?', 'Four', judge)).toBe(expected);
    expect(questions).toEqual([{ kind: 'answer', intent: 'How long?', reference: '4 days', answer: 'four' }]);
  });

  it('all have to be right', async () => {
    let n = 0;
    const judge: Judge = async () => (n++ === 0 ? 'correct' : 'incorrect');
    expect(await stringMatch(answers({ fuzzy_match: ['a', 'b'] }), '', 'x', judge)).toBe(0);
    expect(n).toBe(2);
  });

  it('with a verdict that is none are an error', async () => {
    await expect(
      stringMatch(answers({ fuzzy_match: ['a'] }), '', 'x', fixedJudge('maybe').judge),
    ).rejects.toMatchObject({
      name: 'AssertionError',
    });
  });

  it('that cannot be requested are an error', async () => {
    await expect(stringMatch(answers({ fuzzy_match: ['a'] }), '', 'x', unreachable)).rejects.toThrow(
      'judge unreachable',
    );
  });
});

describe('tasks that cannot be done', () => {
  const task = answers({ fuzzy_match: 'N/A' }, { string_note: 'no phone is listed' });

  it('pay N/A without asking', async () => {
    expect(await stringMatch(task, '', 'n/a', unreachable)).toBe(1);
  });

  it.each([
    ['same', 1],
    ['different', 0],
  ])('pay a reason that is judged "%s": %i', async (verdict, expected) => {
    const { judge, questions } = fixedJudge(verdict);
    expect(await stringMatch(task, 'Call?', 'There is no number', judge)).toBe(expected);
    expect(questions).toEqual([
      { kind: 'reason', intent: 'Call?', reference: 'no phone is listed', answer: 'there is no number' },
    ]);
  });

  it('with a verdict that is none are an error', async () => {
    await expect(stringMatch(task, '', 'x', fixedJudge('hm').judge)).rejects.toMatchObject({ name: 'AssertionError' });
  });
});

describe('addresses', () => {
  const at = (reference_url: string, url: string, fidelity: 'original' | 'corrected' = 'original') =>
    urlMatch({ eval_types: ['url_match'], reference_url }, url, fidelity);

  it.each([
    ['http://s.x/a', 'http://s.x/a', 1, 1],
    ['http://s.x/a', 'http://s.x/a/', 1, 1],
    ['http://s.x/a', 'https://s.x/a', 1, 1],
    ['http://s.x/a', 'http://s.x/b', 0, 0],
    ['http://s.x/a', 'http://s.x/a/b', 1, 0],
    ['http://s.x/a?q=1', 'http://s.x/a', 0, 0],
    ['http://s.x/a?q=1', 'http://s.x/a?q=2', 0, 0],
    ['http://s.x/a?q=1', 'http://s.x/a?r=3&q=1', 1, 1],
    ['http://s.x/a?q=1&q=2', 'http://s.x/a?q=2', 1, 1],
    ['http://s.x/a |OR| http://s.x/b', 'http://s.x/b', 1, 1],
    ['http://s.x/a?q=1 |OR| http://s.x/b?q=2', 'http://s.x/a?q=2', 1, 0],
    ['http://s.x', 'http://s.x/any', 1, 0],
    ['http://s.x/a#top', 'http://s.x/a', 1, 1],
  ])('%s at %s: original %i, corrected %i', (reference, url, original, corrected) => {
    expect([at(reference, url), at(reference, url, 'corrected')]).toEqual([original, corrected]);
  });

  it('by another rule are an error', () => {
    expect(() => urlMatch({ eval_types: ['url_match'], reference_url: 'x', url_note: 'EXACT' }, 'x')).toThrow(
      'Unknown matching rule: EXACT',
    );
  });
});

/** A page whose script answers come from a table; sources that are not in it throw. */
function pageOf(
  content: string,
  scripts: Record<string, unknown> = {},
): EvaluationPage & { readonly visited: string[] } {
  const visited: string[] = [];
  return {
    visited,
    url: () => 'http://forum.test/f/books/12/title',
    goto: async (url) => {
      visited.push(url);
    },
    content: async () => content,
    evaluate: async (source) => {
      if (source in scripts) return scripts[source];
      throw new Error(`no ${source}`);
    },
  };
}

const program = (...program_html: Evaluation['program_html'] & object): Evaluation => ({
  eval_types: ['program_html'],
  program_html,
});

describe('contents of pages', () => {
  it('are looked for in the whole page where no locator is given', async () => {
    const page = pageOf('<p>Thanks &amp; bye</p>');
    const target = { url: 'http://s.x/a', locator: ' ', required_contents: { must_include: ['thanks & bye'] } };
    expect(await programHtml(program(target), page)).toBe(1);
    expect(page.visited).toEqual(['http://s.x/a']);
  });

  it('on the last page are looked for without going anywhere', async () => {
    const page = pageOf('x');
    await programHtml(program({ url: 'last', locator: '', required_contents: { exact_match: 'x' } }), page);
    expect(page.visited).toEqual([]);
  });

  it('are taken out of the page by a script', async () => {
    const page = pageOf('', { '() => document.title': 'Harbour', '() => [...document.links].length': 3 });
    const target = (locator: string, exact: string) =>
      program({ url: 'last', locator, required_contents: { exact_match: exact } });
    expect(await programHtml(target('document.title', 'harbour'), page)).toBe(1);
    expect(await programHtml(target('[...document.links].length', '3'), page)).toBe(1);
    expect(await programHtml(target('document.title', 'other'), page)).toBe(0);
  });

  it('that a script cannot find are an empty text', async () => {
    const target = { url: 'last', locator: 'document.gone', required_contents: { exact_match: '' } };
    expect(await programHtml(program(target), pageOf('x'))).toBe(1);
  });

  it('are looked for after preparing the page, even where that fails', async () => {
    const page = pageOf('', { '() => document.title': 'T' });
    const target = {
      url: 'last',
      locator: 'document.title',
      prep_actions: ['document.open()'],
      required_contents: { exact_match: 't' },
    };
    expect(await programHtml(program(target), page)).toBe(1);
  });

  it.each([
    ['a |OR| b', 'xb', 1],
    ['a |OR| b', 'xc', 0],
  ])('%j in %j: %i', async (content, text, expected) => {
    const target = { url: 'last', locator: '', required_contents: { must_include: [content] } };
    expect(await programHtml(program(target), pageOf(text))).toBe(expected);
  });

  it('of several targets multiply', async () => {
    const target = (content: string) => ({ url: 'last', locator: '', required_contents: { must_include: [content] } });
    expect(await programHtml(program(target('a'), target('b')), pageOf('ab'))).toBe(1);
    expect(await programHtml(program(target('a'), target('z')), pageOf('ab'))).toBe(0);
  });

  it.each([
    ['&lt;b&gt;', '<b>'],
    ['&#128512;', '😀'],
    ['&#x80;', '€'],
    ['&#0;', '\ufffd'],
    ['&#1;x', 'x'],
    ['a&nbsp;b', 'a\u00a0b'],
    ['&unknown;', '&unknown;'],
  ])('%s is read as %j', async (source, text) => {
    const target = { url: 'last', locator: '', required_contents: { exact_match: text } };
    expect(await programHtml(program(target), pageOf(source))).toBe(1);
  });

  it('may stand at the address of the post', async () => {
    const page = pageOf('x');
    const url = "func:reddit_get_post_url('__last_url__')";
    await programHtml(program({ url, locator: '', required_contents: { exact_match: 'x' } }), page);
    expect(page.visited).toEqual(['http://forum.test/f/books/12/']);
  });

  it.each([
    [{ url: 'func:run_anything()', locator: '', required_contents: { exact_match: '' } }, 'Unknown helper'],
    [{ url: 'last', locator: 'lambda x: x', required_contents: { exact_match: '' } }, 'Unknown locator'],
    [
      { url: 'last', locator: '', required_contents: { looks_like: '' } },
      "Unknown required_contents: dict_keys(['looks_like'])",
    ],
    [{ url: 'last', locator: '', required_contents: { must_include: 'text' } }, ''],
  ])('%j is an error of the task', async (target, message) => {
    await expect(programHtml(program(target), pageOf(''))).rejects.toThrow(message);
  });
});

describe('the post of an address', () => {
  it.each([
    ['http://r.x/f/books/12/a-title?x=1', 'http://r.x/f/books/12/'],
    ['http://r.x/f/books', 'http://r.x/f/books'],
    ['http://r.x/user/ada/comments', 'http://r.x/user/ada/comments'],
  ])('%s is %s', (url, post) => {
    expect(redditPostUrl(url)).toBe(post);
  });
});

describe('a task', () => {
  const outcome = (answer: string) => ({ intent: '', answer, page: pageOf('Thanks'), judge: unreachable });
  const both: Evaluation = {
    eval_types: ['string_match', 'program_html'],
    reference_answers: { exact_match: 'yes' },
    program_html: [{ url: 'last', locator: '', required_contents: { must_include: ['thanks'] } }],
  };

  it('pays the product of its evaluators', async () => {
    expect(await evaluate(both, outcome('yes'), 'original')).toBe(1);
    expect(await evaluate(both, outcome('no'), 'original')).toBe(0);
  });

  it('that names an unknown evaluator is an error', async () => {
    await expect(evaluate({ eval_types: ['vibes'] }, outcome('x'), 'corrected')).rejects.toMatchObject({
      name: 'ValueError',
      message: 'eval_type vibes is not supported',
    });
  });
});
