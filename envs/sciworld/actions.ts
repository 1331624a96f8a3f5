/** Actions, the 27 of them as a table: words, refusals with their reasons, and effects. */
import { mix } from './chemistry.ts';
import { kind } from './kinds.ts';
import { GAS, LIQUID, SOLID } from './materials.ts';
import type { Pattern } from './parser.ts';
import { cursory, degrees, describeDetails, describeName, findBehind, lines } from './text.ts';
import { disconnect, type Thing, type World } from './thing.ts';

/** Session, as far as actions see and change it. */
export interface Stage {
  readonly world: World;
  focus: Thing | null;
  /** Passes still to wait. */
  waiting: number;
  readonly description: string;
  resetGoals(): void;
}

/** Conditions on the first and on the second thing of an action, each by itself, and whether both may be the same. */
export interface Pairs {
  x(thing: Thing): boolean;
  y(thing: Thing): boolean;
  readonly itself: boolean;
}

/** Action of the table: its words, the things it takes, its refusals and its effect. */
export interface Action {
  /** Name options of ambiguous commands are sorted by. */
  readonly name: string;
  readonly pattern: Pattern;
  /** Words of the valid list around the things: "pour", "into". */
  readonly shown: readonly string[];
  readonly arity: 0 | 1 | 2;
  /** Free actions take no time. */
  readonly free?: boolean;
  /** Order of the things in the valid list is the reverse of the command's. */
  readonly reversed?: boolean;
  /** Actions the simplifications add or take away. */
  readonly when?: 'teleport' | 'electrical';
  /** Further condition of being listed; typed, the action needs it not. */
  lists?(stage: Stage, x: Thing): boolean;
  /** Pairs of things: when `refuse` gives null, thing by thing, so that a list of pairs need not try them all. */
  readonly pairs?: Pairs;
  /** Reason why it cannot be done, or null; the valid list holds actions that give null. */
  refuse(stage: Stage, x: Thing, y: Thing): string | null;
  run(stage: Stage, x: Thing, y: Thing): string;
}

type Part = readonly string[] | null;
const X: Part = null;

function action(
  name: string,
  pattern: readonly Part[],
  rest: Partial<Action> & Pick<Action, 'run'>,
  shown: readonly string[] = pattern.flatMap((part) => (part ? [part[0]!] : [])),
): Action {
  const arity = pattern.filter((part) => part === null).length as 0 | 1 | 2;
  return { name, pattern, shown, arity, refuse: () => null, ...rest };
}

// ---- moving, pouring, dunking, opening, going, looking, switching

function refuseMove(_stage: Stage, x: Thing, into: Thing): string | null {
  if (!x.moveable) return `The ${x.name} is not moveable.`;
  if (x === into) return "You can't move something into itself.";
  if (x.matter?.state === LIQUID) {
    return "You can't pick up a liquid directly.  Try pouring it from one container to another, or dunking empty containers into containers filled with the liquid.";
  }
  if (x.matter?.state === GAS) return "You can't pick up a gas directly.";
  if (!into.container?.is) return "That can't be moved there.";
  if (!into.container.open) return `That can't be moved there, because the ${into.name} isn't open.`;
  return null;
}

function move(stage: Stage, x: Thing, into: Thing): string {
  const text = `${unplug(x)}You move the ${x.name} to the ${into.name}.`;
  stage.world.move(x, into);
  return text;
}

function unplug(x: Thing): string {
  return disconnect(x) ? `(disconnecting ${x.name})` : '';
}

function refusePour(_stage: Stage, x: Thing, into: Thing): string | null {
  if (!x.moveable) return `The ${x.name} is not moveable.`;
  const from = x.parent;
  if (x.container?.is) {
    if (!x.container.open) return `The ${x.name} can't be poured out, because it's not open.`;
  } else {
    if (!from) return `The ${x.name} can't be poured out because it doesn't appear to be in a container.`;
    if (!from.moveable) return `The ${from.name} the ${x.name} is in is not movable.`;
    if (x.matter?.state === SOLID) return "I'm not sure how to pour a solid.";
    if (x.matter?.state === GAS) return "You can't pour a gas directly.";
  }
  if (!into.container?.is) return "That can't be moved there, because it's not a container.";
  if (!into.container.open) return `That can't be moved there, because the ${into.name} isn't open.`;
  if (x.container?.is && x.contents.length === 0) return `The ${x.name} is empty, so there's nothing to pour.`;
  return null;
}

