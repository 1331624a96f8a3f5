/** Task table: families, levels within them, and numbers within those. */
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { TaskTable } from '../../src/core/task.ts';
import { FAMILIES } from './families/all.ts';
import { type Family, LEVELS, type Level, type TerminalTask } from './families/task.ts';
import type { TerminalOptions } from './options.ts';

/** Tasks of each level of each family; the last of them are held out. */
const NUMBERS = 64;
const TRAIN_NUMBERS = 56;
const PER_FAMILY = LEVELS.length * NUMBERS;
const COUNT = FAMILIES.length * PER_FAMILY;

/** Place of an index in the table. */
interface Place {
  readonly family: Family;
  readonly level: Level;
  readonly number: number;
}

/** Finds the place of an index. @throws {RangeError} outside the table */
export function placeOf(index: number): Place {
  if (!(Number.isInteger(index) && index >= 0 && index < COUNT)) {
    throw new RangeError(`terminal: task index must be an integer in [0, ${COUNT}), got ${index}`);
  }
  return {
    family: FAMILIES[Math.floor(index / PER_FAMILY)]!,
    level: LEVELS[Math.floor(index / NUMBERS) % LEVELS.length]!,
    number: index % NUMBERS,
  };
}

/** Writes the task of an index under a seed. @throws {RangeError} outside the table */
export function writeTask(index: number, seed: number): TerminalTask {
  const { family, level, number } = placeOf(index);
  return family.write(Rng.fromSeed(seedFrom('terminal', family.id, level, number, seed)), level);
}

/**
 * Makes the table. Held out are the last eight numbers of each level; of families in `heldOut` nothing trains, and all of their
 * tasks are the set `held-out`.
 */
export function tableOf({ heldOut, maxLevel }: Pick<TerminalOptions, 'heldOut' | 'maxLevel'>): TaskTable {
  const all = Array.from({ length: COUNT }, (_, index) => ({ index, ...placeOf(index) }));
  const played = all.filter(({ level }) => level <= maxLevel);
  const isKept = ({ family }: Place) => !heldOut.includes(family.id);
  const indices = (places: typeof all) => places.map(({ index }) => index);
  const splits = {
    train: indices(played.filter((place) => isKept(place) && place.number < TRAIN_NUMBERS)),
    test: indices(played.filter((place) => isKept(place) && place.number >= TRAIN_NUMBERS)),
  };
  const others = indices(played.filter((place) => !isKept(place)));
  return {
    count: COUNT,
    labels: FAMILIES.flatMap(({ id }) => LEVELS.map((level) => `${id} ${level}`)),
    label(index) {
      const { family, level } = placeOf(index);
      return `${family.id} ${level}`;
    },
    split: (split) => splits[split],
    ...(others.length > 0 ? { sets: { 'held-out': others } } : {}),
    evalSeed: 0,
  };
}
