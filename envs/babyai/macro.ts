/**
 * Macro actions: those that a scene offers, and the low-level actions of each. Two tables: the original's, with its
 * numbering and its blind spots, and the corrected one, which lists exactly what can be carried out.
 */
import { BOX, CLOSED, DOOR, DROP, FORWARD, KEY, LEFT, LOCKED, OPEN, PICKUP, RIGHT, TOGGLE } from './grid.ts';
import { searchPaths } from './paths.ts';
import { LOCAL, type Scene, type Thing } from './scene.ts';
import { text } from './text.ts';
import type { World } from './world.ts';

/** Macro action that is offered. */
export interface Macro {
  /** Text that chooses it, exactly. */
  readonly action: string;
  /** End of the walk: facing the target, onto it, or nowhere. */
  readonly approach: 'face' | 'enter' | 'none';
  readonly target: Thing | undefined;
  /** Low-level actions after the approach. */
  readonly ending: readonly number[];
}

const NOTHING: readonly number[] = [];
const THROUGH: readonly number[] = [TOGGLE, FORWARD];
const PICK: readonly number[] = [PICKUP];

const plain = (action: string, ...ending: number[]): Macro => ({ action, approach: 'none', target: undefined, ending });
const TURN_LEFT = plain('turn left', LEFT);
const TURN_RIGHT = plain('turn right', RIGHT);
const MOVE_FORWARD = plain('move forward', FORWARD);
const PUT_DOWN = plain('drop', DROP);
const TOGGLE_IT = plain('toggle', TOGGLE);
/** Action that is answered with the list and costs a turn. */
const CHECK = plain('check available actions');

const face = (action: string, target: Thing, ending: readonly number[]): Macro => ({
  action,
  approach: 'face',
  target,
  ending,
});

const typeOf = (thing: Thing): number => thing.code & 0xff;
const stateOf = (thing: Thing): number => thing.code >>> 16;
const labelOf = (thing: Thing): string => `${thing.name} ${thing.number}`;
const isFaced = (thing: Thing): boolean => thing.front === 1 && thing.right === 0;

/** True for a key in hand that opens a locked door: one of its colour. */
function fits(carried: number, door: number): boolean {
  return (carried & 0xff) === KEY && (carried & 0xff00) === (door & 0xff00);
}

/**
 * Numbers of things by name as the original's action list gives them: only things it found a path to are counted, so
 * they may differ from those in the description.
 */
class ReachedCount {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  next(name: string): number {
    const number = this.of(name) + 1;
    this.#counts.set(name, number);
    return number;
  }
}

/**
 * Original macros: the original's list, in its order.
 *
 * @param refusals filled, where given, with the original's answers to actions it knows of and does not offer
 */
export function originalMacros(scene: Scene, world: World, refusals?: Map<string, string>): Macro[] {
  const { things } = scene;
  const carried = world.codes[world.carrying]!;
  const paths = searchPaths(scene, world, true);
  const macros: Macro[] = [TURN_LEFT, TURN_RIGHT];

  if (scene.barrier === 0 || scene.barrierDistance > 1) macros.push(MOVE_FORWARD);
  else refusals?.set('move forward', text.barrier);

  if (world.carrying === 0) {
    offerReached('pickup', (thing) => typeOf(thing) !== DOOR, PICK);
    refusals?.set('drop', text.dropNothing);
  } else if (isBlocked(scene, world)) refusals?.set('drop', text.dropBlocked);
  else macros.push(PUT_DOWN);

  offerDoors();
  offerReached('go to', () => true, NOTHING);
  macros.push(CHECK);
  return macros;

  function offerReached(verb: string, applies: (thing: Thing) => boolean, ending: readonly number[]): void {
    const reached = new ReachedCount();
    for (const thing of things) {
      if (!applies(thing)) continue;
      if (paths.reaches(thing)) {
        macros.push(face(`${verb} ${thing.name} ${reached.next(thing.name)}`, thing, ending));
      } else if (refusals) {
        const what = `${thing.name} ${reached.of(thing.name) + 1}`;
        refusals.set(`${verb} ${what}`, text.noPath(verb, what));
      }
    }
  }

  function offerDoors(): void {
    const seen: Thing[] = [];
    let toggled = false;
    for (const door of things) {
      if (typeOf(door) !== DOOR) continue;
      seen.push(door);
      const label = labelOf(door);
      if (stateOf(door) === OPEN) {
        if (paths.enters(door)) {
          macros.push({ action: `go through ${label}`, approach: 'enter', target: door, ending: NOTHING });
        } else refusals?.set(`go through ${label}`, text.noPath('go through', label));
        continue;
      }
      const action = `toggle and go through ${label}`;
      if (stateOf(door) === LOCKED && (carried & 0xff) !== KEY) {
        refusals?.set(action, text.noKey(label));
        continue;
      }
      if (stateOf(door) === LOCKED && !fits(carried, door.code)) {
        refusals?.set(action, text.wrongKey(label));
        continue;
      }
      if (paths.reaches(door)) macros.push(face(action, door, THROUGH));
      // The original names its counter of doors here instead of the door's number.
      else refusals?.set(action, text.noPath('toggle and go through', `${door.name} ${doorCounts(seen)}`));
      if (isFaced(door) && !toggled) {
        macros.push(TOGGLE_IT);
        toggled = true;
      }
      if (stateOf(door) === CLOSED) refusals?.set(`go through ${label}`, text.isClosed(label));
    }
  }
}

