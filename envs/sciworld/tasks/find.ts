/** Tasks to find a living or non-living thing, a plant or an animal, and to bring it to a box. */

import { randomGenes } from '../genes.ts';
import { focusLiving, focusNonLiving, inBox, inContainer, inPlace, newPlace, openDoor } from '../goal-types.ts';
import { JavaRandom } from '../java-random.ts';
import { kind } from '../kinds.ts';
import { makeAnimal, makePlant } from '../life.ts';
import type { Genes, Thing } from '../thing.ts';
import { digits, drawPots, type Site, task } from './task.ts';

/** Animals of these tasks and of identify-life-stages, in their order. */
export const FOURTEEN = [
  'butterfly',
  'moth',
  'frog',
  'common toad',
  'giant tortoise',
  'turtle',
  'crocodile',
  'parrot',
  'dove',
  'blue jay',
  'elephant',
  'brown bear',
  'beaver',
  'wolf',
];
const PLANTS = ['apple', 'avocado', 'banana', 'cherry', 'lemon', 'orange', 'peach', 'pea'];
const ROOMS = ['kitchen', 'bathroom', 'living room', 'bedroom', 'workshop'];
const COLORS = ['red', 'green', 'blue', 'orange', 'yellow', 'purple'];
const DRAWS = 10;
/** Ids of one draw of animals and plants. */
const DRAW_IDS = 120;

interface Facts {
  readonly genes: Genes;
  readonly pots: readonly number[];
}

function setUpLife(site: Site, draw: number, { genes, pots }: Facts): void {
  const base = draw * DRAW_IDS;
  const { world } = site;
  for (const species of new JavaRandom(draw).shuffle(FOURTEEN).slice(0, 3)) {
    site.place(
      site.at(base + 3 * FOURTEEN.indexOf(species), () => makeAnimal(species, world)),
      'outside',
    );
  }
  const potted = new JavaRandom(draw).shuffle(PLANTS).slice(0, 3);
  potted.forEach((species, i) => {
    const at = PLANTS.indexOf(species);
    const plant = site.at(base + 42 + 3 * at, () =>
      makePlant(species, 'adult', species === 'pea' ? genes : null, world),
    );
    const pot = site.make('flower pot', base + 66 + 6 * at);
    world.move(plant, pot);
    world.move(site.make('soil', base + 69 + 6 * at), pot);
    putPot(site, pot, pots[i]!);
  });
  for (const i of [0, 1]) putPot(site, site.make('flower pot', base + 114 + 3 * i), pots[3 + i]!);
}

function putPot(site: Site, pot: Thing, number: number): void {
  pot.name = `${kind('flower pot').name} ${number}`;
  site.place(pot, 'greenhouse');
}

const KINDS = [
  ['find-living-thing', '4-1', 'living thing'],
  ['find-non-living-thing', '4-2', 'non-living thing'],
  ['find-plant', '4-3', 'plant'],
  ['find-animal', '4-4', 'animal'],
] as const;

function focusGoal(what: (typeof KINDS)[number][2]) {
  if (what === 'living thing') return focusLiving('GoalFocusOnLivingThing', 'focus on a living thing', 'living');
  if (what === 'animal') return focusLiving('GoalFocusOnAnimal', 'focus on an animal', 'animal');
  if (what === 'plant') return focusLiving('GoalFocusOnPlant', 'focus on a plant', 'plant');
  return focusNonLiving('focus on a non-living thing');
}

export const FIND = KINDS.map(([name, topic, what]) =>
  task<Facts[]>({
    name,
    topic,
    variations: 300,
    register(random) {
      const facts: Facts[] = [];
      for (let i = 0; i < DRAWS; i++) facts.push({ genes: randomGenes('pea', random), pots: drawPots(random) });
      return facts;
    },
    setUp(site, variation, facts) {
      const [draw, inRoom, inColor] = digits(variation, DRAWS, 5, 6) as [number, number, number];
      setUpLife(site, draw, facts[draw]!);
      const room = ROOMS[inRoom]!;
      const color = COLORS[inColor]!;
      site.place(site.make(`${color} box`, DRAWS * DRAW_IDS + 18 * inRoom + 3 * inColor), room);
      return {
        description: `Your task is to find a(n) ${what}. First, focus on the thing. Then, move it to the ${color} box in the ${room}.`,
        ordered: [focusGoal(what), inBox('GoalObjectInContainer', `${color} box`, 'move living thing to answer box')],
        optional: [
          inContainer('inventory', 'Pick up object'),
          openDoor('Be in a room with an open door'),
          newPlace('Move to a new location'),
          inPlace(room, 'Move to the location of the answer box'),
        ],
      };
    },
  }),
);
