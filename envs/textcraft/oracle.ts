/**
 * Oracle: solves any goal from its opening's list, with only the actions that `Session.actions()` offers: amounts as
 * they are listed, tags filled with held items.
 */
import type { Oracle } from '../../src/core/env.ts';
import { type Amounts, listStacks } from './actions.ts';
import { type CraftCommand, parse, print, type Stack } from './grammar.ts';
import { isGettable, nameOf, type Tree, words } from './recipes.ts';
import { readOpening } from './text.ts';

/**
 * Plans on the opening, then plays the plan; gives up at its end, or where the goal cannot be reached.
 * @param treeUnder the rule book that holds under a task seed
 * @param amounts   in which found items are listed
 */
export function oracle(treeUnder: (seed: number) => Tree, amounts: Amounts): Oracle {
  return (task) => {
    let plan: readonly string[] | undefined;
    let next = 0;
    return (step) => {
      if (step.kind === 'first') {
        plan = planFor(treeUnder(task.seed), readOpening(step.observation), amounts);
        next = 0;
      }
      return step.kind === 'terminated' ? undefined : plan?.[next++];
    };
  };
}

/**
 * Plan for an opening.
 * @returns the actions that make the goal, or `undefined` if the listed commands cannot
 */
export function planFor(
  tree: Tree,
  start: { goal: string; commands: readonly string[] },
  amounts: Amounts,
): readonly string[] | undefined {
  const commands = start.commands.map(parse).filter((command) => command.type === 'craft');
  const ways = cheapestWays(tree, commands);
  const goal = nameOf(start.goal);
  if (!ways.has(goal)) return undefined;
  const exact = new Planner(tree, ways);
  exact.make(goal);
  const named = commands.flatMap(({ using }) => using);
  return new Planner(tree, ways, { amounts: amountsOf(listStacks(named, amounts)), needed: exact.found }).make(goal);
}

/** Amounts of each item, each once, ascending. */
function amountsOf(stacks: readonly Stack[]): ReadonlyMap<string, readonly number[]> {
  const amounts = new Map<string, Set<number>>();
  for (const { item, amount } of stacks) {
    const name = nameOf(item);
    amounts.set(name, (amounts.get(name) ?? new Set()).add(Number(amount)));
  }
  return new Map([...amounts].map(([name, several]) => [name, [...several].sort((a, b) => a - b)]));
}

/** Best way to an item: found, or made by a listed command; with a rough number of turns for one. */
interface Way {
  readonly turns: number;
  readonly command?: CraftCommand;
}

/**
 * Cheapest ways: least turns over the AND/OR graph of the commands, by repeated relaxation; ways are free of cycles.
 */
function cheapestWays(tree: Tree, commands: readonly CraftCommand[]): ReadonlyMap<string, Way> {
  const ways = new Map<string, Way>();
  for (const { using } of commands) {
    for (const stack of using) if (isGettable(tree, nameOf(stack.item))) ways.set(nameOf(stack.item), { turns: 1 });
  }
  for (let changed = true; changed; ) {
    changed = false;
    for (const command of commands) {
      const output = nameOf(command.makes.item);
      let turns = 1;
      for (const stack of command.using) turns += turnsFor(ways.get(cheapest(tree, ways, stack) ?? ''), stack);
      if (turns >= (ways.get(output)?.turns ?? Infinity)) continue;
      ways.set(output, { turns, command });
      changed = true;
    }
  }
  return ways;
}

/** Rough number of turns for as many of an item as an ingredient asks for: one when it is found, else craft by craft. */
function turnsFor(way: Way | undefined, { amount }: Stack): number {
  if (!way) return Number.POSITIVE_INFINITY;
  return way.command ? Math.ceil(Number(amount) / Number(way.command.makes.amount)) * way.turns : way.turns;
}

/** Cheapest item for an ingredient: itself, or the member of its tag that is easiest to come by. */
function cheapest(tree: Tree, ways: ReadonlyMap<string, Way>, stack: Stack): string | undefined {
  const name = nameOf(stack.item);
  if (!tree.tags.has(name)) return ways.has(name) ? name : undefined;
  let best: string | undefined;
  for (const member of tree.membersOf.get(name) ?? []) {
    const turns = ways.get(member)?.turns ?? Infinity;
    if (turns < (best === undefined ? Infinity : ways.get(best)!.turns)) best = member;
  }
  return best;
}

/** Amounts in which found items are listed, and how many of each a plan will have used in the end. */
interface Listed {
  /** Amounts by item, ascending. */
  readonly amounts: ReadonlyMap<string, readonly number[]>;
  readonly needed: ReadonlyMap<string, number>;
}

class Planner {
  /** Number of each item that the plan finds. */
  readonly found = new Map<string, number>();
  readonly #tree: Tree;
  readonly #ways: ReadonlyMap<string, Way>;
  readonly #listed: Listed | undefined;
  readonly #held = new Map<string, number>();
  readonly #plan: string[] = [];

  /** @param listed what can be found; absent: any amount of anything, just as many as are missing */
  constructor(tree: Tree, ways: ReadonlyMap<string, Way>, listed?: Listed) {
    this.#tree = tree;
    this.#ways = ways;
    this.#listed = listed;
  }

  make(goal: string): readonly string[] {
    this.#obtain(goal, 1);
    return this.#plan;
  }

  /** Plans until `n` of `item` are held, using up what is already there. */
  #obtain(item: string, n: number): void {
    while (this.#count(item) < n) {
      const { command } = this.#ways.get(item)!;
      if (command) this.#craft(command);
      else this.#find(item, n - this.#count(item));
    }
  }

  /** Finds the smallest listed amount that is enough for the rest of the plan, else the largest. */
  #find(item: string, missing: number): void {
    const found = this.found.get(item) ?? 0;
    const wanted = Math.max(missing, (this.#listed?.needed.get(item) ?? 0) - found);
    const amounts = this.#listed?.amounts.get(item) ?? [wanted];
    const amount = amounts.find((listed) => listed >= wanted) ?? amounts.at(-1)!;
    this.#plan.push(print({ type: 'get', stack: { amount, item: words(item) } }));
    this.found.set(item, found + amount);
    this.#held.set(item, this.#count(item) + amount);
  }

  /** Obtains all ingredients first; a later one may use up an earlier one, so until none is missing. */
  #craft(command: CraftCommand): void {
    const using = command.using.map((stack) => ({ amount: Number(stack.amount), name: this.#choose(stack) }));
    while (using.some(({ amount, name }) => this.#count(name) < amount)) {
      for (const { amount, name } of using) this.#obtain(name, amount);
    }
    for (const { amount, name } of using) this.#held.set(name, this.#count(name) - amount);
    const output = nameOf(command.makes.item);
    this.#held.set(output, this.#count(output) + Number(command.makes.amount));
    const stacks = using.map(({ amount, name }) => ({ amount, item: words(name) }));
    this.#plan.push(print({ ...command, using: stacks }));
  }

  /** Chooses an item for a tag: one of which enough is held, else the easiest one. */
  #choose(stack: Stack): string {
    const name = nameOf(stack.item);
    const members = this.#tree.tags.has(name) ? (this.#tree.membersOf.get(name) ?? []) : [];
    const ready = members.find((member) => this.#count(member) >= Number(stack.amount));
    return ready ?? cheapest(this.#tree, this.#ways, stack)!;
  }

  #count(item: string): number {
    return this.#held.get(item) ?? 0;
  }
}
