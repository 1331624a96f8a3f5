/**
 * SearchQA's view restates what was read and gives no answer away. A rule that reads its marks and learns nothing must
 * not do better, by more than five points, than choosing at random; and one that matches its words with the question's
 * not better, by as much, than a player without a view who matches those of the raw text.
 */
import { describe, expect, it } from 'vitest';
import { parse, print } from '../../../envs/searchqa/grammar.ts';
import { createEnv, start, view } from '../../../envs/searchqa/index.ts';
import { mentionsOf } from '../../../envs/searchqa/mentions.ts';
import { readPassages, readQuestion } from '../../../envs/searchqa/text.ts';
import type { EnvStep } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';
import { ANALYZERS } from '../../../src/retrieval/analyzer.ts';

const track = view.track!;
type Read = ReturnType<typeof track.begin>;

const resources = await start({}, { where: 'test' });
const env = createEnv({}, resources);
const test = env.tasks.split('test');

const first = (question: string) => ({ kind: 'first', observation: FIRST + question }) as const;
const FIRST = env
  .open({ env: 'searchqa', index: 0, seed: 0 })
  .first.observation.replace(/Question: .*$/s, 'Question: ');
const information = (...passages: (readonly [title: string, text: string])[]) =>
  `<information>${passages.map(([title, text], i) => `Doc ${i + 1}(Title: "${title}") ${text}`).join('\n')}</information>`;
const search = (content: string) => print({ type: 'search', content });
const answer = (content: string) => print({ type: 'answer', content });
const candidate = (action: string, read: Read) => view.candidate!(action, read);
const textOf = (read: Read) => view.render(first(''), [], read).segments.join('');

describe('the view', () => {
  const begun = track.begin(first('Who is the father of the maker of Hollow Meadow of Dra?'));
  const once = track.reduce(begun, {
    action: search('Hollow Meadow of Dra'),
    observation: information(
      ['Hollow Meadow of Dra', 'The maker of Hollow Meadow of Dra is Ann Bel. It was released in 1843.'],
      ['Tom Bel', 'Tom Bel works for Dra Mills. Letters about Hollow Meadow of Dra survive in private hands.'],
      ['Other', 'The mayor of Other is Jim Ko.'],
    ),
  });

  it('shows the question’s words in order, its names as marks', () => {
    expect(textOf(begun)).toBe('ask who father maker asked');
    expect(textOf(track.begin(first('In which town was the painter Ann Bel born?')))).toBe(
      'ask which town word asked born',
    );
    expect(candidate(search('Hollow Meadow of Dra'), begun)).toBe('search asked');
  });

  it('distinguishes two names of a question, and restates numbers and names met again on the way from both', () => {
    const two = track.begin(first('Which was released first, Dark Hill or Hollow Meadow of Dra?'));
    expect(textOf(two)).toBe('ask which releas first asked one asked two');
    expect(candidate(search('Dark Hill'), two)).toBe('search asked one');
    expect(candidate(search('Hollow Meadow of Dra'), two)).toBe('search asked two');
    const of = (title: string, year: number, maker: string) => ({
      action: search(title),
      observation: information(
        [title, `The maker of ${title} is ${maker}.`],
        [title, `${title} was released in ${year}.`],
        ['Other', `The birth of Ann Bel fell in 1700. The maker of ${title} is Ann Bel.`],
      ),
    });
    const one = track.reduce(two, of('Dark Hill', 1843, 'Ann Bel'));
    expect(textOf(one)).toBe(
      'ask which releas first asked one asked two search asked one read number releas of asked one',
    );
    expect(candidate(answer('Dark Hill'), one)).toBe('answer title of asked one');
    const notesOf = (year: number, maker: string) =>
      textOf(track.reduce(one, of('Hollow Meadow of Dra', year, maker))).split(' search asked two ')[1];
    expect(notesOf(1842, 'Jim Ko')).toBe('read number releas of asked one read number releas of asked two less');
    expect(notesOf(1843, 'Jim Ko')).toBe('read number releas of asked one read number releas of asked two same');
    expect(notesOf(1900, 'Ann Bel')).toBe(
      'read number releas of asked one read again maker of asked two read number releas of asked two more',
    );
  });

  it('compares a number with the last one as many steps from the question', () => {
    const two = track.begin(first('Of the father of Ann Bel and the father of Tom Bel, whose birth came first?'));
    const readings = (
      ['Ann Bel 1800 Jim Ko', 'Jim Ko 1770 Al Bo', 'Tom Bel 1790 Max Po', 'Max Po 1771 Ed Zu'] as const
    ).reduce((read, line) => {
      const [, title, year, father] = /^(.*) (\d+) (.*)$/.exec(line)!;
      const text = `The father of ${title} is ${father}. The birth of ${title} fell in ${year}.`;
      return track.reduce(read, { action: search(title!), observation: information([title!, text]) });
    }, two);
    expect(textOf(readings).split(' read ').slice(1)).toEqual([
      'number birth fell of asked one',
      'number birth fell of father of asked one',
      'number birth fell of asked two less',
      'number birth fell of father of asked two more',
    ]);
  });

  it('restates of each name the sentence it stood in, and how its passage was come by', () => {
    expect(candidate(answer('Ann Bel'), once)).toBe('answer maker of asked');
    expect(candidate(answer('1843'), once)).toBe('number releas of asked');
    expect(candidate(answer('Dra Mills'), once)).toBe('answer work by letter about surviv privat hand of asked');
    expect(candidate(answer('Jim Ko'), once)).toBe('answer mayor far');
    expect(candidate(answer('Nobody'), once)).toBe('answer unread');
    const twice = track.reduce(once, {
      action: search('Ann Bel'),
      observation: information(['Ann Bel', 'Ann Bel has the father Hair Kra.'], ['Far', 'Ann Bo met Jim Ko.']),
    });
    expect(candidate(answer('Hair Kra'), twice)).toBe('answer ha father of maker of asked');
    expect(candidate(search('Jim Ko'), twice)).toBe('search mayor far');
    expect(textOf(twice)).toBe('ask who father maker asked search asked search maker of asked');
    expect(candidate(answer('Ann Bel'), once)).toBe('answer maker of asked'); // the old state stands
  });

  it('marks a passage that names all that the question names', () => {
    const begun = track.begin(first('Who is the father of the painter Ann Bel?'));
    const read = track.reduce(begun, {
      action: search('Ann Bel'),
      observation: information(
        ['Ann Bel', 'Ann Bel is a poet. The father of Ann Bel is Jim Ko.'],
        ['Ann Bel', 'Ann Bel is a painter. The father of Ann Bel is Hair Kra.'],
      ),
    });
    expect(candidate(answer('Jim Ko'), read)).toBe('answer father of asked');
    expect(candidate(answer('Hair Kra'), read)).toBe('answer father of asked both');
  });

  it('knows every word of the embedded world, and no name of it', async () => {
    const known = new Set(view.words);
    const met = new Set<string>();
    for (const index of test.filter((_, i) => i % 8 === 0)) {
      await play(index, ({ read, texts }) => {
        for (const text of [textOf(read), ...texts]) for (const word of text.split(' ')) met.add(word);
        return [];
      });
    }
    expect(met.size).toBeGreaterThan(100);
    expect([...met].filter((word) => word === 'other' || !known.has(word))).toEqual([]);
  });
});

