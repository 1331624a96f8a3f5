/** Chemistry: the results of mixing the contents of a container. */
import { kind } from './kinds.ts';
import { STATE_NAMES } from './materials.ts';
import { describeName } from './text.ts';
import type { Thing, World } from './thing.ts';

/** Liquid water: the only input besides paints whose state matters, and salt. */
const WATER = ['water', 'liquid'] as const;

interface Reaction {
  readonly inputs: readonly (string | readonly [name: string, state: string])[];
  readonly product: string;
  readonly reply: string;
}

const paint = (color: string) => [`${color} paint`, 'liquid'] as const;

const PAINT_PAIRS: readonly (readonly [one: string, other: string, product: string, reply: string])[] = [
  ['red', 'blue', 'violet', 'Red and blue paint mix to produce violet paint.'],
  ['blue', 'yellow', 'green', 'Blue and yellow paint mix to produce green paint.'],
  ['yellow', 'red', 'orange', 'Yellow and red paint mix to produce orange paint.'],
  ['yellow', 'orange', 'yellow-orange', 'Yellow and orange paint mix to produce yellow-orange paint.'],
  ['orange', 'red', 'red-orange', 'Red and orange paint mix to produce red-orange paint.'],
  ['red', 'violet', 'violet-red', 'Violet and red paint mix to produce violet-red paint.'],
  ['violet', 'blue', 'blue-violet', 'Blue and violet paint mix to produce blue-violet paint.'],
  ['blue', 'green', 'green-blue', 'Blue and green paint mix to produce blue green paint.'],
  ['green', 'yellow', 'yellow-green', 'Green and yellow paint mix to produce yellow-green paint.'],
];

/** Paints that any other mixture of different ones makes brown; the original's list has no yellow-green. */
const BROWNING = [
  'red',
  'green',
  'blue',
  'orange',
  'yellow',
  'violet',
  'red-orange',
  'yellow-orange',
  'violet-red',
  'blue-violet',
  'green-blue',
  'brown',
  'green-yellow',
].map(paint);
/** Most paints that mix. */
const MAX_PAINTS = 4;

const PAIRS: readonly Reaction[] = [
  {
    inputs: [WATER, ['sodium chloride', 'solid']],
    product: 'salt water',
    reply: 'Sodium chloride and water mix to produce salt water.',
  },
  { inputs: [WATER, 'soap'], product: 'soapy water', reply: 'Soap and water mix to produce soapy water.' },
  { inputs: [WATER, 'sugar'], product: 'sugar water', reply: 'Sugar and water mix to produce sugar water.' },
  { inputs: [WATER, 'flour'], product: 'dough', reply: 'Flour and water mix to produce dough.' },
  {
    inputs: ['chocolate', 'marshmallow'],
    product: 'smores',
    reply: 'Chocolate and marshmallow mix to produce smores.',
  },
  { inputs: [WATER, 'iron block'], product: 'rust', reply: 'Iron block and water mix to produce rust.' },
  {
    inputs: ['sodium bicarbonate', 'acetic acid'],
    product: 'sodium acetate',
    reply: 'Sodium bicarbonate and acetic acid mix to produce sodium acetate.',
  },
  ...(
    [
      ['peanut', 'peanut butter'],
      ['jam', 'jam'],
      ['banana', 'banana'],
    ] as const
  ).map(([input, name]) => ({
    inputs: ['bread', input],
    product: `${name} sandwich`,
    reply: `Bread and peanuts mix to produce a ${name} sandwich.`,
  })),
  ...['red', 'green', 'blue', 'orange', 'yellow', 'violet'].map((color) => ({
    inputs: ['paper', paint(color)],
    product: `${color} paper`,
    reply: `Paper and blue paint mix to produce ${color} paper.`,
  })),
  ...PAINT_PAIRS.map(([one, other, product, reply]) => ({
    inputs: [paint(one), paint(other)],
    product: `${product} paint`,
    reply,
  })),
];

const TRIPLES: readonly Reaction[] = [
  {
    inputs: ['peanut', 'almond', 'cashew'],
    product: 'mixed nuts',
    reply: 'Peanuts, almonds, and cashews mix to produce mixed nuts.',
  },
  {
    inputs: ['apple', 'orange', 'banana'],
    product: 'fruit salad',
    reply: 'Apples, oranges, and bananas mix to produce fruit salad.',
  },
  ...(['jam', 'banana'] as const).map((input) => ({
    inputs: ['bread', 'peanut', input],
    product: `peanut butter with ${input} sandwich`,
    reply: `Bread and peanuts and jam mix to produce a peanut butter with ${input} sandwich.`,
  })),
];

const BROWN = 'The paints mix to produce brown paint.';

/** First thing of this name; with a state, the first in it that has this name or is of this substance. */
function find(things: readonly Thing[], input: Reaction['inputs'][number]): Thing | undefined {
  if (typeof input === 'string') return things.find(({ name }) => name === input);
  const [name, state] = input;
  return things.find(
    (thing) =>
      thing.matter !== null &&
      STATE_NAMES[thing.matter.state] === state &&
      (thing.name === name || thing.matter.name === name),
  );
}

function react(reactions: readonly Reaction[], things: readonly Thing[], into: Thing, world: World): string {
  for (const { inputs, product, reply } of reactions) {
    const used = inputs.map((input) => find(things, input));
    if (used.some((thing) => !thing)) continue;
    for (const thing of used) world.delete(thing!);
    world.move(world.make(kind(product)), into);
    return reply;
  }
  return '';
}

/** Mixes what is in `container`. @returns the reply, or '' where the action has no reply */
export function mix(container: Thing, world: World): string {
  const things = container.visible();
  const [only] = things;
  if (!only) return 'That container is empty, so there are no items to mix.';
  if (things.length === 1) return `There is only one thing (${describeName(only)})`;
  const reactions = things.length === 2 ? PAIRS : things.length === 3 ? TRIPLES : [];
  const reply = react(reactions, things, container, world);
  if (reply) return reply;
  const paints = BROWNING.map((paint) => find(things, paint)).filter((found) => found !== undefined);
  if (things.length <= MAX_PAINTS && paints.length === things.length) {
    for (const each of paints) world.delete(each);
    world.move(world.make(kind('brown paint')), container);
    return BROWN;
  }
  return `Mixing the contents of the ${describeName(container)} does not appear to produce anything new.`;
}
