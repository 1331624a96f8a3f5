import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { derive, moduleText } from '../../../envs/textcraft/data/derive.ts';
import { type CraftCommand, type GetCommand, parse, print } from '../../../envs/textcraft/grammar.ts';
import { createEnv, createOracle, draw, view } from '../../../envs/textcraft/index.ts';
import { planFor } from '../../../envs/textcraft/oracle.ts';
import { TREE, words } from '../../../envs/textcraft/recipes.ts';
import { waysTo } from '../../../envs/textcraft/start.ts';
import { opening, readOpening } from '../../../envs/textcraft/text.ts';
import type { TimeStep } from '../../../src/core/env.ts';
import { UserError } from '../../../src/core/errors.ts';
import { Rng } from '../../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const seeds = long ? [0, 1, 2, 3, 42, 1_000_000] : [42];
const env = createEnv();
const indices = TREE.goals.map((_, index) => index);
const open = (index: number, seed = 42) => env.open({ env: env.id, index, seed });

describe('the tree', () => {
  it('has the 544 goals of the original, 125, 291, 117 and 11 of depths 1 to 4, in that order', () => {
    const depths = TREE.goals.map(({ depth }) => depth);
    expect([1, 2, 3, 4].map((depth) => depths.filter((one) => one === depth).length)).toEqual([125, 291, 117, 11]);
    expect(depths).toEqual([...depths].sort((a, b) => a - b));
    expect([...TREE.recipesOf.values()].flat()).toHaveLength(613);
  });

  it('has no recipe in which one item may stand for two ingredients', () => {
    // Effects are worked out without looking at what is held; that is exact only because of this.
    for (const { ingredients } of [...TREE.recipesOf.values()].flat()) {
      const items = ingredients.flatMap(({ name, tag }) => (tag ? TREE.membersOf.get(name)! : [name]));
      expect(new Set(items).size).toBe(items.length);
      expect(ingredients.filter(({ tag }) => tag).length).toBeLessThanOrEqual(1);
    }
  });
});

const minecraftData = process.env.MINECRAFT_DATA ?? 'node_modules/minecraft-data';
const isInstalled = existsSync(minecraftData);
if (!isInstalled)
  console.log(`skipped: no ${minecraftData}; npm install --no-save minecraft-data@3.117.0 to check recipes.ts`);

describe.skipIf(!isInstalled)('data/derive.ts', () => {
  it('writes the committed recipes.ts', () => {
    expect(moduleText(derive(minecraftData))).toBe(readFileSync('envs/textcraft/data/recipes.ts', 'utf8'));
  });
});

describe('tasks', () => {
  it("hold out the paper's hundred: 31, 41, 25 and 3 by depth", () => {
    const test = env.tasks.split('test');
    const counts = env.tasks.labels.map((label) => test.filter((index) => env.tasks.label(index) === label).length);
    expect(counts).toEqual([31, 41, 25, 3]);
    expect([test[0], test[30], test[31], test[71], test[72], test[96], test[97], test[99]]).toEqual([
      0, 30, 140, 180, 420, 444, 533, 535,
    ]);
    const { 'outside-test': outside, 'not-train': notTrain, fit, selection } = env.tasks.sets!;
    const train = env.tasks.split('train');
    const sorted = (...lists: (readonly number[])[]) => lists.flat().sort((a, b) => a - b);
    expect([train.length, outside!.length, notTrain!.length, selection!.length]).toEqual([374, 444, 170, 75]);
    expect(sorted(outside!, test)).toEqual(indices);
    expect(sorted(train, notTrain!)).toEqual(indices);
    expect(sorted(fit!, selection!)).toEqual([...train]);
  });
});

describe('options', () => {
  it('names an option or a value it does not have', () => {
    expect(() => createEnv({ fidelty: 'original' })).toThrow(UserError);
    expect(() => createEnv({ fidelty: 'original' })).toThrow('fidelty');
    expect(() => createEnv({ fidelity: 'exact' })).toThrow('"exact"');
  });
});

