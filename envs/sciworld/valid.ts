/** The list of valid actions, as the original computes it. */
import { ACTIONS, type Action, type Stage } from './actions.ts';
import { chooseNames, listed } from './names.ts';
import type { Thing } from './thing.ts';

/**
 * All actions whose tests pass, sorted by text, duplicates kept; the draws are made at once, the texts on demand. Names
 * are chosen for what is near, then once more for everything: only teleporting uses the latter, but both draw, every time.
 */
export function validActions(stage: Stage, actions: readonly Action[]): () => string[] {
  const { world } = stage;
  const room = world.agent.parent!;
  const near = listed(room, false);
  const names = chooseNames(near, room, world.random);
  const everything = listed(world.universe, true);
  const farNames = chooseNames(everything, room, world.random);
  return () => texts(stage, actions, { near, names, everything, farNames });
}

interface Named {
  readonly near: readonly Thing[];
  readonly names: readonly string[];
  readonly everything: readonly Thing[];
  readonly farNames: readonly string[];
}

function texts(stage: Stage, actions: readonly Action[], { near, names, everything, farNames }: Named): string[] {
  const order = (list: readonly string[]) =>
    list.map((_, i) => i).sort((a, b) => (list[a]! < list[b]! ? -1 : list[a]! > list[b]! ? 1 : 0));
  const byName = order(names);
  const texts: string[] = [];
  // Nearly sorted already, by verb and name: the sort at the end has little to do.
  for (const action of byVerb(actions)) {
    if (action.arity === 0) texts.push(action.shown[0]!);
    else if (action.when === 'teleport') listOne(stage, action, everything, farNames, order(farNames), texts);
    else if (action.arity === 1) listOne(stage, action, near, names, byName, texts);
    else listPairs(action, near, names, byName, texts);
  }
  return texts.sort();
}

const sortedActions = new WeakMap<readonly Action[], Action[]>();

function byVerb(actions: readonly Action[]): Action[] {
  let sorted = sortedActions.get(actions);
  if (!sorted) {
    sorted = [...actions].sort((a, b) => (a.shown[0]! < b.shown[0]! ? -1 : 1));
    sortedActions.set(actions, sorted);
  }
  return sorted;
}

function listOne(
  stage: Stage,
  action: Action,
  things: readonly Thing[],
  names: readonly string[],
  order: readonly number[],
  texts: string[],
): void {
  const [verb] = action.shown;
  for (const i of order) {
    if (action.lists?.(stage, things[i]!) === false) continue;
    if (action.refuse(stage, things[i]!, things[i]!) === null) texts.push(`${verb} ${names[i]}`);
  }
}

function listPairs(
  action: Action,
  things: readonly Thing[],
  names: readonly string[],
  order: readonly number[],
  texts: string[],
): void {
  const [verb, joint] = action.shown;
  const { x, y, itself } = action.pairs!;
  // A reversed action shows its second thing first.
  const [before, after] = action.reversed ? [y, x] : [x, y];
  const seconds = order.filter((i) => after(things[i]!));
  for (const i of order) {
    if (!before(things[i]!)) continue;
    const head = `${verb} ${names[i]} ${joint} `;
    for (const j of seconds) if (itself || i !== j) texts.push(head + names[j]);
  }
}

/** Actions there are under these simplifications. */
export function availableActions(teleport: boolean, electrical: boolean): Action[] {
  return ACTIONS.filter(({ when }) => (when === 'teleport' ? teleport : when === 'electrical' ? electrical : true));
}
