/** TextCraft's rule book, built from a handful of recipes: load order, cycles, tags, depths, crafts and lists. */
import { describe, expect, it } from 'vitest';
import { listActions, OfferBook } from '../../../envs/textcraft/actions.ts';
import { Effects } from '../../../envs/textcraft/effects.ts';
import { minus, parse, plus } from '../../../envs/textcraft/grammar.ts';
import { buildTree, isGettable, nameOf, standIns, words } from '../../../envs/textcraft/recipes.ts';
import { drawStart, waysTo } from '../../../envs/textcraft/start.ts';
import * as text from '../../../envs/textcraft/text.ts';
import { Variants } from '../../../envs/textcraft/variants.ts';
import { Rng } from '../../../src/core/rng.ts';

/** Planks of two woods, sticks of any planks, a ladder of sticks, and a torch of coal. */
const LINES = [
  'oak_planks planks 4 oak_planks < 1 oak_log',
  'birch_planks planks 4 birch_planks < 1 birch_log',
  'stick - 4 stick < 2 #planks',
  'ladder - 3 ladder < 7 stick',
  'torch - 4 torch < 1 coal, 1 stick',
].join('\n');
const tree = buildTree(LINES);
const depths = (lines: string) => Object.fromEntries(buildTree(lines).goals.map(({ item, depth }) => [item, depth]));

