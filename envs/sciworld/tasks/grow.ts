/** Tasks to grow plants: a plant to its reproducing stage, a fruit, and pea or unknown plants to find how they inherit. */
import { type Expression, genesShowing } from '../genes.ts';
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import type { JavaRandom } from '../java-random.ts';
import { makePlant } from '../life.ts';
import { TRAITS } from '../life-tables.ts';
import type { Genes } from '../thing.ts';
import { digits, drawPots, placeBoxes, type Site, task } from './task.ts';

const STAGES = ['seed', 'seedling', 'adult', 'reproducing'];
const STAGE_TEXTS = ['seeds', 'seedlings', 'adult plants', 'reproducing plants'];

/** Goals on the way to full pots. @param pots names of the pots */
function potGoals(pots: readonly string[], seed: string): Goal[] {
  const createEach = (what: string, name: string) =>
    pots.map((pot, i) => goals.holds(pot, [name], `have ${what} in flower pot (${i + 1})`));
  return [...createEach('soil', 'soil'), ...createEach('water', 'water'), ...createEach('seed', seed)];
}

function moving(): Goal[] {
  return [
    goals.newPlace('move to a new location'),
    goals.inPlace('greenhouse', 'move to the greenhouse', { key: 'move1' }),
    goals.inPlace('greenhouse', 'move to the greenhouse (after having seed jar)', {
      after: ['haveSeedJar'],
      key: 'move2',
    }),
  ];
}

const jarGoals = () => [
  goals.requireSameRoom('seed jar', 'be in same location as seed jar'),
  goals.holds('inventory', ['seed jar'], 'have seed jar in inventory', { key: 'haveSeedJar' }),
];

const AFTER_TWO = { after: ['atLeast2Reproducing'] };

/** At least 1 to `most` plants in each stage, then the hive, a bee and the fruit. @param hive when the hive counts */
function harvestGoals(species: string, most: number, hive: Pick<Goal, 'after'>, fruit: Goal): Goal[] {
  const count: Goal[] = [];
  for (let n = 1; n <= most; n++) {
    STAGES.forEach((stage, i) => {
      const extra = stage === 'reproducing' ? { key: `atLeast${n}Reproducing` } : {};
      count.push(goals.plantsInStage(n, species, stage, `have at least ${n} plants as ${STAGE_TEXTS[i]}`, extra));
    });
  }
  return [
    ...count,
    goals.containerOpen('bee hive', 'bee hive open (after reprod. life stage)', hive),
    goals.requireSameRoom('adult bee', 'be in same location as pollinator (after reprod. life stage)', AFTER_TWO),
    fruit,
  ];
}

// ---- grow-plant, grow-fruit

const ROOMS = ['kitchen', 'bathroom', 'living room', 'bedroom', 'workshop', 'greenhouse'];
const SPECIES = ['apple', 'avocado', 'banana', 'cherry', 'lemon', 'orange', 'peach'];
const JAR_IDS = 18;
const SEEDS = 5;
const POTS_OFFSET = JAR_IDS * ROOMS.length * SPECIES.length;
const POTS = [1, 2, 3].map((n) => `flower pot ${n}`);

/** Pots with soil, pots with heaps of soil beside them (of which only the first is placed), or pots alone. */
function placePots(site: Site, kind: number): void {
  const base = POTS_OFFSET + 18 * kind;
  POTS.forEach((name, i) => {
    const at = base + (kind === 2 ? 3 : 6) * i;
    const pot = site.make('flower pot', at);
    pot.name = name;
    if (kind === 0) site.world.move(site.make('soil', at + 3), pot);
    site.place(pot, 'greenhouse');
    if (kind === 1) site.place(site.make('soil', at + 3), 'greenhouse');
  });
}

const GROW = (
  [
    ['grow-plant', '5-1', false],
    ['grow-fruit', '5-2', true],
  ] as const
).map(([name, topic, fruit]) =>
  task({
    name,
    topic,
    variations: 126,
    register: () => null,
    setUp(site, variation) {
      const [at, kind] = digits(variation, 42, 3) as [number, number];
      const species = SPECIES[Math.floor(at / ROOMS.length)]!;
      const room = ROOMS[at % ROOMS.length]!;
      const base = JAR_IDS * (SPECIES.length * (at % ROOMS.length) + Math.floor(at / ROOMS.length));
      const jar = site.make('ceramic cup', base);
      jar.name = 'seed jar';
      for (let i = 0; i < SEEDS; i++) {
        site.world.move(
          site.at(base + 3 + 3 * i, (world) => makePlant(species, 'seed', null, world)),
          jar,
        );
      }
      site.place(jar, room);
      placePots(site, kind);
      const optional = [
        ...jarGoals(),
        goals.holds('inventory', ['shovel'], 'have shovel in inventory'),
        goals.holds('inventory', ['soil'], 'have soil in inventory'),
        goals.requireSameRoom('soil', 'be in same location as soil'),
        ...moving(),
        ...potGoals(POTS, `${species} seed`),
      ];
      if (fruit) {
        return {
          description: `Your task is to grow a ${species}. This will require growing several plants, and them being crosspollinated to produce fruit.  Seeds can be found in the ${room}. To complete the task, focus on the grown ${species}.`,
          ordered: [goals.find(species, 'focus on the grown fruit')],
          optional: [
            ...optional,
            ...harvestGoals(species, 2, {}, goals.requireSameRoom(species, 'be in same location as fruit')),
          ],
        };
      }
      return {
        description: `Your task is to grow a ${species} plant from seed. Seeds can be found in the ${room}. First, focus on a seed. Then, make changes to the environment that grow the plant until it reaches the reproduction life stage.`,
        ordered: STAGES.map((stage) => goals.lifeStage(species, stage, `focus plant is in ${stage} stage`)),
        optional,
      };
    },
  }),
);