describe('the start', () => {
  it('lists every recipe the goal may need and at most ten others, each once', () => {
    for (const seed of seeds) {
      for (const index of indices) {
        const { goal, commands } = readOpening(open(index, seed).first.observation);
        const needed = new Set(waysTo(TREE, goal).map(({ command }) => command));
        expect(goal).toBe(TREE.goals[index]!.item);
        expect(new Set(commands).size).toBe(commands.length);
        expect([...needed].filter((command) => !commands.includes(command))).toEqual([]);
        expect(commands.length - needed.size).toBeLessThanOrEqual(10);
      }
    }
  });

  it('depends on the seed, and on nothing else', () => {
    const first = (seed: number) => open(500, seed).first.observation;
    expect(first(1)).toBe(first(1));
    expect(first(1)).not.toBe(first(2));
  });

  it('can be read back from the opening', () => {
    const line = fc.stringMatching(/^[a-z0-9 ,]{1,40}$/);
    const goal = fc.stringMatching(/^[a-z_]{1,20}$/);
    fc.assert(
      fc.property(goal, fc.array(line), (item, commands) => {
        expect(readOpening(opening({ goal: item, commands }))).toEqual({ goal: item, commands });
      }),
    );
  });
});

describe('the grammar', () => {
  const amount = fc.oneof(fc.nat(), fc.bigInt({ min: 2n ** 53n, max: 10n ** 40n }));
  const item = fc.oneof(fc.constantFrom(...TREE.items.map(words)), fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8}){0,2}$/));
  const stack = fc.record({ amount, item: item.filter((text) => !` ${text} `.includes(' using ')) });
  const craft = fc.record({
    type: fc.constant('craft' as const),
    makes: stack,
    using: fc.array(stack, { minLength: 1, maxLength: 4 }),
  });
  const get = fc.record({ type: fc.constant('get' as const), stack });
  const inventory = fc.constant({ type: 'inventory' as const });

  it('reads back what it prints', () => {
    fc.assert(
      fc.property(
        fc.oneof<fc.Arbitrary<CraftCommand | GetCommand | { type: 'inventory' }>[]>(craft, get, inventory),
        (command) => {
          expect(parse(print(command))).toEqual(command);
        },
      ),
    );
  });

  it('reads every recipe of the tree as it stands', () => {
    for (const { command, count, ingredients } of [...TREE.recipesOf.values()].flat()) {
      const read = parse(command);
      expect(read.type === 'craft' && read.makes.amount).toBe(count);
      expect(read.type === 'craft' && read.using.map((one) => one.amount)).toEqual(ingredients.map((one) => one.count));
    }
  });

  /** The original's patterns, as they stand in its source, for comparison. JavaScript's dot stops at more than `\n`. */
  const craftPattern = /^craft ([^\n]*) using ([^\n]*)/;
  const getPattern = /^get ([0-9]+) ([^\n]*)/;
  const stackPattern = /^([0-9]+) ([^\n]*)/;

  it('splits as regular expressions would', () => {
    const piece = fc.constantFrom(
      'craft ',
      'get ',
      'inventory',
      ' using ',
      'using',
      ' ',
      ',',
      '1',
      '02',
      'a',
      '\n',
      '\r',
      '\u2028',
    );
    const pieces = fc.array(piece, { maxLength: 8 }).map((some) => some.join(''));
    const led = fc.tuple(fc.constantFrom('craft ', 'craft using ', 'get ', 'get 1 ', 'inventory', ''), pieces);
    const text = fc.oneof(
      led.map(([head, rest]) => head + rest),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(text, (action) => {
        const command = parse(action);
        const [made, found] = [craftPattern.exec(action), getPattern.exec(action)];
        if (made) {
          const parts = made[2]!.split(',').map((part) => part.replace(/^[ \n\r\t\u2028]+|[ \n\r\t\u2028]+$/g, ''));
          const wrong = parts.find((part) => !stackPattern.test(part));
          expect(command.type).toBe(wrong === undefined ? 'craft' : 'malformed');
          if (command.type === 'craft') {
            expect(command.makes.item).toBe(stackPattern.exec(made[1]!)?.[2] ?? made[1]);
            expect(command.using.map(({ item }) => item)).toEqual(parts.map((part) => stackPattern.exec(part)![2]));
          }
        } else if (found) {
          expect(command).toEqual({ type: 'get', stack: { amount: Number(found[1]), item: found[2] } });
        } else {
          expect(command.type).toBe(action.startsWith('inventory') ? 'inventory' : 'unknown');
        }
      }),
      { numRuns: long ? 20_000 : 2_000 },
    );
  });
});