describe('the tree', () => {
  it('finds what nothing makes, and makes the rest', () => {
    expect(['oak_log', 'birch_log', 'coal'].map((name) => isGettable(tree, name))).toEqual([true, true, true]);
    expect(['oak_planks', 'planks', 'stick', 'gold'].map((name) => isGettable(tree, name))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  it('counts the longest chain of crafts on the easiest way', () => {
    expect(depths(LINES)).toEqual({ oak_planks: 1, birch_planks: 1, stick: 2, ladder: 3, torch: 3 });
    expect(depths(`${LINES}\nstick2 - 1 stick < 1 bamboo`)).toMatchObject({ stick: 1, ladder: 2 });
  });

  it('sorts goals by depth, and of one depth as they were loaded', () => {
    expect(tree.goals.map(({ item }) => item)).toEqual(['oak_planks', 'birch_planks', 'stick', 'ladder', 'torch']);
  });

  it('writes commands as they are listed', () => {
    expect(tree.recipesOf.get('stick')!.map(({ command }) => command)).toEqual(['craft 4 stick using 2 planks']);
    expect(tree.recipesOf.get('torch')![0]!.command).toBe('craft 4 torch using 1 coal, 1 stick');
  });

  it('lets any member of a tag stand in', () => {
    expect(tree.membersOf.get('planks')).toEqual(['oak_planks', 'birch_planks']);
    expect(standIns(tree, { name: 'planks', tag: true, count: 2 })).toEqual(['oak_planks', 'birch_planks']);
    expect(standIns(tree, { name: 'coal', tag: false, count: 1 })).toEqual(['coal']);
  });

  it('leaves out a recipe that would close a circle with those before it', () => {
    const circle = ['a - 1 ingot < 9 nugget', 'b - 9 nugget < 1 ingot'];
    const made = (lines: string[]) => [...buildTree(lines.join('\n')).recipesOf.keys()];
    expect(made(circle)).toEqual(['ingot']);
    expect(made([...circle].reverse())).toEqual(['nugget']);
  });

  it('leaves out what is made of one block alone, but keeps its items', () => {
    const blocks = buildTree('a - 9 coal < 1 coal_block\nb - 1 lamp < 1 coal, 1 coal_block');
    expect([...blocks.recipesOf.keys()]).toEqual(['lamp']);
    expect(isGettable(blocks, 'coal')).toBe(true);
  });

  it('makes an item to be found of a tag that nothing makes', () => {
    const logs = buildTree('a planks 4 oak_planks < 1 #oak_logs');
    expect([logs.tags.has('oak_logs'), isGettable(logs, 'oak_logs')]).toEqual([false, true]);
    expect(logs.recipesOf.get('oak_planks')![0]!.ingredients).toEqual([{ name: 'oak_logs', tag: false, count: 1 }]);
  });

  it('spells names with blanks or underscores', () => {
    expect([words('oak_planks'), nameOf('oak planks'), nameOf('Oak  planks')]).toEqual([
      'oak planks',
      'oak_planks',
      'Oak__planks',
    ]);
  });
});

describe('effects', () => {
  const effects = new Effects(tree, 'corrected');
  const answerTo = (action: string) => {
    const effect = effects.of(action);
    return 'answer' in effect ? effect.answer.observation : effect.type;
  };

  it.each([
    ['inventory', 'inventory'],
    ['get 3 coal', 'Got 3 coal'],
    ['get 3 stick', 'Could not find stick'],
    ['get 3 gold', 'Could not find gold'],
    ['get coal', 'Could not execute get coal'],
    ['craft 4 stick using 2 oak planks', 'Crafted 4 minecraft:stick'],
    ['craft 99 stick using 2 birch planks', 'Crafted 4 minecraft:stick'],
    ['craft 4 torch using 1 stick, 1 coal', 'Crafted 4 minecraft:torch'],
    ['craft stick using two planks', 'Wrong item format: two planks'],
    ['dance', 'Could not execute dance'],
    ['', 'Could not execute '],
  ])('of %j', (action, observation) => {
    expect(answerTo(action)).toBe(observation);
  });

  it.each([
    'craft 4 stick using 3 oak planks',
    'craft 4 stick using 1 oak planks',
    'craft 4 torch using 1 coal',
    'craft 1 gold using 1 coal',
  ])('of %j is that no recipe fits, and makes nothing', (action) => {
    const effect = effects.of(action);
    expect(effect.type === 'craft' && effect.makes).toBeUndefined();
    expect(answerTo(action)).toMatch(/^Could not find a valid recipe for /);
  });

  it('of a tag as an ingredient is a lack, because a tag is never held', () => {
    expect(answerTo('craft 4 stick using 2 planks')).toBe('Could not find enough items to craft minecraft:stick');
  });

  it('of a tag as the goal names it, which the original does not', () => {
    const lacking = (fidelity: 'corrected' | 'original') => {
      const effect = new Effects(tree, fidelity).of('craft 4 planks using 1 oak log');
      return effect.type === 'craft' && effect.lacking.observation;
    };
    expect(lacking('corrected')).toBe('Could not find enough items to craft minecraft:planks');
    expect(lacking('original')).toBe('Could not find enough items to craft None');
  });

  it('of an endless action are cut where corrected', () => {
    expect(answerTo(`get ${'9'.repeat(31)} coal`)).toMatch(/^Could not execute get 9+ coal$/);
    expect(answerTo('x'.repeat(2000))).toBe(`Could not execute ${'x'.repeat(1000)}…`);
  });

  it('are the same object for the same action', () => {
    expect(effects.of('get 1 coal')).toBe(effects.of('get 1 coal'));
  });
});

describe('listed actions', () => {
  const effects = new Effects(tree, 'corrected');
  const commands = [
    'craft 4 stick using 2 planks',
    'craft 4 torch using 1 coal, 1 stick',
    'craft 4 oak planks using 1 oak log',
  ];
  const held = (...stacks: [string, number][]) =>
    new Map(stacks.map(([name, amount]) => [tree.numberOf.get(name)!, amount]));

  it('find what the commands need, and craft what is held', () => {
    const offers = new OfferBook(effects, 'named').of(commands, true);
    expect(listActions(offers, held())).toEqual(['inventory', 'get 1 coal', 'get 1 oak log']);
    expect(listActions(offers, held(['oak_planks', 2]))).toContain('craft 4 stick using 2 oak planks');
    expect(listActions(offers, held(['oak_planks', 1], ['stick', 5]))).not.toContain(
      'craft 4 stick using 2 oak planks',
    );
    expect(listActions(offers, held(['coal', 1], ['stick', 1]))).toContain('craft 4 torch using 1 coal, 1 stick');
  });

  it('name powers of two where configured', () => {
    const offers = new OfferBook(effects, 'powers').of(['craft 1 x using 3 coal', 'craft 1 y using 1 coal'], false);
    expect(offers.always).toEqual([1, 2, 3, 4, 8, 16, 32, 64].map((amount) => `get ${amount} coal`));
  });
});

describe('starts', () => {
  it('list every recipe on a way to the goal, and nothing else where there is nothing else', () => {
    expect(
      waysTo(tree, 'ladder')
        .map(({ output }) => output)
        .sort(),
    ).toEqual(['birch_planks', 'ladder', 'oak_planks', 'stick']);
    expect(waysTo(tree, 'coal')).toEqual([]);
    const start = drawStart(tree, 3, 7);
    expect(start.goal).toBe('ladder');
    expect(new Set(start.commands).size).toBe(start.commands.length);
    expect(start.commands).toEqual(expect.arrayContaining(waysTo(tree, 'ladder').map(({ command }) => command)));
    expect(() => drawStart(tree, 5, 0)).toThrow('task index must be an integer in [0, 5), got 5');
  });

  it('are read back from their opening, and from no other text', () => {
    const start = drawStart(tree, 3, 7);
    expect(text.readOpening(text.opening(start))).toEqual(start);
    expect(text.readOpening(text.opening({ goal: 'a', commands: [] }))).toEqual({ goal: 'a', commands: [] });
    for (const other of ['', 'Goal: craft x.', text.opening(start).slice(0, -1)])
      expect(() => text.readOpening(other)).toThrow('not an opening observation');
  });
});

describe('variants', () => {
  it('of names alone keep the shape: as many recipes, of the same amounts and depths', () => {
    const varied = new Variants(tree, { names: true, recombined: 0 }).draw(Rng.fromSeed(5));
    expect(varied.goals.map(({ depth }) => depth)).toEqual(tree.goals.map(({ depth }) => depth));
    expect([...varied.items].sort()).toEqual([...tree.items].sort());
    const amounts = (one: typeof tree) =>
      [...one.recipesOf.values()]
        .flat()
        .map(({ count, ingredients }) => [count, ...ingredients.map((i) => i.count)].join())
        .sort();
    expect(amounts(varied)).toEqual(amounts(tree));
  });
});

describe('amounts', () => {
  it.each([
    [1, 2, 3],
    [Number.MAX_SAFE_INTEGER, 1, 9007199254740992n],
    [9007199254740992n, 1, 9007199254740993n],
  ])('%s + %s is %s, and back', (one, other, sum) => {
    expect(plus(one, other)).toBe(sum);
    expect(minus(sum, other)).toBe(one);
  });

  it('are read exactly, however long', () => {
    expect(parse('get 99999999999999999999 coal')).toEqual({
      type: 'get',
      stack: { amount: 99999999999999999999n, item: 'coal' },
    });
    expect(parse('get 007 coal')).toEqual({ type: 'get', stack: { amount: 7, item: 'coal' } });
  });
});

describe('texts', () => {
  it('print the inventory with a blank after each, and an empty one in words', () => {
    expect(
      text.inventory([
        ['oak_planks', 4],
        ['coal', 1],
      ]),
    ).toBe('Inventory: [oak planks] (4) [coal] (1) ');
    expect(text.inventory([])).toBe('Inventory: You are not carrying anything.');
  });

  it.each([
    ["minecraft:it's", '"minecraft:it\'s"'],
    ['minecraft:a\tb', "'minecraft:a\\tb'"],
    ['minecraft:\u200b', "'minecraft:\\u200b'"],
  ])('quote %j as Python does', (id, quoted) => {
    expect(text.formatNoRecipe(id, false, 2)).toBe(
      `Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, item_id=${quoted}), count=2)`,
    );
  });
});