const isContainer = (thing: Thing) => thing.isOpen;

const MOVING: Pairs = {
  x: ({ moveable, matter }) => moveable && matter?.state !== LIQUID && matter?.state !== GAS,
  y: isContainer,
  itself: false,
};
const POURING: Pairs = {
  x: ({ moveable, parent, container, contents, matter }) => {
    if (!moveable) return false;
    if (container?.is) return container.open && contents.length > 0;
    return parent?.moveable === true && matter?.state !== SOLID && matter?.state !== GAS;
  },
  y: isContainer,
  itself: true,
};
const DUNKING: Pairs = {
  x: (thing) => thing.moveable && thing.isOpen,
  y: (thing) => liquids(thing).some((liquid) => liquid.moveable),
  itself: false,
};
const USING: Pairs = { x: ({ device }) => device?.usable === true, y: () => true, itself: true };
const CONNECTING: Pairs = {
  x: (thing) => refusePlug(thing) === null,
  y: (thing) => refusePlug(thing) === null,
  itself: false,
};

function pour(stage: Stage, x: Thing, into: Thing): string {
  if (x === into) return "You can't move something into itself.";
  const poured = x.container?.is ? x.contents.filter((inside) => inside.moveable) : [x];
  let text = '';
  for (const each of poured) {
    stage.world.move(each, into);
    const cut = unplug(each);
    if (cut) text += `${cut}\n`;
  }
  return `${text}You pour the ${x.container?.is ? 'contents of the ' : ''}${x.name} into the ${into.name}.`;
}

function liquids(thing: Thing): Thing[] {
  return thing.contents.filter((inside) => !inside.hidden && inside.matter?.state === LIQUID);
}

function refuseDunk(_stage: Stage, x: Thing, source: Thing): string | null {
  if (x === source) return "You can't dunk something into itself.";
  if (!x.moveable) return `The ${x.name} is not moveable.`;
  if (!x.container) return `The ${x.name} is not a container.`;
  if (!x.container.open) return `The ${x.name} is not open.`;
  if (!x.container.is) return `The ${x.name} is not a container.`;
  if (liquids(source).length === 0) return `The ${source.name} does not contain any liquids to dunk into.`;
  if (!liquids(source).some((liquid) => liquid.moveable)) return `The liquids in ${source.name} aren't able to move.`;
  return null;
}

function dunk(stage: Stage, x: Thing, source: Thing): string {
  const moved = liquids(source).filter((liquid) => liquid.moveable);
  const names = moved.map((liquid) => liquid.name).join(', ');
  let text = '';
  for (const liquid of moved) {
    stage.world.move(liquid, x);
    text += unplug(liquid);
  }
  return `${text}You dunk the ${x.name} in the ${source.name}, moving the liquids (${names}) to the ${x.name}.`;
}

function refuseOpen(_stage: Stage, x: Thing): string | null {
  if (x.portal) return x.portal.open ? `The ${x.name} is already open.` : null;
  if (!x.container?.is) return `The ${x.name} is not openable.`;
  if (x.container.open) return `The ${x.name} is already open.`;
  return x.container.closable ? null : `The ${x.name} is not openable.`;
}

function refuseClose(_stage: Stage, x: Thing): string | null {
  if (x.portal) return x.portal.open ? null : `The ${x.name} is already closed.`;
  if (!x.container?.is) return `The ${x.name} is not closeable.`;
  if (!x.container.open) return `The ${x.name} is already closed.`;
  return x.container.closable ? null : `The ${x.name} is not closeable.`;
}

function setOpen(x: Thing, open: boolean): void {
  if (x.portal) x.portal.open = open;
  if (x.container?.closable) x.container.open = open;
  x.changes.count++;
}

/** Door from the agent's room to `place`, if there is one. */
function doorTo(stage: Stage, place: Thing): Thing | undefined {
  const room = stage.world.agent.parent!;
  return room.portals.find((portal) => findBehind(portal, room) === place);
}

