/** Parts of SearchQA's embedded world: relations, wordings, names, mentions, forms, solver and recipes, one by one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listActions, remember, startMemory } from '../../../envs/searchqa/actions.ts';
import { ELEMENTS, LANDS, ZONES } from '../../../envs/searchqa/data/facts.ts';
import { cutAtMentions, mentionsOf } from '../../../envs/searchqa/mentions.ts';
import { runOf, SETS, tableOf } from '../../../envs/searchqa/questions.ts';
import { type Form, hopsOf, wordForm } from '../../../envs/searchqa/wiki/form.ts';
import { isHeldOut, type Knowledge, type Thing, type Value } from '../../../envs/searchqa/wiki/knowledge.ts';
import { recipeOf } from '../../../envs/searchqa/wiki/maker.ts';
import { NameMaker } from '../../../envs/searchqa/wiki/names.ts';
import { wordFact, writePassages } from '../../../envs/searchqa/wiki/passages.ts';
import { readAlias, readFacts, readForm } from '../../../envs/searchqa/wiki/reader.ts';
import {
  COMPARED,
  type Kind,
  leadsOn,
  PASSAGES,
  RELATIONS,
  relation,
  relationsOf,
  SHARED,
} from '../../../envs/searchqa/wiki/schema.ts';
import { bearers, solve } from '../../../envs/searchqa/wiki/solver.ts';
import { article, JOBS, LIST_WORDS } from '../../../envs/searchqa/wiki/words.ts';
import { Rng } from '../../../src/core/rng.ts';

describe('relations', () => {
  it.each(RELATIONS.map((one) => [one.name, one] as const))(
    '%s is worded three ways, each with its places',
    (_name, one) => {
      expect([one.statements.length, one.nouns.length, one.asks.length]).toEqual([3, 3, 3]);
      for (const statement of one.statements) {
        expect(statement.match(/\{S\}/g)).toHaveLength(1);
        expect(statement.match(/\{O\}/g)).toHaveLength(1);
      }
      for (const wording of [...one.nouns, ...one.asks]) expect(wording.match(/\{X\}/g)).toHaveLength(1);
      for (const ask of one.asks) expect(ask).toMatch(/^[A-Z]/);
      expect(relation(one.name)).toBe(one);
    },
  );

  it('of each kind all stand in its passages, and only a person’s job stands twice', () => {
    for (const [kind, passages] of Object.entries(PASSAGES)) {
      const listed = passages.flat();
      expect(new Set(listed)).toEqual(new Set(relationsOf(kind as Kind).map(({ name }) => name)));
      expect(listed.length - new Set(listed).size).toBe(kind === 'person' ? 1 : 0);
    }
  });

  it('that are compared lead to years, those that are shared to things', () => {
    for (const name of Object.keys(COMPARED)) expect([name, relation(name).to]).toEqual([name, 'year']);
    for (const name of Object.keys(SHARED)) expect([name, leadsOn(relation(name))]).toEqual([name, true]);
    expect(() => relation('cousin')).toThrow('no relation "cousin"');
  });
});

describe('facts of the real world', () => {
  it('are of countries, zones and elements that each stand once', () => {
    for (const [name, rows] of Object.entries({ LANDS, ZONES, ELEMENTS })) {
      expect([name, new Set(rows.map(([first]) => first)).size]).toEqual([name, rows.length]);
      expect(rows.length).toBeGreaterThan(20);
    }
    const lands = new Set(LANDS.map(([land]) => land));
    for (const [, land, offset] of ZONES) {
      expect(lands).toContain(land);
      expect(offset).toMatch(/^UTC[+-]\d\d:\d\d$/);
    }
  });

  it('have elements in the order of their numbers', () => {
    expect(ELEMENTS.slice(0, 3).map(([name, symbol, number]) => [name, symbol, Number(number)])).toEqual([
      ['Hydrogen', 'H', 1],
      ['Helium', 'He', 2],
      ['Lithium', 'Li', 3],
    ]);
    const numbers = ELEMENTS.map(([, , number]) => Number(number));
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  });
});

describe('names', () => {
  it.each([
    ['person', /^\S+ \S+$/],
    ['town', /^\S+(?:ton|by|mere|stead|ford|holm|wick|mouth|burg|dale)$/],
    ['realm', /^\S+(?:ia|land|ora|mark)$/],
    ['work', /^\S+ \S+ of \S+$/],
    ['company', /^\S+ (?:Works|Mills|House|Brothers|Trading|Union)$/],
    ['university', /^University of \S+$/],
  ] as const)('of a %s look like one, never twice, and are mentions', (kind, form) => {
    const maker = new NameMaker(Rng.fromSeed(4));
    const made = Array.from({ length: 200 }, () => maker.name(kind));
    for (const name of made) expect(name).toMatch(form);
    expect(new Set(made).size).toBe(200);
    for (const name of made) expect(mentionsOf(name).has(name)).toBe(true);
  });

  it('are the same for a seed', () => {
    const names = (seed: number) => {
      const maker = new NameMaker(Rng.fromSeed(seed));
      return [maker.word(), maker.name('person'), maker.name('work')];
    };
    expect(names(1)).toEqual(names(1));
    expect(names(1)).not.toEqual(names(2));
  });
});

describe('mentions', () => {
  it.each([
    ['Who is the father of Ann Bel?', ['Ann Bel']],
    ['The University of Kroon opened in 1820.', ['University of Kroon', '1820']],
    ['She works as a painter.', ['painter']],
    ['UTC+05:30 is the offset', ['UTC+05:30']],
    ['In Paris The Hague', ['Paris The Hague']],
    ['What is it', []],
    ['Name of Rome', ['Rome']],
    ['Jean-Luc O’Neill', ['Jean-Luc O’Neill']],
    ['ann bel', []],
  ])('of %j are %j', (passage, names) => {
    expect([...mentionsOf(passage)]).toEqual(names);
  });

  it('cut a text into pieces that make it up again', () => {
    const pieces = fc.array(fc.constantFrom('Ann', 'of', 'The', ' ', 'Bel', '12', 'painter', '.', 'x', 'Éa', '-'), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(pieces, (all) => {
        const text = all.join(' ');
        const cut = cutAtMentions(text);
        expect(cut.join('')).toBe(text);
        expect(cut.length % 2).toBe(1);
      }),
    );
  });
});

// ---- a knowledge made by hand

const text = (value: string): Value => ({ text: value });
const to = (id: number): Value => ({ thing: id });
const thing = (id: number, kind: Kind, name: string, facts: Record<string, Value>, alias?: string): Thing => ({
  id,
  kind,
  name,
  alias,
  component: 0,
  facts: new Map(Object.entries(facts)),
});

const FULL = {
  job: text('poet'),
  birthplace: to(4),
  birthyear: text('1800'),
  school: to(5),
  spouse: to(1),
  father: to(2),
  employer: to(6),
};
const THINGS: readonly Thing[] = [
  thing(0, 'person', 'Ann Bel', { ...FULL, birthyear: text('1810') }, 'Annie Bel'),
  thing(1, 'person', 'Tom Cor', { ...FULL, spouse: to(0), father: to(3) }),
  thing(2, 'person', 'Ed Bel', { ...FULL, father: to(3), birthyear: text('1780') }),
  thing(3, 'person', 'Tom Cor', { ...FULL, job: text('painter'), birthyear: text('1750') }),
  thing(4, 'town', 'Kroonton', { realm: text('Xoria'), founding: text('1100'), river: text('Loo'), mayor: to(2) }),
  thing(5, 'university', 'University of Zed', { city: to(4), opening: text('1500'), rector: to(0) }),
  thing(6, 'company', 'Zed Works', { founder: to(2), seat: to(4), chief: to(0), industry: text('brewing') }),
];
const KNOWLEDGE: Knowledge = {
  seed: 1,
  things: THINGS,
  named: new Map(
    [...new Set(THINGS.flatMap(({ name, alias }) => (alias ? [name, alias] : [name])))].map((name) => [
      name,
      THINGS.filter((one) => one.name === name || one.alias === name),
    ]),
  ),
  components: 1,
};

const chain = (name: string, ...path: string[]): Form => ({ type: 'chain', start: { name }, path });

describe('the solver', () => {
  it.each<[Form, string[]]>([
    [chain('Ann Bel', 'father'), ['Ed Bel']],
    [chain('Annie Bel', 'father'), ['Ed Bel']],
    [chain('Ann Bel', 'father', 'father'), ['Tom Cor']],
    [chain('Ann Bel', 'birthplace', 'river'), ['Loo']],
    [chain('Tom Cor', 'birthyear'), ['1800', '1750']],
    [{ type: 'chain', start: { name: 'Tom Cor', qualifier: 'painter' }, path: ['birthyear'] }, ['1750']],
    [chain('Nobody', 'father'), []],
    [chain('Ann Bel', 'river'), []],
    [{ type: 'first', a: { name: 'Ann Bel' }, b: { name: 'Ed Bel' }, path: ['birthyear'] }, ['Ed Bel']],
    [{ type: 'first', a: { name: 'Ann Bel' }, b: { name: 'Ann Bel' }, path: ['birthyear'] }, []],
    [
      {
        type: 'first',
        a: { name: 'Ann Bel' },
        b: { name: 'Tom Cor', qualifier: 'poet' },
        path: ['father', 'birthyear'],
      },
      ['Tom Cor'],
    ],
    [{ type: 'same', a: { name: 'Ann Bel' }, b: { name: 'Ed Bel' }, path: ['birthplace'] }, ['yes']],
    [{ type: 'same', a: { name: 'Ann Bel' }, b: { name: 'Ed Bel' }, path: ['father'] }, ['no']],
  ])('%j: %j', (form, answers) => {
    expect([...solve(KNOWLEDGE, form).values()]).toEqual(answers);
  });

  it('follows every bearer of a name, of the job where one is given', () => {
    expect(bearers(KNOWLEDGE, { name: 'Tom Cor' }).map(({ id }) => id)).toEqual([1, 3]);
    expect(bearers(KNOWLEDGE, { name: 'Tom Cor', qualifier: 'poet' }).map(({ id }) => id)).toEqual([1]);
    expect(bearers(KNOWLEDGE, { name: 'Annie Bel' }).map(({ id }) => id)).toEqual([0]);
  });
});

describe('wording', () => {
  const first = () => 0;

  it.each<[Form, string]>([
    [chain('Ann Bel', 'father'), 'Who is the father of Ann Bel?'],
    [chain('Ann Bel', 'father', 'father'), 'Who is the paternal grandfather of Ann Bel?'],
    [chain('Ann Bel', 'father', 'birthplace'), 'In which town was the father of Ann Bel born?'],
    [
      { type: 'chain', start: { name: 'Tom Cor', qualifier: 'poet' }, path: ['job'] },
      'What is the profession of the poet Tom Cor?',
    ],
    [{ type: 'first', a: { name: 'A' }, b: { name: 'B' }, path: ['birthyear'] }, 'Who was born first, A or B?'],
    [{ type: 'same', a: { name: 'A' }, b: { name: 'B' }, path: ['birthplace'] }, 'Were A and B born in the same town?'],
    [
      { type: 'first', a: { name: 'A' }, b: { name: 'B' }, path: ['father', 'birthyear'] },
      'Of the father of A and the father of B, whose birth came first, that of A or B?',
    ],
  ])('%j is worded "%s"', (form, question) => {
    expect(wordForm(form, first, false)).toBe(question);
  });

  it('is read back into the form, in every plain wording', () => {
    const persons = relationsOf('person').map(({ name }) => name);
    for (const name of persons) {
      for (const pick of [0, 1]) {
        const form = chain('Ann Bel', name);
        expect(readForm(wordForm(form, () => pick, false))).toEqual(form);
      }
    }
    for (const [outer, inner] of [
      ['father', 'job'],
      ['spouse', 'birthplace'],
      ['employer', 'chief'],
    ] as const) {
      const form = chain('Ann Bel', outer, inner);
      expect(readForm(wordForm(form, () => 1, false))).toEqual(form);
    }
    expect(readForm('How are you?')).toBeUndefined();
  });

  it('in a paraphrase shares no word with the passages but names', () => {
    const question = wordForm(chain('Ann Bel', 'birthplace'), first, true);
    expect(question).toBe('Which place did Ann Bel first call home?');
  });

  it.each([
    [chain('A', 'x', 'y', 'z'), 3],
    [{ type: 'first', a: { name: 'A' }, b: { name: 'B' }, path: ['x', 'y'] } as Form, 4],
    [{ type: 'same', a: { name: 'A' }, b: { name: 'B' }, path: ['x'] } as Form, 2],
  ])('of %j takes %i hops', (form, hops) => {
    expect(hopsOf(form)).toBe(hops);
  });

  it.each([
    ['{S} is a {O}', 'Ann', 'engineer', 'Ann is an engineer'],
    ['{S} is a {O}', 'Ann', 'poet', 'Ann is a poet'],
    ['the father of {S} is {O}', '$&', '$1', 'the father of $& is $1'],
  ])('%s of %s and %s: %s', (wording, subject, object, sentence) => {
    expect(wordFact(wording, subject, object)).toBe(sentence);
  });
});

describe('passages', () => {
  const passages = writePassages(KNOWLEDGE);

  it('are one or two a thing, numbered, titled by its name', () => {
    expect(passages.map(({ id }) => id)).toEqual(passages.map((_, i) => String(i)));
    const titles = passages.map(({ contents }) => contents.split('\n')[0]);
    expect(titles.filter((title) => title === '"Ann Bel"')).toHaveLength(2);
    expect(titles.filter((title) => title === '"Zed Works"')).toHaveLength(1);
  });

  it('state what is known, which a reader of the text gets back', () => {
    const [title, body] = passages[0]!.contents.split('\n') as [string, string];
    expect(title).toBe('"Ann Bel"');
    expect(readAlias('Ann Bel', body)).toBe('Annie Bel');
    expect(readFacts('Ann Bel', body)).toEqual(
      expect.arrayContaining([
        { relation: 'job', value: 'poet' },
        { relation: 'birthplace', value: 'Kroonton' },
        { relation: 'birthyear', value: '1810' },
        { relation: 'school', value: 'University of Zed' },
      ]),
    );
    expect(body).toMatch(/^[A-Z].*\.$/);
  });

  it('are not read where they speak of another thing', () => {
    expect(readFacts('Ann Bel', 'The father of Annabel is Ed Bel.')).toEqual([]);
    expect(readAlias('Ann Bel', 'Tom Cor is also called Tommy.')).toBeUndefined();
  });
});

describe('recipes', () => {
  it.each([
    ['nq', 0, 'chain', 1],
    ['triviaqa', 3, 'chain', 1],
    ['popqa', 7, 'chain', 1],
    ['hotpotqa', 0, 'chain', 2],
    ['hotpotqa', 4, 'compare', 2],
    ['2wikimultihopqa', 0, 'chain', 2],
    ['2wikimultihopqa', 1, 'grandfather', 2],
    ['2wikimultihopqa', 2, 'compare', 2],
    ['2wikimultihopqa', 3, 'bridge-compare', 4],
    ['musique', 2, 'chain', 3],
    ['musique', 9, 'chain', 4],
    ['bamboogle', 5, 'chain', 2],
  ] as const)('of %s %i: %s of %i hops', (set, n, shape, hops) => {
    expect(recipeOf(set, 'train', n)).toMatchObject({ set, shape, hops, joinsAnew: false });
  });

  it('join relations anew in every fifth test question of a chain, never in training', () => {
    for (const set of SETS) {
      for (let n = 0; n < 40; n++) {
        expect(recipeOf(set, 'train', n).joinsAnew).toBe(false);
        const { joinsAnew, hops, shape } = recipeOf(set, 'test', n);
        expect(joinsAnew).toBe(shape === 'chain' && hops > 1 && set !== '2wikimultihopqa' && n % 5 === 0);
      }
    }
  });

  it('test on every fifth component', () => {
    expect([0, 3, 4, 5, 9].map(isHeldOut)).toEqual([false, false, true, false, true]);
  });
});

describe('words of closed lists', () => {
  it('are small and single, and take the right article', () => {
    for (const word of LIST_WORDS) expect(word).toMatch(/^[a-z]+$/);
    expect(JOBS.map((job) => `${article(job)} ${job}`)).toEqual(
      expect.arrayContaining(['an architect', 'a poet', 'an engineer']),
    );
  });
});

describe('task tables', () => {
  const runs = [
    { set: 'nq', count: 3, split: 'test' },
    { set: 'musique', count: 2, split: 'test' },
    { set: 'nq', count: 4, split: 'train' },
    { set: 'hotpotqa', count: 1, split: 'train' },
  ] as const;

  it('number runs one after the other', () => {
    const table = tableOf(runs);
    expect(table.count).toBe(10);
    expect(Array.from({ length: 10 }, (_, i) => table.label(i))).toEqual([
      ...['nq', 'nq', 'nq', 'musique', 'musique', 'nq', 'nq', 'nq', 'nq', 'hotpotqa'],
    ]);
    expect([table.split('test'), table.split('train')]).toEqual([
      [0, 1, 2, 3, 4],
      [5, 6, 7, 8, 9],
    ]);
  });

  it('train on some sets where configured, and test on all', () => {
    const table = tableOf(runs, ['hotpotqa']);
    expect([table.split('test').length, table.split('train')]).toEqual([5, [9]]);
  });

  it.each([-1, 10, 1.5, Number.NaN])('refuse the index %d', (index) => {
    expect(() => runOf(index, [0, 3], 10)).toThrow(`task index must be an integer in [0, 10), got ${index}`);
  });
});

describe('listed actions', () => {
  const read = (question: string, ...searches: (readonly [query: string, ...passages: string[]])[]) => {
    const memory = startMemory(question);
    for (const [query, ...passages] of searches) remember(memory, query, passages);
    return memory;
  };

  it('search for names of the question first, and answer nothing before reading', () => {
    expect(listActions(read('Who is the father of Ann Bel?'), 64)).toEqual(['<search>Ann Bel</search>']);
  });

  it('leave out searches that were made, and put the newest names first', () => {
    const memory = read('Who is the father of Ann Bel?', ['Ann Bel', 'Tom Cor knew Ed Bel.', 'Zed Works']);
    expect(listActions(memory, 64)).toEqual([
      ...['Ed Bel', 'Tom Cor', 'Zed Works'].map((name) => `<search>${name}</search>`),
      ...['Ed Bel', 'Tom Cor', 'Zed Works'].map((name) => `<answer>${name}</answer>`),
    ]);
  });

  it('offer yes and no to a question that asks for them, the names to one that offers them', () => {
    const closed = listActions(read('Were Ann Bel and Tom Cor born in the same town?', ['Ann Bel', 'Zed']), 64);
    expect(closed).toEqual(expect.arrayContaining(['<answer>yes</answer>', '<answer>no</answer>']));
    const open = listActions(
      read('Who was born first, Ann Bel or Tom Cor?', ['Ann Bel', 'Ann Bel and Tom Cor met.']),
      64,
    );
    expect(open.filter((action) => action.startsWith('<answer>'))).toEqual([
      '<answer>Ann Bel</answer>',
      '<answer>Tom Cor</answer>',
    ]);
  });

  it('are as many as there may be, three in eight of them searches', () => {
    const passage = Array.from(
      { length: 60 },
      (_, i) => `Xo${'abcdefghij'[i % 10]}${'klmnopqrst'[Math.floor(i / 10)]}`,
    ).join(' and ');
    for (const most of [4, 16, 64]) {
      const actions = listActions(read('Who is it?', ['x', passage]), most);
      expect(actions).toHaveLength(most);
      expect(actions.filter((action) => action.startsWith('<search>'))).toHaveLength(Math.floor((most * 24) / 64));
      expect(new Set(actions).size).toBe(most);
    }
  });

  it('search for no number and no common word, and may answer both', () => {
    const actions = listActions(read('When?', ['x', 'It opened in 1820 by a painter.']), 64);
    expect(actions.filter((action) => action.startsWith('<search>'))).toEqual([]);
    expect(actions).toEqual(expect.arrayContaining(['<answer>1820</answer>', '<answer>painter</answer>']));
  });
});