/** What a player sees: the listed actions, the view's texts of them, and everything shown before. */
interface Seen {
  readonly listed: readonly string[];
  readonly texts: readonly string[];
  readonly read: Read;
  readonly question: string;
  readonly observations: readonly string[];
  readonly done: ReadonlySet<string>;
  readonly rng: Rng;
}

/** Indices of the listed actions that a rule would choose among; none for any. */
type Rule = (seen: Seen) => readonly number[];

const HORIZON = 8;

/** @returns success; ties are drawn at random, and anything where a rule finds nothing */
async function play(index: number, rule: Rule, n = 0): Promise<boolean> {
  const rng = Rng.fromSeed(index * 1000 + n);
  const session = env.open({ env: env.id, index, seed: 0 });
  let read = track.begin(session.first);
  const question = readQuestion(session.first.observation);
  const done = new Set<string>();
  const observations: string[] = [];
  for (let t = 0; t < HORIZON; t++) {
    const listed = session.actions();
    if (listed.length === 0) return false;
    const texts = listed.map((action) => candidate(action, read));
    const among = rule({ listed, texts, read, question, observations, done, rng });
    const action = among.length > 0 ? listed[rng.pick(among)]! : rng.pick(listed);
    const step = session.step(action) as EnvStep;
    if (step.kind === 'terminated') return step.success === true;
    read = track.reduce(read, { action, observation: step.observation });
    observations.push(step.observation);
    done.add(action);
  }
  return false;
}

const indicesOf = <T>(items: readonly T[], keep: (item: T) => boolean) =>
  items.flatMap((item, i) => (keep(item) ? [i] : []));
