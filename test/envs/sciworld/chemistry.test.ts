/** Mixing in SciWorld: every reaction, with its product and its reply. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mix } from '../../../envs/sciworld/chemistry.ts';
import { LIQUID, SOLID } from '../../../envs/sciworld/materials.ts';
import { smallWorld } from '../../support/small-sciworld.ts';

/** Mixes these in a bowl. @returns the answer, and what is in the bowl then */
function mixed(...ids: readonly string[]) {
  const { world, put } = smallWorld();
  const bowl = put('bowl');
  for (const id of ids) {
    const thing = put(id, bowl);
    if (id === 'water') thing.matter!.state = LIQUID;
  }
  const reply = mix(bowl, world);
  return { reply, inside: bowl.visible().map(({ name }) => name), kinds: bowl.visible().map(({ kind }) => kind.id) };
}

const paint = (color: string) => `${color} paint`;
const NOTHING_NEW = 'Mixing the contents of the bowl does not appear to produce anything new.';

/** Reactions by hand from the facts of the original: inputs, product, reply. */
const REACTIONS: readonly (readonly [inputs: readonly string[], product: string, reply: string])[] = [
  [['water', 'sodium chloride'], 'salt water', 'Sodium chloride and water mix to produce salt water.'],
  [['water', 'soap'], 'soapy water', 'Soap and water mix to produce soapy water.'],
  [['water', 'sugar'], 'sugar water', 'Sugar and water mix to produce sugar water.'],
  [['water', 'flour'], 'dough', 'Flour and water mix to produce dough.'],
  [['water', 'iron block'], 'rust', 'Iron block and water mix to produce rust.'],
  [['chocolate', 'marshmallow'], 'smores', 'Chocolate and marshmallow mix to produce smores.'],
  [
    ['sodium bicarbonate', 'acetic acid'],
    'sodium acetate',
    'Sodium bicarbonate and acetic acid mix to produce sodium acetate.',
  ],
  [['bread', 'peanut'], 'peanut butter sandwich', 'Bread and peanuts mix to produce a peanut butter sandwich.'],
  [['bread', 'jam'], 'jam sandwich', 'Bread and peanuts mix to produce a jam sandwich.'],
  [['bread', 'banana'], 'banana sandwich', 'Bread and peanuts mix to produce a banana sandwich.'],
  [['peanut', 'almond', 'cashew'], 'mixed nuts', 'Peanuts, almonds, and cashews mix to produce mixed nuts.'],
  [['apple', 'orange', 'banana'], 'fruit salad', 'Apples, oranges, and bananas mix to produce fruit salad.'],
  [
    ['bread', 'peanut', 'jam'],
    'peanut butter with jam sandwich',
    'Bread and peanuts and jam mix to produce a peanut butter with jam sandwich.',
  ],
  [
    ['bread', 'peanut', 'banana'],
    'peanut butter with banana sandwich',
    'Bread and peanuts and jam mix to produce a peanut butter with banana sandwich.',
  ],
];

const PAINTS: readonly (readonly [one: string, other: string, product: string, words: string])[] = [
  ['red', 'blue', 'violet', 'Red and blue'],
  ['blue', 'yellow', 'green', 'Blue and yellow'],
  ['yellow', 'red', 'orange', 'Yellow and red'],
  ['yellow', 'orange', 'yellow-orange', 'Yellow and orange'],
  ['orange', 'red', 'red-orange', 'Red and orange'],
  ['red', 'violet', 'violet-red', 'Violet and red'],
  ['violet', 'blue', 'blue-violet', 'Blue and violet'],
  ['green', 'yellow', 'yellow-green', 'Green and yellow'],
];

