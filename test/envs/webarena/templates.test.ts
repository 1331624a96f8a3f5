/** Templates of WebArena's tasks: slots, judging, worlds, and the table they fill. */
import { describe, expect, it } from 'vitest';
import { answerText } from '../../../envs/webarena/answers.ts';
import { PAPER_SPLIT } from '../../../envs/webarena/split.ts';
import { drawTask, judge, tasks, templateOf, templates } from '../../../envs/webarena/tasks.ts';
import { click, type Instance, pages, templatesOf } from '../../../envs/webarena/templates/template.ts';
import { daysAgo, distinct, drawSome, money, monthOf, slug } from '../../../envs/webarena/worlds/draw.ts';
import { Embedded, worldOf } from '../../../envs/webarena/worlds/embedded.ts';
import { Rng } from '../../../src/core/rng.ts';
import { WORLD } from '../../support/web-pages.ts';

/** Instances of a template, of a few draws in the first world that has some. */
function draws(id: string, count = 12): Instance[] {
  const template = templates.find((one) => one.id === id)!;
  for (let world = WORLD.seed; world < WORLD.seed + 6; world++) {
    const found: Instance[] = [];
    for (let seed = 0; found.length < count && seed < 100; seed++) {
      const instance = template.draw(worldOf(world), Rng.fromSeed(seed));
      if (instance) found.push(instance);
    }
    if (found.length > 0) return found;
  }
  return [];
}

describe.each(templates.map(({ id }) => [id] as const))('%s', (id) => {
  const all = draws(id);

  it('finds slots, words them in one line, and pays its own end alone', () => {
    expect(all.length).toBeGreaterThan(0);
    for (const { intent, answer, url, changes, plan } of all) {
      expect(intent).toMatch(/^[A-Z][^\n]*[.?]$/);
      expect(plan.length).toBeGreaterThan(0);
      // Each has an aim: an answer, a page or a change.
      expect([answer, url, changes].some((one) => one !== undefined)).toBe(true);
      const ending = {
        answer: answer ? answerText(answer) : 'done',
        changes: changes ?? {},
        url: new URL(url ?? '/', 'http://shop.test').href,
      };
      const instance = { intent, plan, ...(answer && { answer }), ...(url && { url }), ...(changes && { changes }) };
      for (const fidelity of ['corrected', 'original'] as const) expect(judge(instance, ending, fidelity)).toBe(true);
      expect(judge(instance, { ...ending, changes: { ...ending.changes, 'x/y': 'z' } }, 'corrected')).toBe(false);
      if (answer) expect(judge(instance, { ...ending, answer: 'perhaps' }, 'corrected')).toBe(false);
      if (changes) expect(judge(instance, { ...ending, changes: {} }, 'original')).toBe(false);
    }
  });

  it('draws the same under the same seed', () => {
    const template = templates.find((one) => one.id === id)!;
    for (const seed of [1, 2, 3])
      expect(template.draw(WORLD, Rng.fromSeed(seed))).toEqual(template.draw(WORLD, Rng.fromSeed(seed)));
  });
});

describe('answers in templates', () => {
  it('stand in no intent, unless they are a choice of two', () => {
    for (const { id } of templates) {
      for (const { intent, answer } of draws(id, 6)) {
        if (!answer || !('value' in answer) || answer.type === 'yesno' || String(answer.value).length < 4) continue;
        // What is compared is named, and one of both is the answer.
        if (id === 'map/compare') continue;
        expect([id, intent.toLowerCase().includes(answerText(answer).toLowerCase())]).toEqual([id, false]);
      }
    }
  });
});

