/**
 * Staged list of actions: the form first, then its thing, then its second thing. Things have the shortest name that no
 * other thing within reach answers to; only what the parser would take as exactly that action is listed. Beside the
 * forms stand whole actions: doors and the places behind them, and what can be done to the things that the task's text
 * names.
 */
import { ACTIONS_PER_STAGE } from '../../src/core/env.ts';
import type { Action } from './actions.ts';
import { countPlain, type OwnSet, ownSet } from './names.ts';
import type { Simulator } from './simulator.ts';
import { findBehind } from './text.ts';
import type { Thing } from './thing.ts';

/** End of a text that is not yet a whole action. */
export const MORE = '?';
/** Stages in a row at most: a form, its thing, and one way back. */
export const MAX_STAGES = 4;
/** Text of a stage that leads back to the one before. */
export const BACK = 'back';
/** Forms of which whole actions on the task's own things are listed at once. */
const DIRECT_ONE = ['open door', 'focus', 'pick up'];
const DIRECT_TWO = ['move object', 'use object'];

interface Stage {
  readonly action: Action;
  /** First thing, once chosen. */
  readonly x?: Named;
}

interface Named {
  readonly thing: Thing;
  readonly name: string;
  /** 0 for what the task's text names, else 1. */
  readonly rank: 0 | 1;
}

/** Lists of the staged actions of one session, and its position among them. */
export class Stages {
  readonly #simulator: Simulator;
  #stage: Stage | undefined;
  /** Partial steps in a row. */
  #partial = 0;
  /** The task's description in words, and which names are in it. */
  readonly #description: string;
  readonly #ranks = new Map<string, 0 | 1>();
  /** Things within reach as of this count of changes. */
  #named: readonly Named[] = [];
  /** The same by thing, look-alikes too. */
  #names: ReadonlyMap<Thing, string> = new Map();
  #namedAt = -1;

  constructor(simulator: Simulator) {
    this.#simulator = simulator;
    this.#description = inWords(simulator.description);
  }

  /** Takes a text that is a stage. @returns the reply to it, or undefined for anything else */
  take(text: string): string | undefined {
    const stage = this.#partial < MAX_STAGES && this.#simulator.options === 0 ? this.#next(text) : undefined;
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
    if (action && this.#partial + action.arity <= MAX_STAGES) return { action };
    if (stage?.action.arity !== 2 || stage.x) return undefined;
    const x = this.#firsts(stage.action).find((named) => text === `${prefix({ ...stage, x: named })} ${MORE}`);
    return x && { action: stage.action, x };
  }

  /** Going back leaves room for a form and its first thing. */
  #mayGoBack(): boolean {
    return this.#partial + 1 + 2 <= MAX_STAGES;
  }

  actions(): string[] {
    const { options } = this.#simulator;
    if (options > 0) return Array.from({ length: Math.min(options, ACTIONS_PER_STAGE) }, (_, i) => `${i}`);
    const stage = this.#stage;
    if (!stage) return this.#forms();
    const { action, x } = stage;
    const found =
      action.arity === 1
        ? this.#firsts(action).map(({ name }) => `${prefix(stage)} ${name}`)
        : x
          ? this.#seconds(action, x).map(({ name }) => `${prefix(stage)} ${name}`)
          : this.#firsts(action).map((named) => `${prefix({ action, x: named })} ${MORE}`);
    const mayGoBack = this.#mayGoBack();
    const texts = found.slice(0, ACTIONS_PER_STAGE - (mayGoBack ? 1 : 0));
    if (mayGoBack || texts.length === 0) texts.push(BACK);
    return texts;
  }