/** Door counts: the Python dict of doors met so far by name, printed. */
function doorCounts(doors: readonly Thing[]): string {
  const counts = new Map<string, number>();
  for (const door of doors) counts.set(door.name, (counts.get(door.name) ?? 0) + 1);
  return `{${Array.from(counts, ([name, count]) => `'${name}': ${count}`).join(', ')}}`;
}

/** True when the original sees something in the way of dropping: anything ahead but a door. */
function isBlocked(scene: Scene, world: World): boolean {
  const [x, y] = [world.xOf(world.front), world.yOf(world.front)];
  return scene.obstacles[(x - scene.x0) * LOCAL + (y - scene.y0)] === 1;
}

/**
 * Corrected macros: an action is listed exactly if carrying it out changes the world. Numbers are those of the
 * description, shut doors block the way, boxes and any door can be toggled.
 */
export function listCorrectedMacros(scene: Scene, world: World): Macro[] {
  const { things } = scene;
  const carried = world.codes[world.carrying]!;
  const paths = searchPaths(scene, world, false);
  const macros: Macro[] = [TURN_LEFT, TURN_RIGHT];
  const ahead = world.codes[world.cells[world.front]!]!;

  if (world.isOpen(world.front)) macros.push(MOVE_FORWARD);
  if (world.carrying === 0) {
    for (const thing of things) {
      if (typeOf(thing) !== DOOR && paths.reaches(thing)) {
        macros.push(face(`pickup ${labelOf(thing)}`, thing, PICK));
      }
    }
  } else if (world.cells[world.front] === 0) macros.push(PUT_DOWN);
  for (const door of things) {
    if (typeOf(door) !== DOOR) continue;
    if (stateOf(door) === OPEN) {
      if (paths.enters(door)) {
        macros.push({ action: `go through ${labelOf(door)}`, approach: 'enter', target: door, ending: NOTHING });
      }
    } else if ((stateOf(door) === CLOSED || fits(carried, door.code)) && paths.reaches(door)) {
      macros.push(face(`toggle and go through ${labelOf(door)}`, door, THROUGH));
    }
  }
  if (canToggle(ahead, carried)) macros.push(TOGGLE_IT);
  for (const thing of things) {
    if (!isFaced(thing) && paths.reaches(thing)) macros.push(face(`go to ${labelOf(thing)}`, thing, NOTHING));
  }
  return macros;
}

/** True when toggling changes what is ahead. */
function canToggle(ahead: number, carried: number): boolean {
  const type = ahead & 0xff;
  return type === BOX || (type === DOOR && (ahead >>> 16 !== LOCKED || fits(carried, ahead)));
}

/** Expands a macro into low-level actions, from where the agent stands. */
export function expand(macro: Macro, scene: Scene, world: World, throughDoors: boolean): readonly number[] {
  const { approach, target, ending } = macro;
  if (approach === 'none' || !target) return ending;
  const paths = searchPaths(scene, world, throughDoors, [target]);
  const path = approach === 'face' ? paths.facing(target) : paths.findPathOnto(target);
  return [...path!, ...ending];
}