/** Place a portal of `room` leads to. */
function findOtherSide(portal: Thing, room: Thing): Thing | null {
  return room.portals.includes(portal) ? findBehind(portal, room) : null;
}

function refuseGo(stage: Stage, x: Thing): string | null {
  if (x.kind.id === 'door') {
    if (!x.portal!.open) return `The ${x.name} is not open.`;
    return findOtherSide(x, stage.world.agent.parent!) ? null : "The door doesn't appear to go anywhere.";
  }
  if (!x.kind.location) return `Its not clear how to go to/through a ${x.name}.`;
  const door = doorTo(stage, x);
  if (!door) return "It's not clear how to get there from here.";
  return door.portal!.open ? null : `The ${door.name} is not open.`;
}

function go(stage: Stage, x: Thing): string {
  const to = x.portal ? findOtherSide(x, stage.world.agent.parent!)! : x;
  stage.world.move(stage.world.agent, to);
  return x.portal ? `You move through the ${x.name} to the ${to.name}.` : `You move to the ${x.name}.`;
}

function lookIn(x: Thing): string {
  if (x.contents.length === 0) return `There is nothing in the ${x.name}.`;
  let text = `Inside the ${x.name} is: \n${lines(x.contents, x)}\n`;
  if (x.portals.length > 0) text += ` You also see: ${x.portals.map((portal) => cursory(portal, x)).join(', ')}.`;
  return text;
}

function refuseDevice(x: Thing, on: boolean): string | null {
  if (!x.device?.activable) return `The ${x.name} is not something that can be activated.`;
  if (x.device.on === on) return `The ${x.name} is already ${on ? 'activated' : 'deactivated'}.`;
  return null;
}

function switchDevice(x: Thing, on: boolean): string {
  if (x.device!.broken) return `The ${x.name} appears broken, and can't be activated or deactivated.`;
  x.device!.on = on;
  if (on && x.kind.id === 'stopwatch') x.count = 0;
  return `The ${x.name} is now ${on ? 'activated' : 'deactivated'}.`;
}

// ---- tools

const UNCLEAR = "I'm not sure how to use those two things together.";

function use(stage: Stage, tool: Thing, on: Thing): string {
  switch (tool.kind.id) {
    case 'thermometer': {
      if (!on.matter) return "That thing doesn't appear to have a temperature that the thermometer can read.";
      return `the thermometer measures a temperature of ${degrees(on.matter.temperature)} degrees celsius`;
    }
    case 'lighter':
      return light(on);
    case 'shovel':
      return dig(stage, on);
    case 'axe':
      return chop(stage, on);
    default:
      return UNCLEAR;
  }
}

function light(on: Thing): string {
  const matter = on.matter;
  if (!matter) return "It's not clear how to use those items together.";
  const reach = kind('lighter').heat!;
  if (matter.material.burn <= reach) {
    if (matter.burning) return `The ${on.name} is already on fire.`;
    if (matter.burnTicks <= 0) return `The ${on.name} is not flammable.`;
    matter.burning = true;
    on.forgetNames();
    return `The ${on.name} catches fire.`;
  }
  if (matter.temperature < reach) matter.temperature = Math.min(reach, matter.temperature + 10);
  return `The lighter heats up the ${on.name} a small amount.`;
}

function dig(stage: Stage, on: Thing): string {
  if (on.kind.id !== 'ground' || !on.parent) return UNCLEAR;
  for (const id of ['hole', 'soil']) stage.world.move(stage.world.make(kind(id)), on.parent);
  return 'You dig a hole in the ground, and place the soil nearby.';
}

function chop(stage: Stage, on: Thing): string {
  if (on.kind.id === 'plant') {
    if (on.life!.stage === 'seed') return "You can't chop a seed.";
    const text = `You chop down the ${describeName(on)}, creating wood.`;
    const into = on.parent;
    const wood = stage.world.make(kind('wood'));
    if (into) stage.world.move(wood, into);
    stage.world.delete(on, true);
    return text;
  }
  if (!on.device) return UNCLEAR;
  on.device.broken = true;
  return `You hit the ${on.name} with the axe, causing it to break.`;
}

// ---- circuits

/** Contact that connecting `x` means: itself, or the first free terminal of an ordinary thing. */
function contactOf(x: Thing): Thing | null {
  if (x.contact) return x;
  return x.terminals!.find((terminal) => !terminal.contact!.connection) ?? null;
}

