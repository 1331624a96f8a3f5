/** Small worlds for tests of SciWorld's rules: one room with an agent, or a task's whole house with an agent that teleports. */
import { JavaRandom } from '../../envs/sciworld/java-random.ts';
import { kind } from '../../envs/sciworld/kinds.ts';
import { findRegistered, type Simplification, Simulator } from '../../envs/sciworld/simulator.ts';
import { descendants, type Thing, World } from '../../envs/sciworld/thing.ts';
import { tick } from '../../envs/sciworld/ticks.ts';

export interface SmallWorld {
  readonly world: World;
  readonly room: Thing;
  /** Builds a thing of a kind into `into`, the room where none is given. */
  put(id: string, into?: Thing): Thing;
  /** Lets the room have its turn `times` times. */
  pass(times?: number): void;
}

/** A room without air, door or furniture, and an agent with empty hands in it. */
export function smallWorld(place = 'kitchen', seed = 1): SmallWorld {
  const world = new World(new JavaRandom(seed));
  world.universe = world.make(kind('universe'));
  const put = (id: string, into: Thing) => {
    const thing = world.make(kind(id));
    world.move(thing, into);
    return thing;
  };
  const room = put(place, world.universe);
  world.agent = put('agent', room);
  world.inventory = put('inventory', world.agent);
  return {
    world,
    room,
    put: (id, into = room) => put(id, into),
    pass(times = 1) {
      for (let i = 0; i < times; i++) {
        world.clock++;
        tick(room, world);
      }
    },
  };
}

/** Joins two contacts, as connecting them does. */
export function join(one: Thing, other: Thing): void {
  one.contact!.connection = other;
  other.contact!.connection = one;
  for (const end of [one, other]) end.contact!.owner.plugged = true;
}

/** A task's house; its agent may teleport. */
export function house(
  task = 'boil',
  variation = 0,
  simplifications: readonly Simplification[] = ['teleportAction'],
): Simulator {
  const found = findRegistered(task);
  if (!found) throw new Error(`there is no task ${task}`);
  return new Simulator(found, variation, simplifications);
}

/** First thing of this name in the house, in the place of that name where one is given. */
export function thingIn({ world }: Simulator, name: string, place?: string): Thing {
  const top = place === undefined ? world.universe : world.universe.contents.find((room) => room.name === place)!;
  for (const thing of descendants(top, true)) if (thing.name === name) return thing;
  throw new Error(`there is no ${name}${place === undefined ? '' : ` in the ${place}`}`);
}

/** Steps, one after the other. @returns the last answer */
export function act(simulator: Simulator, ...texts: readonly string[]): string {
  let answer = '';
  for (const text of texts) answer = simulator.step(text);
  return answer;
}