describe('listed actions', () => {
  /** True of a step that was executed, by its observation. */
  const executed = (step: TimeStep) => /^(Got \d|Crafted \d|Inventory: )/.test(step.observation);

  it('can all be executed, in every state a random walk reaches', () => {
    const walk = fc.record({
      index: fc.nat(indices.length - 1),
      seed: fc.nat(),
      picks: fc.array(fc.nat(), { maxLength: 30 }),
    });
    fc.assert(
      fc.property(walk, ({ index, seed, picks }) => {
        const task = { env: env.id, index, seed };
        const actions: string[] = [];
        for (const pick of picks) {
          const session = env.open(task);
          for (const action of actions) session.step(action);
          const listed = session.actions();
          for (const action of listed) {
            const fork = env.open(task);
            for (const earlier of actions) fork.step(earlier);
            expect(executed(fork.step(action)), action).toBe(true);
          }
          const next = listed[pick % listed.length]!;
          if (session.step(next).kind === 'terminated') break;
          actions.push(next);
        }
      }),
      { numRuns: long ? 300 : 30 },
    );
  });

  it('are the inventory, gets as the commands number them, and crafts of what is held', () => {
    const session = env.openFrom({
      goal: 'stick',
      commands: [
        'craft 4 stick using 2 planks',
        'craft 4 oak planks using 1 oak logs',
        'craft 1 lever using 1 cobblestone, 1 stick',
      ],
    });
    const gets = ['inventory', 'get 1 oak logs', 'get 1 cobblestone'];
    expect(session.actions()).toEqual(gets);
    session.step('get 1 oak logs');
    expect(session.actions()).toEqual([...gets, 'craft 4 oak planks using 1 oak logs']);
    session.step('craft 4 oak planks using 1 oak logs');
    expect(session.actions()).toEqual([...gets, 'craft 4 stick using 2 oak planks']);
    expect(session.step('craft 4 stick using 2 oak planks')).toMatchObject({
      kind: 'terminated',
      reward: 1,
      success: true,
    });
    expect(session.actions()).toEqual([]);
  });

  it('offer each held member of a tag', () => {
    const session = env.openFrom({ goal: 'stick', commands: ['craft 4 stick using 2 planks'] });
    for (const wood of ['oak', 'spruce']) {
      session.step(`get 1 ${wood} logs`);
      session.step(`craft 4 ${wood} planks using 1 ${wood} logs`);
    }
    expect(session.actions()).toEqual([
      'inventory',
      'craft 4 stick using 2 oak planks',
      'craft 4 stick using 2 spruce planks',
    ]);
  });
});

describe('the oracle', () => {
  /** Most turns it takes for a goal of each depth, under any of the seeds below. */
  const MAX_TURNS = [4, 20, 95, 40];

  it('makes all 544 goals from what is listed, by only offered actions, within its turns', () => {
    const turns: number[][] = [[], [], [], []];
    for (const seed of seeds) {
      for (const index of indices) {
        const task = { env: env.id, index, seed };
        const session = env.open(task);
        const next = createOracle()(task);
        let step: TimeStep = session.first;
        let taken = 0;
        while (step.kind !== 'terminated') {
          const action = next(step);
          if (action === undefined) break;
          expect(session.actions()).toContain(action);
          step = session.step(action);
          taken++;
        }
        expect(step, `task ${index}, seed ${seed}`).toMatchObject({ kind: 'terminated', reward: 1, success: true });
        turns[TREE.goals[index]!.depth - 1]!.push(taken);
      }
    }
    for (const [i, taken] of turns.entries()) {
      const mean = taken.reduce((sum, one) => sum + one, 0) / taken.length;
      console.log(
        `oracle, depth ${i + 1}: ${Math.min(...taken)} to ${Math.max(...taken)} turns, mean ${mean.toFixed(1)}`,
      );
      expect(Math.max(...taken)).toBeLessThanOrEqual(MAX_TURNS[i]!);
    }
  });

  it('finds in listed amounts only, and uses up what is over', () => {
    const commands = ['craft 1 lever using 5 stone, 2 stick', 'craft 1 stick using 4 stone'];
    const [stick, lever] = ['craft 1 stick using 4 stone', 'craft 1 lever using 5 stone, 2 stick'];
    expect(planFor(TREE, { goal: 'lever', commands }, 'named')).toEqual([
      'get 5 stone',
      stick,
      'get 5 stone',
      stick,
      'get 4 stone',
      lever,
    ]);
    expect(planFor(TREE, { goal: 'lever', commands }, 'powers')).toEqual(['get 16 stone', stick, stick, lever]);
  });

  it('gives up where the goal cannot be made', () => {
    const next = createOracle()({ env: env.id, index: 0, seed: 0 });
    expect(next({ kind: 'first', observation: opening({ goal: 'beacon', commands: [] }) })).toBeUndefined();
  });
});

