/**
 * What version 1.3.0 has, as facts: every thing that its constructors make without help, the goals of every task with
 * their keys, and checksums of what variations begin with. One entry of ours that serves several of theirs has to be
 * each of them.
 */
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { STATE_NAMES } from '../../../envs/sciworld/materials.ts';
import { ownSet } from '../../../envs/sciworld/names.ts';
import { listAll } from '../../../envs/sciworld/parity.ts';
import { findRegistered, Simulator } from '../../../envs/sciworld/simulator.ts';
import { cursory, describeDetails } from '../../../envs/sciworld/text.ts';
import { World } from '../../../envs/sciworld/thing.ts';

function rows<T>(name: string): T[] {
  const text = readFileSync(new URL(`../../fixtures/${name}.jsonl`, import.meta.url), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

interface KindRow {
  readonly kind: string;
  readonly matter: readonly (string | number | boolean)[] | null;
}

describe('things are as the original makes them', () => {
  const kinds = rows<KindRow>('sciworld-kinds');

  it.each(kinds.map((row) => [row.kind, row] as const))('%s', (id, row) => {
    const world = new World(new JavaRandom(0));
    const thing = world.make(kind(id));
    // Ice is cooled by the task that places it.
    if (id === 'ice') thing.matter!.temperature = row.matter![1] as number;
    const { container, device, matter } = thing;
    expect({
      kind: id,
      name: thing.name,
      names: [...new Set(ownSet(thing, null).names)].sort(),
      text: cursory(thing, null),
      long: describeDetails(thing, null),
      edible: thing.edible,
      moveable: thing.moveable,
      container: container && [container.is, container.open, container.closable],
      device: device && [device.activable, device.on, device.usable],
      matter: matter && [
        matter.name,
        matter.temperature,
        matter.material.conductivity,
        STATE_NAMES[matter.state],
        matter.melt,
        matter.material.boil,
        matter.material.burn,
        matter.electric,
      ],
      heat: thing.kind.heat,
      cool: thing.kind.cool,
    }).toEqual(row);
  });
});

interface GoalRow {
  readonly task: string;
  readonly variation: number;
  readonly ordered: readonly string[];
  readonly optional: readonly string[];
}

describe('goals have the kinds, keys and conditions of the original', () => {
  const tasks = rows<GoalRow>('sciworld-goals');

  it('of all 30 tasks', () => {
    expect(tasks).toHaveLength(30);
  });

  it.each(tasks.map((row) => [row.task, row] as const))('%s', (name, { variation, ordered, optional }) => {
    const { goals } = new Simulator(findRegistered(name)!, variation);
    const write = ({ kind, key, after, clearsFocus }: (typeof goals.ordered)[number]) =>
      kind + (key ? ` key=${key}` : '') + (after ? ` after=${after.join(', ')}` : '') + (clearsFocus ? ' clears' : '');
    expect({ ordered: goals.ordered.map(write), optional: goals.optional.map(write) }).toEqual({ ordered, optional });
  });
});

interface StartRow {
  readonly task: string;
  /** Checksum of the description and all things, by variation. */
  readonly starts: Readonly<Record<string, number>>;
}

describe('variations begin as in the original, with every number, place, state and text', () => {
  const tasks = rows<StartRow>('sciworld-starts');

  it('of all 30 tasks', () => {
    expect(tasks).toHaveLength(30);
  });

  it.each(tasks.map((row) => [row.task, row] as const))('%s', (name, { starts }) => {
    const task = findRegistered(name)!;
    const ours = Object.keys(starts).map((variation) => {
      const { world, description } = new Simulator(task, Number(variation));
      return [variation, crc32([description, ...listAll(world.universe)].join('\n'))];
    });
    expect(Object.fromEntries(ours)).toEqual(starts);
  });
});