  /** Whole actions without a thing, the forms for which there is one, and whole actions on what the task names. */
  #forms(): string[] {
    const things = this.#things();
    const texts: string[] = [];
    for (const action of this.#simulator.actions) {
      const [verb] = action.shown;
      if (action.arity === 0) texts.push(verb!);
      else if (things.some((x) => this.#isFirst(action, x))) texts.push(`${verb} ${MORE}`);
    }
    const whole = new Set([...this.#ways(), ...this.#direct()]);
    return [...texts, ...whole].slice(0, ACTIONS_PER_STAGE);
  }

  /** Going where a door is open, and opening it where not. */
  #ways(): string[] {
    const room = this.#simulator.world.agent.parent!;
    return room.portals.flatMap((door) => {
      const place = findBehind(door, room);
      if (door.kind.id !== 'door' || !place) return [];
      const name = this.nameOf(door.portal!.open ? place : door);
      return name === undefined ? [] : [`${door.portal!.open ? 'go to' : 'open'} ${name}`];
    });
  }

  #direct(): string[] {
    const taskThings = this.#things().filter(({ thing, rank }) => rank === 0 && !thing.kind.location && !thing.portal);
    const texts: string[] = [];
    for (const action of this.#simulator.actions) {
      if (DIRECT_ONE.includes(action.name)) {
        for (const x of taskThings) if (this.#isFirst(action, x)) texts.push(`${action.shown[0]} ${x.name}`);
      }
      if (!DIRECT_TWO.includes(action.name)) continue;
      for (const x of taskThings) {
        for (const y of taskThings) if (this.#isPair(action, x, y)) texts.push(`${prefix({ action, x })} ${y.name}`);
      }
    }
    return texts;
  }

  #firsts(action: Action): Named[] {
    return this.#things().filter((x) => this.#isFirst(action, x));
  }

  #seconds(action: Action, x: Named): Named[] {
    return this.#things().filter((y) => this.#isPair(action, x, y));
  }

  #isFirst(action: Action, x: Named): boolean {
    const simulator = this.#simulator;
    if (action.arity === 1) {
      return action.lists?.(simulator, x.thing) !== false && action.refuse(simulator, x.thing, x.thing) === null;
    }
    return action.pairs!.x(x.thing) && this.#things().some((y) => y.thing !== x.thing && action.pairs!.y(y.thing));
  }

  #isPair({ pairs }: Action, x: Named, y: Named): boolean {
    return x.thing !== y.thing && pairs!.x(x.thing) && pairs!.y(y.thing);
  }

  /** Name of a thing within reach, as it is listed. */
  nameOf(thing: Thing): string | undefined {
    this.#things();
    return this.#names.get(thing);
  }

  /** Things within reach with their names, the ones that the task names first. */
  #things(): readonly Named[] {
    const simulator = this.#simulator;
    const { things, sets, viewer } = simulator.reach();
    if (this.#namedAt === simulator.world.changes.count) return this.#named;
    const counts = countPlain(sets);
    const named: Named[] = [];
    for (const [i, thing] of things.entries()) {
      if (thing.hidden) continue;
      const within = thing.parent && !thing.parent.portal ? ownSet(thing.parent, viewer) : undefined;
      const name = bestName(sets[i]!, counts, within);
      if (name !== undefined) named.push({ thing, name, rank: this.#rank(name, sets[i]!) });
    }
    named.sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.#names = new Map(named.map(({ thing, name }) => [thing, name]));
    // Look-alikes are named once: the answer asks which is meant.
    this.#named = named.filter(({ name }, i) => i === 0 || named[i - 1]!.name !== name);
    this.#namedAt = simulator.world.changes.count;
    return this.#named;
  }

  #rank(name: string, { raw, plain }: OwnSet): 0 | 1 {
    const key = `${raw}|${name}`;
    let rank = this.#ranks.get(key);
    if (rank === undefined) {
      const isInTask = (text: string) => this.#description.includes(inWords(text));
      rank = isInTask(name) || isInTask(raw) || (plain.has(LIVING) && isInTask(LIVING)) ? 0 : 1;
      this.#ranks.set(key, rank);
    }
    return rank;
  }
}

const LIVING = 'living thing';

/** A text as words between blanks, so that whole words are found in it. */
function inWords(text: string): string {
  return ` ${text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()} `;
}

/**
 * Name that no other thing has: "door to X", the name itself, else the shortest; else one that is its own within
 * its container; else its name.
 */
function bestName({ raw, plain }: OwnSet, counts: Int32Array, within: OwnSet | undefined): string | undefined {
  const isSingle = (number: number | undefined) => number !== undefined && counts[number] === 1;
  if (isSingle(plain.get(raw)) && raw !== 'door') return raw;
  let first: string | undefined;
  let single: string | undefined;
  for (const [name, number] of plain) {
    if (name.length < 2) continue;
    first ??= name;
    if (counts[number] !== 1) continue;
    if (raw !== 'door' || name.startsWith('door to ')) return name;
    single ??= name;
  }
  if (single !== undefined || first === undefined) return single;
  const base = plain.has(raw) ? raw : first;
  if (within) {
    for (const [place, number] of within.plain) {
      if (place.length > 1 && counts[number] === 1) return `${base} in ${place}`;
    }
  }
  return base;
}

function prefix({ action, x }: Stage): string {
  const [verb, joint] = action.shown;
  return x ? `${verb} ${x.name} ${joint}` : verb!;
}
