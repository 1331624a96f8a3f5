/** Types of goals. Those about the thing in focus quietly refuse another one than the last that satisfied them. */

import { isConnectedTo } from './electricity.ts';
import type { Done, Goal, Sight, Verdict } from './goals.ts';
import { STATE_NAMES, type State } from './materials.ts';
import { describeName, isNamed } from './text.ts';
import type { Thing } from './thing.ts';

type Extra = Pick<Goal, 'after' | 'key' | 'clearsFocus'>;
type Focused = (focus: Thing, sight: Sight) => Verdict;

const verdict = (yes: boolean): Verdict => (yes ? 'yes' : 'no');

function goal(kind: string, description: string, extra: Extra | undefined, test: Goal['test']): Goal {
  return { kind, description, ...extra, test };
}

/** Goal about the thing in focus, whatever it is. */
function createFocusGoal(kind: string, description: string, extra: Extra | undefined, test: Focused): Goal {
  return goal(kind, description, extra, (focus, sight) => (focus ? test(focus, sight) : 'no'));
}

/** Goal about the thing in focus, if it is the last one that satisfied it. */
function createSameFocusGoal(kind: string, description: string, extra: Extra | undefined, test: Focused): Goal {
  return goal(kind, description, extra, (focus, sight) =>
    focus && (!sight.last || sight.last === focus) ? test(focus, sight) : 'no',
  );
}

function hasSome(things: readonly Thing[], test: (thing: Thing) => boolean): boolean {
  for (const thing of things) if (test(thing)) return true;
  return false;
}

/** True when some container above has one of these names. */
function isIn(thing: Thing, names: readonly string[]): boolean {
  let at = thing.parent;
  for (let level = 0; at && level < 20; level++, at = at.parent) if (names.includes(at.name)) return true;
  return false;
}

// ---- ordered goals

/**
 * Goal of focusing on the thing of this name, in any case of letters; another one fails unless `otherFails` is false.
 */
export function find(name: string, description: string, extra?: Extra, otherFails = true): Goal {
  return createFocusGoal('GoalFind', description, extra, (focus) => {
    if (focus.name.toLowerCase() === name.toLowerCase()) return 'yes';
    return otherFails ? 'failed' : 'no';
  });
}

/** Goal of the right answer box; another one fails, other things are ignored. */
export function findBox(name: string, description: string): Goal {
  return createFocusGoal('GoalFindAnswerBox', description, undefined, (focus) => {
    if (!focus.kind.id.endsWith(' box')) return 'no';
    return focus.name === name ? 'yes' : 'failed';
  });
}

/**
 * Goal of focusing on an animal or plant of this species in this stage of life; anything else fails. The focus is
 * cleared, so that the next stage needs a new one.
 */
export function findStage(species: string, stage: string, description: string): Goal {
  return createFocusGoal('GoalFindLivingThingStage', description, { clearsFocus: true }, (focus) =>
    focus.life?.species === species && focus.life.stage === stage ? 'yes' : 'failed',
  );
}

/**
 * Goal of focusing on the inclined plane with this surface, or of this letter; anything else fails, a plane that has
 * melted too.
 */
export function findPlane(kind: string, name: string, description: string, by: 'surface' | 'letter'): Goal {
  return createFocusGoal(kind, description, { clearsFocus: true }, (focus) =>
    focus.plane?.[by] === name && focus.name === focus.kind.name ? 'yes' : 'failed',
  );
}

/** Goal of focusing on something alive: anything, an animal, or a plant; anything else fails. */
export function focusLiving(kind: string, description: string, what: 'living' | 'animal' | 'plant'): Goal {
  return createFocusGoal(kind, description, undefined, (focus) => {
    if (!focus.life) return 'failed';
    if (what === 'living') return 'yes';
    return (focus.kind.id === 'plant') === (what === 'plant') ? 'yes' : 'failed';
  });
}

