/**
 * Memory of an episode for the view: the things that were in sight, their places as far as turns and steps forward show
 * them, and how often each action was taken. Its sources are actions and observations alone. It searches no map and
 * suggests no action.
 */
import type { SeenTurn, Track } from '../../src/core/view.ts';
import { parse } from './grammar.ts';

/** Thing that an observation mentions. */
export interface SeenThing {
  /** `red ball`, `blue closed door` */
  readonly name: string;
  readonly number: number;
  /** Cells ahead of the agent and to its right; negative behind and to its left. */
  readonly front: number;
  readonly right: number;
}

interface Place {
  readonly front: number;
  readonly right: number;
}

/** Thing that was in sight. */
export interface Remembered {
  /** Last name: a door's includes whether it was open. */
  readonly name: string;
  /** Place from where the agent is now; unknown once a macro action has moved it by a way that is not shown. */
  readonly place: Place | undefined;
  /** Turns since it was in sight, refused ones left out. */
  readonly age: number;
}

/** State of the memory: plain data, never changed in place. */
export interface Memory {
  /** Things by colour and kind, the latest seen first; of namesakes the nearest. */
  readonly things: ReadonlyMap<string, Remembered>;
  /** Times that each action was taken. */
  readonly done: ReadonlyMap<string, number>;
}

export const track: Track<Memory> = {
  begin: ({ observation }) => ({ things: rememberSight(new Map(), observation), done: new Map() }),
  reduce: ({ things, done }, { action, observation }: SeenTurn) => ({
    things: describes(observation) ? rememberSight(moveThings(things, action), observation) : things, // refused: nothing moved
    done: new Map(done).set(action, (done.get(action) ?? 0) + 1),
  }),
};

/** Things that are out of sight, the latest seen first. */
export function listRemembered({ things }: Memory): Remembered[] {
  return [...things.values()].filter(({ age }) => age > 0);
}

/** True when an observation describes what is in sight; refusals and lists do not. */
export function describes(observation: string): boolean {
  return observation.includes('The room has walls around you.');
}

const THING =
  /There is a ([a-z ]+?) (\d+) (?:right in front of you (-?\d+) steps away|(-?\d+) steps in front of you and (\d+) steps to your (right|left))\./g;

/** Things that an observation mentions, nearest first. */
export function thingsIn(observation: string): SeenThing[] {
  return Array.from(observation.matchAll(THING), (match) => {
    const [, name, number, straight, front, aside, side] = match as unknown as (string | undefined)[];
    return {
      name: name!,
      number: Number(number),
      front: Number(straight ?? front),
      right: aside === undefined ? 0 : Number(aside) * (side === 'left' ? -1 : 1),
    };
  });
}

/** Things a turn later, seen from where the action has brought the agent. */
function moveThings(things: ReadonlyMap<string, Remembered>, action: string): Map<string, Remembered> {
  const command = parse(action);
  const step = command.type === 'plain' ? command.action : undefined;
  const locateFrom = (place: Place): Place | undefined => {
    if (step === 'drop' || step === 'toggle') return place;
    if (step === 'turn left') return { front: -place.right, right: place.front };
    if (step === 'turn right') return { front: place.right, right: -place.front };
    if (step === 'move forward') return { front: place.front - 1, right: place.right };
    return undefined;
  };
  return new Map(
    Array.from(things, ([key, { name, place, age }]) => [
      key,
      { name, place: place && locateFrom(place), age: age + 1 },
    ]),
  );
}

/** Memory with what is in sight now put first; the thing in the hand is no longer anywhere. */
function rememberSight(things: ReadonlyMap<string, Remembered>, observation: string): ReadonlyMap<string, Remembered> {
  const now = new Map<string, Remembered>();
  for (const { name, front, right } of thingsIn(observation)) {
    const key = keyOf(name);
    if (!now.has(key)) now.set(key, { name, place: { front, right }, age: 0 });
  }
  const held = /You are carrying a (\w+ \w+)\./.exec(observation)?.[1];
  for (const [key, thing] of things) if (!now.has(key) && key !== held) now.set(key, thing);
  return now;
}

/** A door is the same door open or shut. */
function keyOf(name: string): string {
  return name.replace(/ (open|closed|locked) door$/, ' door');
}