describe('judging', () => {
  const task = (rest: Partial<Instance>): Instance => ({ intent: 'i', plan: [], ...rest });
  const end = (rest: Partial<Parameters<typeof judge>[1]> = {}) => ({
    answer: 'done',
    changes: {},
    url: 'http://shop.test/cart?a=1',
    ...rest,
  });

  it.each([
    ['/cart', true, true],
    ['/cart?a=1', true, true],
    ['/cart?a=2', false, false],
    ['/car', false, true],
    ['/cart/x', false, false],
  ])('wants the page %s: corrected %s, original %s', (url, corrected, original) => {
    expect(judge(task({ url }), end(), 'corrected')).toBe(corrected);
    expect(judge(task({ url }), end(), 'original')).toBe(original);
  });

  it('takes no page of another host, and no address that is none', () => {
    expect(judge(task({ url: '/cart' }), end({ url: 'http://evil.test/cart' }), 'corrected')).toBe(false);
    expect(judge(task({ url: '/cart' }), end({ url: 'about:blank' }), 'corrected')).toBe(false);
    expect(judge(task({ url: '/cart' }), end({ url: 'nowhere' }), 'corrected')).toBe(false);
  });

  it('wants exactly the changes where corrected, at least them in the original', () => {
    const changes = { a: '1', b: '2' };
    for (const [made, corrected, original] of [
      [{ a: '1', b: '2' }, true, true],
      [{ a: '1', b: '2', c: '3' }, false, true],
      [{ a: '1' }, false, false],
      [{ a: '1', b: '3' }, false, false],
    ] as const) {
      expect(judge(task({ changes }), end({ changes: made }), 'corrected')).toBe(corrected);
      expect(judge(task({ changes }), end({ changes: made }), 'original')).toBe(original);
    }
  });

  it('pays N/A only where one has looked, in the original anywhere', () => {
    const unachievable = task({ answer: { type: 'none' }, url: '/product/x' });
    expect(judge(unachievable, end({ answer: 'N/A' }), 'corrected')).toBe(false);
    expect(judge(unachievable, end({ answer: 'N/A', url: 'http://shop.test/product/x' }), 'corrected')).toBe(true);
    expect(judge(unachievable, end({ answer: 'N/A' }), 'original')).toBe(true);
  });
});

describe('the table', () => {
  it('names a template for every index, and refuses others', () => {
    for (let index = 0; index < tasks.count; index++) expect(tasks.label(index)).toBe(templateOf(index).label);
    for (const index of [-1, tasks.count, 0.5])
      expect(() => templateOf(index)).toThrow(`task index must be in [0, ${tasks.count}), got ${index}`);
  });

  it('keeps templates apart that no training task has', () => {
    const { test_seen: seen, test_unseen: unseen } = tasks.sets!;
    expect([...seen!, ...unseen!].sort((a, b) => a - b)).toEqual([...tasks.split('test')]);
    const trained = new Set(tasks.split('train').map((index) => templateOf(index).id));
    for (const index of unseen!) expect([templateOf(index).id, trained.has(templateOf(index).id)]).toContain(false);
    for (const index of seen!) expect([templateOf(index).id, trained.has(templateOf(index).id)]).toContain(true);
  });

  it('is measured on the tests and all those', () => {
    const sets = Object.entries(tasks.sets!);
    const more = sets
      .filter(([name]) => name.startsWith('more_') || name === 'unseen')
      .flatMap(([, indices]) => indices);
    expect(tasks.sets!['held-out']).toEqual([...tasks.split('test'), ...more].sort((one, other) => one - other));
  });

  it('has two hundred more of each column, and of templates that training lacks', () => {
    for (const [name, indices] of Object.entries(tasks.sets!)) {
      if (name.startsWith('test_') || name.includes('practice') || name === 'held-out') continue;
      expect(indices).toHaveLength(200);
      if (name === 'unseen') for (const index of indices) expect(templateOf(index).unseen).toBe(true);
      else for (const index of indices) expect(`more_${tasks.label(index)}`).toBe(name);
    }
  });

  it("knows the paper's own ids, none of them on both sides", () => {
    expect([PAPER_SPLIT.train.length, PAPER_SPLIT.test.length]).toEqual([372, 50]);
    const all = [...PAPER_SPLIT.train, ...PAPER_SPLIT.test];
    expect(new Set(all).size).toBe(422);
    expect(Math.max(...all)).toBeLessThan(812);
  });

  it('gives each side worlds of its own', () => {
    expect(drawTask({ index: 0, seed: 5 }).world.seed).toBeLessThan(12);
    expect(drawTask({ index: 372, seed: 5 }).world.seed).toBeGreaterThanOrEqual(12);
  });
});

