/** Ticks of the world: every thing's own behaviour, then heat, change of state and circuits, then its contents. */
import { conduct } from './electricity.ts';
import { burn, changeState, exchange, source } from './heat.ts';
import { kind, listKinds } from './kinds.ts';
import { tickAnimal, tickBee, tickFlower, tickPlant } from './life.ts';
import { GAS, LIQUID, type Substance } from './materials.ts';
import type { Thing, World } from './thing.ts';

/** Gravity of inclined planes, in heights a tick; a single-precision number in the original. */
const GRAVITY = Math.fround(0.1);
const FLUSH_STAGES = 5;

/** Puts water into a container that has none. */
export function fill(container: Thing, world: World): void {
  if (!container.has('water')) world.move(world.make(kind('water')), container);
}

type Doing = (thing: Thing, world: World) => void;

/** Doings before the common part of a tick, by kind; a thing that moves on in the tick may have them twice. */
const DOINGS: Readonly<Record<string, Doing>> = {
  sink: fillSink,
  bathtub: fillSink,
  toilet(thing, world) {
    const drain = thing.portals[0]!.portal!;
    if (thing.count === 0 && thing.device!.on) {
      thing.count = 1;
      drain.open = true;
    }
    if (thing.count > 0) {
      fillWithin(thing, world);
      thing.count++;
      if (thing.count > FLUSH_STAGES) {
        thing.device!.on = false;
        thing.count = 0;
      }
    }
    if (thing.count === 0) drain.open = false;
  },
  drain(thing, world) {
    const { from, to, open } = thing.portal!;
    if (!open) return;
    for (const inside of from.contents) if (inside.matter?.state === LIQUID) world.move(inside, to);
  },
  fountain: fill,
  'flower pot'(thing, world) {
    if (world.watersPots) fill(thing, world);
  },
  'self watering flower pot': fill,
  ground(thing, world) {
    for (const inside of thing.contents) if (thing.parent) world.move(inside, thing.parent);
  },
  stopwatch(thing) {
    if (thing.device!.on) thing.count++;
  },
  'solar panel': outdoors,
  'wind generator': outdoors,
  animal: tickAnimal,
  bee(thing, world) {
    if (thing.ticked !== world.clock) tickBee(thing, world);
  },
  plant: tickPlant,
  flower: tickFlower,
  'inclined plane': slide,
};
/** The same by the kind's index: things ask it every tick. */
const OWN: readonly (Doing | null)[] = listKinds().map(({ id }) => DOINGS[id] ?? null);

function fillSink(thing: Thing, world: World): void {
  if (thing.device!.on) fillWithin(thing, world);
}

/** Puts water into the open containers in a container, then into itself, where there is none. */
function fillWithin(thing: Thing, world: World): void {
  for (const inside of thing.visible()) if (inside.isOpen) fill(inside, world);
  fill(thing, world);
}

/** Panels and wind wheels run where a chain of open containers leads outside. */
function outdoors(thing: Thing): void {
  let at = thing.parent;
  for (let depth = 0; at && !at.kind.location && depth < 50; depth++) {
    if (!at.isOpen) break;
    at = at.parent;
  }
  thing.device!.on = at?.kind.id === 'outside';
}

/** Things on a plane slide down, faster the steeper and smoother it is. */
function slide(thing: Thing): void {
  const { angle, friction, heights } = thing.plane!;
  const step = GRAVITY * Math.sin(angle * (Math.PI / 180)) * (1 - friction);
  for (const block of thing.contents) {
    const height = heights.get(block);
    if (block.hidden || height === undefined) continue;
    const state = block.matter?.state;
    heights.set(block, state === LIQUID ? 0 : state === GAS ? 1 : Math.max(0, height - step));
  }
}

/** Matter of what a thing holds, for the time of one `touchAll`. */
const warm: Substance[] = [];

/** Heat between a thing and what it holds, and between all pairs of that. */
function touchAll(matter: Substance | null, contents: readonly Thing[]): void {
  let count = 0;
  for (const inside of contents) {
    if (!inside.matter) continue;
    if (matter) exchange(matter, inside.matter);
    warm[count++] = inside.matter;
  }
  for (let i = 1; i < count; i++) {
    const one = warm[i]!;
    for (let j = 0; j < i; j++) exchange(one, warm[j]!);
  }
}

/** Turn of one thing and of all it holds. */
export function tick(thing: Thing, world: World): void {
  const { kind } = thing;
  OWN[kind.index]?.(thing, world);
  if (kind.heat !== null || kind.cool !== null) source(thing);
  if (thing.ticked === world.clock) return;
  const { matter } = thing;
  if (matter && (matter.burning || matter.temperature >= matter.material.burn)) burn(thing, matter, world);
  const { contents } = thing;
  const holds = contents.length > 2 || (contents.length > 0 && !contents[0]!.contact);
  if (holds) touchAll(matter, contents);
  if (matter) changeState(thing, matter);
  conduct(thing);
  if (holds) for (const inside of contents) if (!inside.contact) tick(inside, world);
  for (const portal of thing.portals) tick(portal, world);
  thing.ticked = world.clock;
}
