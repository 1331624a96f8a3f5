/**
 * Things of the world and the tree they form. Contents and portals are kept in ascending id order, because every loop
 * of the original runs in that order; ids are handed out in the order of construction, terminals before their owner.
 */
import type { JavaRandom } from './java-random.ts';
import { MATERIALS, Substance } from './materials.ts';

/** Form of a thing's text, see `text.ts`. */
export type Form =
  | 'room'
  | 'outside'
  | 'universe'
  | 'agent'
  | 'holding'
  | 'seat'
  | 'table'
  | 'cupboard'
  | 'drawer'
  | 'cooler'
  | 'stove'
  | 'oven'
  | 'sink'
  | 'toilet'
  | 'switchable'
  | 'electric'
  | 'battery'
  | 'wire'
  | 'terminal'
  | 'door'
  | 'drain'
  | 'stopwatch'
  | 'thermometer'
  | 'picture'
  | 'document'
  | 'substance'
  | 'a'
  | 'an'
  | 'A'
  | 'the'
  | 'bare'
  | 'name'
  | 'white'
  | 'canonical'
  | 'colored'
  | 'animal'
  | 'bee'
  | 'plant'
  | 'flower'
  | 'pollen'
  | 'plane';

/** Kind of things: what all of one sort have in common, a row of the table in `kinds.ts`. */
export interface Kind {
  /** Row in the table of kinds, −1 outside it. */
  readonly index: number;
  readonly id: string;
  /** Name at the start; the thing's own name changes with its state. */
  readonly name: string;
  readonly form: Form;
  /** Class of `materials.ts`. */
  readonly material: string | null;
  /** `open` never closes, `closed` starts closed, `not` has the property without being a container. */
  readonly container: 'open' | 'closed' | 'not' | null;
  readonly device: DeviceKind | null;
  /** Temperature a heat source reaches, or a cooling source, in °C. */
  readonly heat: number | null;
  readonly cool: number | null;
  readonly edible: boolean;
  readonly fixed: boolean;
  /** Place: a room, the outside, the universe. */
  readonly location: boolean;
  /** Names it answers to besides its name and its descriptive name. */
  readonly references: readonly string[];
  /** Each name also as "NAME containing X and Y". */
  readonly containing: boolean;
  /** Colour that goes with the name in one more name, "red apple"; '' without. */
  readonly color: string;
  readonly circuit: Circuit;
}

const PLAIN: Kind = {
  index: -1,
  id: '',
  name: '',
  form: 'a',
  material: null,
  container: null,
  device: null,
  heat: null,
  cool: null,
  edible: false,
  fixed: false,
  location: false,
  references: [],
  containing: false,
  color: '',
  circuit: 'none',
};

/** A kind with all its columns: objects of one shape, because every tick looks at the kind of every thing. */
export function makeKind(id: string, row: Partial<Kind>): Kind {
  return { ...PLAIN, id, name: id, ...row };
}

/**
 * Kind of a device: on or off at first, switched by the agent (`activable`) or never (`fixed`), or only used on things.
 */
export type DeviceKind = 'activable-off' | 'activable-on' | 'fixed-off' | 'fixed-on' | 'usable';

/** Part in a circuit. `generator`, `user` and `switch` have anode and cathode, the others two alike terminals. */
export type Circuit = 'generator' | 'user' | 'switch' | 'wire' | 'none';

/** Contact of a thing: what it is connected to, and its voltage if it has one. */
export interface Contact {
  readonly owner: Thing;
  connection: Thing | null;
  volts: number | null;
}

/** Device part of a thing: whether it can be switched, is on, can be used, is broken. */
export interface Device {
  activable: boolean;
  on: boolean;
  readonly usable: boolean;
  broken: boolean;
}

/** Container part of a thing: whether it is one, is open, can be closed. */
export interface Container {
  readonly is: boolean;
  open: boolean;
  readonly closable: boolean;
}

/** Way between two places. */
export interface Portal {
  readonly from: Thing;
  readonly to: Thing;
  open: boolean;
}

/** Life of an animal or a plant. */
export interface Life {
  readonly species: string;
  stage: string;
  /** Ticks in this stage (animals), good ticks in this stage (plants). */
  ticks: number;
  sickly: boolean;
  dead: boolean;
  /** Plants: ticks without water, without soil, out of temperature; per stage. */
  dry: number;
  bare: number;
  extreme: number;
  readonly genes: Genes | null;
}

/** Two sets of four traits; true is dominant. */
export interface Genes {
  /** Species of the trait table in `genes.ts`. */
  readonly table: string;
  /** Traits in this plant's order. */
  readonly traits: readonly string[];
  readonly first: readonly boolean[];
  readonly second: readonly boolean[];
}

