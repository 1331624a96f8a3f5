/** Life in SciWorld: animals grow old, plants need water and soil, bees carry pollen, flowers bear fruit. */
import { describe, expect, it } from 'vitest';
import { describeTrait, randomGenes } from '../../../envs/sciworld/genes.ts';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { makeAnimal, makeBee, makePlant, tickBee, tickFlower } from '../../../envs/sciworld/life.ts';
import { ANIMALS, SPANS, stageName } from '../../../envs/sciworld/life-tables.ts';
import { cursory, describeDetails, describeName } from '../../../envs/sciworld/text.ts';
import { type Genes, insertById, type Thing } from '../../../envs/sciworld/thing.ts';
import { smallWorld } from '../../support/small-sciworld.ts';

describe('animals', () => {
  it.each([
    ['elephant', ['baby', 'juvenile', 'adult', 'dead'], [20, 20, 50]],
    ['ant', ['baby', 'juvenile', 'adult', 'dead'], [20, 20, 50]],
    ['parrot', ['egg', 'hatchling', 'juvenile', 'adult', 'dead'], [20, 20, 20, 50]],
    ['giant tortoise', ['egg', 'hatchling', 'juvenile', 'adult', 'dead'], [20, 20, 20, 50]],
    ['chameleon', ['egg', 'hatchling', 'juvenile', 'adult', 'dead'], [20, 20, 20, 50]],
    ['moth', ['egg', 'caterpillar', 'pupa', 'adult', 'death'], [20, 20, 20, 50]],
    ['common toad', ['egg', 'tadpole', 'adult', 'death'], [20, 20, 50]],
  ])('%s: %j after %j ticks', (species, stages, ticks) => {
    const { world, room, pass } = smallWorld('outside');
    const animal = makeAnimal(species, world);
    world.move(animal, room);
    for (const [i, count] of ticks.entries()) {
      expect(animal.life!.stage).toBe(stages[i]);
      pass(count - 1);
      expect(animal.life!.stage).toBe(stages[i]);
      pass();
    }
    expect(animal.life!.stage).toBe(stages.at(-1));
    expect(animal.life!.dead).toBe(false);
    pass();
    expect(animal.life!.dead).toBe(true);
  });

  it('fall apart into their place once dead', () => {
    const { world, room, pass } = smallWorld('outside');
    const animal = makeAnimal('ant', world, 'dead');
    world.move(animal, room);
    expect(animal.contents).toHaveLength(2);
    pass();
    expect(animal.contents).toHaveLength(0);
    expect(room.contents.filter(({ contact }) => contact?.owner === animal)).toHaveLength(2);
  });

  it.each([
    ['butterfly', 'egg', 'butterfly egg'],
    ['moth', 'egg', 'butterfly egg'],
    ['moth', 'pupa', 'butterfly pupa'],
    ['moth', 'adult', 'adult butterfly'],
    ['moth', 'death', 'dead butterfly'],
    ['frog', 'tadpole', 'tadpole'],
    ['common toad', 'egg', 'frog egg'],
    ['common toad', 'adult', 'adult frog'],
    ['dove', 'egg', 'dove egg'],
    ['dove', 'hatchling', 'hatchling dove'],
    ['wolf', 'baby', 'baby wolf'],
    ['wolf', 'dead', 'dead wolf'],
    ['bee', 'adult', 'adult bee'],
  ])('a %s in the stage "%s" is called %s', (species, stage, name) => {
    expect(stageName(species, stage)).toBe(name);
  });

  it('keep the name of their species, and are named by their stage', () => {
    const { world } = smallWorld();
    const animal = makeAnimal('crocodile', world);
    expect([animal.name, describeName(animal), cursory(animal, null)]).toEqual([
      'crocodile',
      'crocodile egg',
      'a crocodile egg',
    ]);
    animal.life!.sickly = true;
    expect(cursory(animal, null)).toBe('a crocodile egg (that looks unwell)');
  });

  it('live as long as in their table, the giant tortoise longest', () => {
    const sorted = Object.entries(SPANS).sort(([, a], [, b]) => b - a);
    expect(sorted.slice(0, 4)).toEqual([
      ['giant tortoise', 150],
      ['parrot', 80],
      ['elephant', 70],
      ['crocodile', 45],
    ]);
    expect(SPANS.ant).toBe(0.1);
    for (const species of Object.keys(ANIMALS)) expect([species, SPANS[species]! > 0]).toEqual([species, true]);
  });
});

/** A plant in a pot, with soil; `water()` gives it water. */
function potted(stage: string, species = 'apple', genes: Genes | null = null, soil = true) {
  const small = smallWorld('greenhouse');
  const pot = small.put('flower pot');
  const plant = makePlant(species, stage, genes, small.world);
  small.world.move(plant, pot);
  if (soil) small.put('soil', pot);
  return {
    ...small,
    pot,
    plant,
    life: plant.life!,
    water: () => small.put('water', pot),
    waters: () => pot.contents.filter(({ name }) => name === 'water').length,
  };
}

