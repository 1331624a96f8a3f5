/**
 * Ticks of the whole world, put off where nothing is observed: a place in which things only warm, cool, melt and grow
 * old changes nothing outside, takes no id and draws no number, so its ticks can be made up for later, all at once.
 * `World.settle` does that before anything in the place is looked at or moved. A place counts as such when nothing in
 * it burns or could catch fire, heats, flows, is wired, grows or flies.
 */
import type { Kind, Thing, World } from './thing.ts';
import { tick } from './ticks.ts';

/** Ticks between two looks for places that can be left alone. */
const INTERVAL = 4;
/** Degrees that the hottest thing must stay below every point of combustion. */
const MARGIN = 1;

/** Puts ticks off in this world from now on (head of the file). */
export function deferTicks(world: World): void {
  world.settle = (thing) => {
    const place = outermost(thing, world);
    if (place && place.deferredTicks >= 0) catchUp(place, world);
  };
}

/** Ticks everything in the world once. */
export function tickWorld(world: World): void {
  const clock = ++world.clock;
  for (const place of world.universe.contents) {
    if (place.contact) continue;
    if (place.deferredTicks < 0) {
      tick(place, world);
      continue;
    }
    place.deferredTicks++;
    place.ticked = clock;
  }
  if (clock % INTERVAL !== 0) return;
  for (const place of world.universe.contents) if (place.deferredTicks < 0 && isQuiet(place)) place.deferredTicks = 0;
}

/** Makes up for all ticks that were put off, in every place. */
export function settleAll(world: World): void {
  for (const place of world.universe.contents) if (place.deferredTicks >= 0) catchUp(place, world);
}

function catchUp(place: Thing, world: World): void {
  const now = world.clock;
  const last = place.ticked;
  const { deferredTicks } = place;
  place.deferredTicks = -1;
  place.ticked = -1;
  for (let i = deferredTicks - 1; i >= 0; i--) {
    world.clock = last - i;
    tick(place, world);
  }
  world.clock = now;
  place.ticked = last;
}

/** Place directly in the universe that a thing is in, or is. */
function outermost(thing: Thing, { universe }: World): Thing | null {
  let at = thing;
  for (let depth = 0; depth < 100 && at.parent; depth++) {
    if (at.parent === universe) return at;
    at = at.parent;
  }
  return null;
}

/** Kinds in whose presence no tick is put off, for some only while this holds of them. */
const BUSY: Readonly<Record<string, (thing: Thing) => boolean>> = {
  agent: () => true,
  bee: () => true,
  plant: () => true,
  flower: () => true,
  'flower pot': () => true,
  'self watering flower pot': () => true,
  sink: ({ device }) => device!.on,
  bathtub: ({ device }) => device!.on,
  toilet: ({ device, count }) => device!.on || count > 0,
  fountain: (thing) => !thing.has('water'),
  ground: ({ contents }) => contents.length > 0,
};
const busy = new Map<Kind, ((thing: Thing) => boolean) | null>();

function isBusy(thing: Thing): boolean {
  let test = busy.get(thing.kind);
  if (test === undefined) {
    test = BUSY[thing.kind.id] ?? null;
    busy.set(thing.kind, test);
  }
  return test?.(thing) === true;
}

/** Extremes of a place: its hottest thing, and the lowest point of combustion, in °C. */
interface Heat {
  hottest: number;
  ignition: number;
}

function isQuiet(place: Thing): boolean {
  const heat = { hottest: -Infinity, ignition: Infinity };
  return isStill(place, heat) && heat.hottest < heat.ignition - MARGIN;
}

function isStill(thing: Thing, heat: Heat): boolean {
  const { matter, kind, device } = thing;
  if (thing.plugged || isBusy(thing) || (kind.heat !== null && device?.on)) return false;
  if (matter) {
    if (matter.burning) return false;
    heat.hottest = Math.max(heat.hottest, matter.temperature);
    if (matter.burnTicks > 0) heat.ignition = Math.min(heat.ignition, matter.material.burn);
  }
  for (const {
    kind: { id },
    portal,
  } of thing.portals) {
    if (id === 'drain' && portal!.open && portal!.from.contents.some(({ contact }) => !contact)) return false;
  }
  for (const inside of thing.contents) if (!inside.contact && !isStill(inside, heat)) return false;
  return true;
}