/** Flower or pollen: the plant it grew on. */
export interface Bloom {
  readonly plant: Thing;
  readonly species: string;
  /** Flowers: ticks since pollination, 0 before. */
  step: number;
  /** Flowers: genes of the foreign pollen. */
  mate: Genes | null;
}

/** Inclined plane: its angle and friction, and how high the things on it are. */
export interface Plane {
  /** In degrees. */
  readonly angle: number;
  readonly friction: number;
  readonly letter: string;
  readonly surface: string;
  /** Height of each thing that was put on it, in [0, 1]; 1 is the top. */
  readonly heights: Map<Thing, number>;
}

/** Book or picture. */
export interface Print {
  readonly title: string;
  readonly author: string;
  /** Text as read. */
  readonly text: string;
}

/** Count of all changes to what things are called, where they are and what can be reached; caches go by it. */
export interface Changes {
  count: number;
  /** Walks over things so far; each marks what it has passed with its number. */
  walks: number;
}

/** Count of the names of everything, kept from one list of valid actions to the next; `names.ts` fills it. */
export interface Census {
  era: number;
  /** Number of lists so far. */
  at: number;
  /** Things that have each name, by its number. */
  counts: Int32Array;
  things: readonly Thing[];
}

/** Names a thing answers to by itself, as `names.ts` makes and remembers them. */
export interface OwnNames {
  readonly id: number;
}

const NOTHING: readonly Thing[] = [];

/**
 * Thing of the world: a place, an object, an animal, the agent. Kinds (kinds.ts) define what it starts as; parts
 * (`device`, `portal`, `life`, …) are null where it has none.
 */
export class Thing {
  readonly id: number;
  readonly kind: Kind;
  readonly changes: Changes;
  #name: string;
  parent: Thing | null = null;
  /** Contents; the array is replaced, never changed in place, so an iteration over it sees it as it was. */
  contents: readonly Thing[] = NOTHING;
  portals: readonly Thing[] = NOTHING;
  /** Own names as of the last change, and of a portal the place they are seen from. */
  known: OwnNames | null = null;
  knownFrom: Thing | null = null;
  /** All names in the order of the choice, for these names of its own and of its container. */
  spelled: { readonly own: OwnNames; readonly within: OwnNames; readonly numbers: Int32Array } | null = null;
  /** Entry in the census of names (`names.ts`). */
  counted: { numbers: Int32Array; single: number; at: number } | null = null;
  /** Number of the last walk that passed it. */
  passed = 0;
  hidden = false;
  deleted = false;
  /** Tick this thing has had its turn in. */
  ticked = -1;
  /** Places: ticks that have been put off (`deferral.ts`); −1 where they are taken as they come. */
  deferredTicks = -1;
  moveable: boolean;
  edible: boolean;
  matter: Substance | null;
  container: Container | null;
  device: Device | null;
  /** Temperature a heat or cooling source is set to, in °C; null while off. */
  heatSet: number | null = null;
  contact: Contact | null = null;
  /** Terminal 1 and terminal 2, or anode and cathode. */
  terminals: readonly [Thing, Thing] | null = null;
  /** A contact of it has been connected at some time. */
  plugged = false;
  portal: Portal | null = null;
  life: Life | null = null;
  bloom: Bloom | null = null;
  plane: Plane | null = null;
  print: Print | null = null;
  /** Letter or other addition to the name that only the text shows. */
  tag = '';
  /** Stopwatch: ticks; toilet: stage of the flush. */
  count = 0;

  constructor(id: number, kind: Kind, changes: Changes) {
    this.id = id;
    this.kind = kind;
    this.changes = changes;
    this.#name = kind.name;
    this.moveable = !kind.fixed;
    this.edible = kind.edible;
    this.matter = kind.material === null ? null : new Substance(material(kind.material));
    this.container = container(kind.container);
    this.device = device(kind.device);
  }

  get name(): string {
    return this.#name;
  }

