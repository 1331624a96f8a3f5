/** Life as tables: stages, spans and names of animals and plants. */

/** Course of an animal's life: its stages in order with their ticks, the last one being death. */
export interface Course {
  readonly stages: readonly string[];
  readonly ticks: readonly number[];
  /** Names of stages that are not "STAGE SPECIES". */
  readonly names?: Readonly<Record<string, string>>;
}

const mammal: Course = { stages: ['baby', 'juvenile', 'adult', 'dead'], ticks: [20, 20, 50] };
const hatching: Course = { stages: ['egg', 'hatchling', 'juvenile', 'adult', 'dead'], ticks: [20, 20, 20, 50] };
/** Moths are named butterflies and toads frogs, whatever their own name. */
const winged: Course = {
  stages: ['egg', 'caterpillar', 'pupa', 'adult', 'death'],
  ticks: [20, 20, 20, 50],
  names: {
    egg: 'butterfly egg',
    caterpillar: 'caterpillar',
    pupa: 'butterfly pupa',
    adult: 'adult butterfly',
    death: 'dead butterfly',
  },
};
const amphibian: Course = {
  stages: ['egg', 'tadpole', 'adult', 'death'],
  ticks: [20, 20, 50],
  names: { egg: 'frog egg', tadpole: 'tadpole', adult: 'adult frog', death: 'dead frog' },
};

/** Course of life by species. */
export const ANIMALS: Readonly<Record<string, Course>> = {
  butterfly: winged,
  moth: winged,
  frog: amphibian,
  'common toad': amphibian,
  'giant tortoise': hatching,
  turtle: hatching,
  crocodile: hatching,
  chameleon: hatching,
  parrot: hatching,
  dove: hatching,
  'blue jay': hatching,
  elephant: mammal,
  'brown bear': mammal,
  beaver: mammal,
  wolf: mammal,
  chipmunk: mammal,
  rabbit: mammal,
  hedgehog: mammal,
  mouse: mammal,
  dragonfly: mammal,
  ant: mammal,
};

/** Typical life spans in years. */
export const SPANS: Readonly<Record<string, number>> = {
  'giant tortoise': 150,
  parrot: 80,
  elephant: 70,
  crocodile: 45,
  'brown bear': 30,
  turtle: 30,
  beaver: 16,
  wolf: 14,
  chipmunk: 12,
  'common toad': 10,
  rabbit: 9,
  'blue jay': 7,
  frog: 6,
  hedgehog: 5,
  mouse: 4,
  chameleon: 3,
  dove: 2,
  dragonfly: 0.4,
  moth: 0.2,
  ant: 0.1,
  butterfly: 0.1,
  bee: 0.1,
};

/** Name that an animal of this species has in this stage. */
export function stageName(species: string, stage: string): string {
  const name = ANIMALS[species]?.names?.[stage];
  if (name) return name;
  return stage === 'egg' ? `${species} egg` : `${stage} ${species}`;
}

/** One trait: what each allele looks like and the word after it. */
interface Trait {
  readonly dominant: string;
  readonly recessive: string;
  readonly suffix: string;
}

const trait = (dominant: string, recessive: string, suffix: string): Trait => ({ dominant, recessive, suffix });

/** Traits by species, in the order their genes are drawn. */
export const TRAITS: Readonly<Record<string, Readonly<Record<string, Trait>>>> = {
  pea: {
    'plant height': trait('tall', 'short', 'height'),
    'seed shape': trait('round', 'wrinkly', 'peas'),
    'seed color': trait('green', 'orange', 'peas'),
    'flower color': trait('purple', 'white', 'flowers'),
  },
  'unknown B': {
    'plant height': trait('short', 'tall', 'height'),
    'seed color': trait('green', 'yellow', 'seed'),
    'flower size': trait('large', 'small', 'flowers'),
    'flower color': trait('orange', 'yellow', 'flowers'),
  },
  'unknown C': {
    'plant height': trait('short', 'tall', 'height'),
    'leaf shape': trait('pointed', 'round', 'leaves'),
    'flower size': trait('large', 'small', 'flowers'),
    'flower color': trait('orange', 'yellow', 'flowers'),
  },
  'unknown D': {
    'seed shape': trait('spherical', 'ovate', 'seed'),
    'leaf size': trait('medium', 'large', 'leaves'),
    'flower size': trait('small', 'medium', 'flowers'),
    'flower color': trait('blue', 'red', 'flowers'),
  },
  'unknown E': {
    'seed color': trait('blue', 'brown', 'seed'),
    'seed shape': trait('round', 'square', 'seed'),
    'leaf shape': trait('elliptical', 'linear', 'leaves'),
    'flower size': trait('small', 'large', 'flowers'),
  },
};
