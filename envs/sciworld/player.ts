/** Player with full knowledge of the world: walks, takes and uses things by actions that are listed, and keeps its texts. */
import { ACTIONS } from './actions.ts';
import type { SciWorldSession } from './env.ts';
import { LIQUID } from './materials.ts';
import { MORE } from './stages.ts';
import { findBehind } from './text.ts';
import { descendants, placeOf, type Thing, type World } from './thing.ts';

/** Error of a strategy that finds no way on. */
export class GiveUp extends Error {}

const LISTED = new Map(ACTIONS.map((action) => [action.shown[0]!, action]));

/** Player of one session: each method sends actions until something is done, and keeps their texts in `texts`. */
export class Player {
  readonly texts: string[] = [];
  readonly #session: SciWorldSession;
  over = false;

  constructor(session: SciWorldSession) {
    this.#session = session;
  }

  get world(): World {
    return this.#session.simulator.world;
  }

  get place(): Thing {
    return this.world.agent.parent!;
  }

  /** All things that are not hidden. */
  things(): Thing[] {
    return [...descendants(this.world.universe)];
  }

  /** First thing that passes. @throws {GiveUp} where none does */
  find(test: (thing: Thing) => boolean, what = 'a thing'): Thing {
    const found = this.things().find(test);
    if (!found) throw new GiveUp(`there is no ${what}`);
    return found;
  }

  /** Thing of this name, in `place` if there is one there. */
  findNamed(name: string, place = ''): Thing {
    const is = (thing: Thing) => thing.name === name;
    return this.things().find((thing) => is(thing) && placeOf(thing)?.name === place) ?? this.find(is, name);
  }

  #act(text: string): void {
    if (this.over) return;
    this.texts.push(text);
    if (this.#session.step(text).kind === 'terminated') this.over = true;
  }

  /** One action by its verb as listed: at once where it is listed whole, else in stages. */
  do(verb: string, ...things: readonly Thing[]): void {
    const action = LISTED.get(verb)!;
    const names = things.map((thing) => {
      const name = this.#session.nameOf(thing);
      if (name === undefined) throw new GiveUp(`${thing.name} is not within reach`);
      return name;
    });
    const [x, y] = names;
    const [, joint] = action.shown;
    const whole = [verb, x, ...(y === undefined ? [] : [joint, y])].filter((part) => part !== undefined).join(' ');
    if (things.length > 0 && !this.#session.actions().includes(whole)) {
      this.#act(`${verb} ${MORE}`);
      if (things.length === 2) this.#act(`${verb} ${x} ${joint} ${MORE}`);
    }
    this.#act(whole);
    const choice = this.#session.simulator.choices.findIndex((meant) => things.every((thing, i) => thing === meant[i]));
    if (choice >= 0) this.#act(`${choice}`);
  }

  /** Walks to a place by the shortest way, opening doors. */
  go(place: string): void {
    for (const door of this.#way(place)) {
      const next = findBehind(door, this.place)!;
      if (!door.portal!.open) this.do('open', door);
      this.do('go to', next);
    }
  }

  #way(place: string): Thing[] {
    const from = new Map<Thing, { door: Thing; room: Thing } | null>([[this.place, null]]);
    for (const room of from.keys()) {
      if (room.name === place) {
        const doors: Thing[] = [];
        for (let step = from.get(room); step; step = from.get(step.room)) doors.unshift(step.door);
        return doors;
      }
      for (const door of room.portals) {
        const next = door.kind.id === 'door' ? findBehind(door, room) : null;
        if (next && !from.has(next)) from.set(next, { door, room });
      }
    }
    throw new GiveUp(`there is no way to the ${place}`);
  }

  /** Goes where a thing is and opens what it is shut in. */
  reach(thing: Thing): void {
    if (this.#holds(thing)) return;
    this.go(placeOf(thing)!.name);
    const shut: Thing[] = [];
    for (let at = thing.parent; at && !at.kind.location; at = at.parent)
      if (at.container && !at.isOpen) shut.unshift(at);
    for (const container of shut) this.do('open', container);
  }

  #holds(thing: Thing): boolean {
    for (let at = thing.parent; at; at = at.parent) if (at === this.world.inventory) return true;
    return false;
  }

  take(thing: Thing): void {
    if (thing.parent === this.world.inventory) return;
    this.reach(thing);
    this.do('pick up', thing);
  }

  /** A pot of water, carried. */
  water(): { readonly pot: Thing; readonly water: Thing } {
    const pot = this.#pot();
    this.take(pot);
    const sink = this.findNamed('sink', 'kitchen');
    this.go('kitchen');
    this.do('move', pot, sink);
    this.do('activate', sink);
    this.do('deactivate', sink);
    this.take(pot);
    const water = pot.contents.find(({ name }) => name === 'water');
    if (!water) throw new GiveUp('the sink gives no water');
    return { pot, water };
  }

  #pot(): Thing {
    return this.find(({ kind, parent }) => kind.id === 'metal pot' && parent?.name === 'cupboard', 'metal pot');
  }

  /** An empty pot, carried. */
  pot(): Thing {
    const pot = this.#pot();
    this.take(pot);
    return pot;
  }

  /** Puts a thing, liquid or not, into a vessel that is carried. */
  put(thing: Thing, vessel: Thing): void {
    this.reach(thing);
    if (thing.matter?.state !== LIQUID) this.do('move', thing, vessel);
    else if (thing.parent!.moveable) this.do('pour', thing.parent!, vessel);
    else this.do('dunk', vessel, thing.parent!);
  }
}
