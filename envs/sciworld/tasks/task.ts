/** Tasks: variations, the draws and ids its registration takes, and how a variation is set up. */
import type { Goal } from '../goals.ts';
import type { JavaRandom } from '../java-random.ts';
import { kind } from '../kinds.ts';
import { descendants, type Thing, type World } from '../thing.ts';

/** One variation, ready to be played. */
export interface Episode {
  readonly description: string;
  readonly ordered: readonly Goal[];
  readonly optional: readonly Goal[];
}

/** Task of ScienceWorld: how many variations it has, how one is drawn, and its goals. */
export interface Task<Facts = unknown> {
  /** Name, as the original's `get_task_names` has it. */
  readonly name: string;
  /** Number in ScienceWorld's paper: "4-2". */
  readonly topic: string;
  readonly variations: number;
  /**
   * Draws made when the original registers this task; only what matters is kept.
   * @param random stands where the tasks before have left it
   */
  register(random: JavaRandom): Facts;
  /** Changes the house and describes the task. */
  setUp(site: Site, variation: number, facts: Facts): Episode;
}

/** Types a task without losing its facts' type. */
export function task<Facts>(definition: Task<Facts>): Task {
  return definition as Task;
}

/** Site of a variation: the house, and ids as the registration of the task numbered them. */
export class Site {
  readonly world: World;
  readonly #base: number;

  /** @param base ids taken before the task */
  constructor(world: World, base: number) {
    this.world = world;
    this.#base = base;
  }

  get random(): JavaRandom {
    return this.world.random;
  }

  /** Place of this name. */
  room(name: string): Thing {
    return this.world.universe.contents.find((room) => room.name === name)!;
  }

  /** Builds with the first id after `offset` ids of the task; nothing else has these ids. */
  at<T>(offset: number, build: (world: World) => T): T {
    const next = this.world.nextId;
    this.world.nextId = this.#base + offset + 1;
    const made = build(this.world);
    this.world.nextId = next;
    return made;
  }

  /** Thing of a kind, numbered after `offset` ids of the task. */
  make(id: string, offset: number): Thing {
    return this.at(offset, (world) => world.make(kind(id)));
  }

  /**
   * Puts a thing into a room, unless one of its name is there already, anywhere inside.
   * @param force put it there all the same
   */
  place(thing: Thing, room: string, { force = false, name = thing.name } = {}): void {
    const into = this.room(room);
    if (!force) for (const other of descendants(into)) if (other.name === name) return;
    this.world.move(thing, into);
  }

  /**
   * Puts a thing into the first container of these names that a shuffle of all things of the room shows, unless a
   * container of such a name, directly in the room, has one of its name.
   */
  placeIn(thing: Thing, room: string, containers: readonly string[], { force = false, name = thing.name } = {}): void {
    const into = this.room(room);
    if (!force) {
      for (const container of into.visible()) {
        if (!containers.includes(container.name)) continue;
        for (const other of descendants(container)) if (other.name === name) return;
      }
    }
    const all = [...descendants(into, true)].sort((a, b) => a.id - b.id);
    const found = this.random.shuffle(all).find((container) => containers.includes(container.name));
    if (found) this.world.move(thing, found);
  }

  /** Breaks every device of this name in the room. */
  breakDevice(name: string, room: string): void {
    for (const thing of descendants(this.room(room)))
      if (thing.name === name && thing.device) thing.device.broken = true;
  }
}

/** Answer boxes in pairs, as most tasks offer them. */
const BOX_PAIRS: readonly (readonly [string, string])[] = [
  ['red', 'green'],
  ['green', 'blue'],
  ['blue', 'orange'],
  ['orange', 'yellow'],
  ['yellow', 'purple'],
];

/** Puts the two boxes of a pair, numbered one after the other, into a room. */
export function placeBoxes(site: Site, pair: number, room: string, offset: number): readonly [string, string] {
  const names = BOX_PAIRS[pair]!.map((color) => `${color} box`);
  names.forEach((name, i) => {
    site.place(site.make(name, offset + 3 * i), room);
  });
  return [names[0]!, names[1]!];
}

const CUPS = ['metal pot', 'glass cup', 'plastic cup', 'tin cup', 'paper cup', 'ceramic cup', 'jug'];

/** Draws a random cup. @returns its kind */
export function drawCup(random: JavaRandom): string {
  return CUPS[random.int(CUPS.length)]!;
}

/** A substance in a cup of its temperature: ids of the substance, a cup that is dropped, and the cup. */
export function inCup(site: Site, substance: Thing, cupId: string, offset: number): Thing {
  const cup = site.make(cupId, offset + 6);
  if (cup.matter && substance.matter) cup.matter.temperature = substance.matter.temperature;
  if (cup.container) cup.container.open = true;
  site.world.move(substance, cup);
  return cup;
}

/** Numbers 1 to 9 in a drawn order, for pots. */
export function drawPots(random: JavaRandom): number[] {
  return random.shuffle([1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/** One in `count` pairs etc.: the digits of a variation in mixed radix, slowest first. */
export function digits(variation: number, ...radices: readonly number[]): number[] {
  const out: number[] = [];
  let rest = variation;
  for (let i = radices.length - 1; i >= 0; i--) {
    out[i] = rest % radices[i]!;
    rest = Math.floor(rest / radices[i]!);
  }
  return out;
}
