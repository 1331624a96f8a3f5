/** House: ten rooms and the outside, built in the original's order, because ids and random draws follow it. */
import type { JavaRandom } from './java-random.ts';
import { kind } from './kinds.ts';
import { makeBee } from './life.ts';
import { BOOKS, PICTURES } from './pictures-and-books.ts';
import { insertById, type Thing, type World } from './thing.ts';

/** Rooms and the outside by name. */
export type Rooms = Readonly<Record<string, Thing>>;

const DOORS: readonly (readonly [from: string, to: string])[] = [
  ['kitchen', 'hallway'],
  ['living room', 'hallway'],
  ['bedroom', 'hallway'],
  ['bathroom', 'kitchen'],
  ['workshop', 'hallway'],
  ['greenhouse', 'hallway'],
  ['art studio', 'hallway'],
  ['kitchen', 'outside'],
  ['greenhouse', 'outside'],
  ['foundry', 'outside'],
];

/** Builds everything into `world`. */
export function buildHouse(world: World): void {
  new Builder(world).build();
}

class Builder {
  readonly #world: World;
  readonly #random: JavaRandom;
  readonly #rooms: Record<string, Thing> = {};

  constructor(world: World) {
    this.#world = world;
    this.#random = world.random;
  }

  build(): void {
    const world = this.#world;
    world.universe = world.make(kind('universe'));
    this.#room('sewer');
    this.#kitchen();
    this.#livingAndSleeping();
    this.#bathroom();
    this.#workshop();
    this.#greenhouse();
    this.#artStudio();
    this.#outdoors();
    const shovelIn = this.#random.int(2) === 1 ? 'greenhouse' : 'outside';
    this.#put('shovel', this.#rooms[shovelIn]!);
    for (const [from, to] of DOORS) this.#door(this.#rooms[from]!, this.#rooms[to]!);
    this.#agent();
  }