function refuseConnect(_stage: Stage, x: Thing, y: Thing): string | null {
  const pointless = refusePoint(x) ?? refusePoint(y);
  if (pointless !== null) return pointless;
  if (contactOf(x) === contactOf(y)) return "Something can't be connected to itself.";
  return refuseTaken(x) ?? refuseTaken(y);
}

const refusePlug = (x: Thing) => refusePoint(x) ?? refuseTaken(x);

/** Refusal of what offers no point of contact. */
function refusePoint(x: Thing): string | null {
  const circuit = x.kind.circuit;
  if (circuit === 'wire') {
    return 'Connections must specify specific points of contact on unpolarized electrical components (e.g. terminal 1, terminal 2)';
  }
  if (circuit !== 'none') {
    return 'Connections must specify specific points of contact on polarized electrical components (e.g. anode, cathode)';
  }
  if (x.contact) return null;
  if (!x.terminals) return `It's not clear how to connect something to ${x.name}`;
  if (contactOf(x)) return null;
  return `${x.name} is already connected, and must be disconnected before it can be connected to something else`;
}

/** Refusal of a contact that is connected. */
function refuseTaken(x: Thing): string | null {
  if (!x.contact?.connection) return null;
  const name = `${x.name} on ${x.contact.owner.name}`;
  return `${name} is already connected, and must be disconnected before it can be connected to something else`;
}

function connect(_stage: Stage, x: Thing, y: Thing): string {
  const one = contactOf(x)!;
  const other = contactOf(y)!;
  one.contact!.connection = other;
  other.contact!.connection = one;
  for (const end of [one, other]) end.contact!.owner.plugged = true;
  const place = (end: Thing) => `${end.name} on ${end.contact!.owner.name}`;
  return `${place(one)} is now connected to ${place(other)}`;
}

// ---- paper

function readText(x: Thing): string {
  if (x.kind.id === 'recipe') return `The recipe reads:\n${x.print!.text}`;
  if (x.kind.id === 'book') return `The book reads:\n${x.print!.title} by ${x.print!.author}\n${x.print!.text}`;
  return 'The paper does not have any text on it.';
}

const MOVE_TO = ['to', 'in', 'into', 'on'];

