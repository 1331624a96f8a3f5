/** Chemistry tasks: to mix a substance by a recipe, or a paint. */
import * as goals from '../goal-types.ts';
import { digits, type Site, task } from './task.ts';

interface Recipe {
  readonly product: string;
  readonly inputs: readonly string[];
}

const recipe = (product: string, ...inputs: string[]): Recipe => ({ product, inputs });

/** Recipes in blocks; each block is for the kitchen, then for the workshop. */
const BLOCKS: readonly (readonly Recipe[])[] = [
  [
    recipe('salt water', 'sodium chloride', 'water'),
    recipe('soapy water', 'soap', 'water'),
    recipe('mixed nuts', 'peanut', 'almond', 'cashew'),
    recipe('sodium acetate', 'acetic acid', 'sodium bicarbonate'),
    recipe('banana sandwich', 'banana', 'bread'),
    recipe('blue paper', 'paper', 'blue paint'),
    recipe('peanut butter sandwich', 'peanut', 'bread'),
    recipe('peanut butter with jam sandwich', 'peanut', 'jam', 'bread'),
  ],
  [
    recipe('smores', 'chocolate', 'marshmallow'),
    recipe('dough', 'flour', 'water'),
    recipe('fruit salad', 'apple', 'orange', 'banana'),
    recipe('jam sandwich', 'jam', 'bread'),
  ],
  [
    recipe('sugar water', 'sugar', 'water'),
    recipe('peanut butter with banana sandwich', 'peanut', 'banana', 'bread'),
    recipe('rust', 'iron block', 'water'),
    recipe('red paper', 'paper', 'red paint'),
  ],
];

interface Placed extends Recipe {
  readonly room: string;
  readonly offset: number;
}

const ALL: readonly Placed[] = (() => {
  const all: Placed[] = [];
  let offset = 0;
  for (const block of BLOCKS) {
    for (const room of ['kitchen', 'workshop']) {
      for (const row of block) {
        all.push({ ...row, room, offset });
        offset += 3 * (row.inputs.length + 1);
      }
    }
  }
  return all;
})();

/** The player has to find these. */
const isFound = (input: string) => input === 'water' || input.endsWith(' paint');

const mixing = task({
  name: 'chemistry-mix',
  topic: '6-1',
  variations: ALL.length,
  register: () => null,
  setUp(site, variation) {
    const { product, inputs, room, offset } = ALL[variation]!;
    inputs.forEach((input, i) => {
      if (!isFound(input)) site.place(site.make(input, offset + 3 * i), room);
    });
    const paper = site.make('recipe', offset + 3 * inputs.length);
    paper.print = {
      title: `instructions to make ${product}`,
      author: '',
      text: `To make ${product}, you need to mix ${inputs.join(', ')}.`,
    };
    site.place(paper, room);
    return {
      description: `Your task is to use chemistry to create the substance '${product}'. A recipe and some of the ingredients might be found near the ${room}. When you are done, focus on the ${product}.`,
      ordered: [goals.find(product, `focus on result chemical (${product})`)],
      optional: [
        goals.newPlace('move to a new location'),
        ...inputs.map((input) => goals.requireSameRoom(input, `be in same location as ${input}`)),
        goals.requireAlone(inputs, 'have all ingredients alone in a single container'),
        goals.requireSameRoom(product, `be in same location as ${product}`),
        goals.readDocument('recipe', 'read recipe'),
      ],
    };
  },
});

// ---- paints

/** Two primary colours, the secondary they make, the tertiary, and its two parts. */
export const COLORS = [
  ['blue', 'yellow', 'green', 'green-blue', 'green', 'blue'],
  ['blue', 'yellow', 'green', 'yellow-green', 'green', 'yellow'],
  ['red', 'yellow', 'orange', 'red-orange', 'orange', 'red'],
  ['red', 'yellow', 'orange', 'yellow-orange', 'orange', 'yellow'],
  ['red', 'blue', 'violet', 'violet-red', 'violet', 'red'],
  ['red', 'blue', 'violet', 'blue-violet', 'violet', 'blue'],
] as const;
const PRIMARY = ['red', 'blue', 'yellow'];
const VESSELS = ['glass cup', 'bowl', 'jug'];
const PLACES = [
  { kind: 'cupboard', name: 'paint cupboard', drawer: true, cup: 'wood cup', offset: 18 },
  { kind: 'closet', name: 'paint closet', drawer: false, cup: 'glass cup', offset: 33 },
  { kind: 'desk', name: 'desk', drawer: true, cup: 'tin cup', offset: 45 },
];
/** Ids of the second room's paints and places begin this much later. */
const SECOND_ROOM = 51;