  #put(id: string, into: Thing): Thing {
    const thing = this.#world.make(kind(id));
    this.#world.move(thing, into);
    return thing;
  }

  #room(id: string): Thing {
    const room = this.#put(id, this.#world.universe);
    this.#rooms[id] = room;
    if (id !== 'sewer') this.#put('air', room).matter!.temperature = 25;
    return room;
  }

  #addDrained(id: string, room: Thing): Thing {
    const thing = this.#put(id, room);
    const drain = this.#world.make(kind('drain'));
    drain.portal = { from: thing, to: this.#rooms.sewer!, open: true };
    thing.portals = insertById(thing.portals, drain);
    return thing;
  }

  #door(from: Thing, to: Thing): void {
    const door = this.#world.make(kind('door'));
    door.portal = { from, to, open: false };
    from.portals = insertById(from.portals, door);
    to.portals = insertById(to.portals, door);
  }

  #picture(room: Thing): void {
    const random = this.#random;
    const id = PICTURES.kinds[random.int(4)]!;
    const title = PICTURES.subjects[random.int(10)]!;
    const author = PICTURES.artists[random.int(4)]!;
    this.#put(id, room).print = { title, author, text: '' };
  }

  #shelf(room: Thing): void {
    if (!this.#random.boolean()) return;
    const shelf = this.#put('book shelf', room);
    for (let left = this.#random.int(4); left > 0; left--) {
      let at = this.#random.int(10);
      while (at >= BOOKS.length) at = this.#random.int(10);
      const book = this.#put('book', shelf);
      book.print = BOOKS[at]!;
      book.name = `book (${BOOKS[at]!.title})`;
    }
  }

  #kitchen(): void {
    const room = this.#room('kitchen');
    const put = this.#put.bind(this);
    this.#addDrained('sink', room);
    put('stove', room);
    const fridge = put('fridge', room);
    put('freezer', room);
    put('oven', room);
    const cupboard = put('cupboard', room);
    for (const id of ['drawer', 'metal pot', 'tin cup', 'ceramic cup']) put(id, cupboard);
    const counter = put('counter', room);
    put('drawer', counter);
    const bowl = put('bowl', counter);
    for (const id of ['apple', 'banana', 'orange', 'potato']) put(id, bowl);
    put('orange juice', put('wood cup', fridge));
    put('thermometer', room);
    this.#picture(room);
    put('glass cup', put('wood table', room));
    put('chair', room);
    put('lighter', room);
    put('sodium chloride', put('glass jar', room));
    put('soap', room);
    put('stopwatch', room);
  }

  #livingAndSleeping(): void {
    const put = this.#put.bind(this);
    const living = this.#room('living room');
    put('pillow', put('couch', living));
    put('chair', living);
    const table = put(['wood table', 'steel table', 'desk'][this.#random.int(3)]!, living);
    if (table.kind.id === 'desk') put('drawer', table);
    this.#picture(living);
    this.#shelf(living);
    const bedroom = this.#room('bedroom');
    put('pillow', put('mattress', put('bed', bedroom)));
    put('wood table', bedroom);
    put('closet', bedroom);
    this.#picture(bedroom);
    this.#shelf(bedroom);
  }

  #bathroom(): void {
    const room = this.#room('bathroom');
    this.#addDrained('sink', room);
    this.#put('water', this.#addDrained('toilet', room));
    this.#addDrained('bathtub', room);
    this.#put('glass cup', room);
    this.#picture(room);
  }

  #workshop(): void {
    const room = this.#room('workshop');
    const table = this.#put('wood table', room);
    const lights = this.#random.shuffle(['red', 'green', 'blue', 'yellow', 'orange', 'violet']);
    for (const color of lights.slice(0, 3)) this.#put(`${color} light bulb`, table);
    const wires = this.#random.shuffle(['red', 'green', 'blue', 'yellow', 'orange', 'black']);
    for (const color of wires.slice(0, 3)) this.#put(`${color} wire`, table);
    this.#put('switch', table);
    this.#put('battery', table);
    this.#put('ultra low temperature freezer', room);
  }

  #greenhouse(): void {
    const room = this.#room('greenhouse');
    this.#put('jug', room);
    const hive = this.#put('bee hive', room);
    for (let i = 0; i < 5; i++) this.#world.move(makeBee(`bee ${i}`, this.#world), hive);
    this.#addDrained('sink', room);
  }

  #artStudio(): void {
    const room = this.#room('art studio');
    const table = this.#put('wood table', room);
    const containers = ['glass cup', 'bowl', 'jug'].map((id) => this.#world.make(kind(id)));
    this.#world.move(this.#random.shuffle(containers)[0]!, table);
    this.#paints(room);
    const cupboard = this.#put('cupboard', room);
    cupboard.name = 'large cupboard';
    this.#put('drawer', cupboard);
    this.#paints(cupboard);
  }

  #paints(into: Thing): void {
    const paints = ['red', 'blue', 'yellow'].map((color) => this.#world.make(kind(`${color} paint`)));
    for (const paint of paints) this.#world.move(paint, this.#put('wood cup', into));
  }

  #outdoors(): void {
    const hallway = this.#room('hallway');
    this.#picture(hallway);
    const outside = this.#room('outside');
    for (const id of ['ground', 'fire pit', 'wood', 'axe', 'fountain']) this.#put(id, outside);
    const foundry = this.#room('foundry');
    this.#put('blast furnace', foundry);
    this.#addDrained('sink', foundry);
    this.#put('steel table', foundry);
  }

  #agent(): void {
    const world = this.#world;
    const agent = world.make(kind('agent'));
    world.agent = agent;
    world.inventory = this.#put('inventory', agent);
    this.#put('orange', world.inventory);
    const names = Object.keys(this.#rooms)
      .filter((name) => name !== 'sewer')
      .sort();
    world.move(agent, this.#rooms[names[this.#random.int(10)]!]!);
  }
}
