/** Valid actions, as the original computes their list. */
import { ACTIONS, type Action, type Stage } from './actions.ts';
import { chooseNames, drawNames, listThings } from './names.ts';
import type { Thing } from './thing.ts';

/**
 * Valid actions, all whose tests pass, sorted by text, duplicates kept; the draws are made at once, the texts on
 * demand. Names are chosen for what is near, then once more for everything: only teleporting uses the latter, but both
 * draw, every time.
 */
export function validActions(stage: Stage, actions: readonly Action[]): () => string[] {
  const { world } = stage;
  const room = world.agent.parent!;
  const near = listThings(room, false);
  const names = chooseNames(near, room, world.random);
  const everything = listThings(world.universe, true);
  if (!actions.some(({ when }) => when === 'teleport')) {
    drawNames(everything, room, world.random, world.census);
    return () => new List(stage, actions, { near, names, everything, farNames: [] }).texts();
  }
  const farNames = chooseNames(everything, room, world.random);
  return () => new List(stage, actions, { near, names, everything, farNames }).texts();
}

interface Chosen {
  readonly near: readonly Thing[];
  readonly names: readonly string[];
  readonly everything: readonly Thing[];
  readonly farNames: readonly string[];
}

/** A list in the making: texts come in order, verb by verb and name by name, and are sorted only where they did not. */
class List {
  readonly #stage: Stage;
  readonly #actions: readonly Action[];
  readonly #chosen: Chosen;
  readonly #texts: string[] = [];
  #inOrder = true;

  constructor(stage: Stage, actions: readonly Action[], chosen: Chosen) {
    this.#stage = stage;
    this.#actions = byVerb(actions);
    this.#chosen = chosen;
  }

  texts(): string[] {
    const { near, names, everything, farNames } = this.#chosen;
    const byName = order(names);
    for (const action of this.#actions) {
      if (action.arity === 0) this.#texts.push(action.shown[0]!);
      else if (action.when === 'teleport') this.#listOne(action, everything, farNames, order(farNames));
      else if (action.arity === 1) this.#listOne(action, near, names, byName);
      else this.#listPairs(action, near, names, byName);
    }
    return this.#inOrder ? this.#texts : this.#texts.sort();
  }

  #listOne(action: Action, things: readonly Thing[], names: readonly string[], by: readonly number[]): void {
    const [verb] = action.shown;
    for (const i of by) {
      if (action.lists?.(this.#stage, things[i]!) === false) continue;
      if (action.refuse(this.#stage, things[i]!, things[i]!) === null) this.#texts.push(`${verb} ${names[i]}`);
    }
  }

  #listPairs(action: Action, things: readonly Thing[], names: readonly string[], by: readonly number[]): void {
    const [verb, joint] = action.shown;
    const { x, y, itself } = action.pairs!;
    // A reversed action shows its second thing first.
    const [before, after] = action.reversed ? [y, x] : [x, y];
    const seconds = by.filter((i) => after(things[i]!));
    if (seconds.length === 0) return;
    const firsts: First[] = [];
    let last = '';
    let sorted = true;
    for (const i of by) {
      if (!before(things[i]!)) continue;
      const name = `${names[i]} ${joint} `;
      if (name < last) sorted = false;
      last = name;
      firsts.push({ i, name });
    }
    if (!sorted) firsts.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    last = '';
    for (const { i, name } of firsts) {
      // Where one beginning is another's, their continuations mix.
      if (last !== '' && name.startsWith(last)) this.#inOrder = false;
      last = name;
      const head = `${verb} ${name}`;
      for (const j of seconds) if (itself || i !== j) this.#texts.push(head + names[j]);
    }
  }
}

/** First thing of pairs by its place in the list, with its name and the joint. */
interface First {
  readonly i: number;
  readonly name: string;
}

function order(names: readonly string[]): number[] {
  return names.map((_, i) => i).sort((a, b) => (names[a]! < names[b]! ? -1 : names[a]! > names[b]! ? 1 : 0));
}

const sortedActions = new WeakMap<readonly Action[], Action[]>();

/** Actions by what their texts begin with; "look at X" before "look in X". */
function byVerb(actions: readonly Action[]): Action[] {
  let sorted = sortedActions.get(actions);
  if (!sorted) {
    sorted = [...actions].sort((a, b) => (a.shown[0]! < b.shown[0]! ? -1 : 1));
    sortedActions.set(actions, sorted);
  }
  return sorted;
}

/** Available actions under these simplifications. */
export function availableActions(teleport: boolean, electrical: boolean): Action[] {
  return ACTIONS.filter(({ when }) => (when === 'teleport' ? teleport : when === 'electrical' ? electrical : true));
}
