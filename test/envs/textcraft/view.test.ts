/**
 * TextCraft's view: its count of what is held is the inventory, and it gives no plan away. With named amounts a rule that
 * reads what the view adds and learns nothing is at most five points better than a player who merely never repeats an
 * action. With powers of two it is far better than that one, for a stack is enough of anything; there it is at most five
 * points better than a player who reads nothing and keeps an account of what it did.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEnv, view } from '../../../envs/textcraft/index.ts';
import { words } from '../../../envs/textcraft/recipes.ts';
import type { EnvOptions } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';

const track = view.track!;

describe('the count of what is held', () => {
  it('names the situation, whatever way led there', () => {
    const play = (...answers: readonly (readonly [string, string])[]) => {
      const begun = track.begin({ kind: 'first', observation: '' });
      return track.situation!(
        answers.reduce((seen, [action, observation]) => track.reduce(seen, { action, observation }), begun),
      );
    };
    const log = ['get 1 oak log', 'Got 1 oak log'] as const;
    const stone = ['get 2 stone', 'Got 2 stone'] as const;
    const planks = ['craft 4 oak planks using 1 oak log', 'Crafted 4 minecraft:oak_planks'] as const;
    expect(play(log, stone)).toBe('1 oak log, 2 stone');
    expect(play(stone, log)).toBe(play(log, stone));
    expect(play(log, planks)).toBe('4 oak planks'); // what is used up leaves no trace
    expect(play(log, log)).not.toBe(play(log));
    expect(play()).toBe('');
  });

  it('is the inventory, whatever is done', () => {
    let turns = 0;
    fc.assert(
      fc.property(fc.nat(543), fc.nat(1000), fc.array(fc.nat(1000), { maxLength: 30 }), (index, seed, choices) => {
        const session = createEnv().open({ env: 'textcraft', index, seed });
        let seen = track.begin(session.first);
        for (const choice of choices) {
          const listed = session.actions();
          const action = choice % 7 === 0 ? `craft 1 stick using ${choice} stone` : listed[choice % listed.length]!;
          const step = session.step(action);
          seen = track.reduce(seen, { action, observation: step.observation });
          const inventory = session.inventory.map(([name, n]) => [words(name), Number(n)] as const);
          expect([...seen.held].filter(([, n]) => n > 0).sort()).toEqual([...inventory].sort());
          turns++;
          if (step.kind === 'terminated') break;
        }
      }),
      { numRuns: 300 },
    );
    expect(turns).toBeGreaterThan(1000);
  });

  it('stands in each candidate, and a new turn leaves the old state alone', () => {
    const before = track.begin({ kind: 'first', observation: '' });
    const after = track.reduce(before, { action: 'get 3 oak log', observation: 'Got 3 oak log' });
    const candidate = (action: string, seen = after) => view.candidate!(action, seen);
    expect(candidate('get 2 oak log')).toBe('get 2 oak log held 3 times 1');
    expect(candidate('get 2 oak log', before)).toBe('get 2 oak log held 0 times 0');
    expect(candidate('craft 4 stick using 2 oak planks')).toBe('craft 4 stick using 2 oak planks held 0 times 0');
    expect(candidate('inventory')).toBe('inventory');
  });

  it('goes down when a craft uses an item up; the times that it was found or made do not, and are apart', () => {
    const turns = [
      ['get 2 oak log', 'Got 2 oak log'],
      ['get 1 oak log', 'Got 1 oak log'],
      ['get 1 oak log', 'Could not find oak log'],
      ['craft 4 oak planks using 1 oak log', 'Crafted 4 minecraft:oak_planks'],
      ['get 1 oak planks', 'Got 1 oak planks'],
      ['inventory', 'Inventory: [oak planks] (5) '],
    ] as const;
    const begun = track.begin({ kind: 'first', observation: '' });
    const seen = turns.reduce((so, [action, observation]) => track.reduce(so, { action, observation }), begun);
    expect(view.candidate!('get 1 oak log', seen)).toBe('get 1 oak log held 0 times 2');
    expect(view.candidate!('get 9 oak planks', seen)).toBe('get 9 oak planks held 5 times 1');
    const craft = 'craft 4 oak planks using 1 oak log';
    expect(view.candidate!(craft, seen)).toBe(`${craft} held 5 times 1`);
  });
});

/** Account that a player keeps of its own actions, by their words. */
interface Account {
  readonly done: ReadonlySet<string>;
  /** Number of each item that should be left, and times that it was found or made. */
  readonly left: ReadonlyMap<string, number>;
  readonly times: ReadonlyMap<string, number>;
}

/** Candidates of a turn, and what a player may go by. */
interface Choice {
  readonly actions: readonly string[];
  /** The view's text of each. */
  readonly texts: readonly string[];
  readonly account: Account;
}

/** Indices of the candidates that a rule would choose among. */
type Rule = (choice: Choice) => readonly number[];

/** Stacks that an action asks for and uses up, by its words. */
function itemsOf(action: string): readonly (readonly [item: string, amount: number])[] {
  const [made, used] = action.split(' using ');
  const stacks = (text: string) =>
    Array.from(text.matchAll(/(\d+) ([^,]+)/g), ([, n, item]) => [item!, Number(n)] as const);
  return [...stacks(made!), ...stacks(used ?? '').map(([item, amount]) => [item, -amount] as const)];
}

const indicesWhere = <T>(values: readonly T[], keep: (value: T) => boolean) =>
  values.map((_, i) => i).filter((i) => keep(values[i]!));

/** The same rule, but crafts before finds. */
const craftsFirst =
  (rule: Rule): Rule =>
  (choice) => {
    const among = rule(choice);
    const crafts = among.filter((i) => choice.actions[i]!.startsWith('craft'));
    return crafts.length > 0 ? crafts : among;
  };

