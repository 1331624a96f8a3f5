/** Tasks to focus on the life stages of an animal, or of a plant, from the earliest to the latest. */
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import { JavaRandom } from '../java-random.ts';
import { makeAnimal, makePlant } from '../life.ts';
import { ANIMALS } from '../life-tables.ts';
import { FOURTEEN } from './find.ts';
import { drawPots, task } from './task.ts';

/** @param unless place at which the first goal is met at once */
function watching(unless: string): Goal[] {
  return [
    goals.newPlace('Move to a new location (unless starting in task location)', unless),
    goals.inPlace('outside', 'Move to the location asked by the task'),
    ...[10, 20, 30].map((looks) => goals.stay('outside', looks, `Stay in goal location for ${looks} steps`)),
  ];
}

const rows = new JavaRandom(1).shuffle(FOURTEEN.map((_, i) => i));

const animals = task({
  name: 'identify-life-stages-1',
  topic: '8-1',
  variations: FOURTEEN.length,
  register: () => null,
  setUp(site, variation) {
    const row = rows[variation]!;
    const species = FOURTEEN[row]!;
    const put = (name: string, offset: number) =>
      site.place(
        site.at(45 * row + offset, (world) => makeAnimal(name, world)),
        'outside',
      );
    put(species, 0);
    for (const name of new JavaRandom(row).shuffle(FOURTEEN).slice(0, 5)) put(name, 3 + 3 * FOURTEEN.indexOf(name));
    const stages = ANIMALS[species]!.stages.slice(0, -1);
    return {
      description: `Your task is to focus on the ${stages.length} life stages of the ${species}, starting from earliest to latest.`,
      ordered: stages.map((stage, i) => goals.findStage(species, stage, `focus on animal in life stage ${i + 1}`)),
      optional: watching('outside'),
    };
  },
});

const TREES = ['apple', 'apricot', 'avocado', 'banana', 'cherry', 'grapefruit', 'lemon', 'orange', 'peach', 'pear'];
const STAGES = ['seed', 'seedling', 'adult', 'reproducing', 'dead'];
const ANIMAL_SEEDS = [0, 6, 1, 2, 3, 6, 4, 5, 6, 6];
const ROW_IDS = 285;
/** Ids of an animal's group: one that is not used, then one a stage. */
const groupIds = (name: string) => 3 * (ANIMALS[name]!.stages.length + 1);

const plants = task<number[][]>({
  name: 'identify-life-stages-2',
  topic: '8-2',
  variations: TREES.length,
  register: (random) => TREES.map(() => drawPots(random)),
  setUp(site, variation, pots) {
    const base = ROW_IDS * variation;
    const species = TREES[variation]!;
    STAGES.forEach((stage, i) => {
      const plant = site.at(base + 6 + 3 * i, (world) => makePlant(species, stage, null, world));
      const pot = site.make('self watering flower pot', base + 21 + 6 * i);
      pot.name = `self watering flower pot ${pots[variation]![i]}`;
      site.world.move(plant, pot);
      site.world.move(site.make('soil', base + 24 + 6 * i), pot);
      site.place(pot, 'outside');
    });
    const animal = new JavaRandom(ANIMAL_SEEDS[variation]!).shuffle(FOURTEEN)[0]!;
    let offset = base + 51;
    for (const name of FOURTEEN.slice(0, FOURTEEN.indexOf(animal))) offset += groupIds(name);
    ANIMALS[animal]!.stages.forEach((stage, i) => {
      const thing = site.at(offset + 3 + 3 * i, (world) => makeAnimal(animal, world, stage));
      site.place(thing, 'outside', { force: true });
    });
    return {
      description: `Your task is to focus on the life stages of the ${species} plant, starting from earliest to latest. The plants are located outside.`,
      ordered: STAGES.slice(0, -1).map((stage, i) =>
        goals.findStage(species, stage, `focus on plant in life stage ${i + 1}`),
      ),
      optional: watching(species),
    };
  },
});

export const LIFE_STAGES = [animals, plants];
