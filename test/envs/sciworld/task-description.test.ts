/** Reading of task descriptions: what each wording asks for. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTaskDescription, type TaskDescription } from '../../../envs/sciworld/task-description.ts';
import { house } from '../../support/small-sciworld.ts';

const NOTHING: TaskDescription = { goal: 'task', target: '', place: '', boxes: [], boxPlace: '', limit: null };
const boxes = (one: string, first: string, other: string, second: string) => [
  { name: `${one} box`, means: first },
  { name: `${other} box`, means: second },
];

/** Tasks with what their first variation asks for. */
const FIRST: readonly (readonly [task: string, variation: number, expected: Partial<TaskDescription>])[] = [
  ['boil', 0, { goal: 'boil', target: 'water' }],
  ['melt', 4, { goal: 'melt', target: 'ice' }],
  ['freeze', 6, { goal: 'freeze', target: 'orange juice' }],
  ['change-the-state-of-matter-of', 20, { goal: 'change', target: 'lead' }],
  ['power-component', 0, { goal: 'power', target: 'red light bulb' }],
  ['power-component', 16, { goal: 'power', target: 'electric buzzer' }],
  ['power-component-renewable-vs-nonrenewable-energy', 1, { goal: 'power nonrenewable', target: 'red light bulb' }],
  [
    'test-conductivity',
    0,
    {
      goal: 'conductive',
      target: 'aluminum foil',
      place: 'workshop',
      boxes: boxes('red', 'conductive', 'green', 'nonconductive'),
    },
  ],
  [
    'find-living-thing',
    7,
    { goal: 'find living thing', boxes: [{ name: 'green box', means: 'box' }], boxPlace: 'bathroom' },
  ],
  [
    'find-non-living-thing',
    0,
    { goal: 'find non-living thing', boxes: [{ name: 'red box', means: 'box' }], boxPlace: 'kitchen' },
  ],
  ['grow-plant', 0, { goal: 'grow plant', target: 'apple', place: 'kitchen' }],
  ['grow-fruit', 125, { goal: 'grow fruit', target: 'peach', place: 'greenhouse' }],
  ['chemistry-mix', 0, { goal: 'mix', target: 'salt water', place: 'kitchen' }],
  ['chemistry-mix', 31, { goal: 'mix', target: 'red paper', place: 'workshop' }],
  ['chemistry-mix-paint-secondary-color', 0, { goal: 'mix paint', target: 'green paint' }],
  ['lifespan-longest-lived', 0, { goal: 'lifespan longest', place: 'outside' }],
  ['lifespan-shortest-lived', 0, { goal: 'lifespan shortest', place: 'outside' }],
  ['lifespan-longest-lived-then-shortest-lived', 0, { goal: 'lifespan longest then shortest', place: 'outside' }],
  ['identify-life-stages-2', 0, { goal: 'stages', target: 'apple', place: 'outside' }],
];

describe('a description', () => {
  it.each(FIRST)('of %s %i is read', (task, variation, expected) => {
    expect(readTaskDescription(house(task, variation).description)).toEqual({ ...NOTHING, ...expected });
  });

  it('of a temperature states its limit, also below 0, and what each box is for', () => {
    const seen = new Set<number>();
    for (let variation = 0; variation < 40; variation++) {
      const { description } = house('use-thermometer', variation);
      const read = readTaskDescription(description);
      expect(read).toMatchObject({ goal: 'temperature' });
      expect(read.boxes.map(({ means }) => means)).toEqual(['above', 'below']);
      // The text speaks of what is above first.
      const [above, below] = read.boxes.map(({ name }) => description.indexOf(`place it in the ${name}`));
      expect(above).toBeGreaterThan(0);
      expect(below).toBeGreaterThan(above!);
      seen.add(read.limit!);
    }
    expect([...seen].sort((a, b) => a - b)).toEqual([-50, 0, 50, 100, 200]);
  });

  it('of a melting point is distinguished from one of a temperature', () => {
    const { description } = house('measure-melting-point-known-substance');
    const read = readTaskDescription(description);
    expect(read).toMatchObject({ goal: 'melting point', place: 'kitchen', boxPlace: 'kitchen' });
    expect(read.boxes.map(({ means }) => means)).toEqual(['above', 'below']);
    const [above, below] = read.boxes.map(({ name }) => description.indexOf(`focus on the ${name}`));
    expect(above).toBeGreaterThan(0);
    expect(below).toBeGreaterThan(above!);
  });

  it('of a trait names plant and trait, with a box for dominant first', () => {
    const read = readTaskDescription(house('mendelian-genetics-unknown-plant', 0).description);
    expect(read.goal).toBe('trait');
    expect(read.target).toMatch(/^blue seed color unknown E$/);
    expect(read.boxes).toEqual(boxes('red', 'dominant', 'green', 'recessive'));
  });

  it('of planes names both', () => {
    const read = readTaskDescription(house('inclined-plane-determine-angle', 0).description);
    expect(read.goal).toBe('plane shallowest angle');
    expect(read.target).toMatch(/^[B-J] [B-J]$/);
    expect(readTaskDescription(house('inclined-plane-friction-unnamed-surfaces', 1).description).goal).toBe(
      'plane least friction',
    );
  });

  it('that is worded otherwise asks for nothing known', () => {
    fc.assert(fc.property(fc.string(), (text) => readTaskDescription(text).goal === 'task'));
    expect(readTaskDescription('Your task is to whistle.')).toEqual(NOTHING);
  });
});