  set name(name: string) {
    if (name === this.#name) return;
    this.#name = name;
    this.forgetNames();
  }

  /** Forgets the names that depend on this thing's name, fire, stage of life or contents; one of these has changed. */
  forgetNames(): void {
    this.changes.count++;
    this.known = null;
    if (this.terminals) for (const terminal of this.terminals) terminal.known = null;
    for (const portal of this.portals) portal.known = null;
    if (this.parent) this.parent.known = null;
  }

  /** Container that can be looked into and put things into now. */
  get isOpen(): boolean {
    return this.container?.is === true && this.container.open;
  }

  /** Contents that are not hidden, in id order. */
  visible(): Thing[] {
    return this.contents.filter((thing) => !thing.hidden);
  }

  has(kindId: string): boolean {
    for (const thing of this.contents) if (thing.kind.id === kindId) return true;
    return false;
  }
}

function material(id: string): ConstructorParameters<typeof Substance>[0] {
  const found = MATERIALS.get(id);
  if (!found) throw new Error(`sciworld: no material ${id}`);
  return found;
}

function container(kind: Kind['container']): Container | null {
  if (kind === null) return null;
  if (kind === 'open') return { is: true, open: true, closable: false };
  if (kind === 'closed') return { is: true, open: false, closable: true };
  return { is: false, open: false, closable: false };
}

function device(kind: Kind['device']): Device | null {
  if (kind === null) return null;
  return {
    activable: kind.startsWith('activable'),
    on: kind.endsWith('-on'),
    usable: kind === 'usable',
    broken: false,
  };
}

/** The list with `thing` among it by ascending id, once. */
export function insertById(list: readonly Thing[], thing: Thing): readonly Thing[] {
  let at = list.length;
  while (at > 0 && list[at - 1]!.id > thing.id) at--;
  if (at > 0 && list[at - 1] === thing) return list;
  if (at === list.length) return [...list, thing];
  return list.toSpliced(at, 0, thing);
}

const TERMINAL = makeKind('terminal', { form: 'terminal', fixed: true, references: ['terminal'] });

/** World of one session. */
export class World {
  readonly random: JavaRandom;
  nextId = 1;
  /** Ticks so far; a thing that has had its turn carries this number. */
  clock = 0;
  readonly changes: Changes = { count: 0, walks: 0 };
  readonly census: Census = { era: -1, at: 0, counts: new Int32Array(0), things: [] };
  /** Catch-up of the place a thing is in, called before that is looked at or changed; see `deferral.ts`. */
  settle: (thing: Thing) => void = () => {};
  /** Flower pots water themselves (a simplification). */
  watersPots = false;
  universe!: Thing;
  agent!: Thing;
  inventory!: Thing;

  constructor(random: JavaRandom) {
    this.random = random;
  }

  /** Builds a thing: terminals first, as the original numbers them. */
  make(kind: Kind): Thing {
    const { circuit } = kind;
    if (circuit === 'none' || circuit === 'wire') {
      const ids = [this.nextId++, this.nextId++];
      const thing = new Thing(this.nextId++, kind, this.changes);
      this.#contacts(thing, ids, ['terminal 1', 'terminal 2'], circuit === 'none');
      return thing;
    }
    const thing = new Thing(this.nextId++, kind, this.changes);
    this.#contacts(thing, [this.nextId++, this.nextId++], ['anode', 'cathode'], false);
    return thing;
  }

  #contacts(owner: Thing, ids: number[], names: string[], hidden: boolean): void {
    const made = names.map((name, i) => {
      const contact = new Thing(ids[i]!, TERMINAL, this.changes);
      contact.name = name;
      contact.hidden = hidden;
      contact.contact = { owner, connection: null, volts: null };
      contact.parent = owner;
      owner.contents = insertById(owner.contents, contact);
      return contact;
    });
    owner.terminals = [made[0]!, made[1]!];
  }

  /** Puts `thing` into `into`, out of wherever it was; on a plane, at its top. Into itself: nothing happens. */
  move(thing: Thing, into: Thing): void {
    if (thing === into) return;
    this.settle(into);
    this.take(thing);
    into.contents = insertById(into.contents, thing);
    into.known = null;
    into.plane?.heights.set(thing, 1);
    thing.parent = into;
    this.changes.count++;
  }

  /** Takes `thing` out of its container. */
  take(thing: Thing): void {
    const from = thing.parent;
    if (!from) return;
    this.settle(thing);
    from.contents = from.contents.filter((other) => other !== thing);
    from.known = null;
    thing.parent = null;
    this.changes.count++;
  }

  /** Deletes `thing`; `expel` leaves its contents, its own hidden terminals too, to its container. */
  delete(thing: Thing, expel = false): void {
    const into = thing.parent;
    if (expel && into) for (const inside of thing.contents) this.move(inside, into);
    disconnect(thing);
    this.take(thing);
    thing.deleted = true;
    thing.name = `${thing.name} (deleted)`;
  }
}

/** Cuts all connections of a thing's contacts. @returns whether there was one */
export function disconnect(thing: Thing): boolean {
  let cut = false;
  for (const terminal of thing.terminals ?? []) {
    const other = terminal.contact!.connection;
    if (!other) continue;
    other.contact!.connection = null;
    terminal.contact!.connection = null;
    cut = true;
  }
  return cut;
}

/** All things below `top`, closed or not, in the order of a walk; hidden ones are left out with what they hold. */
export function* descendants(top: Thing, hidden = false): Generator<Thing> {
  for (const thing of top.contents) {
    if (thing.hidden && !hidden) continue;
    yield thing;
    yield* descendants(thing, hidden);
  }
}

/** Place of a thing: its nearest location container. */
export function placeOf(thing: Thing): Thing | null {
  let at = thing.parent;
  for (let depth = 0; at && depth < 50; depth++, at = at.parent) if (at.kind.location) return at;
  return null;
}
