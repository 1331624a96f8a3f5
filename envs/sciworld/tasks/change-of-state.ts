/** Tasks to melt, boil or freeze a substance, or to change its state in any way. */
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import { GAS, LIQUID, SOLID } from '../materials.ts';
import { digits, drawCup, inCup, type Site, task } from './task.ts';

interface Row {
  readonly name: string;
  /** Ids before the substance; none where the house has it. */
  readonly offset?: number;
  /** Number of the drawn cup it comes in. */
  readonly cup?: number;
  readonly room: string;
  readonly containers?: readonly string[];
  readonly force?: boolean;
  readonly temperature?: number;
}

const CUPBOARD = ['cupboard', 'table'];

/** Substances in the order of the variations, two variations each. */
const ROWS: readonly Row[] = [
  { name: 'water', room: 'kitchen' },
  { name: 'water', room: 'kitchen' },
  { name: 'ice', offset: 0, room: 'kitchen', containers: ['freezer'], temperature: -10 },
  { name: 'orange juice', offset: 3, cup: 0, room: 'kitchen', containers: ['fridge'] },
  { name: 'apple juice', offset: 12, cup: 1, room: 'kitchen', containers: ['fridge'] },
  { name: 'chocolate', offset: 21, room: 'kitchen', containers: ['fridge'] },
  { name: 'marshmallow', offset: 24, room: 'kitchen', containers: CUPBOARD },
  { name: 'ice cream', offset: 27, cup: 2, room: 'kitchen', containers: ['freezer'] },
  { name: 'soap', offset: 36, room: 'kitchen', containers: CUPBOARD },
  { name: 'rubber', offset: 39, room: 'workshop', containers: ['table'] },
  { name: 'lead', offset: 42, cup: 3, room: 'workshop', containers: ['table'], force: true },
  { name: 'tin', offset: 51, cup: 4, room: 'workshop', containers: ['table'], force: true },
  { name: 'mercury', offset: 60, cup: 5, room: 'workshop', containers: ['table'], force: true },
  { name: 'gallium', offset: 69, cup: 6, room: 'workshop', containers: ['table'], force: true },
  { name: 'caesium', offset: 78, cup: 7, room: 'workshop', containers: ['table'], force: true },
];

function prepare(site: Site, row: Row, cups: readonly string[]): void {
  if (row.offset === undefined) return;
  const substance = site.make(row.name, row.offset);
  if (row.temperature !== undefined) substance.matter!.temperature = row.temperature;
  const thing = row.cup === undefined ? substance : inCup(site, substance, cups[row.cup]!, row.offset);
  site.placeIn(thing, row.room, row.containers ?? [], { name: row.name, force: row.force ?? false });
}

const heaters = ['stove', 'blast furnace', 'oven', 'hot plate'];

/** Optional goals on the way to heat something; `what` is it in their texts. */
export function heatingGoals(what: string): { devices: Goal[]; places: Goal[] } {
  return {
    devices: [
      ...heaters.map((name) => goals.deviceIs(true, name, `activate heater (${name})`)),
      goals.holds('inventory', ['lighter'], 'have lighter in inventory'),
      goals.holds('fire pit', ['wood'], 'move wood into fire pit', { key: 'wood1' }),
      goals.onFire('wood', 'ignite wood', { after: ['wood1'], key: 'ignite' }),
    ],
    places: [...heaters, 'fire pit'].map((name) => goals.inContainer(name, `have ${what} on heater (${name})`)),
  };
}

const coolers = () => ['fridge', 'freezer'].map((name) => goals.inContainer(name, `have object in cooler (${name})`));

function optional(kind: Kind, name: string): Goal[] {
  const near = [
    goals.requireSameRoom(name, `be in same location as ${name}`),
    goals.requireAlone([name], 'have substance alone in a single container'),
  ];
  if (kind === 'freeze') return [...near, ...coolers(), goals.warmer(-5, 'cool object by at least 5C')];
  const { devices, places } = heatingGoals('object');
  const heat = [...near, ...devices, ...places];
  if (kind !== 'change') return [...heat, goals.warmer(20, 'heat object by at least 20C')];
  return [
    ...heat,
    ...coolers(),
    goals.warmer(10, 'heat object by at least 10C'),
    goals.warmer(-10, 'cool object by at least 10C'),
  ];
}

type Kind = 'change' | 'melt' | 'boil' | 'freeze';

function orderGoals(kind: Kind): Goal[] {
  const inState = (state: 0 | 1 | 2, burning = false) =>
    goals.isState(
      state,
      `substance is in a ${goals.stateText(state)} state${burning ? ' (or combusting)' : ''}`,
      burning,
    );
  if (kind === 'change') return goals.stateChanges();
  if (kind === 'melt') return [inState(SOLID), inState(LIQUID)];
  if (kind === 'boil') return [inState(LIQUID), inState(GAS, true)];
  return [inState(LIQUID), inState(SOLID)];
}

const NOTE = 'For compounds without a boiling point, combusting the substance is also acceptable. ';

export const CHANGE_OF_STATE = (
  [
    ['change-the-state-of-matter-of', '1-4', 'change', 'change the state of matter of'],
    ['melt', '1-2', 'melt', 'melt'],
    ['boil', '1-1', 'boil', 'boil'],
    ['freeze', '1-3', 'freeze', 'freeze'],
  ] as const
).map(([id, topic, kind, verb]) =>
  task<string[]>({
    name: id,
    topic,
    variations: 30,
    register: (random) => Array.from({ length: 8 }, () => drawCup(random)),
    setUp(site, variation, cups) {
      const [substance, broken] = digits(variation, 15, 2) as [number, number];
      const row = ROWS[substance]!;
      prepare(site, row, cups);
      if (substance === 1) site.breakDevice('sink', 'kitchen');
      if (broken) site.breakDevice('stove', 'kitchen');
      const { name } = row;
      return {
        description: `Your task is to ${verb} ${name}. ${kind === 'boil' ? NOTE : ''}First, focus on the substance. Then, take actions that will cause it to change its state of matter.`,
        ordered: [goals.find(name, 'focus on substance'), ...orderGoals(kind)],
        optional: optional(kind, name),
      };
    },
  }),
);