describe('the corrected world', () => {
  const commands = ['craft 4 oak planks using 1 oak logs'];
  const both = () =>
    [createEnv(), createEnv({ fidelity: 'original' })].map((one) => one.openFrom({ goal: 'oak_planks', commands }));

  it('is over when it is over; the original goes on and pays again', () => {
    const [corrected, original] = both();
    for (const session of [corrected!, original!]) {
      session.step('get 2 oak logs');
      expect(session.step(commands[0]!).kind).toBe('terminated');
    }
    expect(corrected!.step(commands[0]!)).toMatchObject({ kind: 'terminated', reward: 0, success: true });
    expect(corrected!.inventory).toEqual([
      ['oak_logs', 1],
      ['oak_planks', 4],
    ]);
    expect(original!.step('inventory')).toMatchObject({ kind: 'mid' });
    expect(original!.step(commands[0]!)).toMatchObject({ kind: 'terminated', reward: 1 });
  });

  it('holds nothing of which there are none', () => {
    const [corrected, original] = both().map((session) => {
      session.step('get 0 stone');
      return session.step('inventory').observation;
    });
    expect(corrected).toBe('Inventory: You are not carrying anything.');
    expect(original).toBe('Inventory: [stone] (0) ');
  });

  it('names the tag that cannot be made', () => {
    const answers = both().map((session) => session.step('craft 1 planks using 1 oak log').observation);
    expect(answers).toEqual([
      'Could not find enough items to craft minecraft:planks',
      'Could not find enough items to craft None',
    ]);
  });

  it('does not read or echo an endless action', () => {
    const [corrected, original] = both();
    const shout = `craft 1 ${'a'.repeat(5000)} using 1 stone`;
    expect(corrected!.step(shout).observation).toBe(`Could not execute ${shout.slice(0, 1000)}…`);
    expect(original!.step(shout).observation).toContain('a'.repeat(5000));
    const greedy = `get ${'9'.repeat(31)} stone`;
    expect(corrected!.step(greedy).observation).toBe(`Could not execute ${greedy}`);
    expect(original!.step(greedy).observation).toBe(`Got ${'9'.repeat(31)} stone`);
  });

  it('keeps its bound with one of everything held', () => {
    const session = env.openFrom({ goal: '', commands: [] });
    for (const item of TREE.items) session.step(`get ${'9'.repeat(30)} ${words(item)}`);
    expect(session.step('inventory').observation.length).toBeLessThan(env.maxObservationChars / 2);
  });
});

describe('amounts', () => {
  it('are exact beyond 2⁵³', () => {
    const session = createEnv({ fidelity: 'original' }).openFrom({ goal: '', commands: [] });
    session.step('get 9007199254740991 stone');
    session.step('get 2 stone');
    expect(session.step('inventory').observation).toBe('Inventory: [stone] (9007199254740993) ');
    expect(session.step('craft 1 stone bricks using 90071992547409930 stone').observation).toContain('not find enough');
    expect(session.step('craft 4 stone bricks using 4 stone').observation).toBe('Crafted 4 minecraft:stone_bricks');
    expect(session.inventory[0]).toEqual(['stone', 9007199254740989]);
  });
});

