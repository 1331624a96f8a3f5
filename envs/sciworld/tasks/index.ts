/** The 30 tasks in the order of their registration, with the draws and ids taken before each. */
import { CHANGE_OF_STATE } from './change-of-state.ts';
import { CHEMISTRY } from './chemistry.ts';
import { CIRCUITS } from './circuits.ts';
import { FIND } from './find.ts';
import { GROWING } from './grow.ts';
import { LIFE_STAGES } from './life-stages.ts';
import { LIFESPAN } from './lifespan.ts';
import { PLANES } from './planes.ts';
import type { Task } from './task.ts';
import { THERMOMETER } from './thermometer.ts';

/** A task and where its registration begins. */
export interface Registered {
  readonly task: Task;
  readonly drawsBefore: number;
  readonly idsBefore: number;
}

/** Ids after all tasks are registered; the house follows. */
export const FIRST_HOUSE_ID = 17197;

/** Name, draws and ids of each registration. */
const ORDER: readonly (readonly [name: string, draws: number, ids: number])[] = [
  ['change-the-state-of-matter-of', 8, 90],
  ['melt', 8, 90],
  ['boil', 8, 90],
  ['freeze', 8, 90],
  ['power-component', 0, 30],
  ['power-component-renewable-vs-nonrenewable-energy', 0, 30],
  ['test-conductivity', 0, 156],
  ['test-conductivity-of-unknown-substances', 24, 120],
  ['find-living-thing', 160, 1290],
  ['find-non-living-thing', 160, 1290],
  ['find-plant', 160, 1290],
  ['find-animal', 160, 1290],
  ['grow-plant', 0, 801],
  ['grow-fruit', 0, 801],
  ['chemistry-mix', 0, 312],
  ['chemistry-mix-paint-secondary-color', 2, 111],
  ['chemistry-mix-paint-tertiary-color', 2, 111],
  ['lifespan-longest-lived', 0, 45],
  ['lifespan-shortest-lived', 0, 45],
  ['lifespan-longest-lived-then-shortest-lived', 0, 45],
  ['identify-life-stages-1', 0, 630],
  ['identify-life-stages-2', 80, 2850],
  ['inclined-plane-friction-named-surfaces', 0, 150],
  ['inclined-plane-friction-unnamed-surfaces', 0, 60],
  ['inclined-plane-determine-angle', 0, 60],
  ['mendelian-genetics-known-plant', 140, 360],
  ['mendelian-genetics-unknown-plant', 1080, 600],
  ['use-thermometer', 720, 1173],
  ['measure-melting-point-known-substance', 25, 303],
  ['measure-melting-point-unknown-substance', 775, 2883],
];

const TASKS: readonly Task[] = [
  ...CHANGE_OF_STATE,
  ...THERMOMETER,
  ...CIRCUITS,
  ...FIND,
  ...CHEMISTRY,
  ...GROWING,
  ...LIFESPAN,
  ...LIFE_STAGES,
  ...PLANES,
];

/** Tasks by name. */
export const REGISTRY: ReadonlyMap<string, Registered> = (() => {
  const byName = new Map(TASKS.map((task) => [task.name, task]));
  const registry = new Map<string, Registered>();
  let drawsBefore = 0;
  let idsBefore = 0;
  for (const [name, draws, ids] of ORDER) {
    const task = byName.get(name);
    if (task) registry.set(name, { task, drawsBefore, idsBefore });
    drawsBefore += draws;
    idsBefore += ids;
  }
  return registry;
})();