/** Puts cups, with paint only where it is the desk, into a room. */
function placePaints(site: Site, place: number, vessel: string): string {
  const { kind, name, drawer, cup, offset } = PLACES[place % 3]!;
  const inWorkshop = place >= 3;
  const room = inWorkshop ? 'workshop' : 'art studio';
  const base = inWorkshop ? SECOND_ROOM : 0;
  const holder = site.make(kind, base + offset);
  holder.name = name;
  if (drawer) site.world.move(site.make('drawer', base + offset + 3), holder);
  PRIMARY.forEach((color, i) => {
    const vessel = site.make(cup, base + offset + (drawer ? 6 : 3) + 3 * i);
    site.world.move(vessel, holder);
    if (kind === 'desk') site.world.move(site.make(`${color} paint`, base + 9 + 3 * i), vessel);
  });
  site.place(holder, room);
  // After the holder: glass cups in a closet stand for the one that is to be placed.
  if (inWorkshop) site.place(site.make(vessel, 3 * VESSELS.indexOf(vessel)), room);
  return room;
}

const describeNear = (color: string, note = '') =>
  [`${color} paint`, `be in same location as ${note}${color} paint`] as const;

const PAINTS = (
  [
    ['chemistry-mix-paint-secondary-color', '6-2', false],
    ['chemistry-mix-paint-tertiary-color', '6-3', true],
  ] as const
).map(([name, topic, tertiary]) =>
  task<string[]>({
    name,
    topic,
    variations: 36,
    register: (random) => random.shuffle(VESSELS),
    setUp(site, variation, vessels) {
      const [row, place] = digits(variation, 6, 6) as [number, number];
      const [one, two, second, third, partOne, partTwo] = COLORS[row]!;
      const room = placePaints(site, place, vessels[place % 3]!);
      const inputs = [`${one} paint`, `${two} paint`];
      if (!tertiary) {
        return {
          description: `Your task is to use chemistry to create ${second} paint. When you are done, focus on the ${second} paint.`,
          ordered: [goals.find(`${second} paint`, `focus on the mixing result (${second} paint)`)],
          optional: [
            goals.newPlace('move to a new location'),
            goals.requireSameRoom(...describeNear(one)),
            goals.requireSameRoom(...describeNear(two)),
            goals.requireAlone(inputs, 'have all ingredients alone in a single container'),
            goals.requireSameRoom(...describeNear(second)),
          ],
        };
      }
      const after = { after: ['secondary'] };
      return {
        description: `Your task is to use chemistry to create ${third} paint. When you are part-way done, focus on the intermediate (secondary color) paint you created.  When you are completely done, focus on the ${second} paint.`,
        ordered: [
          goals.find(`${second} paint`, `focus on the intermediate mixing result (${second} paint)`, {
            clearsFocus: true,
          }),
          goals.find(`${third} paint`, `focus on the final mixing result (${third} paint)`),
        ],
        optional: [
          goals.newPlace('move to a new location (unless starting in task location)', room),
          goals.inPlace(room, 'move to the location of the paint'),
          goals.requireSameRoom(...describeNear(one)),
          goals.requireSameRoom(...describeNear(two)),
          goals.requireAlone(inputs, 'have all ingredients (secondary) alone in a single container'),
          goals.requireSameRoom(...describeNear(second, '(secondary) '), { key: 'secondary' }),
          goals.requireSameRoom(...describeNear(partOne, '(tertiary) '), {
            ...after,
            key: `tertiary_${partOne} paint`,
          }),
          goals.requireSameRoom(...describeNear(partTwo, '(tertiary) '), {
            ...after,
            key: `tertiary_${partTwo} paint`,
          }),
          goals.requireAlone(
            [`${partOne} paint`, `${partTwo} paint`],
            'have all ingredients (tertiary) alone in a single container',
          ),
          goals.requireSameRoom(...describeNear(third)),
        ],
      };
    },
  }),
);

export const CHEMISTRY = [mixing, ...PAINTS];
