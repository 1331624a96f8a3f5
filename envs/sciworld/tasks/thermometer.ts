/** Thermometer tasks: the temperature of a thing, the melting point of a known or of an unknown substance. */
import { append } from '../../../src/core/extremes.ts';
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import { JavaRandom } from '../java-random.ts';
import { LIQUID, SOLID, UNKNOWN_MELTING } from '../materials.ts';
import { double } from '../text.ts';
import type { Thing } from '../thing.ts';
import { heatingGoals } from './change-of-state.ts';
import { digits, drawCup, type Episode, inCup, placeBoxes, type Site, task } from './task.ts';

/**
 * Numbers of the variations among all combinations: the first half, the third and the last quarter are shuffled in
 * turn by one generator, and a part of each is kept.
 */
function sample(total: number, kept: number): number[] {
  const random = new JavaRandom(5);
  const bounds = [0, Math.floor(total * 0.5), Math.floor(total * 0.75), total];
  const out: number[] = [];
  for (let part = 0; part < 3; part++) {
    const from = bounds[part]!;
    const numbers = Array.from({ length: bounds[part + 1]! - from }, (_, i) => from + i);
    append(out, random.shuffle(numbers).slice(0, Math.floor(numbers.length * kept)));
  }
  return out;
}

function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Positions in the stable order by name. */
function byName(names: readonly string[]): number[] {
  return names.map((_, i) => i).sort((a, b) => (names[a]! < names[b]! ? -1 : names[a]! > names[b]! ? 1 : a - b));
}

// ---- use-thermometer

const ROOMS = ['living room', 'bedroom', 'bathroom'];
const POINTS = [-50, 0, 50, 100, 200];
const OBJECTS = ['sodium chloride', 'metal fork', 'wood', 'wire', ...Array<string>(20).fill('unknown substance B')];
const ALL_OBJECTS = ROOMS.flatMap(() => POINTS.flatMap(() => OBJECTS));
const objectOrder = lazy(() => byName(ALL_OBJECTS));
const useSample = lazy(() => sample(ALL_OBJECTS.length * 5 * 15, 0.02));
const BOXES_OFFSET = 3 + 3 * ALL_OBJECTS.length;

const useThermometer = task<number[]>({
  name: 'use-thermometer',
  topic: '2-1',
  variations: 540,
  register: (random) =>
    ALL_OBJECTS.map((_, i) => {
      const delta = random.int(100) + 50;
      const point = POINTS[Math.floor(i / OBJECTS.length) % POINTS.length]!;
      return random.boolean() ? point - delta : point + delta;
    }),
  setUp(site, variation, temperatures) {
    const [at, atPoint, boxRoom, pair] = digits(useSample()[variation]!, ALL_OBJECTS.length, 5, 3, 5) as [
      number,
      number,
      number,
      number,
    ];
    const index = objectOrder()[at]!;
    const name = ALL_OBJECTS[index]!;
    const room = ROOMS[Math.floor(index / (POINTS.length * OBJECTS.length))]!;
    const unknown = name.startsWith('unknown');
    const thing = site.make(unknown ? 'unknown substance' : name, 3 + 3 * index);
    thing.name = name;
    thing.matter!.temperature = temperatures[index]!;
    site.place(thing, room, { force: name === 'sodium chloride' });
    const boxesIn = ROOMS[boxRoom]!;
    const [above, below] = placeBoxes(site, pair, boxesIn, BOXES_OFFSET + 30 * boxRoom + 6 * pair);
    const limit = double(POINTS[atPoint]!);
    return {
      description: `Your task is to measure the temperature of ${name}, which is located around the ${room}. First, focus on the thermometer. Next, focus on the ${name}. If the ${name} temperature is above ${limit} degrees celsius, place it in the ${above}. If the ${name} temperature is below ${limit} degrees celsius, place it in the ${below}. The boxes are located around the ${boxesIn}.`,
      ordered: [
        goals.find('thermometer', 'focus on instrument', { clearsFocus: true }),
        goals.find(name, 'focus on object'),
        goals.boxByTemperature(above, below, POINTS[atPoint]!, 'move object to correct answer box'),
      ],
      optional: [
        ...thermometerGoals('move to a new location'),
        goals.inPlace(room, 'move to the location asked by the task (object location)', { key: 'move1' }),
        goals.inPlace(boxesIn, 'move to the location asked by the task (answer box location)', {
          after: ['move1'],
          key: 'move2',
        }),
        goals.holds('inventory', [name], 'have task object in inventory'),
        goals.requireUsed('thermometer', name, 'use instrument on object'),
        goals.requireUsed('thermometer', name, 'use instrument on object (in answer box location)', {
          after: ['move2'],
        }),
      ],
    };
  },
});

