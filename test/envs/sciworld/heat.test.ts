/** Heat, change of state and fire in SciWorld: what one tick does to things that touch, heat, melt or burn. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exchange } from '../../../envs/sciworld/heat.ts';
import { GAS, LIQUID, MATERIALS, SOLID, Substance } from '../../../envs/sciworld/materials.ts';
import { smallWorld } from '../../support/small-sciworld.ts';

const substance = (id: string, temperature: number): Substance => {
  const made = new Substance(MATERIALS.get(id)!);
  made.temperature = temperature;
  return made;
};
const temperatures = fc.integer({ min: -200, max: 3000 });
const ids = fc.constantFrom(...MATERIALS.keys());

describe('two things that touch', () => {
  it('exchange a tenth of the difference times the lesser conductivity, the second by the new first', () => {
    const [iron, water] = [substance('Iron', 100), substance('Water', 20)];
    exchange(iron, water);
    // Water conducts 0.5: 100 − 80 × 0.05 = 96, then 20 + 76 × 0.05 = 23.8.
    expect(iron.temperature).toBeCloseTo(96, 10);
    expect(water.temperature).toBeCloseTo(23.8, 10);
  });

  it('come nearer to each other and never overshoot', () => {
    fc.assert(
      fc.property(ids, ids, temperatures, temperatures, (one, other, warm, cold) => {
        const [a, b] = [substance(one, warm), substance(other, cold)];
        exchange(a, b);
        expect(Math.abs(a.temperature - b.temperature)).toBeLessThanOrEqual(Math.abs(warm - cold));
        const [low, high] = [Math.min(warm, cold), Math.max(warm, cold)];
        for (const { temperature } of [a, b]) {
          expect(temperature).toBeGreaterThanOrEqual(low - 1e-9);
          expect(temperature).toBeLessThanOrEqual(high + 1e-9);
        }
      }),
    );
  });

  it('of one temperature stay as they are', () => {
    fc.assert(
      fc.property(ids, ids, temperatures, (one, other, at) => {
        const [a, b] = [substance(one, at), substance(other, at)];
        exchange(a, b);
        expect([a.temperature, b.temperature]).toEqual([at, at]);
      }),
    );
  });

  it('pass no more than a thousand degrees a tick', () => {
    const [hot, cold] = [substance('Iron', 30_000), substance('Iron', 0)];
    exchange(cold, hot);
    expect(cold.temperature).toBe(1000);
    expect(hot.temperature).toBe(29_000);
  });
});

describe('heaters and coolers', () => {
  it.each([
    ['stove', 260],
    ['hot plate', 260],
    ['oven', 540],
    ['blast furnace', 3000],
  ])('%s moves what is on it a tenth of the way to %i °C', (id, reaches) => {
    const { put, pass } = smallWorld();
    const heater = put(id);
    const block = put('brick', heater);
    heater.device!.on = true;
    pass();
    expect(block.matter!.temperature).toBeCloseTo(10 + 0.1 * (reaches - 10), 9);
    pass(200);
    expect(block.matter!.temperature).toBeLessThanOrEqual(reaches);
    expect(block.matter!.temperature).toBeGreaterThan(reaches - 1);
  });

  it.each([
    ['fridge', 2],
    ['freezer', -18],
    ['ultra low temperature freezer', -86],
  ])('%s, on from the start, cools what is in it to %i °C', (id, reaches) => {
    const { put, pass } = smallWorld();
    const cooler = put(id);
    const block = put('brick', cooler);
    pass();
    expect(block.matter!.temperature).toBeCloseTo(10 - 0.1 * (10 - reaches), 9);
    pass(200);
    expect(block.matter!.temperature).toBeCloseTo(reaches, 3);
  });

  it('do nothing while off', () => {
    const { put, pass } = smallWorld();
    const [stove, fridge] = [put('stove'), put('fridge')];
    fridge.device!.on = false;
    const [heated, cooled] = [put('brick', stove), put('brick', fridge)];
    pass(5);
    expect([heated.matter!.temperature, cooled.matter!.temperature]).toEqual([10, 10]);
  });

  it('leave what is hotter than they reach', () => {
    const { put, pass } = smallWorld();
    const stove = put('stove');
    stove.device!.on = true;
    const block = put('brick', stove);
    block.matter!.temperature = 900;
    pass();
    expect(block.matter!.temperature).toBe(900);
  });

  it('reach only what lies directly on them; what that holds warms by touch', () => {
    const { put, pass } = smallWorld();
    const stove = put('stove');
    stove.device!.on = true;
    const pot = put('metal pot', stove);
    const block = put('iron block', pot);
    pass();
    expect(pot.matter!.temperature).toBeLessThan(35);
    expect(block.matter!.temperature).toBeGreaterThan(10);
    // 35 − 25 × 0.1 = 32.5, and 10 + 22.5 × 0.1 = 12.25.
    expect(pot.matter!.temperature).toBeCloseTo(32.5, 9);
    expect(block.matter!.temperature).toBeCloseTo(12.25, 9);
  });

  it('set their temperature with the switch', () => {
    const { put, pass } = smallWorld();
    const stove = put('stove');
    pass();
    expect(stove.heatSet).toBeNull();
    stove.device!.on = true;
    pass();
    expect(stove.heatSet).toBe(260);
  });
});

describe('change of state', () => {
  it.each([
    ['water', -5, 'ice', SOLID],
    ['water', 0, 'water', LIQUID],
    ['water', 100, 'water', LIQUID],
    ['water', 101, 'steam', GAS],
    ['lead', 326, 'lead', SOLID],
    ['lead', 328, 'liquid lead', LIQUID],
    ['mercury', -40, 'solid mercury', SOLID],
    ['chocolate', 31, 'liquid chocolate', LIQUID],
    ['chocolate', 10, 'chocolate', SOLID],
    ['gallium', 10, 'gallium', SOLID],
    ['ice cream', -15, 'ice cream', SOLID],
    ['ice cream', 5, 'liquid ice cream', LIQUID],
    ['salt water', 10, 'salt water', LIQUID],
  ])('%s at %i °C is %s', (id, temperature, name, state) => {
    const { put, pass } = smallWorld();
    const thing = put(id);
    thing.matter!.temperature = temperature;
    pass();
    expect([thing.name, thing.matter!.state]).toEqual([name, state]);
  });

  it('names a thing anew only when the state changes: chocolate is solid chocolate once it has melted', () => {
    const { put, pass } = smallWorld();
    const chocolate = put('chocolate');
    pass();
    expect(chocolate.name).toBe('chocolate');
    chocolate.matter!.temperature = 40;
    pass();
    chocolate.matter!.temperature = 20;
    pass();
    expect(chocolate.name).toBe('solid chocolate');
  });

  it('renames a whole vessel', () => {
    const { put, pass } = smallWorld();
    const pot = put('metal pot');
    pot.matter!.temperature = 1500;
    pass();
    expect(pot.name).toBe('liquid steel');
  });

  it('keeps the name where the material has none for a state', () => {
    const { put, pass } = smallWorld();
    const wood = put('wood');
    wood.matter!.temperature = 340;
    pass();
    expect([wood.name, wood.matter!.state]).toEqual(['wood', SOLID]);
  });
});

describe('fire', () => {
  const burning = (id = 'wood') => {
    const small = smallWorld();
    const thing = small.put(id);
    thing.matter!.temperature = thing.matter!.material.burn;
    return { ...small, thing, matter: thing.matter! };
  };

  it('begins at the point of combustion and heats to 200 degrees above it', () => {
    const { thing, matter, pass } = burning();
    pass();
    expect(matter).toMatchObject({ burning: true, temperature: 550, burnTicks: 99 });
    expect(thing.deleted).toBe(false);
  });

  it('does not begin a degree below', () => {
    const { matter, pass } = burning();
    matter.temperature -= 1;
    pass();
    expect(matter.burning).toBe(false);
  });

  it('lasts a hundred ticks and leaves ash of the same heat', () => {
    const { thing, matter, room, pass } = burning();
    pass(99);
    expect([matter.burning, matter.burnTicks, thing.deleted]).toEqual([true, 1, false]);
    pass();
    expect([thing.deleted, thing.name]).toEqual([true, 'wood (deleted)']);
    const ash = room.contents.find(({ kind }) => kind.id === 'ash')!;
    expect(ash.matter!.temperature).toBeGreaterThan(500);
    expect(room.contents).not.toContain(thing);
  });

  it('lets what a burnt thing held fall into its container', () => {
    const { put, pass, room } = smallWorld();
    const cup = put('wood cup');
    const brick = put('brick', cup);
    cup.matter!.temperature = 400;
    cup.matter!.burnTicks = 1;
    pass();
    expect(cup.deleted).toBe(true);
    expect(brick.parent).toBe(room);
  });

  it('is put out by liquid water beside it, which takes the heat', () => {
    const { matter, put, pass } = burning();
    const water = put('water');
    matter.temperature = 400;
    pass();
    // 10 degrees below the point of combustion; the water takes the heat of the flames, 200 degrees above it.
    expect(matter).toMatchObject({ burning: false, burned: true, temperature: 340 });
    expect(water.matter!.temperature).toBe(550);
    expect(water.name).toBe('steam');
  });

  it('is put out by water in what burns too', () => {
    const { put, pass } = smallWorld();
    const cup = put('wood cup');
    put('water', cup);
    cup.matter!.temperature = 360;
    pass();
    expect(cup.matter).toMatchObject({ burning: false, burned: true });
  });

  it('is not put out by ice or steam', () => {
    const { matter, put, pass } = burning();
    put('water').matter!.state = SOLID;
    put('water').matter!.state = GAS;
    matter.temperature = 500;
    pass();
    expect(matter.burning).toBe(true);
  });

  it('cannot begin in ash', () => {
    const { put, pass } = smallWorld();
    const ash = put('ash');
    ash.matter!.temperature = 20_000;
    pass();
    expect(ash.matter!.burning).toBe(false);
  });
});