describe('the view', () => {
  if (view.mode !== 'append') throw new Error('textcraft/compact appends');
  const { prompt, turn } = view;

  it('reads goal first, then the recipes', () => {
    const first = env.openFrom({
      goal: 'stick',
      commands: ['craft 4 stick using 2 planks', 'craft 1 lever using 1 cobblestone, 1 stick'],
    }).first;
    const { segments, focus } = prompt(first);
    expect(segments.join('')).toBe('goal stick\n4 stick using 2 planks\n1 lever using 1 cobblestone, 1 stick');
    expect(focus).toBe('stick');
  });

  it('mentions every listed action but the inventory, at its own words', () => {
    const rng = Rng.fromSeed(7);
    for (let n = 0; n < 60; n++) {
      const session = open(rng.int(indices.length), n);
      const { segments, mentions } = prompt(session.first);
      for (let t = 0; t < 12; t++) {
        for (const action of session.actions()) {
          const places = mentions(action);
          expect(places.length).toBeLessThanOrEqual(6);
          expect([...places].sort((a, b) => a - b)).toEqual(places);
          const command = parse(action);
          if (command.type === 'inventory') expect(places).toEqual([]);
          else {
            expect(places, action).not.toEqual([]);
            const { amount, item } = command.type === 'get' ? command.stack : (command as CraftCommand).makes;
            for (const place of places) expect(segments[place]!).toMatch(new RegExp(`[ \\n]${amount} ${item}$`));
          }
        }
        if (session.step(rng.pick(session.actions())).kind === 'terminated') break;
      }
    }
  });

  it('points a get of an amount that no recipe names at every place that names its item', () => {
    const commands = ['craft 4 torch using 1 coal, 2 stick', 'craft 1 fire using 3 coal, 1 log'];
    const { segments, mentions } = prompt(env.openFrom({ goal: 'torch', commands }).first);
    const texts = (action: string) => mentions(action).map((place) => segments[place]);
    expect(texts('get 64 coal')).toEqual([' using 1 coal', ' using 3 coal']);
    expect(texts('get 3 coal')).toEqual([' using 3 coal']);
    expect(texts('get 64 stone')).toEqual([]);
  });

  it('renders a turn in a few words', () => {
    const nothing = view.track!.begin({ kind: 'first', observation: '' });
    const turnOf = (action: string, observation: string) => turn({ action, observation }, nothing);
    expect(turnOf('get 1 oak logs', 'Got 1 oak logs')).toBe(' 1 oak logs ok');
    expect(turnOf('craft 4 stick using 2 oak planks', 'Crafted 4 minecraft:stick')).toBe(' craft stick ok');
    expect(turnOf('craft 4 stick using 2 oak planks', 'Could not find enough items to craft minecraft:stick')).toBe(
      ' craft stick fail',
    );
    expect(turnOf('get 1 nonsense of any length', 'Could not find nonsense of any length')).toBe(' unknown fail');
    expect(turnOf('look', 'Could not execute look')).toBe(' unknown fail');
    expect(turnOf('inventory', 'Inventory: You are not carrying anything.')).toBe(' inventory nothing');
    expect(turnOf('inventory', 'Inventory: [oak planks] (4) [stick] (2) ')).toBe(' inventory 4 oak planks 2 stick');
  });

  it('knows every name as a phrase, and every other word it writes', () => {
    const known = new Set([...view.lexicon, ...view.words]);
    expect(view.lexicon).toHaveLength(new Set(view.lexicon).size);
    const strange = indices
      .flatMap((index) => prompt(open(index).first).segments)
      .filter((segment) => {
        const [, lead = '', rest = ''] = /^(goal |\n| using |, )(?:\d+ )?(.*)$/.exec(segment) ?? [];
        return !(lead === '\n' || lead === ', ' || known.has(lead.trim())) || !known.has(rest);
      });
    expect(strange).toEqual([]);
  });
});

describe('the drawing', () => {
  it('shows what is held and what of the goal is at hand', () => {
    const task = { env: env.id, index: 0, seed: 0 };
    const first = env.openFrom({ goal: 'stick', commands: [] }).first;
    const turns = [{ action: 'get 1 oak logs', observation: 'Got 1 oak logs' }];
    const { panels } = draw(task, first, turns);
    expect(panels[0]).toEqual({ kind: 'list', title: 'Inventory', items: [{ name: 'oak logs', count: 1 }] });
    const lines = panels[1]!.kind === 'text' ? panels[1]!.lines : [];
    expect(lines).toContain('4 stick from');
    expect(lines.map((line) => line.trim())).toContain('+ 1 oak logs');
    expect(lines.map((line) => line.trim())).toContain('- 1 spruce logs');
  });
});