describe('plants', () => {
  it('sprout after ten ticks with water and soil, and take the water', () => {
    const { life, pass, water, waters } = potted('seed');
    water();
    pass(9);
    expect([life.stage, waters()]).toEqual(['seed', 1]);
    pass();
    expect([life.stage, waters()]).toEqual(['seedling', 0]);
  });

  it.each([
    ['without water', true, false],
    ['without soil', false, true],
  ])('stay seeds %s', (_what, soil, wet) => {
    const { life, pass, water } = potted('seed', 'apple', null, soil);
    if (wet) water();
    pass(60);
    expect([life.stage, life.dead]).toEqual(['seed', false]);
  });

  it('grow from seedling to adult in ten good ticks', () => {
    const { life, pass, water, waters } = potted('seedling');
    water();
    pass(9);
    expect(life.stage).toBe('seedling');
    pass();
    expect([life.stage, waters()]).toEqual(['adult', 0]);
  });

  it('as seedlings sicken after ten dry ticks and die after twenty', () => {
    const { life, pass } = potted('seedling');
    pass(9);
    expect(life.sickly).toBe(false);
    pass();
    expect(life.sickly).toBe(true);
    pass(9);
    expect(life.stage).toBe('seedling');
    pass();
    expect(life.stage).toBe('dead');
  });

  it('as seedlings sicken after two ticks without soil and die after five', () => {
    const { life, pass, water } = potted('seedling', 'apple', null, false);
    water();
    pass();
    expect(life.sickly).toBe(false);
    pass();
    expect(life.sickly).toBe(true);
    pass(3);
    expect(life.stage).toBe('dead');
  });

  it('are well again with water', () => {
    const { life, pass, water } = potted('seedling');
    pass(12);
    expect(life.sickly).toBe(true);
    water();
    pass();
    expect([life.sickly, life.dry]).toEqual([false, 0]);
  });

  it('grown, drink whatever water there is, sicken after 25 dry ticks and die after fifty', () => {
    const { life, pass, water, waters } = potted('reproducing');
    water();
    pass();
    expect([waters(), life.dry]).toEqual([0, 0]);
    pass(24);
    expect(life.sickly).toBe(false);
    pass();
    expect(life.sickly).toBe(true);
    pass(24);
    expect(life.stage).toBe('reproducing');
    pass();
    expect(life.stage).toBe('dead');
  });

  it('begin each stage with fresh counts', () => {
    const { life, pass } = potted('adult');
    pass(5);
    expect(life).toMatchObject({ stage: 'reproducing', dry: 0, ticks: 0 });
    pass(3);
    expect(life).toMatchObject({ stage: 'reproducing', dry: 3, ticks: 3 });
  });

  it('bear a flower five good ticks after they began to reproduce, and one at a time', () => {
    const { plant, life, pass, water } = potted('adult');
    const flowers = () => plant.contents.filter(({ kind: { id } }) => id === 'flower').length;
    water();
    pass(5);
    expect([life.stage, flowers()]).toEqual(['reproducing', 0]);
    pass(5);
    expect(flowers()).toBe(1);
    pass(10);
    expect(flowers()).toBe(1);
  });

  it.each([0, 50, -5, 80])('sicken at %i °C and are dead on the fifth tick', (temperature) => {
    const { plant, life, pass, water } = potted('seedling');
    water();
    const tick = () => {
      plant.matter!.temperature = temperature;
      for (const near of plant.parent!.contents) if (near.matter) near.matter.temperature = temperature;
      plant.parent!.matter!.temperature = temperature;
      pass();
    };
    for (let i = 0; i < 4; i++) tick();
    expect(life.stage).not.toBe('dead');
    tick();
    expect(life.stage).toBe('dead');
  });

  it('leave the pollen of their flowers when they die, and no flower', () => {
    const { plant, life, pass, water } = potted('reproducing');
    for (let i = 0; i < 6; i++) {
      water();
      pass();
    }
    expect(plant.has('flower')).toBe(true);
    life.stage = 'dead';
    pass();
    const left = plant.parent!.visible().map(({ name }) => name);
    expect(left).toContain('pollen');
    expect([left.some((name) => name.startsWith('flower')), plant.contents.length]).toEqual([false, 0]);
  });

  it('that burn say so in their own name, and so twice where they are described', () => {
    const { plant, pass } = potted('adult');
    plant.matter!.burning = true;
    pass();
    expect([plant.name, describeName(plant)]).toEqual(['apple tree (on fire)', 'apple tree (on fire) (on fire)']);
  });

  it('are named by the stage of the tick before, and can be eaten as seeds alone', () => {
    const { plant, pass, water } = potted('seed');
    expect(plant.name).toBe('plant');
    pass();
    expect([plant.name, plant.edible]).toEqual(['apple seed', true]);
    water();
    pass(10);
    expect(plant.name).toBe('apple seed');
    pass();
    expect([plant.name, plant.edible]).toEqual(['apple tree', false]);
  });

  it.each([
    ['seed', 'a apple seed'],
    ['seedling', 'a apple tree in the seedling stage'],
    ['reproducing', 'a apple tree in the reproducing stage'],
  ])('are named by their stage: %s', (stage, text) => {
    const { plant } = potted(stage);
    expect(cursory(plant, null)).toBe(text);
  });

  it('show their traits: seeds shape and colour, grown ones height and leaves', () => {
    const genes = randomGenes('pea', new JavaRandom(3));
    const seed = potted('seed', 'pea', genes).plant;
    const [shape, color, height] = ['seed shape', 'seed color', 'plant height'].map((trait) =>
      describeTrait(genes, trait),
    );
    expect(cursory(seed, null)).toBe(`a ${shape} ${color}  pea seed`);
    expect(cursory(potted('adult', 'pea', genes).plant, null)).toBe(
      `a pea plant in the adult stage with a ${height} height`,
    );
    const c = randomGenes('unknown C', new JavaRandom(3));
    expect(cursory(potted('adult', 'unknown C', c).plant, null)).toBe(
      `a unknown C plant in the adult stage with a ${describeTrait(c, 'plant height')} height and ${describeTrait(c, 'leaf shape')} leaves`,
    );
    const e = randomGenes('unknown E', new JavaRandom(3));
    expect(cursory(potted('adult', 'unknown E', e).plant, null)).toBe(
      `a unknown E plant in the adult stage with ${describeTrait(e, 'leaf shape')} leaves`,
    );
  });

  it('that are dead show that and nothing more', () => {
    const { plant, life } = potted('dead');
    life.dead = true;
    expect(cursory(plant, null)).toBe('a dead apple tree');
  });
});

