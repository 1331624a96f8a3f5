/**
 * Staged list of actions: the form first, then its thing, then its second thing. Things have the shortest name that no
 * other thing within reach answers to; only what the parser would take as exactly that action is listed.
 */
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from '../../src/core/env.ts';
import type { Action } from './actions.ts';
import { candidates, plain, plainNames } from './names.ts';
import type { Simulator } from './simulator.ts';
import type { Thing } from './thing.ts';

const MORE = '…';
const BACK = 'back';

interface Stage {
  readonly action: Action;
  /** First thing, once chosen. */
  readonly x?: Named;
}

interface Named {
  readonly thing: Thing;
  readonly name: string;
  /** 0 for what the task speaks of, else 1. */
  readonly rank: number;
}

export class Stages {
  readonly #simulator: Simulator;
  #stage: Stage | undefined;
  /** Partial steps in a row. */
  #partial = 0;

  /** The task's description as the parser compares names. */
  readonly #asked: string;

  constructor(simulator: Simulator) {
    this.#simulator = simulator;
    this.#asked = plain(simulator.description);
  }

  /** Takes a text that is a stage. @returns what to say to it, or undefined for anything else */
  take(text: string): string | undefined {
    const stage = this.#partial < MAX_PARTIAL_STEPS && this.#simulator.options === 0 ? this.#next(text) : undefined;
    if (stage === undefined) {
      this.#stage = undefined;
      this.#partial = 0;
      return undefined;
    }
    this.#partial++;
    if (stage === BACK) {
      this.#stage = undefined;
      return 'Choose an action.';
    }
    this.#stage = stage;
    return `${prefix(stage)}: choose from the list.`;
  }

  #next(text: string): Stage | typeof BACK | undefined {
    const stage = this.#stage;
    if (stage && text === BACK && this.#mayGoBack()) return BACK;
    if (!text.endsWith(` ${MORE}`)) return undefined;
    const action = this.#simulator.actions.find(({ arity, shown }) => arity > 0 && text === `${shown[0]} ${MORE}`);
    if (action && this.#partial + action.arity <= MAX_PARTIAL_STEPS) return { action };
    if (stage?.action.arity !== 2 || stage.x) return undefined;
    const x = this.#firsts(stage.action, this.#things()).find(
      (named) => text === `${prefix({ ...stage, x: named })} ${MORE}`,
    );
    return x && { action: stage.action, x };
  }

  /** Going back leaves room for a form and its first thing. */
  #mayGoBack(): boolean {
    return this.#partial + 1 + 2 <= MAX_PARTIAL_STEPS;
  }

  actions(): string[] {
    const simulator = this.#simulator;
    if (simulator.options > 0)
      return Array.from({ length: Math.min(simulator.options, ACTIONS_PER_STAGE) }, (_, i) => `${i}`);
    const things = this.#things();
    const stage = this.#stage;
    if (!stage) return this.#forms(things);
    const { action, x } = stage;
    const found: string[] = [];
    if (action.arity === 1) {
      for (const named of this.#firsts(action, things)) found.push(`${prefix(stage)} ${named.name}`);
    } else if (x) {
      for (const y of this.#seconds(action, x, things)) found.push(`${prefix(stage)} ${y.name}`);
    } else {
      for (const named of this.#firsts(action, things)) found.push(`${prefix({ action, x: named })} ${MORE}`);
    }
    const room = ACTIONS_PER_STAGE - (this.#mayGoBack() ? 1 : 0);
    const texts = found.slice(0, room);
    if (this.#mayGoBack() || texts.length === 0) texts.push(BACK);
    return texts;
  }

  /** Whole actions without a thing, and the forms for which there is one. */
  #forms(things: readonly Named[]): string[] {
    const texts: string[] = [];
    for (const action of this.#simulator.actions) {
      const [verb] = action.shown;
      if (action.arity === 0) texts.push(verb!);
      else if (this.#firsts(action, things).length > 0) texts.push(`${verb} ${MORE}`);
    }
    return texts;
  }

  #firsts(action: Action, things: readonly Named[]): Named[] {
    const simulator = this.#simulator;
    if (action.arity === 1) {
      return things.filter(
        ({ thing }) => action.lists?.(simulator, thing) !== false && action.refuse(simulator, thing, thing) === null,
      );
    }
    return things.filter((x) => things.some((y) => action.refuse(simulator, x.thing, y.thing) === null));
  }

  #seconds(action: Action, x: Named, things: readonly Named[]): Named[] {
    return things.filter((y) => action.refuse(this.#simulator, x.thing, y.thing) === null);
  }

  /** Things within reach with their names, the ones that the task speaks of first. */
  #things(): Named[] {
    const { agent } = this.#simulator.world;
    const reach = candidates(agent);
    const owners = new Map<string, number>();
    const names = new Map<Thing, string[]>();
    const own = (thing: Thing) => {
      let found = names.get(thing);
      if (!found) {
        found = [...new Set(plainNames(thing, agent.parent))].filter((name) => name.length > 1);
        names.set(thing, found);
      }
      return found;
    };
    for (const thing of reach) for (const name of own(thing)) owners.set(name, (owners.get(name) ?? 0) + 1);
    const named: Named[] = [];
    for (const thing of reach) {
      if (thing.hidden) continue;
      const known = own(thing);
      if (known.length === 0) continue;
      const name = bestName(thing, known, owners, thing.parent ? own(thing.parent) : []);
      named.push({ thing, name, rank: this.#asked.includes(name) || this.#asked.includes(thing.name) ? 0 : 1 });
    }
    named.sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    // Look-alikes are named once: the answer asks which is meant.
    return named.filter(({ name }, i) => i === 0 || named[i - 1]!.name !== name);
  }
}

/** Shortest name of its own that is nobody else's, else the shortest within its container, else the first. */
function bestName(
  thing: Thing,
  names: readonly string[],
  owners: ReadonlyMap<string, number>,
  within: readonly string[],
): string {
  const shortest = (list: readonly string[]) => list.reduce((a, b) => (b.length < a.length ? b : a), list[0]!);
  const raw = plain(thing.name);
  if (owners.get(raw) === 1 && names.includes(raw)) return raw;
  const single = names.filter((name) => owners.get(name) === 1);
  if (single.length > 0) return shortest(single);
  const placed = within.filter((name) => owners.get(name) === 1);
  const base = names.includes(raw) ? raw : shortest(names);
  return placed.length > 0 ? `${base} in ${shortest(placed)}` : base;
}

function prefix({ action, x }: Stage): string {
  const [verb, joint] = action.shown;
  return x ? `${verb} ${x.name} ${joint}` : verb!;
}