/** Goal of focusing on a thing that is not alive and can be moved; something alive fails. */
export function focusNonLiving(description: string): Goal {
  return createFocusGoal('GoalFocusOnNonlivingThing', description, undefined, (focus) => {
    if (focus.life) return 'failed';
    return verdict(focus.moveable);
  });
}

/** Goal of bringing the thing in focus into a state of matter, or (`orBurning`) setting it on fire. */
export function isState(state: State, description: string, orBurning = false): Goal {
  return createSameFocusGoal('GoalChangeStateOfMatter', description, undefined, ({ matter }) =>
    verdict(matter?.state === state || (orBurning && matter?.burning === true)),
  );
}

/** Two goals in a row: the state of matter of the thing in focus is noted, then it has to be another one. */
export function stateChanges(): Goal[] {
  let first: State | null = null;
  return [
    createSameFocusGoal('GoalIsStateOfMatter', '', undefined, ({ matter }) => {
      if (!matter) return 'no';
      first = matter.state;
      return 'yes';
    }),
    createSameFocusGoal('GoalIsDifferentStateOfMatter', '', undefined, ({ matter }) =>
      verdict(matter !== null && matter.state !== first),
    ),
  ];
}

/** Word for a state of matter in descriptions of goals: `solid`, `liquid`, `gaseous`. */
export const stateText = (state: State) => (state === 2 ? 'gaseous' : STATE_NAMES[state]);

/** Goal of a device of this name that is in focus and switched on. */
export function requirePowered(name: string, description: string): Goal {
  return createFocusGoal('GoalActivateDevice', description, undefined, (focus) =>
    verdict(focus.name === name && focus.device?.on === true),
  );
}

/** Goal of a component in focus that wires connect with one of these sources; it fails where they do not. */
export function requireConnectedToSource(names: readonly string[], description: string): Goal {
  return createSameFocusGoal('GoalElectricallyConnected', description, undefined, (focus) =>
    isConnectedTo(focus, names) ? 'yes' : 'failed',
  );
}

/**
 * Goal of putting the thing in focus into box `above` when it is at least `limit` °C warm, into box `below` when at
 * most; the wrong box fails. It has to lie in the box itself, not in a cup in it.
 */
export function boxByTemperature(above: string, below: string, limit: number, description: string): Goal {
  return createSameFocusGoal('GoalContainerByTemperature', description, undefined, (focus) => {
    const t = focus.matter?.temperature;
    if (t === undefined) return 'no';
    const box = focus.parent?.name;
    if (box === above) return t >= limit ? 'yes' : 'failed';
    if (box === below) return t <= limit ? 'yes' : 'failed';
    return 'no';
  });
}

/**
 * Goal of putting the thing in focus into the container of this name, at any depth; one of `wrong`, at any depth, fails
 * even inside the right one.
 */
export function inBox(
  kind: string,
  name: string,
  description: string,
  wrong: readonly string[] = [],
  extra?: Extra,
): Goal {
  return createSameFocusGoal(kind, description, extra, (focus) => {
    if (wrong.length > 0 && isIn(focus, wrong)) return 'failed';
    return verdict(isIn(focus, [name]));
  });
}

/** Goal of the living thing in focus: this species, in this stage of life. */
export function lifeStage(species: string, stage: string, description: string): Goal {
  return createSameFocusGoal('GoalLifeStage', description, undefined, ({ life }) =>
    verdict(life?.species === species && life.stage === stage),
  );
}

// ---- optional goals

/** Optional goal: the thing in focus lies in the container of this name, at any depth. */
export function inContainer(name: string, description: string, extra?: Extra): Goal {
  return inBox('GoalObjectInContainer', name, description, [], extra);
}

/** Optional goal: a thing of this name is near the agent. */
export function requireSameRoom(name: string, description: string, extra?: Extra): Goal {
  return goal('GoalInRoomWithObject', description, extra, (_focus, sight) => verdict(sight.findNamed(name).length > 0));
}