/** Greedy rules on a number of each candidate: the least, the most, none of it, each with crafts first too. */
function rulesOn(name: string, numbersOf: (choice: Choice) => readonly number[]): Record<string, Rule> {
  const least: Rule = (choice) => {
    const numbers = numbersOf(choice);
    const lowest = Math.min(...numbers);
    return indicesWhere(numbers, (n) => n === lowest);
  };
  const most: Rule = (choice) => {
    const numbers = numbersOf(choice);
    const highest = Math.max(...numbers);
    return indicesWhere(numbers, (n) => n === highest);
  };
  const none: Rule = (choice) => indicesWhere(numbersOf(choice), (n) => n === 0);
  const rules = { [`least ${name}`]: least, [`most ${name}`]: most, [`no ${name}`]: none };
  const first = Object.entries(rules).map(([rule, choose]) => [`${rule}, crafts first`, craftsFirst(choose)] as const);
  return { ...rules, ...Object.fromEntries(first) };
}

const randomPlayer: Rule = ({ actions }) => indicesWhere(actions, () => true);
const neverTwice: Rule = ({ actions, account }) => indicesWhere(actions, (action) => !account.done.has(action));
/** Players without a view, who remember what they did. */
const PLAYERS: Readonly<Record<string, Rule>> = {
  'never twice': neverTwice,
  'never twice, crafts first': craftsFirst(neverTwice),
};
const accounted = (of: (account: Account) => ReadonlyMap<string, number>) => (choice: Choice) =>
  choice.actions.map((action) => of(choice.account).get(itemsOf(action)[0]?.[0] ?? '') ?? 0);
/** Players without a view, who keep an account of what they did. */
const ACCOUNTANTS: Readonly<Record<string, Rule>> = {
  ...rulesOn(
    'left',
    accounted(({ left }) => left),
  ),
  ...rulesOn(
    'asked',
    accounted(({ times }) => times),
  ),
};

/** Fields that the view adds to an action, by name: `held 3 times 1`; a word without a number counts as 1. */
function fieldsOf(action: string, text: string): ReadonlyMap<string, number> {
  const added = text.slice(action.length).matchAll(/([a-z]+)(?: (\d+))?/g);
  return new Map(Array.from(added, ([, name, n]) => [name!, n === undefined ? 1 : Number(n)]));
}

/** Rules on whatever fields the view adds to the candidates of the test tasks. */
function viewRules(options: EnvOptions): Record<string, Rule> {
  const names = new Set<string>();
  success(options, ({ actions, texts }) => {
    for (const [i, action] of actions.entries()) for (const name of fieldsOf(action, texts[i]!).keys()) names.add(name);
    return [];
  });
  const numbers = (name: string) => (choice: Choice) =>
    choice.actions.map((action, i) => fieldsOf(action, choice.texts[i]!).get(name) ?? 0);
  return Object.assign({}, ...[...names].map((name) => rulesOn(name, numbers(name)))) as Record<string, Rule>;
}

const HORIZON = 24;
const EPISODES = 3;

/** Success in per cent on the paper's test ids; ties are drawn at random, and anything where a rule finds nothing. */
function success(options: EnvOptions, rule: Rule): number {
  const env = createEnv(options);
  const test = env.tasks.split('test');
  let won = 0;
  for (const index of test) {
    for (let n = 0; n < EPISODES; n++) {
      const rng = Rng.fromSeed(index * EPISODES + n);
      const session = env.open({ env: env.id, index, seed: env.tasks.evalSeed });
      let seen = track.begin(session.first);
      const account = { done: new Set<string>(), left: new Map<string, number>(), times: new Map<string, number>() };
      for (let t = 0; t < HORIZON; t++) {
        const actions = session.actions();
        const texts = actions.map((action) => view.candidate!(action, seen));
        const among = rule({ actions, texts, account });
        const action = among.length > 0 ? actions[rng.pick(among)]! : rng.pick(actions);
        const step = session.step(action);
        seen = track.reduce(seen, { action, observation: step.observation });
        const [made] = itemsOf(action);
        account.done.add(action);
        account.times.set(made![0], (account.times.get(made![0]) ?? 0) + 1);
        for (const [item, amount] of itemsOf(action)) account.left.set(item, (account.left.get(item) ?? 0) + amount);
        if (step.kind !== 'terminated') continue;
        won++;
        break;
      }
    }
  }
  return (100 * won) / (test.length * EPISODES);
}

describe('a greedy rule on the view’s fields, without learning', () => {
  const named: EnvOptions = { listInventory: false };
  const powers: EnvOptions = { listInventory: false, amounts: 'powers' };
  it.each([
    { than: 'never repeating an action', options: named, players: PLAYERS },
    { than: 'an account of what was done', options: powers, players: { ...PLAYERS, ...ACCOUNTANTS } },
  ])('is at most five points better than $than: $options', ({ options, players }) => {
    const play = (rules: Readonly<Record<string, Rule>>) =>
      Object.entries(rules).map(([name, rule]) => [name, success(options, rule)] as const);
    const [random, without, rules] = [success(options, randomPlayer), play(players), play(viewRules(options))];
    const line = (entries: readonly (readonly [string, number])[]) =>
      entries.map(([name, value]) => `${name} ${value.toFixed(0)}`).join(', ');
    console.log(`random ${random.toFixed(0)}; without a view: ${line(without)}; with it: ${line(rules)}`);

    const best = (entries: readonly (readonly [string, number])[]) => Math.max(...entries.map(([, value]) => value));
    expect(best(rules)).toBeLessThanOrEqual(best(without) + 5);
  });
});
