/** Materials of SciWorld: the table is sound, and a thing made of one starts as the original's does. */
import { describe, expect, it } from 'vitest';
import { kind, listKinds } from '../../../envs/sciworld/kinds.ts';
import {
  GAS,
  LIQUID,
  MATERIALS,
  PAINTS,
  SOLID,
  STATE_NAMES,
  Substance,
  UNKNOWN_FRICTION,
  UNKNOWN_MELTING,
} from '../../../envs/sciworld/materials.ts';

const all = [...MATERIALS.entries()];
const material = (id: string) => MATERIALS.get(id)!;

describe('the table of materials', () => {
  it('has conductivities and frictions between 0 and 1, and melts no later than it boils', () => {
    expect(all.length).toBeGreaterThan(50);
    for (const [id, { conductivity, friction, melt, boil }] of all) {
      expect([id, conductivity >= 0 && conductivity <= 1]).toEqual([id, true]);
      expect([id, friction >= 0 && friction <= 1]).toEqual([id, true]);
      expect([id, melt < boil]).toEqual([id, true]);
    }
  });

  it('lets metals, and of the rest only salt water, carry electricity', () => {
    const conducting = all.filter(([, { electric }]) => electric).map(([id]) => id);
    expect(conducting.sort()).toEqual(
      [
        ...['Sodium', 'Metal', 'Aluminum', 'Brass', 'Bronze', 'Caesium', 'Copper', 'Gallium', 'Gold', 'Iron', 'Lead'],
        ...['Mercury', 'Platinum', 'Silicon', 'Steel', 'Tin', 'Titanium', 'Zinc', 'SaltWater'],
      ].sort(),
    );
  });

  it.each([
    ['Water', 0, 100],
    ['OrangeJuice', 0, 100],
    ['AppleJuice', -2, 160],
    ['Chocolate', 30, 100000],
    ['Marshmallow', 36, 100000],
    ['IceCream', -10, 101],
    ['Soap', 140, 100000],
    ['Rubber', 180, 10001],
    ['Lead', 327, 1740],
    ['Tin', 232, 2602],
    ['Mercury', -39, 357],
    ['Gallium', 30, 2400],
    ['Caesium', 29, 671],
    ['SodiumChloride', 801, 1465],
  ])('melts %s at %i °C and boils it at %i °C', (id, melt, boil) => {
    expect(material(id)).toMatchObject({ melt, boil });
  });

  it.each([
    ['Paper', 210],
    ['Wood', 350],
    ['Sandpaper', 230],
    ['CottonCloth', 300],
    ['Rubber', 260],
    ['PlantMatter', 200],
    ['Chocolate', 95],
    ['SodiumBicarbonate', 100],
    ['Flour', 380],
    ['Nut', 400],
    ['Soap', 537],
  ])('sets %s on fire at %i °C', (id, burn) => {
    expect(material(id).burn).toBe(burn);
  });

  it.each([
    ['Water', ['ice', 'water', 'steam']],
    ['Air', ['solid air', 'liquid air', 'air']],
    ['Lead', ['lead', 'liquid lead', 'gaseous lead']],
    ['Mercury', ['solid mercury', 'liquid mercury', 'gaseous mercury']],
    ['OrangeJuice', ['solid orange juice', 'orange juice', 'gaseous orange juice']],
    ['Chocolate', ['solid chocolate', 'liquid chocolate', 'gaseous chocolate']],
    ['red paint', ['dried red paint', 'red paint', 'gaseous red paint']],
    ['Wood', null],
    ['Soil', null],
  ])('names %s by its state', (id, names) => {
    expect(material(id).names).toEqual(names);
  });

  it('has fifteen paints: liquid at the start, of a substance spelled without a blank', () => {
    expect(PAINTS).toHaveLength(15);
    for (const color of PAINTS) {
      expect(material(`${color} paint`)).toMatchObject({
        substance: `${color}paint`,
        state: LIQUID,
        melt: 0,
        boil: 10000,
        burn: 293,
        conductivity: 0.2,
        friction: 0.3,
      });
    }
  });

  it('has a melting point for each unknown substance and a friction for each unknown surface', () => {
    expect(Object.keys(UNKNOWN_MELTING).join('')).toBe('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
    expect(Object.keys(UNKNOWN_FRICTION).join('')).toBe('ABCDEFGHJ');
    expect([UNKNOWN_MELTING.V, UNKNOWN_MELTING.Z, UNKNOWN_MELTING.T]).toEqual([-220, 775, -2]);
    expect([UNKNOWN_FRICTION.B, UNKNOWN_FRICTION.E, UNKNOWN_FRICTION.J]).toEqual([0.7, 0.2, 0.9]);
  });
});

describe('a substance', () => {
  it('starts at the temperature of its material: ten degrees, except ice cream', () => {
    const cold = all.filter(([, { start }]) => start !== 10).map(([id]) => id);
    expect(cold).toEqual(['IceCream']);
    const water = new Substance(material('Water'));
    expect(water).toMatchObject({ temperature: 10, state: LIQUID, burning: false, burned: false, burnTicks: 100 });
    expect(water.name).toBe('water');
  });

  it('of ash has burned and cannot burn again', () => {
    expect(new Substance(material('Ash'))).toMatchObject({ burned: true, burnTicks: 0 });
  });

  it.each([
    ['Gallium', LIQUID, SOLID],
    ['SaltWater', SOLID, LIQUID],
    ['SoapyWater', SOLID, LIQUID],
    ['AceticAcid', SOLID, SOLID],
    ['Air', GAS, GAS],
  ])('of %s starts in a state that its temperature may not be of', (id, starts, becomes) => {
    const { state, temperature, melt, material: made } = new Substance(material(id));
    expect(state).toBe(starts);
    expect(temperature < melt ? SOLID : temperature > made.boil ? GAS : LIQUID).toBe(becomes);
  });

  it('has one name for each state there is', () => {
    expect(STATE_NAMES).toEqual(['solid', 'liquid', 'gas']);
    for (const [id, { names }] of all) expect([id, names?.length ?? 3]).toEqual([id, STATE_NAMES.length]);
  });
});

describe('kinds', () => {
  it('are made of materials that the table has', () => {
    const unknown = listKinds().filter((one) => one.material !== null && !MATERIALS.has(one.material));
    expect(unknown).toEqual([]);
  });

  it('stand at their index', () => {
    expect(listKinds().map(({ index }) => index)).toEqual(listKinds().map((_, i) => i));
  });

  it.each([
    ['stove', 260, null],
    ['hot plate', 260, null],
    ['oven', 540, null],
    ['blast furnace', 3000, null],
    ['lighter', 2200, null],
    ['fridge', null, 2],
    ['freezer', null, -18],
    ['ultra low temperature freezer', null, -86],
    ['sink', null, null],
  ])('heat or cool: %s to %s and %s °C', (id, heat, cool) => {
    expect(kind(id)).toMatchObject({ heat, cool });
  });

  it('make dough and bread of flour, and sugar water of sugar', () => {
    expect(['dough', 'bread', 'sugar water'].map((id) => kind(id).material)).toEqual(['Flour', 'Flour', 'Sugar']);
  });

  it('give fruit no matter, but for the apricot', () => {
    const fruit = ['apple', 'avocado', 'banana', 'cherry', 'lemon', 'orange', 'grapefruit', 'peach', 'pear', 'potato'];
    for (const id of fruit) expect([id, kind(id).material, kind(id).edible]).toEqual([id, null, true]);
    expect(kind('apricot').material).toBe('PlantMatter');
  });

  it('hold both tables to the name "table", and the drawer to a name that is not its own', () => {
    expect([kind('wood table').name, kind('steel table').name]).toEqual(['table', 'table']);
    expect(kind('drawer').references).toEqual(['drawer', 'wood table']);
  });

  it('are refused by an error that names the requested one', () => {
    expect(() => kind('spoon')).toThrow('no kind "spoon"');
  });
});
