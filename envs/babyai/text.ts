/** Every sentence the agent reads. Spacing and wording are the original's, double spaces included. */
import { TYPE_NAMES } from './grid.ts';
import { nameOf, type Scene, type Thing } from './scene.ts';

export const text = {
  noChange: 'No change in state.',
  unrecognised: 'The action is not recognized. Please check valid actions.',
  barrier: "There is a barrier in front of you, you can't move forward.",
  dropBlocked: 'You cannot drop the object, as there is already an object in front of you.',
  dropNothing: 'You cannot drop the object, as you are not carrying anything.',
  completed: '\n The task is completed.',
  failed: '\n The task has failed.',

  goal: (mission: string) => `Your goal: ${mission}`,
  youCanTake: (actions: readonly string[]) => `You can take the following actions: ${actions.join(', ')}`,
  available: (actions: readonly string[]) =>
    actions.length === 0 ? '\nAvailable actions: []' : `\nAvailable actions: ["${actions.join('", "')}"]`,
  noPath: (action: string, what: string) => `You cannot ${action} ${what}, as there is no path leading to it.`,
  isClosed: (what: string) => `You cannot go through ${what}, as it is closed. You should toggle it first.`,
  noKey: (what: string) => `You cannot toggle and go through ${what}, as you are not carrying a key.`,
  wrongKey: (what: string) =>
    `You cannot toggle and go through ${what}, as the color of the key you are carrying does not match the color of door.`,
  handsFull: (what: string) => `You cannot pickup ${what}, as you are already carrying something.`,
  notInSight: (what: string) => `You cannot see ${what} from here.`,
  alreadyThere: (what: string) => `You are already facing ${what}.`,
  nothingToToggle: 'There is nothing in front of you that you can toggle.',
} as const;

function describePosition({ front, right }: Thing): string {
  if (right === 0) return `right in front of you ${front} steps away. `;
  return `${front} steps in front of you and ${Math.abs(right)} steps to your ${right > 0 ? 'right' : 'left'}. `;
}

/** @param carried code of the object in hand, or of nothing */
export function describe(scene: Scene, carried: number): string {
  let out = scene.sightful
    ? 'In front of you in this room, you can see several objects: '
    : 'You cannot see any objects within sight.';
  for (const thing of scene.things) out += `There is a ${thing.name} ${thing.number} ${describePosition(thing)} `;
  out += 'The room has walls around you. ';
  if (scene.barrier !== 0) {
    out += `You are facing a ${TYPE_NAMES[scene.barrier]!} ${scene.barrierDistance} steps away. `;
  }
  const name = nameOf(carried);
  return `${out}${name === '' || (carried & 0xff) === 1 ? 'You are not carrying anything.' : `You are carrying a ${name}.`}`;
}
