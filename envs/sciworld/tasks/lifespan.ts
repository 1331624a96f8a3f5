/** Lifespan tasks: which of three animals outside lives longest, or shortest. */
import { find, inPlace, newPlace } from '../goal-types.ts';
import { JavaRandom } from '../java-random.ts';
import { makeAnimal } from '../life.ts';
import { task } from './task.ts';

const LONG = ['giant tortoise', 'parrot', 'elephant', 'crocodile', 'brown bear'];
const MEDIUM = ['beaver', 'wolf', 'chipmunk', 'common toad', 'rabbit'];
const SHORT = ['hedgehog', 'mouse', 'chameleon', 'dragonfly', 'ant'];
const KINDS = [LONG, MEDIUM, SHORT];

let rows: number[][] | null = null;

/** All triples in the order of the variations, as indices into the three lists. */
function triples(): number[][] {
  if (!rows) {
    const all: number[][] = [];
    for (let a = 0; a < 5; a++) for (let b = 0; b < 5; b++) for (let c = 0; c < 5; c++) all.push([a, b, c]);
    rows = new JavaRandom(0).shuffle(all);
  }
  return rows;
}

const WHERE = "The animals are in the 'outside' location.";
const TEXTS = {
  longest: `Your task is to find the animal with the longest life span.  ${WHERE}  Focus on the animal with the longest life span.`,
  shortest: `Your task is to find the animal with the shortest life span.  ${WHERE}  Focus on the animal with the shortest life span.`,
  both: `Your task is to find the animal with the longest life span, then the shortest life span. First, focus on the animal with the longest life span.  Then, focus on the animal with the shortest life span. ${WHERE}`,
};

export const LIFESPAN = (
  [
    ['lifespan-longest-lived', '7-1', 'longest'],
    ['lifespan-shortest-lived', '7-2', 'shortest'],
    ['lifespan-longest-lived-then-shortest-lived', '7-3', 'both'],
  ] as const
).map(([name, topic, kind]) =>
  task({
    name,
    topic,
    variations: 125,
    register: () => null,
    setUp(site, variation) {
      const triple = triples()[variation]!;
      const names = triple.map((at, i) => KINDS[i]![at]!);
      triple.forEach((at, i) => {
        site.place(
          site.at(15 * i + 3 * at, (world) => makeAnimal(names[i]!, world)),
          'outside',
        );
      });
      const both = kind === 'both';
      const longest = find(names[0]!, 'focus on animal with longest life span', both ? { clearsFocus: true } : {});
      const shortest = find(names[2]!, 'focus on animal with shortest life span');
      return {
        description: TEXTS[kind],
        ordered: both ? [longest, shortest] : [kind === 'longest' ? longest : shortest],
        optional: [
          newPlace('Move to a new location (unless starting in task location)', 'outside'),
          inPlace('outside', 'Move to the location asked by the task'),
        ],
      };
    },
  }),
);
