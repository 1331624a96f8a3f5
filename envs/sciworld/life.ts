/** Life: animals grow old, plants grow, flower and bear fruit, bees carry pollen. */
import { mate } from './genes.ts';
import { kind } from './kinds.ts';
import { ANIMALS } from './life-tables.ts';
import { plantName } from './text.ts';
import type { Genes, Life, Thing, World } from './thing.ts';

const MIN_TEMPERATURE = 0;
const MAX_TEMPERATURE = 50;
/** Good ticks a stage needs, and what a plant bears, in ticks. */
const GROWING = 10;
const RIPENING = 5;
const FRUIT_STEP = 5;
/** Ticks without water, without soil, too cold or too hot that kill a plant; half without water make it sickly. */
const THIRST = 50;
const THIRST_SEEDLING = 20;
const MAX_BARE = 5;
const SICKLY_BARE = 2;
const MAX_EXTREME = 5;
const POLLEN_CARRIED = 5;

function life(species: string, stage: string, genes: Genes | null): Life {
  return { species, stage, ticks: 0, sickly: false, dead: false, dry: 0, bare: 0, extreme: 0, genes };
}

/** Makes an animal, in its first stage by default. */
export function makeAnimal(species: string, world: World, stage = ANIMALS[species]!.stages[0]!): Thing {
  const thing = world.make(kind('animal'));
  thing.name = species;
  thing.life = life(species, stage, null);
  return thing;
}

/** A new bee. */
export function makeBee(name: string, world: World): Thing {
  const thing = world.make(kind('bee'));
  thing.name = name;
  thing.life = life('bee', 'adult', null);
  return thing;
}

/** A new tree, pea or unknown plant; it gets its proper name with its first tick. */
export function makePlant(species: string, stage: string, genes: Genes | null, world: World): Thing {
  const thing = world.make(kind('plant'));
  thing.name = genes ? species : 'plant';
  thing.life = life(species, stage, genes);
  return thing;
}

/** Ticks an animal: it comes to its next stage when its time has come; a dead one falls apart into its container. */
export function tickAnimal(thing: Thing, world: World): void {
  const self = thing.life!;
  const course = ANIMALS[self.species]!;
  const at = course.stages.indexOf(self.stage);
  if (at === course.stages.length - 1) {
    self.dead = true;
    fallApart(thing, world);
    return;
  }
  self.ticks++;
  if (self.ticks < course.ticks[at]!) return;
  self.ticks = 0;
  self.stage = course.stages[at + 1]!;
  thing.forgetNames();
}

function fallApart(thing: Thing, world: World): void {
  if (!thing.parent) return;
  for (const inside of thing.contents) world.move(inside, thing.parent);
}

/** A dead plant falls apart too; its flowers go, and leave what is in them. */
function wither(thing: Thing, world: World): void {
  const into = thing.parent;
  if (!into) return;
  for (const inside of thing.contents) {
    if (inside.kind.id !== 'flower') {
      world.move(inside, into);
      continue;
    }
    for (const held of inside.contents) world.move(held, into);
    world.delete(inside);
  }
}

function sibling(thing: Thing, name: string): Thing | undefined {
  return thing.parent?.contents.find((near) => near.name === name);
}

/** Ticks a plant: it grows, flowers, bears fruit or dies. */
export function tickPlant(thing: Thing, world: World): void {
  const self = thing.life!;
  // Name and taste follow the stage of the tick before.
  thing.edible = self.stage === 'seed';
  thing.name = plantName(thing);
  const { stage, sickly } = self;
  grow(thing, self, world);
  if (self.stage !== stage || self.sickly !== sickly) thing.forgetNames();
}

function enter(self: Life, stage: string): void {
  self.stage = stage;
  self.ticks = 0;
  self.dry = 0;
  self.bare = 0;
  self.extreme = 0;
}

function grow(thing: Thing, self: Life, world: World): void {
  if (self.stage === 'dead') {
    self.dead = true;
    wither(thing, world);
    return;
  }
  const water = sibling(thing, 'water');
  const soil = sibling(thing, 'soil');
  if (self.stage === 'seed') {
    if (!water || !soil) return;
    self.ticks++;
    if (self.ticks < GROWING) return;
    world.delete(water);
    enter(self, 'seedling');
    return;
  }
  const young = self.stage === 'seedling';
  if (water && !young) world.delete(water);
  const { stressed, sickly, dies } = bear(thing, self, water !== undefined, soil !== undefined, young);
  self.sickly = sickly;
  // A plant that dies still does what the stage does: what is not stressed grows on, and may live.
  if (!stressed) {
    self.ticks++;
    const next = self.ticks >= (young ? GROWING : RIPENING) ? NEXT_STAGE[self.stage] : undefined;
    if (next) {
      if (young) world.delete(water!);
      enter(self, next);
      return;
    }
    if (self.stage === 'reproducing' && self.ticks >= RIPENING) {
      self.ticks = 0;
      if (!thing.has('flower')) makeFlower(thing, world);
    }
  }
  if (dies) enter(self, 'dead');
}