/** Those of the greatest weight. */
const most = <T>(items: readonly T[], weigh: (item: T) => number) => {
  const weights = items.map(weigh);
  const best = Math.max(...weights);
  return indicesOf(weights, (weight) => weight === best);
};
const isAnswer = (action: string) => parse(action)!.type === 'answer';
const ways = (text: string) => text.split(' ').filter((word) => word === 'of').length;
const isOwn = (text: string) => / of /.test(text) && !/ (?:by|far|title) /.test(`${text} `);

const random: Rule = ({ listed }) => listed.map((_, i) => i);

/** Players without a view, who remember what they did. */
const PLAYERS: Readonly<Record<string, Rule>> = {
  'never twice': ({ listed, done }) => indicesOf(listed, (action) => !done.has(action)),
  'answers once it has read': ({ listed }) => indicesOf(listed, isAnswer),
  'answers with a name of the first passage': ({ listed, observations }) => {
    const passage = readPassages(observations.at(-1) ?? '')[0];
    const names = mentionsOf(passage?.text ?? '');
    return indicesOf(listed, (action) => isAnswer(action) && names.has(parse(action)!.content));
  },
};

/** Rules on the view's marks. */
const MARK_RULES: Readonly<Record<string, Rule>> = {
  'an answer from a passage that was searched for': ({ listed, texts }) =>
    indicesOf(texts, (text) => isOwn(text) && !text.startsWith('search')).filter((i) => isAnswer(listed[i]!)),
  'the longest way': ({ texts }) => most(texts, ways),
  'the longest way, answers first': ({ texts }) =>
    most(texts, (text) => ways(text) + (text.startsWith('search') ? 0 : 0.5)),
  'the shortest way': ({ texts }) => most(texts, (text) => -ways(text)),
  'what stands where all names of the question stand': ({ texts }) =>
    most(texts, (text) => (text.endsWith(' both') && !text.startsWith('search') ? 1 : 0)),
  'the name of the question with the less number': ({ texts, read }) => {
    const [, second] = / of asked two (more|less)\b/.exec(textOf(read)) ?? [];
    if (second === undefined) return indicesOf(texts, (text) => /^search asked (?:one|two)$/.test(text));
    const place = second === 'less' ? 'two' : 'one';
    return indicesOf(texts, (text) => text === `answer title of asked ${place}`);
  },
  numbers: ({ texts }) => indicesOf(texts, (text) => text.startsWith('number') && isOwn(text)),
};

const shared = (words: readonly string[], known: ReadonlySet<string>) =>
  new Set(words.filter((word) => known.has(word))).size;

/** The same rule on the view's words and on the raw text: the sentence that shares most words with the question. */
const WORD_RULES: Readonly<Record<string, Rule>> = {
  'most words of the question': ({ texts, read, listed, done }) => {
    const known = new Set(textOf(read).split(' search ')[0]!.split(' ').slice(1));
    known.delete('asked');
    return most(
      texts.map((text, i) => ({ text, fresh: !done.has(listed[i]!) })),
      ({ text, fresh }) => (fresh ? shared(text.split(' ').slice(1), known) : -1),
    );
  },
};
const WORD_PLAYERS: Readonly<Record<string, Rule>> = {
  'most words of the question, raw text': ({ listed, question, observations, done }) => {
    const known = new Set(ANALYZERS.english(question));
    const sentences = observations.flatMap((text) => readPassages(text).flatMap((passage) => passage.text.split('. ')));
    return most(listed, (action) => {
      const { content } = parse(action)!;
      if (done.has(action)) return -1;
      const holding = sentences.filter((sentence) => sentence.includes(content));
      return Math.max(
        0,
        ...holding.map((sentence) => shared(ANALYZERS.english(sentence.replaceAll(content, ' ')), known)),
      );
    });
  },
};

describe('a greedy rule on the view’s fields, without learning', () => {
  it('is at most five points better than chance, and on words than one on the raw text', {
    timeout: 120_000,
  }, async () => {
    const rates = async (rules: Readonly<Record<string, Rule>>) => {
      const found: (readonly [string, number])[] = [];
      for (const [name, rule] of Object.entries(rules)) {
        let won = 0;
        for (const index of test) if (await play(index, rule)) won++;
        found.push([name, (100 * won) / test.length]);
        console.log(`${name}: ${found.at(-1)![1].toFixed(1)} %`);
      }
      return Math.max(...found.map(([, rate]) => rate));
    };
    const chance = await rates({ random });
    await rates(PLAYERS);
    expect(await rates(MARK_RULES)).toBeLessThanOrEqual(chance + 5);
    expect(await rates(WORD_RULES)).toBeLessThanOrEqual((await rates(WORD_PLAYERS)) + 5);
  });
});