/** All actions in the order of the valid list. */
export const ACTIONS: readonly Action[] = [
  action('open door', [['open'], X], {
    refuse: refuseOpen,
    run: (_s, x) => {
      setOpen(x, true);
      return `The ${x.name} is now open.`;
    },
  }),
  action('close door', [['close'], X], {
    refuse: refuseClose,
    run: (_s, x) => {
      setOpen(x, false);
      return `The ${x.name} is now closed.`;
    },
  }),
  action(
    'move through door',
    [['go', 'go through', 'walk through', 'move through', 'go to', 'walk to', 'move to', 'go into', 'move into'], X],
    { refuse: refuseGo, run: go },
    ['go to'],
  ),
  action('look around', [['look around', 'look']], {
    free: true,
    run: ({ world }) => describeDetails(world.agent.parent!, world.agent.parent),
  }),
  action('look at', [['look at', 'look on', 'examine'], X], {
    run: ({ world }, x) =>
      x.hidden ? '<ERROR: Could not retrieve object description>' : describeDetails(x, world.agent.parent),
  }),
  action('look in', [['look in'], X], {
    refuse: (_s, x) =>
      x.isOpen
        ? null
        : x.container
          ? `The ${x.name} isn't open, so you can't see inside.`
          : "It's not clear how to look inside of that.",
    run: (_s, x) => lookIn(x),
  }),
  action('activate', [['activate', 'turn on'], X], {
    refuse: (_s, x) => refuseDevice(x, true),
    run: (_s, x) => switchDevice(x, true),
  }),
  action('deactivate', [['deactivate', 'turn off'], X], {
    refuse: (_s, x) => refuseDevice(x, false),
    run: (_s, x) => switchDevice(x, false),
  }),
  action('eat', [['eat', 'consume'], X], {
    refuse: (_s, x) => (x.edible ? null : `The ${x.name} is not edible.`),
    run: ({ world }, x) => {
      const text = `The ${x.name} was delicious.`;
      world.take(x);
      return text;
    },
  }),
  action('move object', [['move', 'put'], X, MOVE_TO, X], { refuse: refuseMove, pairs: MOVING, run: move }),
  action(
    'pour object',
    [['pour'], X, ['in', 'into', 'on', 'to'], X],
    { refuse: refusePour, pairs: POURING, run: pour },
    ['pour', 'into'],
  ),
  action('focus', [['focus on', 'focus'], X], {
    run: (stage, x) => {
      stage.focus = x;
      return `You focus on the ${describeName(x)}.`;
    },
  }),
  action('reset task', [['reset task']], {
    run: (stage) => {
      stage.resetGoals();
      return 'You reset the goal progress and focus.';
    },
  }),
  action('use object', [['use'], X, ['on', 'with'], X], {
    pairs: USING,
    refuse: (_s, x) => (x.device?.usable ? null : `I'm not sure how to use the ${x.name}.`),
    run: use,
  }),
  action('read', [['read'], X], {
    refuse: (_s, x) => (x.kind.form === 'document' ? null : "It's not clear how to read that."),
    run: (_s, x) => readText(x),
  }),
  action('flush', [['flush'], X], {
    refuse: (_s, x) => {
      if (x.kind.id !== 'toilet') return "It's not clear how to flush that.";
      return x.device!.on ? 'That is already flushing.' : null;
    },
    run: (_s, x) => {
      x.device!.on = true;
      return `The ${x.name} is now flushing.`;
    },
  }),
  action('connect electrically', [['connect'], X, ['to', 'in', 'into'], X], {
    when: 'electrical',
    refuse: refuseConnect,
    pairs: CONNECTING,
    run: connect,
  }),
  action('disconnect electrically', [['disconnect'], X], {
    when: 'electrical',
    refuse: (_s, x) =>
      x.contact
        ? `You must disconnect entire objects (such as ${x.contact.owner.name}) instead of just single terminals`
        : null,
    run: (_s, x) => {
      disconnect(x);
      return `${x.name} has been disconnected`;
    },
  }),
  action('wait1', [['wait1']], { run: (stage) => wait(stage, 1) }),
  action('wait10', [['wait']], { run: (stage) => wait(stage, 10) }),
  action('view inventory', [['inventory']], { free: true, run: ({ world }) => inventoryText(world) }),
  action('pick up', [['pick up', 'get', 'take'], X], {
    refuse: (stage, x) => refuseMove(stage, x, stage.world.inventory),
    lists: ({ world }, x) => x.parent !== world.inventory,
    run: (stage, x) => move(stage, x, stage.world.inventory),
  }),
  action('put down', [['put down', 'drop'], X], {
    refuse: (stage, x) => refuseMove(stage, x, stage.world.agent.parent!),
    lists: ({ world }, x) => x.parent === world.inventory,
    run: (stage, x) => move(stage, x, stage.world.agent.parent!),
  }),
  action('mix', [['mix', 'stir'], X], {
    refuse: (_s, x) => (x.contents.length > 1 ? null : ''),
    run: ({ world }, x) => mix(x, world),
  }),
  action('task description', [['task']], { free: true, run: ({ description }) => `Task description:\n${description}` }),
  action(
    'dunk object',
    [['dunk'], X, ['in', 'into'], X],
    { refuse: refuseDunk, pairs: DUNKING, run: dunk, reversed: true },
    ['dunk', 'into'],
  ),
  action(
    'teleport',
    [['teleport', 'teleport to', 'teleport into'], X],
    {
      when: 'teleport',
      refuse: (_s, x) => (x.kind.location && x.kind.id !== 'universe' ? null : `Its not clear how to go to ${x.name}.`),
      run: ({ world }, x) => {
        world.move(world.agent, x);
        return `You teleport to the ${x.name}.`;
      },
    },
    ['teleport to'],
  ),
];

function wait(stage: Stage, passes: number): string {
  stage.waiting = passes;
  return `You decide to wait for ${passes} iterations.`;
}

/** Inventory as text: what the agent carries, each thing in detail. */
export function inventoryText(world: World): string {
  return `In your inventory, you see:\n${lines(world.inventory.contents, world.agent.parent, true)}`;
}