describe('pieces of templates', () => {
  it('click on to the page of an item', () => {
    expect(pages(9)).toEqual([]);
    expect(pages(10)).toEqual([click('Next')]);
    expect(pages(45, 20)).toHaveLength(2);
  });

  it('are named by their column, and a star keeps them for testing', () => {
    const [seen, unseen] = templatesOf('map', 'map', { a: () => undefined, 'b*': () => undefined });
    expect([seen!.id, seen!.unseen, unseen!.id, unseen!.unseen]).toEqual(['map/a', false, 'map/b', true]);
  });
});

describe('worlds', () => {
  it('are the same for a seed, and others for another', () => {
    const [one, again, other] = [new Embedded(5), new Embedded(5), new Embedded(6)];
    for (const site of ['shop', 'forum', 'code', 'wiki'] as const) {
      expect(one[site]).toEqual(again[site]);
      expect(one[site]).not.toEqual(other[site]);
    }
    expect(one.map.places).toEqual(again.map.places);
  });

  it('are kept and shared, a few at a time', () => {
    const kept = worldOf(900);
    expect(worldOf(900)).toBe(kept);
    for (let seed = 901; seed < 930; seed++) worldOf(seed);
    expect(worldOf(900)).not.toBe(kept);
  });

  it('have names, numbers and addresses that nothing shares', () => {
    const { shop, forum, code, map } = WORLD;
    for (const all of [
      shop.products.map((one) => one.slug),
      shop.products.map(({ sku }) => sku),
      shop.products.map(({ price }) => price),
      shop.customers.map(({ phone }) => phone),
      shop.customers.map(({ email }) => email),
      shop.orders.map(({ number }) => number),
      forum.users,
      code.projects.map(({ path }) => path),
      map.places.map(({ postcode }) => postcode),
      map.places.map(({ phone }) => phone),
    ])
      expect(new Set<unknown>(all).size).toBe(all.length);
  });

  it('have their documented sizes', () => {
    const { shop, map, wiki } = WORLD;
    expect([shop.products.length, shop.reviews.length, shop.orders.length, shop.customers.length]).toEqual([
      240, 600, 300, 60,
    ]);
    expect(shop.orders.filter(({ customer }) => customer === 0)).toHaveLength(37);
    expect([map.places.length, wiki.articles.length]).toEqual([150, 120]);
  });

  it('have at most one post of a forum a day, newest first', () => {
    const { posts, forums } = WORLD.forum;
    for (const forum of forums) {
      const dates = posts.filter((one) => one.forum === forum).map(({ date }) => date);
      expect(new Set(dates).size).toBe(dates.length);
      expect(dates).toEqual([...dates].sort().reverse());
    }
  });
});

describe('pieces of worlds', () => {
  it.each([
    [0, '2023-06-12'],
    [13, '2023-05-30'],
    [365, '2022-06-12'],
  ])('%i days ago is %s', (days, date) => {
    expect(daysAgo(days)).toBe(date);
  });

  it.each([
    ['2023-05-30', 'May 2023'],
    ['2022-12-01', 'December 2022'],
  ])('%s is in %s', (date, month) => {
    expect(monthOf(date)).toBe(month);
  });

  it.each([
    [1250, '$12.50'],
    [5, '$0.05'],
    [100000, '$1000.00'],
  ])('%i cents are %s', (cents, text) => {
    expect(money(cents)).toBe(text);
  });

  it.each([
    ['Bright Oak Pan', 'bright-oak-pan'],
    ["  It's -- here! ", 'it-s-here'],
    ['Ünïcode', 'n-code'],
  ])('%j has the slug %s', (text, made) => {
    expect(slug(text)).toBe(made);
  });

  it('are distinct until the words are used up', () => {
    let n = 0;
    const next = distinct(() => ['a', 'a', 'b'][n++ % 3]!);
    expect([next(), next()]).toEqual(['a', 'b']);
    expect(next).toThrow('the word lists are used up');
  });

  it('are some of a list in its order', () => {
    const list = [1, 2, 3, 4, 5, 6, 7, 8];
    for (let seed = 0; seed < 20; seed++) {
      const chosen = drawSome(Rng.fromSeed(seed), list, 3);
      expect(chosen).toEqual([...chosen].sort((a, b) => a - b));
      expect(new Set(chosen).size).toBe(3);
    }
    expect(drawSome(Rng.fromSeed(0), [1, 2], 5)).toEqual([1, 2]);
  });
});