/** A flower on a reproducing plant of a species. */
function flowerOf(small: ReturnType<typeof smallWorld>, species: string, genes: Genes | null = null) {
  const { world, room } = small;
  const plant = makePlant(species, 'reproducing', genes, world);
  world.move(plant, room);
  const flower = world.make(kind('flower'));
  flower.bloom = { plant, species, step: 0, mate: null };
  world.move(flower, plant);
  return { plant, flower };
}

const pollenIn = (thing: Thing) => thing.contents.filter(({ kind: { id } }) => id === 'pollen');

describe('flowers', () => {
  it('make pollen of their own, once', () => {
    const small = smallWorld('greenhouse');
    const { plant, flower } = flowerOf(small, 'apple');
    for (let i = 0; i < 3; i++) tickFlower(flower, small.world);
    expect(pollenIn(flower).map(({ bloom }) => bloom!.plant)).toEqual([plant]);
    expect(flower.bloom!.step).toBe(0);
  });

  it.each([
    ['apple', 1],
    ['peach', 0],
  ])('of an apple tree are pollinated by pollen of another %s tree: step %i', (species, step) => {
    const small = smallWorld('greenhouse');
    const { flower } = flowerOf(small, 'apple');
    const other = flowerOf(small, species);
    tickFlower(other.flower, small.world);
    const [pollen] = pollenIn(other.flower);
    small.world.move(pollen!, flower);
    tickFlower(flower, small.world);
    expect(flower.bloom!.step).toBe(step);
    expect(pollen!.deleted).toBe(step === 1);
  });

  it('are pollinated by what a bee in them carries', () => {
    const small = smallWorld('greenhouse');
    const { flower } = flowerOf(small, 'apple');
    const other = flowerOf(small, 'apple');
    tickFlower(other.flower, small.world);
    const bee = makeBee('bee 7', small.world);
    small.world.move(pollenIn(other.flower)[0]!, bee);
    small.world.move(bee, flower);
    tickFlower(flower, small.world);
    expect(flower.bloom!.step).toBe(1);
    expect(pollenIn(bee)).toHaveLength(0);
  });

  it('that are pollinated wilt, and become fruit at the sixth step', () => {
    const small = smallWorld('greenhouse');
    const { plant, flower } = flowerOf(small, 'apple');
    flower.bloom!.step = 1;
    expect(cursory(flower, null)).toBe('a wilting flower');
    for (let i = 0; i < 4; i++) tickFlower(flower, small.world);
    expect([flower.deleted, flower.bloom!.step]).toEqual([false, 5]);
    tickFlower(flower, small.world);
    expect(flower.deleted).toBe(true);
    expect(plant.contents.filter(({ hidden }) => !hidden).map(({ kind: { id } }) => id)).toEqual(['apple']);
  });

  it('of peas bear a seed of mated genes, with its parents traits', () => {
    const small = smallWorld('greenhouse');
    const traits = ['plant height', 'seed shape', 'seed color', 'flower color'];
    const pure = (dominant: boolean): Genes => ({
      table: 'pea',
      traits,
      first: traits.map(() => dominant),
      second: traits.map(() => dominant),
    });
    const { plant, flower } = flowerOf(small, 'pea', pure(true));
    flower.bloom!.step = 5;
    flower.bloom!.mate = pure(false);
    tickFlower(flower, small.world);
    const seed = plant.contents.find(({ kind: { id } }) => id === 'plant')!;
    expect(seed.life).toMatchObject({ stage: 'seed', species: 'pea' });
    expect([seed.life!.genes!.first, seed.life!.genes!.second]).toEqual([pure(true).first, pure(false).first]);
  });

  it('of unknown plants show size and colour', () => {
    const small = smallWorld('greenhouse');
    const genes = randomGenes('unknown D', new JavaRandom(9));
    const { flower } = flowerOf(small, 'unknown D', genes);
    const traits = `${describeTrait(genes, 'flower size')} ${describeTrait(genes, 'flower color')}`;
    expect(cursory(flower, null)).toBe(`a ${traits} flower`);
    expect(describeDetails(flower, null)).toBe(`a ${traits} flower. Inside the flower is: nothing`);
  });
});