function thermometerGoals(move: string): Goal[] {
  return [
    goals.requireSameRoom('thermometer', 'be in same location as thermometer'),
    goals.holds('inventory', ['thermometer'], 'have thermometer in inventory'),
    goals.newPlace(move),
  ];
}

// ---- melting points

function meltingEpisode(name: string, melting: number, point: number, boxes: readonly [string, string]): Episode {
  const [above, below] = boxes;
  const limit = double(point);
  const { devices, places } = heatingGoals('substance');
  const afterFocus = { after: ['focusObject'] };
  return {
    description: `Your task is to measure the melting point of ${name}, which is located around the kitchen. First, focus on the thermometer. Next, focus on the ${name}. If the melting point of ${name} is above ${limit} degrees celsius, focus on the ${above}. If the melting point of ${name} is below ${limit} degrees celsius, focus on the ${below}. The boxes are located around the kitchen.`,
    ordered: [
      goals.find('thermometer', 'focus on thermometer', { clearsFocus: true }),
      goals.find(name, 'focus on substance', { key: 'focusObject' }),
      goals.findBox(melting >= point ? above : below, 'focus on correct answer box'),
    ],
    optional: [
      ...thermometerGoals('move to a new location'),
      goals.inPlace('kitchen', 'move to the location asked by the task (substance location)', { key: 'move1' }),
      goals.inPlace('kitchen', 'move to the location asked by the task (answer box location)', { key: 'move1' }),
      ...['kitchen', 'outside', 'foundry'].map((place, i) =>
        goals.inPlace(place, `move to a location with a heating device (${place})`, {
          after: ['move1'],
          key: `move2${'abc'[i]}`,
        }),
      ),
      goals.holds('inventory', [name], 'have task object in inventory'),
      goals.requireUsed('thermometer', name, 'use thermometer on substance'),
      goals.requireUsed('thermometer', name, 'use thermometer on substance (after it has been heated)', {
        after: ['heatObject'],
      }),
      goals.requireAlone([name], 'have substance alone in a single container'),
      ...devices,
      ...places.map((goal) => ({ ...goal, ...afterFocus })),
      goals.warmer(20, 'heat substance by at least 20C', { ...afterFocus, key: 'heatObject' }),
    ],
  };
}

/** Known substances: ids after the start of their group, and the drawn cup they come in. */
const KNOWN: readonly (readonly [name: string, offset: number, cup: number])[] = [
  ['water', 0, -1],
  ['orange juice', 6, 0],
  ['chocolate', 15, -1],
  ['mercury', 18, 1],
  ['gallium', 27, 2],
  ['tin', 36, 3],
  ['lead', 45, 4],
];
const KNOWN_POINTS = [-10, 10, 50, 150, 200];
const KNOWN_IDS = 54;
const knownOrder = lazy(() => byName(KNOWN_POINTS.flatMap(() => KNOWN.map(([name]) => name))));
const knownSample = lazy(() => sample(875, 0.5));
const GALLIUM_FIRST = 276 - 3;