// ---- mendelian genetics

interface Jar {
  readonly table: string;
  readonly trait: string;
  readonly shown: Expression;
  readonly seeds: readonly [Genes, Genes];
}

interface Facts {
  readonly jars: readonly Jar[];
  /** Numbers of the pots of each set. */
  readonly pots: readonly (readonly number[])[];
}

const POT_SETS = 5;
const POTS_USED = 6;
const EXPRESSIONS = ['dominant', 'recessive'] as const;

function jar(table: string, trait: string, shown: Expression, random: JavaRandom, skip: number): Jar {
  const seed = (expression: Expression) => {
    const genes = genesShowing(table, trait, expression, random);
    random.skip(skip);
    return genes;
  };
  return { table, trait, shown, seeds: [seed('dominant'), seed('recessive')] };
}

const sets = (random: JavaRandom) => Array.from({ length: POT_SETS }, () => drawPots(random).slice(0, POTS_USED));

/** Ids of a group of nine pots with soil. */
const SET_IDS = 54;

function inherit(site: Site, facts: Facts, variation: number, ids: { jar: number; seedsFirst: boolean; pots: number }) {
  const [atJar, set, pair] = digits(variation, facts.jars.length, POT_SETS, 3) as [number, number, number];
  const { table, trait, shown, seeds } = facts.jars[atJar]!;
  const { world } = site;
  const vessel = site.make('ceramic cup', ids.jar + (ids.seedsFirst ? 6 : 0));
  vessel.name = 'seed jar';
  seeds.forEach((genes, i) => {
    const offset = ids.jar + (ids.seedsFirst ? 0 : 3) + 3 * i;
    world.move(
      site.at(offset, () => makePlant(table, 'seed', genes, world)),
      vessel,
    );
  });
  site.place(vessel, 'greenhouse');
  const numbers = facts.pots[set]!;
  const pots = numbers.map((number) => {
    const pot = site.make('flower pot', ids.pots + SET_IDS * set + 6 * (number - 1));
    pot.name = `flower pot ${number}`;
    world.move(site.make('soil', ids.pots + SET_IDS * set + 6 * (number - 1) + 3), pot);
    site.place(pot, 'greenhouse');
    return pot.name;
  });
  const [yes, no] = placeBoxes(site, pair, 'greenhouse', ids.pots + SET_IDS * POT_SETS + 6 * pair);
  const row = TRAITS[table]![trait]!;
  const value = row[shown];
  const seed = `${table} seed`;
  return {
    description: `Your task is to determine whether ${value} ${trait} is a dominant or recessive trait in the ${table} plant. If the trait is dominant, focus on the ${yes}. If the trait is recessive, focus on the ${no}.`,
    ordered: [goals.find(shown === 'dominant' ? yes : no, 'focus on the correct answer box', { clearsFocus: true })],
    optional: [
      ...jarGoals(),
      ...moving(),
      ...potGoals(pots, seed),
      ...harvestGoals(
        table,
        POTS_USED,
        AFTER_TWO,
        goals.requireSameRoom(table, 'be in same location as grown seed', AFTER_TWO),
      ),
    ],
  };
}

const PEA_TRAITS = ['plant height', 'seed shape', 'seed color', 'seed shape'];

const known = task<Facts>({
  name: 'mendelian-genetics-known-plant',
  topic: '10-1',
  variations: 120,
  register(random) {
    random.skip(4);
    const jars = PEA_TRAITS.flatMap((trait) => EXPRESSIONS.map((shown) => jar('pea', trait, shown, random, 0)));
    return { jars, pots: sets(random) };
  },
  setUp(site, variation, facts) {
    const atJar = Math.floor(variation / (POT_SETS * 3));
    return inherit(site, facts, variation, { jar: 9 * atJar, seedsFirst: true, pots: 9 * facts.jars.length });
  },
});

const UNKNOWN_TABLES = ['unknown E', 'unknown B', 'unknown C', 'unknown D'];
/** Ids of one species: two plants that are not used, and eight jars of two seeds. */
const SPECIES_IDS = 6 + 8 * 9;

const unknown = task<Facts>({
  name: 'mendelian-genetics-unknown-plant',
  topic: '10-2',
  variations: 480,
  register(random) {
    const jars = UNKNOWN_TABLES.flatMap((table) => {
      random.skip(36);
      return Object.keys(TRAITS[table]!).flatMap((trait) =>
        EXPRESSIONS.map((shown) => jar(table, trait, shown, random, 8)),
      );
    });
    return { jars, pots: sets(random) };
  },
  setUp(site, variation, facts) {
    const atJar = Math.floor(variation / (POT_SETS * 3));
    const jarOffset = SPECIES_IDS * Math.floor(atJar / 8) + 6 + 9 * (atJar % 8);
    return inherit(site, facts, variation, {
      jar: jarOffset,
      seedsFirst: false,
      pots: SPECIES_IDS * UNKNOWN_TABLES.length,
    });
  },
});

export const GROWING = [...GROW, known, unknown];