describe('bees', () => {
  /** Coin that the next draw of this world gives. */
  const coin = (seed: number) => new JavaRandom(seed).int(2);
  // Seeds far apart: those of the first thousands all begin with a 1.
  const seedOf = (wanted: number) =>
    Array.from({ length: 500 }, (_, i) => i * 2 ** 22).find((seed) => coin(seed) === wanted)!;

  it('outside a flower enter one at a 1 and stay at a 0 where no door is open', () => {
    for (const wanted of [0, 1]) {
      const small = smallWorld('greenhouse', seedOf(wanted));
      const pot = small.put('flower pot');
      const { plant, flower } = flowerOf(small, 'apple');
      small.world.move(plant, pot);
      const bee = makeBee('bee 0', small.world);
      small.world.move(bee, small.room);
      tickBee(bee, small.world);
      expect([wanted, bee.parent!.name]).toEqual([wanted, (wanted === 1 ? flower : small.room).name]);
    }
  });

  it('fly through an open door, never through a closed one', () => {
    for (const open of [true, false]) {
      const small = smallWorld('greenhouse', seedOf(0));
      const outside = small.put('outside', small.world.universe);
      const door = small.world.make(kind('door'));
      door.portal = { from: small.room, to: outside, open };
      small.room.portals = insertById(small.room.portals, door);
      const bee = makeBee('bee 0', small.world);
      small.world.move(bee, small.room);
      tickBee(bee, small.world);
      expect(bee.parent!.name).toBe(open ? 'outside' : 'greenhouse');
    }
  });

  it('leave an open hive for its room, and stay in a closed one', () => {
    for (const open of [true, false]) {
      const small = smallWorld('greenhouse', seedOf(0));
      const hive = small.put('bee hive');
      hive.container!.open = open;
      const bee = makeBee('bee 0', small.world);
      small.world.move(bee, hive);
      tickBee(bee, small.world);
      expect(bee.parent!.name).toBe(open ? 'greenhouse' : 'bee hive');
    }
  });

  it('in a flower take pollen at a 0, up to six', () => {
    const small = smallWorld('greenhouse', seedOf(0));
    const { plant, flower } = flowerOf(small, 'apple');
    const bee = makeBee('bee 0', small.world);
    small.world.move(bee, flower);
    const seed = seedOf(0);
    for (let i = 0; i < 9; i++) {
      const pollen = small.world.make(kind('pollen'));
      pollen.bloom = { plant, species: 'apple', step: 0, mate: null };
      small.world.move(pollen, flower);
    }
    const carried: number[] = [];
    for (let i = 0; i < 8; i++) {
      small.world.random.seed(seed);
      tickBee(bee, small.world);
      carried.push(pollenIn(bee).length);
    }
    expect(carried).toEqual([1, 2, 3, 4, 5, 6, 6, 6]);
    expect(describeDetails(bee, null)).toBe('a adult bee, that is covered in pollen');
    expect(cursory(bee, null)).toBe('a adult bee');
  });

  it('take one turn a tick, wherever they fly to', () => {
    const small = smallWorld('greenhouse');
    const bee = makeBee('bee 0', small.world);
    small.world.move(bee, small.room);
    const before = small.world.random.draws;
    small.pass(10);
    expect(small.world.random.draws - before).toBe(10);
  });
});