const NEXT_STAGE: Readonly<Record<string, string>> = { seedling: 'adult', adult: 'reproducing' };

/** Counts the ticks a plant goes without water, without soil, too cold or too hot, and what comes of them. */
function bear(
  thing: Thing,
  self: Life,
  water: boolean,
  soil: boolean,
  young: boolean,
): { readonly stressed: boolean; readonly sickly: boolean; readonly dies: boolean } {
  const thirst = young ? THIRST_SEEDLING : THIRST;
  const temperature = thing.matter!.temperature;
  const extreme = temperature <= MIN_TEMPERATURE || temperature >= MAX_TEMPERATURE;
  self.dry = water ? 0 : self.dry + 1;
  self.bare = soil ? 0 : self.bare + 1;
  self.extreme = extreme ? self.extreme + 1 : 0;
  const parched = self.dry >= thirst / 2;
  return {
    stressed: self.bare > 0 || (young ? self.dry > 0 : parched),
    sickly: parched || self.bare >= SICKLY_BARE || extreme,
    dies: self.dry >= thirst || self.bare >= MAX_BARE || self.extreme >= MAX_EXTREME,
  };
}

function makeFlower(plant: Thing, world: World): void {
  const flower = world.make(kind('flower'));
  flower.bloom = { plant, species: plant.life!.species, step: 0, mate: null };
  world.move(flower, plant);
}

/** Ticks a flower: own pollen, pollination by foreign pollen, and the fruit. */
export function tickFlower(flower: Thing, world: World): void {
  const bloom = flower.bloom!;
  const { plant } = bloom;
  if (bloom.step > 0) {
    bloom.step++;
    if (bloom.step > FRUIT_STEP && flower.parent) {
      world.move(makeFruit(plant, bloom.mate, world), flower.parent);
      world.delete(flower, true);
    }
    return;
  }
  if (!flower.contents.some((inside) => inside.kind.id === 'pollen' && inside.bloom!.plant === plant)) {
    const pollen = world.make(kind('pollen'));
    pollen.bloom = { plant, species: bloom.species, step: 0, mate: null };
    world.move(pollen, flower);
  }
  const foreign = findForeign(flower, bloom.species, plant);
  if (!foreign) return;
  bloom.step = 1;
  flower.forgetNames();
  bloom.mate = foreign.bloom!.plant.life!.genes;
  world.delete(foreign);
}

function findForeign(flower: Thing, species: string, plant: Thing): Thing | undefined {
  const isForeign = (thing: Thing) =>
    thing.kind.id === 'pollen' && thing.bloom!.species === species && thing.bloom!.plant !== plant;
  for (const inside of flower.contents) {
    if (isForeign(inside)) return inside;
    const carried = inside.contents.find(isForeign);
    if (carried) return carried;
  }
  return undefined;
}

function makeFruit(plant: Thing, mateGenes: Genes | null, world: World): Thing {
  const { species, genes } = plant.life!;
  if (!genes) return world.make(kind(species));
  const child = mateGenes ? mate(genes, mateGenes, world.random) : genes;
  if (genes.table !== 'pea') world.random.skip(8);
  return makePlant(species, 'seed', child, world);
}

/** Ticks a bee: it takes pollen, enters a flower or flies on, by the draw of a coin. */
export function tickBee(bee: Thing, world: World): void {
  const place = bee.parent;
  if (!place) return;
  const { random } = world;
  const coin = random.int(2);
  if (place.kind.id === 'flower') {
    if (coin === 1) {
      fly(bee, place, world);
      return;
    }
    const carried = bee.contents.filter((thing) => thing.kind.id === 'pollen').length;
    if (carried > POLLEN_CARRIED) return;
    const pollen = place.contents.filter((thing) => thing.kind.id === 'pollen');
    if (pollen.length > 0) world.move(pollen[random.int(pollen.length)]!, bee);
    return;
  }
  if (coin === 0) {
    fly(bee, place, world);
    return;
  }
  const flowers = accessibleFlowers(place);
  if (flowers.length > 0) world.move(bee, flowers[random.int(flowers.length)]!);
}

function accessibleFlowers(place: Thing): Thing[] {
  const found: Thing[] = [];
  const look = (container: Thing) => {
    for (const thing of container.contents) {
      if (thing.kind.id === 'flower') found.push(thing);
      if (thing.isOpen) look(thing);
    }
  };
  look(place);
  return found.sort((a, b) => a.id - b.id);
}

function fly(bee: Thing, place: Thing, world: World): void {
  const ways = place.portals.filter((portal) => portal.portal!.open);
  if (ways.length > 0) {
    const { from, to } = ways[world.random.int(ways.length)]!.portal!;
    world.move(bee, place === from ? to : from);
    return;
  }
  if (!place.isOpen || place.kind.location) return;
  const room = findPlaceAround(place);
  if (room) world.move(bee, room);
}

/** Nearest location around an open container, as far as containers are open; null where one on the way is shut. */
function findPlaceAround(container: Thing): Thing | null {
  for (let at = container; at.parent; at = at.parent) {
    if (at.parent.kind.location) return at.parent;
    if (!at.container?.open) return null;
  }
  return null;
}
