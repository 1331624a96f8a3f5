/**
 * Oracle: plays a task from its facts. It plans on a session of its own, by actions that are listed, and reads the plan
 * out. It knows what a task wants to have found out (which box is right, which animal lives longest) and looks no
 * further; README.md lists the tasks that it claims.
 */
import type { Oracle } from '../../src/core/env.ts';
import type { SciWorld, SciWorldSession } from './env.ts';
import { ANIMALS, SPANS, TRAITS } from './life-tables.ts';
import { UNKNOWN_MELTING } from './materials.ts';
import { GiveUp, Player } from './player.ts';
import { readTaskDescription, type TaskDescription } from './task-description.ts';
import { COLORS } from './tasks/chemistry.ts';
import { MELTING } from './tasks/thermometer.ts';
import type { Thing } from './thing.ts';

type Strategy = (player: Player, task: TaskDescription) => void;

/** The solver of an env's tasks; it gives up at once on those it does not claim. */
export function oracle(env: SciWorld): Oracle {
  return (task) => {
    let plan: readonly string[] | undefined;
    let next = 0;
    return (step) => {
      if (step.kind === 'first') next = 0;
      plan ??= solve(env.open({ ...task }), env.tasks.at(task.index).registered.task.name);
      return step.kind === 'terminated' ? undefined : plan[next++];
    };
  };
}

/** True for tasks the oracle solves in every variation. */
export function claims(name: string): boolean {
  return Object.hasOwn(STRATEGIES, name);
}

/** Texts that solve a task, its stages among them; none where no strategy is known. */
function solve(session: SciWorldSession, name: string): readonly string[] {
  const strategy = STRATEGIES[name];
  if (!strategy) return [];
  const player = new Player(session);
  try {
    strategy(player, readTaskDescription(session.simulator.description));
  } catch (error) {
    if (!(error instanceof GiveUp)) throw error;
  }
  return player.texts;
}

function requireBoxed(player: Player, thing: Thing, name: string, place: string): void {
  player.go(place);
  player.do('move', thing, player.findNamed(name, place));
}

const useThermometer: Strategy = (player, { target, place, boxes, boxPlace, limit }) => {
  const thermometer = player.findNamed('thermometer');
  player.take(thermometer);
  player.do('focus on', thermometer);
  const thing = player.findNamed(target, place);
  player.take(thing);
  player.do('focus on', thing);
  player.go(boxPlace);
  player.do('use', thermometer, thing);
  const [above, below] = boxes;
  requireBoxed(player, thing, thing.matter!.temperature >= limit! ? above!.name : below!.name, boxPlace);
};

const meltingPoint: Strategy = (player, { target, place, boxes, limit }) => {
  const water = target === 'water' ? player.water().water : undefined;
  const thermometer = player.findNamed('thermometer');
  player.reach(thermometer);
  player.do('focus on', thermometer);
  const thing = water ?? player.findNamed(target, place);
  player.reach(thing);
  player.do('focus on', thing);
  const melting = MELTING[target] ?? UNKNOWN_MELTING[target.at(-1)!]!;
  const [above, below] = boxes;
  player.do('focus on', player.findNamed(melting >= limit! ? above!.name : below!.name, place));
};

const conductivity: Strategy = (player, { target, place, boxes }) => {
  const [yes, no] = boxes;
  const filled = target === 'water' ? player.water() : undefined;
  const thing = filled?.water ?? player.findNamed(target, place);
  if (!filled) player.take(thing);
  player.do('focus on', thing);
  requireBoxed(player, filled?.pot ?? thing, thing.matter?.electric ? yes!.name : no!.name, 'workshop');
};

const find =
  (choose: (thing: Thing) => boolean, where: string): Strategy =>
  (player, { boxes, boxPlace }) => {
    player.go(where);
    const thing = player.find(
      (one) => choose(one) && (one.parent === player.place || one.parent?.parent === player.place),
    );
    player.do('focus on', thing);
    const carried = thing.parent === player.place ? thing : thing.parent!;
    player.take(carried);
    requireBoxed(player, carried, boxes[0]!.name, boxPlace);
  };

const findNonLiving: Strategy = (player, { boxes, boxPlace }) => {
  const orange = player.world.inventory.contents.find(({ kind }) => kind.id === 'orange')!;
  player.do('focus on', orange);
  requireBoxed(player, orange, boxes[0]!.name, boxPlace);
};

const mix: Strategy = (player, { target, place }) => {
  const recipe = player.find(({ kind }) => kind.id === 'recipe', 'recipe');
  player.take(recipe);
  player.do('read', recipe);
  const inputs = /you need to mix (.+)\.$/.exec(recipe.print!.text)![1]!.split(', ');
  const others = inputs.filter((input) => input !== 'water');
  const found = others.map((input) => player.findNamed(input, input.endsWith(' paint') ? 'art studio' : place));
  const pot = others.length < inputs.length ? player.water().pot : player.pot();
  for (const thing of found) player.put(thing, pot);
  player.do('mix', pot);
  player.do(
    'focus on',
    player.find(({ name, parent }) => name === target && parent === pot, target),
  );
};