const meltingKnown = task<string[]>({
  name: 'measure-melting-point-known-substance',
  topic: '2-2',
  variations: 436,
  register: (random) => Array.from({ length: 25 }, () => drawCup(random)),
  setUp(site, variation, cups) {
    const [at, atPoint, pair] = digits(knownSample()[variation]!, 35, 5, 5) as [number, number, number];
    const index = knownOrder()[at]!;
    const group = Math.floor(index / KNOWN.length);
    const [name, offset, cup] = KNOWN[index % KNOWN.length]!;
    const base = 3 + KNOWN_IDS * group + offset;
    if (name === 'chocolate') {
      site.placeIn(site.make(name, base), 'kitchen', ['fridge']);
    } else if (cup > 0) {
      site.place(inCup(site, site.make(name, base), cups[5 * group + cup]!, base), 'kitchen', { name });
    }
    const boxes = placeBoxes(site, pair, 'kitchen', GALLIUM_FIRST + 6 * pair);
    const melting = MELTING[name]!;
    return meltingEpisode(name, melting, KNOWN_POINTS[atPoint]!, boxes);
  },
});

/** Melting points in °C of the substances that these tasks name. */
export const MELTING: Readonly<Record<string, number>> = {
  water: 0,
  'orange juice': 0,
  chocolate: 30,
  mercury: -39,
  gallium: 30,
  tin: 232,
  lead: 327,
};

/** Letters of the unknown substances in tasks. */
export const LETTERS = [...'BCDEFGHJKLMNOPQRSTUVWXYZ'];
const GROUPS = 25;
/** Melting below this, in °C, it comes in a cup. */
const CUPPED_BELOW = 15;
const isCupped = (letter: string) => UNKNOWN_MELTING[letter]! < CUPPED_BELOW;
const LETTER_OFFSETS = LETTERS.map((_, i) => LETTERS.slice(0, i).reduce((n, l) => n + (isCupped(l) ? 9 : 3), 0));
const GROUP_IDS = LETTERS.reduce((n, letter) => n + (isCupped(letter) ? 9 : 3), 0);
const unknownSample = lazy(() => sample(GROUPS * LETTERS.length * 25, 0.02));
/** Name at the start; those that come in a cup are liquid, and their names include it. */
const startName = (letter: string) => `${isCupped(letter) ? 'liquid' : 'solid'} unknown substance ${letter}`;
const unknownOrder = lazy(() => byName(Array.from({ length: GROUPS }, () => LETTERS.map(startName)).flat()));

/** An unknown substance of the letter, with names by state. */
function makeUnknown(site: Site, letter: string, offset: number): Thing {
  const thing = site.make('unknown substance', offset);
  const matter = thing.matter!;
  const name = `unknown substance ${letter}`;
  matter.material = { ...matter.material, substance: name };
  matter.names = [`solid ${name}`, `liquid ${name}`, `gaseous ${name}`];
  matter.melt = UNKNOWN_MELTING[letter]!;
  matter.state = matter.temperature < matter.melt ? SOLID : LIQUID;
  thing.name = matter.names[matter.state]!;
  return thing;
}

const meltingUnknown = task<string[][]>({
  name: 'measure-melting-point-unknown-substance',
  topic: '2-3',
  variations: 300,
  register: (random) =>
    Array.from({ length: GROUPS }, () =>
      LETTERS.map((letter) => {
        random.boolean();
        return isCupped(letter) ? drawCup(random) : '';
      }),
    ),
  setUp(site, variation, cups) {
    const [at, atPoint, pair] = digits(unknownSample()[variation]!, GROUPS * LETTERS.length, 5, 5) as [
      number,
      number,
      number,
    ];
    const index = unknownOrder()[at]!;
    const group = Math.floor(index / LETTERS.length);
    const nth = index % LETTERS.length;
    const letter = LETTERS[nth]!;
    const offset = 3 + GROUP_IDS * group + LETTER_OFFSETS[nth]!;
    const substance = makeUnknown(site, letter, offset);
    const cup = cups[group]![nth]!;
    site.place(cup ? inCup(site, substance, cup, offset) : substance, 'kitchen', { force: true });
    const boxes = placeBoxes(site, pair, 'kitchen', 3 + GROUP_IDS * GROUPS + 6 * pair);
    return meltingEpisode(substance.name, UNKNOWN_MELTING[letter]!, KNOWN_POINTS[atPoint]!, boxes);
  },
});

export const THERMOMETER = [useThermometer, meltingKnown, meltingUnknown];