/** Optional goal: some container near the agent shows these things and no others. */
export function requireAlone(names: readonly string[], description: string, extra?: Extra): Goal {
  return goal('GoalObjectsInSingleContainer', description, extra, (_focus, sight) =>
    verdict(
      hasSome(sight.near, ({ contents }) => {
        if (contents.length < names.length) return false;
        let shown = 0;
        for (const held of contents) {
          if (held.hidden) continue;
          shown++;
          if (!names.some((name) => isNamed(held, name))) return false;
        }
        return shown === names.length;
      }),
    ),
  );
}

/** Optional goal: a device of this name near the agent is switched on, or off. */
export function deviceIs(on: boolean, name: string, description: string, extra?: Extra): Goal {
  return goal(`Goal${on ? 'A' : 'Dea'}ctivateDeviceWithName`, description, extra, (_focus, sight) =>
    verdict(hasSome(sight.findNamed(name), (thing) => thing.device?.on === on)),
  );
}

/** Optional goal: a container of this name directly holds one of `names`. */
export function holds(container: string, names: readonly string[], description: string, extra?: Extra): Goal {
  return goal('GoalSpecificObjectInDirectContainer', description, extra, (_focus, sight) =>
    verdict(
      hasSome(sight.findNamed(container), (thing) =>
        hasSome(thing.contents, (held) => !held.hidden && names.some((name) => isNamed(held, name))),
      ),
    ),
  );
}

/**
 * Optional goal: the agent is in place `unless`, or in another place than when the goal was first looked at elsewhere.
 */
export function newPlace(description: string, unless = '', extra?: Extra): Goal {
  let first: string | null = null;
  return goal('GoalMoveToNewLocation', description, extra, (_focus, sight) => {
    const here = sight.world.agent.parent!.name;
    if (here === unless) return 'yes';
    if (first === null) first = here;
    return verdict(here !== first);
  });
}

/** Optional goal: the agent is in the place of this name. */
export function inPlace(name: string, description: string, extra?: Extra): Goal {
  return goal('GoalMoveToLocation', description, extra, (_focus, sight) =>
    verdict(sight.world.agent.parent!.name === name),
  );
}

/** Optional goal: a door of the place the agent is in stands open. */
export function openDoor(description: string): Goal {
  return goal('GoalInRoomWithOpenDoor', description, undefined, (_focus, sight) =>
    verdict(sight.world.agent.parent!.portals.some((door) => door.portal!.open)),
  );
}

/** Optional goal: a container of this name near the agent is open. */
export function containerOpen(name: string, description: string, extra?: Extra): Goal {
  return goal('GoalContainerOpen', description, extra, (_focus, sight) =>
    verdict(hasSome(sight.findNamed(name), (thing) => thing.isOpen)),
  );
}

/** Optional goal: the agent was in this place at `looks` looks in a row; there is more than one look a tick. */
export function stay(name: string, looks: number, description: string): Goal {
  let count = 0;
  return goal('GoalStayInLocation', description, undefined, (_focus, sight) => {
    count = sight.world.agent.parent!.name === name ? count + 1 : 0;
    return verdict(count >= looks);
  });
}

const isWire = (thing: Thing) => thing.kind.circuit === 'wire';
const isSource = (thing: Thing) => thing.kind.circuit === 'generator';
const isBulb = (thing: Thing) => thing.kind.id.endsWith('light bulb');

/** Optional goal: contact 0 (terminal 1, anode) or 1 of a thing of this name is connected to a wire. */
export function requireWired(name: string, contact: 0 | 1, description: string): Goal {
  return goal('GoalObjectConnectedToWire', description, undefined, (_focus, sight) =>
    verdict(
      hasSome(sight.findNamed(name), (thing) => {
        if (!thing.terminals) return false;
        const other = thing.terminals[contact].contact!.connection;
        return other !== null && isWire(other.contact!.owner);
      }),
    ),
  );
}

