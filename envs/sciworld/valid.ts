/** The list of valid actions, as the original computes it. */
import { ACTIONS, type Action, type Stage } from './actions.ts';
import { chooseNames, listed } from './names.ts';
import type { Thing } from './thing.ts';

/** A listed action: its text, and what it is. */
export interface Listed {
  readonly text: string;
  readonly action: Action;
  readonly things: readonly Thing[];
}

/**
 * All actions whose tests pass, sorted by text, duplicates kept. Names are chosen for what is near, then once more for
 * everything: only teleporting uses the latter, but both draw, every time.
 */
export function validActions(stage: Stage, actions: readonly Action[]): string[] {
  const { world } = stage;
  const room = world.agent.parent!;
  const near = listed(room, false);
  const names = chooseNames(near, room, world.random);
  const everything = listed(world.universe, true);
  const farNames = chooseNames(everything, room, world.random);
  const texts: string[] = [];
  for (const action of actions) {
    if (action.arity === 0) texts.push(action.shown[0]!);
    else if (action.when === 'teleport') listOne(stage, action, everything, farNames, texts);
    else if (action.arity === 1) listOne(stage, action, near, names, texts);
    else listPairs(stage, action, near, names, texts);
  }
  return texts.sort();
}

function listOne(stage: Stage, action: Action, things: readonly Thing[], names: readonly string[], texts: string[]): void {
  const [verb] = action.shown;
  for (let i = 0; i < things.length; i++) {
    if (action.lists?.(stage, things[i]!) === false) continue;
    if (action.refuse(stage, things[i]!, things[i]!) === null) texts.push(`${verb} ${names[i]}`);
  }
}

function listPairs(stage: Stage, action: Action, things: readonly Thing[], names: readonly string[], texts: string[]): void {
  const [verb, joint] = action.shown;
  for (let i = 0; i < things.length; i++) {
    for (let j = 0; j < things.length; j++) {
      if (action.refuse(stage, things[i]!, things[j]!) !== null) continue;
      texts.push(action.reversed ? `${verb} ${names[j]} ${joint} ${names[i]}` : `${verb} ${names[i]} ${joint} ${names[j]}`);
    }
  }
}

/** Actions there are under these simplifications. */
export function availableActions(teleport: boolean, electrical: boolean): Action[] {
  return ACTIONS.filter(({ when }) => (when === 'teleport' ? teleport : when === 'electrical' ? electrical : true));
}