describe('mixing', () => {
  it.each(REACTIONS)('%j makes %s', (inputs, product, reply) => {
    expect(mixed(...inputs)).toEqual({ reply, inside: [product], kinds: [product] });
  });

  it.each(REACTIONS)('%j in the other order makes it too', (inputs, product) => {
    expect(mixed(...[...inputs].reverse()).inside).toEqual([product]);
  });

  it.each(['red', 'green', 'blue', 'orange', 'yellow', 'violet'])(
    'paper and %s paint are always reported as blue',
    (color) => {
      const { reply, inside } = mixed('paper', paint(color));
      expect(inside).toEqual([`${color} paper`]);
      expect(reply).toBe(`Paper and blue paint mix to produce ${color} paper.`);
    },
  );

  it('nothing answers that there is nothing', () => {
    expect(mixed().reply).toBe('That container is empty, so there are no items to mix.');
  });

  it('one thing names it', () => {
    expect(mixed('water').reply).toBe('There is only one thing (water)');
  });

  it.each([
    [['brick', 'water']],
    [['bread', 'apple']],
    [['water', 'sodium chloride', 'soap']],
    [['brick', 'bread', 'jam', 'peanut']],
    [['red paint', 'water']],
  ])('%j makes nothing new and loses nothing', (inputs) => {
    const { reply, inside } = mixed(...inputs);
    expect(reply).toBe(NOTHING_NEW);
    expect(inside).toEqual(inputs);
  });

  it('wants its water liquid and its salt solid', () => {
    for (const [ice, molten] of [
      [SOLID, SOLID],
      [LIQUID, LIQUID],
    ] as const) {
      const { world, put } = smallWorld();
      const bowl = put('bowl');
      put('water', bowl).matter!.state = ice;
      put('sodium chloride', bowl).matter!.state = molten;
      expect(mix(bowl, world)).toBe(NOTHING_NEW);
    }
  });

  it('knows salt by its substance where its name has more words', () => {
    const { world, put } = smallWorld();
    const bowl = put('bowl');
    put('water', bowl);
    put('sodium chloride', bowl).name = 'table salt';
    expect(mix(bowl, world)).toBe('Sodium chloride and water mix to produce salt water.');
  });

  it('takes the ingredients away for good', () => {
    const { world, put } = smallWorld();
    const bowl = put('bowl');
    const used = [put('water', bowl), put('soap', bowl)];
    mix(bowl, world);
    expect(used.map(({ deleted, parent, name }) => [deleted, parent, name])).toEqual([
      [true, null, 'water (deleted)'],
      [true, null, 'soap (deleted)'],
    ]);
  });

  it('looks past the hidden contacts of the vessel', () => {
    const { put } = smallWorld();
    const bowl = put('bowl');
    expect(bowl.contents).toHaveLength(2);
    expect(bowl.visible()).toHaveLength(0);
  });
});

describe('paints', () => {
  it.each(PAINTS)('%s and %s make %s', (one, other, product, words) => {
    const { reply, inside } = mixed(paint(one), paint(other));
    expect(inside).toEqual([paint(product)]);
    expect(reply).toBe(`${words} paint mix to produce ${product} paint.`);
  });

  it('blue and green make a paint that is called otherwise in the reply', () => {
    expect(mixed(paint('blue'), paint('green'))).toMatchObject({
      inside: [paint('green-blue')],
      reply: 'Blue and green paint mix to produce blue green paint.',
    });
  });

  const known = ['red', 'green', 'blue', 'orange', 'yellow', 'violet', 'red-orange', 'yellow-orange', 'violet-red'];

  it('of three or four different known colours make brown, whatever they are; a colour twice makes nothing', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...known), { minLength: 3, maxLength: 4 }), (colors) => {
        const again = [...colors.slice(1), colors[1]!];
        expect(mixed(...again.map(paint)).reply).toBe(NOTHING_NEW);
        expect(mixed(...colors.map(paint))).toMatchObject({
          inside: ['brown paint'],
          reply: 'The paints mix to produce brown paint.',
        });
      }),
      { numRuns: 40 },
    );
  });

  it('of two known colours make a paint, in either order the same one; two of one colour make nothing', () => {
    fc.assert(
      fc.property(fc.constantFrom(...known), fc.constantFrom(...known), (one, other) => {
        const { inside, reply } = mixed(paint(one), paint(other));
        if (one === other) {
          expect(reply).toBe(NOTHING_NEW);
          return;
        }
        expect(inside).toHaveLength(1);
        expect(inside[0]).toMatch(/ paint$/);
        expect(mixed(paint(other), paint(one)).inside).toEqual(inside);
      }),
      { numRuns: 60 },
    );
  });

  it('of five colours, or with yellow-green among them, stay apart', () => {
    expect(mixed(...['red', 'blue', 'green', 'orange', 'violet'].map(paint)).reply).toBe(NOTHING_NEW);
    expect(mixed(paint('yellow-green'), paint('red')).reply).toBe(NOTHING_NEW);
  });
});