function wireBetween(kind: string, description: string, one: (t: Thing) => boolean, two: (t: Thing) => boolean): Goal {
  return goal(kind, description, undefined, (_focus, sight) =>
    verdict(
      hasSome(sight.near, (thing) => {
        if (!isWire(thing)) return false;
        const [a, b] = thing.terminals!.map((end) => end.contact?.connection?.contact?.owner);
        return a !== undefined && b !== undefined && ((one(a) && two(b)) || (one(b) && two(a)));
      }),
    ),
  );
}

/** Optional goal: one wire connects a thing of this name with a source: any, or one of `sources`. */
export function wireToSource(name: string, description: string, sources?: readonly string[]): Goal {
  const isRight = (thing: Thing) => (sources ? sources.includes(thing.name) : isSource(thing));
  return wireBetween('GoalWireConnectsObjectAndAnyPowerSource', description, (t) => isNamed(t, name), isRight);
}

/** Optional goal: one wire connects a thing of this name with a light bulb. */
export function wireToBulb(name: string, description: string): Goal {
  return wireBetween('GoalWireConnectsObjectAndAnyLightBulb', description, (t) => isNamed(t, name), isBulb);
}

/** Optional goal: one wire connects a source with a light bulb. */
export function wireSourceToBulb(description: string): Goal {
  return wireBetween('GoalWireConnectsPowerSourceAndAnyLightBulb', description, isSource, isBulb);
}

/** An action done since the goal was first looked at. */
function past(kind: string, description: string, extra: Extra | undefined, test: (done: Done) => boolean): Goal {
  let from = -1;
  return goal(kind, description, extra, (_focus, { history }) => {
    if (from < 0) from = history.length;
    for (let i = from; i < history.length; i++) if (test(history[i]!)) return 'yes';
    return 'no';
  });
}

/**
 * Optional goal: since the goal was first looked at, a thing named `tool` was used on anything, or anything on a thing
 * that is described as `patient`.
 */
export function requireUsed(tool: string, patient: string, description: string, extra?: Extra): Goal {
  return past('GoalPastActionUseObjectOnObject', description, extra, ({ action, things }) => {
    if (action.name !== 'use object') return false;
    return things[0]!.name === tool || describeName(things[1]!) === patient;
  });
}

/** Optional goal: a thing of this name was looked at closely since the goal was first looked at. */
export function requireExamined(name: string, description: string, extra?: Extra): Goal {
  return past(
    'GoalPastActionExamineObject',
    description,
    extra,
    ({ action, things }) => action.name === 'look at' && isNamed(things[0]!, name),
  );
}

/** Optional goal: a text of this name was read since the goal was first looked at. */
export function readDocument(name: string, description: string): Goal {
  return past(
    'GoalPastActionReadObject',
    description,
    undefined,
    ({ action, things }) => action.name === 'read' && isNamed(things[0]!, name),
  );
}

/**
 * Goal of the thing in focus, whatever it is: `by` °C warmer (or, below 0, colder) than what was in focus at the first
 * look.
 */
export function warmer(by: number, description: string, extra?: Extra): Goal {
  let first: number | null = null;
  return createFocusGoal(`GoalTemperature${by > 0 ? 'In' : 'De'}crease`, description, extra, ({ matter }) => {
    if (!matter) return 'no';
    if (first === null) first = matter.temperature;
    const limit = first + by;
    return verdict(by > 0 ? matter.temperature >= limit : matter.temperature <= limit);
  });
}

/** Optional goal: a thing of this name near the agent burns. */
export function onFire(name: string, description: string, extra?: Extra): Goal {
  return goal('GoalTemperatureOnFire', description, extra, (_focus, sight) =>
    verdict(hasSome(sight.findNamed(name), (thing) => thing.matter?.burning === true)),
  );
}

/** Optional goal: at least `count` plants of a species near the agent are in a stage of life. */
export function plantsInStage(count: number, species: string, stage: string, description: string, extra?: Extra): Goal {
  return goal('GoalLifeStageAnywhere', description, extra, (_focus, { living }) => {
    let found = 0;
    for (const { life } of living) if (life!.species === species && life!.stage === stage) found++;
    return verdict(found >= count);
  });
}
