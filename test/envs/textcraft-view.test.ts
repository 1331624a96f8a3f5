/**
 * TextCraft's view: its count of what is held is the inventory, and it gives no plan away. A rule that reads the counts
 * and learns nothing must not do better, by more than five points, than a player who reads nothing and merely remembers
 * what it did itself.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEnv, view } from '../../envs/textcraft/index.ts';
import { words } from '../../envs/textcraft/recipes.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';

const track = view.track!;

describe('the count of what is held', () => {
  it('names the situation, whatever way led there', () => {
    const play = (...answers: readonly (readonly [string, string])[]) => {
      const begun = track.begin({ kind: 'first', observation: '' });
      return track.situation!(
        answers.reduce((seen, [action, observation]) => track.after(seen, { action, observation }), begun),
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
          seen = track.after(seen, { action, observation: step.observation });
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
    const after = track.after(before, { action: 'get 3 oak log', observation: 'Got 3 oak log' });
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
    const seen = turns.reduce((so, [action, observation]) => track.after(so, { action, observation }), begun);
    expect(view.candidate!('get 1 oak log', seen)).toBe('get 1 oak log held 0 times 2');
    expect(view.candidate!('get 9 oak planks', seen)).toBe('get 9 oak planks held 5 times 1');
    const craft = 'craft 4 oak planks using 1 oak log';
    expect(view.candidate!(craft, seen)).toBe(`${craft} held 5 times 1`);
  });
});

/** Actions that a player did, and how many of each item should be left by their words. */
interface Memory {
  readonly done: ReadonlySet<string>;
  readonly left: ReadonlyMap<string, number>;
}

/** Indices of the candidates that a rule would choose among. */
type Rule = (candidates: readonly string[], actions: readonly string[], memory: Memory) => readonly number[];

/** Stacks that an action asks for and uses up, by its words. */
function said(action: string): readonly (readonly [item: string, amount: number])[] {
  const [made, used] = action.split(' using ');
  const stacks = (text: string) =>
    Array.from(text.matchAll(/(\d+) ([^,]+)/g), ([, n, item]) => [item!, Number(n)] as const);
  return [...stacks(made!), ...stacks(used ?? '').map(([item, amount]) => [item, -amount] as const)];
}

const heldIn = (text: string) => Number(/ held (\d+)/.exec(text)?.[1] ?? 0);
const timesIn = (text: string) => Number(/ times (\d+)$/.exec(text)?.[1] ?? 0);
const indicesOf = (texts: readonly string[], keep: (text: string) => boolean) =>
  texts.map((_, i) => i).filter((i) => keep(texts[i]!));
const isCraft = (text: string) => text.startsWith('craft');

/** Rules on the view's fields: the item of which least is held, one of which none is, crafts before finds, least often. */
const RULES: Readonly<Record<string, Rule>> = {
  'least held': (texts) => indicesOf(texts, (text) => heldIn(text) === Math.min(...texts.map(heldIn))),
  'none held': (texts) => indicesOf(texts, (text) => heldIn(text) === 0),
  'none held, crafts first': (texts) => {
    const fresh = indicesOf(texts, (text) => heldIn(text) === 0);
    const crafts = fresh.filter((i) => isCraft(texts[i]!));
    return crafts.length > 0 ? crafts : fresh;
  },
  'least often': (texts) => indicesOf(texts, (text) => timesIn(text) === Math.min(...texts.map(timesIn))),
};

const randomPlayer: Rule = (_, actions) => indicesOf(actions, () => true);
/** Players without a view, who remember what they did. */
const PLAYERS: Readonly<Record<string, Rule>> = {
  'never twice': (_, actions, { done }) => indicesOf(actions, (action) => !done.has(action)),
  'least left': (_, actions, { left }) => {
    const amounts = actions.map((action) => left.get(said(action)[0]?.[0] ?? '') ?? 0);
    const least = Math.min(...amounts);
    return actions.map((_, i) => i).filter((i) => amounts[i] === least);
  },
  'never twice, crafts first': (_, actions, { done }) => {
    const fresh = indicesOf(actions, (action) => !done.has(action));
    const crafts = fresh.filter((i) => isCraft(actions[i]!));
    return crafts.length > 0 ? crafts : fresh;
  },
};

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
      const done = new Set<string>();
      const left = new Map<string, number>();
      for (let t = 0; t < HORIZON; t++) {
        const actions = session.actions();
        const among = rule(
          actions.map((action) => view.candidate!(action, seen)),
          actions,
          { done, left },
        );
        const action = among.length > 0 ? actions[rng.pick(among)]! : rng.pick(actions);
        const step = session.step(action);
        seen = track.after(seen, { action, observation: step.observation });
        done.add(action);
        for (const [item, amount] of said(action)) left.set(item, (left.get(item) ?? 0) + amount);
        if (step.kind !== 'terminated') continue;
        won++;
        break;
      }
    }
  }
  return (100 * won) / (test.length * EPISODES);
}

describe('a greedy rule on the view’s fields, without learning', () => {
  it.each([{ listInventory: false }, { listInventory: false, amounts: 'powers' }])(
    'is at most five points better than a memory of what was done: %o',
    (options) => {
      const random = success(options, randomPlayer);
      const players = Object.entries(PLAYERS).map(([name, rule]) => [name, success(options, rule)] as const);
      const rules = Object.entries(RULES).map(([name, rule]) => [name, success(options, rule)] as const);
      const line = (entries: readonly (readonly [string, number])[]) =>
        entries.map(([name, value]) => `${name} ${value.toFixed(0)}`).join(', ');
      console.log(`random ${random.toFixed(0)}; without a view: ${line(players)}; with it: ${line(rules)}`);

      const best = (entries: readonly (readonly [string, number])[]) => Math.max(...entries.map(([, value]) => value));
      expect(best(rules)).toBeLessThanOrEqual(best(players) + 5);
    },
  );
});
