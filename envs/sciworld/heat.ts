/** Heat, change of state and fire. */
import { kind } from './kinds.ts';
import { GAS, LIQUID, SOLID, type Substance } from './materials.ts';
import type { Thing, World } from './thing.ts';

/** Part of a difference in temperature that passes in a tick. */
const RATE = 0.1;
const LIMIT = 1000;
/** Flames are this much hotter than the combustion point; what is put out is a little colder, in °C. */
const FLAME = 200;
const QUENCHED = 10;

const clamp = (x: number) => (x > LIMIT ? LIMIT : x < -LIMIT ? -LIMIT : x);

/**
 * Exchanges heat between two things that touch: first `one` warms towards `other`, then `other` towards the new
 * `one`.
 */
export function exchange(one: Substance, other: Substance): void {
  if (one.temperature === other.temperature) return;
  const oneK = one.material.conductivity;
  const otherK = other.material.conductivity;
  const k = oneK < otherK ? oneK : otherK;
  one.temperature += clamp((other.temperature - one.temperature) * k * RATE);
  other.temperature += clamp((one.temperature - other.temperature) * k * RATE);
}

/** Heats or cools what stands in a stove, an oven, a fridge: direct contents move towards the set temperature. */
export function source(thing: Thing): void {
  const { heat, cool } = thing.kind;
  const on = thing.device?.on === true;
  if (heat !== null && thing.device?.activable) thing.heatSet = on ? heat : null;
  if (!on) return;
  for (const inside of thing.contents) {
    const matter = inside.matter;
    if (!matter) continue;
    if (heat !== null && matter.temperature < heat) matter.temperature += clamp((heat - matter.temperature) * RATE);
    if (cool !== null && matter.temperature > cool) matter.temperature += clamp((cool - matter.temperature) * RATE);
  }
}

/** Melts, boils, freezes: the state by temperature, and the name that goes with a new one. */
export function changeState(thing: Thing, matter: Substance): void {
  const t = matter.temperature;
  const state = t < matter.melt ? SOLID : t > matter.material.boil ? GAS : LIQUID;
  if (state === matter.state) return;
  matter.state = state;
  if (matter.names) thing.name = matter.names[state];
}

/** Fire: ignition, burning down to ash, and water that puts it out. */
export function burn(thing: Thing, matter: Substance, world: World): void {
  const { burning, burned } = matter;
  blaze(thing, matter, world);
  if (matter.burning !== burning || matter.burned !== burned) thing.forgetNames();
}

function blaze(thing: Thing, matter: Substance, world: World): void {
  const point = matter.material.burn;
  if (matter.temperature >= point && !matter.burning && matter.burnTicks > 0) matter.burning = true;
  if (!matter.burning) return;
  matter.burnTicks--;
  if (matter.temperature < point + FLAME) matter.temperature = point + FLAME;
  const container = thing.parent;
  if (matter.burnTicks <= 0) {
    matter.burning = false;
    matter.burned = true;
    const ash = world.make(kind('ash'));
    ash.matter!.temperature = matter.temperature;
    if (container) world.move(ash, container);
    world.delete(thing, true);
    return;
  }
  const water = [...thing.contents, ...(container?.contents ?? [])]
    .sort((a, b) => a.id - b.id)
    .find((near) => near.matter?.name === 'water' && near.matter.state === LIQUID);
  if (!water) return;
  water.matter!.temperature = matter.temperature;
  matter.burning = false;
  matter.burned = true;
  matter.temperature = point - QUENCHED;
}