const paints: Strategy = (player, { target }) => {
  const row = COLORS.find(([, , second, third]) => target === `${second} paint` || target === `${third} paint`)!;
  const [one, two, second, third, partOne, partTwo] = row;
  const cupOf = (color: string, other?: Thing) =>
    player.find(
      ({ name, parent }) =>
        name === `${color} paint` && parent !== other && parent?.kind.id === 'wood cup' && parent.parent !== null,
      `${color} paint`,
    ).parent!;
  const cup = cupOf(two);
  player.reach(cup);
  const mixIn = (color: string, product: string) => {
    const source = cupOf(color, cup);
    player.reach(source);
    player.do('pour', source, cup);
    player.do('mix', cup);
    player.do(
      'focus on',
      player.find(({ name, parent }) => name === `${product} paint` && parent === cup),
    );
  };
  mixIn(one, second);
  if (target === `${third} paint`) mixIn(partOne === second ? partTwo : partOne, third);
};

const lifespan: Strategy = (player, { goal }) => {
  player.go('outside');
  const animals = player.place.contents.filter(({ kind }) => kind.id === 'animal');
  animals.sort((a, b) => SPANS[b.life!.species]! - SPANS[a.life!.species]!);
  if (goal.includes('longest')) player.do('focus on', animals[0]!);
  if (goal.includes('shortest')) player.do('focus on', animals.at(-1)!);
};

const animalStages: Strategy = (player, { target }) => {
  player.go('outside');
  const animal = player.find(({ life }) => life?.species === target, target);
  const { stages, ticks } = ANIMALS[target]!;
  for (const [i, stage] of stages.slice(0, -1).entries()) {
    while (animal.life!.stage !== stage && !player.over) {
      const left = ticks[i - 1]! - animal.life!.ticks;
      player.do(left > 12 ? 'wait' : 'wait1');
    }
    player.do('focus on', animal);
  }
};

const plane: Strategy = (player, { goal }) => {
  player.go('workshop');
  const by = ({ plane }: Thing) => (goal.includes('friction') ? plane!.friction : plane!.angle);
  const planes = player.place.contents.filter((thing) => thing.plane).sort((a, b) => by(b) - by(a));
  player.do('focus on', /most|steepest/.test(goal) ? planes[0]! : planes.at(-1)!);
};

const trait: Strategy = (player, { target, boxes }) => {
  const [table, traits] = Object.entries(TRAITS).find(([species]) => target.endsWith(` ${species}`))!;
  const [, { dominant }] = Object.entries(traits).find(([name]) => target.endsWith(` ${name} ${table}`))!;
  const box = player.findNamed(target.startsWith(`${dominant} `) ? boxes[0]!.name : boxes[1]!.name);
  player.reach(box);
  player.do('focus on', box);
};

const RENEWABLE = ['solar panel', 'wind generator'];

const power: Strategy = (player, { goal, target }) => {
  const renewable = goal === 'power renewable';
  const part = player.findNamed(target, 'workshop');
  player.reach(part);
  player.do('focus on', part);
  const sources = goal === 'power' ? ['battery'] : renewable ? RENEWABLE : ['gas generator', 'nuclear generator'];
  const source = player.find(({ name }) => sources.includes(name), 'source of power');
  const [one, other] = player
    .things()
    .filter(({ kind, parent }) => kind.id.endsWith(' wire') && parent?.name === 'table');
  const parts = [part, source, one!, other!];
  if (renewable) {
    for (const thing of parts) player.take(thing);
    player.go('outside');
    for (const thing of parts) player.do('put down', thing);
  }
  const [anode, cathode] = source.terminals!;
  player.do('connect', anode, one!.terminals![0]);
  player.do('connect', cathode, other!.terminals![0]);
  player.do('connect', one!.terminals![1], part.terminals![1]);
  player.do('connect', other!.terminals![1], part.terminals![0]);
  if (source.device!.activable) player.do('activate', source);
  for (let i = 0; i < 5 && !player.over; i++) player.do('wait1');
};

const isAnimal = ({ kind }: Thing) => kind.id === 'animal';
const isPlant = ({ kind }: Thing) => kind.id === 'plant';

/** Strategies by task. */
const STRATEGIES: Readonly<Record<string, Strategy>> = {
  'use-thermometer': useThermometer,
  'measure-melting-point-known-substance': meltingPoint,
  'measure-melting-point-unknown-substance': meltingPoint,
  'power-component': power,
  'power-component-renewable-vs-nonrenewable-energy': power,
  'test-conductivity': conductivity,
  'test-conductivity-of-unknown-substances': conductivity,
  'find-living-thing': find(isAnimal, 'outside'),
  'find-non-living-thing': findNonLiving,
  'find-plant': find(isPlant, 'greenhouse'),
  'find-animal': find(isAnimal, 'outside'),
  'chemistry-mix': mix,
  'chemistry-mix-paint-secondary-color': paints,
  'chemistry-mix-paint-tertiary-color': paints,
  'lifespan-longest-lived': lifespan,
  'lifespan-shortest-lived': lifespan,
  'lifespan-longest-lived-then-shortest-lived': lifespan,
  'identify-life-stages-1': animalStages,
  'inclined-plane-determine-angle': plane,
  'inclined-plane-friction-named-surfaces': plane,
  'inclined-plane-friction-unnamed-surfaces': plane,
  'mendelian-genetics-known-plant': trait,
  'mendelian-genetics-unknown-plant': trait,
};
