/** Electrical tasks: to power a component, and to find out whether something conducts. */
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import { BOOKS } from '../pictures-and-books.ts';
import { digits, placeBoxes, type Site, task } from './task.ts';
import { LETTERS } from './thermometer.ts';

const PARTS = ['red light bulb', 'green light bulb', 'blue light bulb', 'electric motor', 'electric buzzer'];
const RENEWABLE = ['solar panel', 'wind generator'];
const NONRENEWABLE = ['gas generator', 'nuclear generator'];

/** The battery has the first ids; the parts follow. */
function placePart(site: Site, part: number): void {
  site.place(site.make(PARTS[part]!, 3 + 3 * part), 'workshop');
}

function wireGoals(name: string, connect: string, source: (name: string) => Goal): Goal[] {
  return [
    goals.newPlace('move to a new location'),
    goals.requireSameRoom(name, 'be in same location as part to power'),
    goals.requireWired(name, 0, `${connect} the task object's (terminal1/anode) to a wire`),
    goals.requireWired(name, 1, `${connect} the task object's (terminal2/cathode) to a wire`),
    source(name),
  ];
}

const PARTIAL = 'ask object is at least partially connected to power source through wire';

const POWER = (
  [
    ['power-component', '3-1', false],
    ['power-component-renewable-vs-nonrenewable-energy', '3-2', true],
  ] as const
).map(([name, topic, asksSource]) =>
  task({
    name,
    topic,
    variations: 20,
    register: () => null,
    setUp(site, variation) {
      const [part, renewable, nonrenewable] = digits(variation, 5, 2, 2) as [number, number, number];
      PARTS.forEach((_, i) => {
        placePart(site, i);
      });
      site.place(site.make(RENEWABLE[renewable]!, 18 + 3 * renewable), 'workshop');
      site.place(site.make(NONRENEWABLE[nonrenewable]!, 24 + 3 * nonrenewable), 'workshop');
      const device = PARTS[part]!;
      const ordered = [goals.find(device, 'focus on task object'), goals.requirePowered(device, 'power task object')];
      if (!asksSource) {
        return {
          description: `Your task is to turn on the ${device}. First, focus on the ${device}. Then, create an electrical circuit that powers it on.`,
          ordered,
          optional: wireGoals(device, 'Connect', (part) => goals.wireToSource(part, `T${PARTIAL}`)),
        };
      }
      const sources = variation % 2 === 0 ? RENEWABLE : NONRENEWABLE;
      const kind = variation % 2 === 0 ? 'renewable' : 'nonrenewable';
      return {
        description: `Your task is to turn on the ${device} by powering it using a ${kind} power source. First, focus on the ${device}. Then, create an electrical circuit that powers it on.`,
        ordered: [...ordered, goals.requireConnectedToSource(sources, 'use correct power source')],
        optional: wireGoals(device, 'connect', (part) => goals.wireToSource(part, `t${PARTIAL}`, sources)),
      };
    },
  }),
);

function conductivity(name: string, room: string, conducts: boolean, boxes: readonly [string, string]) {
  const [yes, no] = boxes;
  const [right, wrong] = conducts ? [yes, no] : [no, yes];
  return {
    description: `Your task is to determine if ${name} is electrically conductive. The ${name} is located around the ${room}. First, focus on the ${name}. If it is electrically conductive, place it in the ${yes}. If it is electrically nonconductive, place it in the ${no}.`,
    ordered: [
      goals.find(name, 'focus on task object'),
      goals.inBox('GoalObjectInContainerByName', right, 'put object in correct container', [wrong]),
    ],
    optional: [
      ...wireGoals(name, 'connect', (part) => goals.wireToSource(part, `t${PARTIAL}`)),
      goals.wireToBulb(name, 'task object is at least partially connected to a light bulb through wire'),
      goals.wireSourceToBulb('light bulb is at least partially connected to a power source through wire'),
    ],
  };
}

const ROOMS = ['workshop', 'kitchen', 'living room'];
const BOOK = BOOKS.length - 1;
const SUBSTANCES = [
  'sodium chloride',
  'water',
  'plastic fork',
  'metal fork',
  'apricot',
  'shovel',
  'glass jar',
  'metal pot',
  `book (${BOOKS[BOOK]!.title})`,
  'paper clip',
  'wood block',
  'aluminum foil',
];
const CONDUCTING = new Set(['metal fork', 'shovel', 'metal pot', 'paper clip', 'aluminum foil']);
const PLACED = ROOMS.flatMap((room) => SUBSTANCES.map((name) => ({ room, name })));
const ORDER = PLACED.map((_, i) => i).sort((a, b) => {
  const [one, other] = [PLACED[a]!.name, PLACED[b]!.name];
  return one < other ? -1 : one > other ? 1 : a - b;
});

const known = task({
  name: 'test-conductivity',
  topic: '3-3',
  variations: 900,
  register: () => null,
  setUp(site, variation) {
    const [at, part, pair] = digits(variation, PLACED.length, 5, 5) as [number, number, number];
    const index = ORDER[at]!;
    const { room, name } = PLACED[index]!;
    placePart(site, part);
    const isBook = name.startsWith('book');
    if (name !== 'water') {
      const thing = site.make(isBook ? 'book' : name, 18 + 3 * index);
      if (isBook) thing.print = BOOKS[BOOK]!;
      thing.name = name;
      site.place(thing, room, { force: true });
    }
    return conductivity(name, room, CONDUCTING.has(name), placeBoxes(site, pair, 'workshop', 126 + 6 * pair));
  },
});

const unknown = task<boolean[]>({
  name: 'test-conductivity-of-unknown-substances',
  topic: '3-4',
  variations: 600,
  register: (random) => LETTERS.map(() => random.float() >= 0.5),
  setUp(site, variation, conducting) {
    const [letter, part, pair] = digits(variation, LETTERS.length, 5, 5) as [number, number, number];
    placePart(site, part);
    const thing = site.make('unknown substance', 18 + 3 * letter);
    thing.name = `unknown substance ${LETTERS[letter]}`;
    const conducts = conducting[letter]!;
    thing.matter!.electric = conducts;
    thing.matter!.names = null;
    site.place(thing, 'workshop', { force: true });
    return conductivity(thing.name, 'workshop', conducts, placeBoxes(site, pair, 'workshop', 90 + 6 * pair));
  },
});

export const CIRCUITS = [...POWER, known, unknown];
