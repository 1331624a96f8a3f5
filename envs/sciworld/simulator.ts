/** Simulator of one episode of ScienceWorld: loading a variation, and steps. */
import { type Action, inventoryText, type Stage } from './actions.ts';
import { deferTicks, settleAll, tickWorld } from './deferred-ticks.ts';
import { type Done, Goals } from './goals.ts';
import { buildHouse } from './house.ts';
import { JavaRandom } from './java-random.ts';
import { candidates, candidatesAnywhere, chooseReferents, listAccessible, plain } from './names.ts';
import { match, type Nameable, nameable, optionText, type Reading } from './parser.ts';
import { FIRST_HOUSE_ID, REGISTRY, type Registered } from './tasks/index.ts';
import { Site } from './tasks/task.ts';
import { describeDetails } from './text.ts';
import { descendants, type Thing, World } from './thing.ts';
import { availableActions, validActions } from './valid.ts';

/** Simplifications of ScienceWorld that the option `simplifications` takes, by their names there. */
export const SIMPLIFICATIONS = [
  'teleportAction',
  'openDoors',
  'openContainers',
  'selfWateringFlowerPots',
  'noElectricalAction',
] as const;
/** Name of a simplification. */
export type Simplification = (typeof SIMPLIFICATIONS)[number];

const UNKNOWN =
  "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. ";
const UNMATCHED = 'No known action matches that input.';
const AMBIGUOUS = 'Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n';

/** Simulator of one episode: world, goals, focus and random numbers, and the step that advances them. */
export class Simulator implements Stage {
  readonly world: World;
  readonly description: string;
  readonly goals: Goals;
  readonly actions: readonly Action[];
  focus: Thing | null = null;
  waiting = 0;
  /** Ticks so far. */
  moves = 0;
  readonly #history: Done[] = [];
  readonly #simplifications: ReadonlySet<Simplification>;
  /** Readings to choose from, after an ambiguous command. */
  #pending: Reading<Action>[] | null = null;
  #valid: (() => string[]) | undefined;
  /** Reach of commands as of this count of changes. */
  #reach: Nameable | undefined;
  #reachAt = -1;

  /** @param variation in [0, task.variations) */
  constructor(registered: Registered, variation: number, simplifications: readonly Simplification[] = []) {
    const { task } = registered;
    const random = new JavaRandom(variation);
    random.skip(registered.drawsBefore);
    const facts = task.register(random);
    random.seed(variation);
    this.world = new World(random);
    this.world.nextId = FIRST_HOUSE_ID;
    buildHouse(this.world);
    random.seed(variation);
    const episode = task.setUp(new Site(this.world, registered.idsBefore), variation, facts);
    this.description = episode.description;
    this.goals = new Goals(episode.ordered, episode.optional, this.world, this.#history);
    this.#simplifications = new Set(simplifications);
    this.actions = availableActions(
      this.#simplifications.has('teleportAction'),
      !this.#simplifications.has('noElectricalAction'),
    );
    this.world.watersPots = this.#simplifications.has('selfWateringFlowerPots');
    this.#simplify();
    deferTicks(this.world);
  }

  /** Makes up for all ticks that were put off, before the world is looked at from outside. */
  settle(): void {
    settleAll(this.world);
  }

  #simplify(): void {
    if (!this.#simplifications.has('openDoors') && !this.#simplifications.has('openContainers')) return;
    const open = (thing: Thing) => {
      if (this.#simplifications.has('openDoors')) {
        for (const portal of thing.portals) if (portal.kind.id === 'door') portal.portal!.open = true;
      }
      if (this.#simplifications.has('openContainers') && thing.container?.closable) thing.container.open = true;
    };
    for (const thing of descendants(this.world.universe)) open(thing);
  }

  resetGoals(): void {
    this.goals.reset();
    this.focus = null;
  }

  /** Choices an ambiguous command has left open; 0 when none. */
  get options(): number {
    return this.#pending?.length ?? 0;
  }

  /** Things that each of these choices would be done to. */
  get choices(): readonly (readonly Thing[])[] {
    return this.#pending?.map(({ things }) => things) ?? [];
  }

  /** Text of the agent's place. */
  look(): string {
    return describeDetails(this.world.agent.parent!, this.world.agent.parent);
  }

  /** Text of what the agent carries. */
  inventory(): string {
    return inventoryText(this.world);
  }

  /** Valid actions; computing them draws random numbers. */
  valid(): string[] {
    return this.drawValid()();
  }

  /**
   * Draws what the list of valid actions draws. @returns the list, made on its first call; a call after a further step
   * has no meaning
   */
  drawValid(): () => string[] {
    this.settle();
    this.#valid = this.#pending ? () => this.#pending!.map((_, i) => `${i}`).sort() : validActions(this, this.actions);
    return this.#valid;
  }

  /** List whose draws were made last. */
  lastValid(): string[] {
    return this.#valid?.() ?? [];
  }

  /** Steps. @returns the observation */
  step(text: string): string {
    const command = text.trim().toLowerCase();
    if (command === 'help') return this.#help();
    if (command === 'objects') return this.#objects();
    if (command === 'task') return `Task description:\n${this.description}`;
    if (this.#pending) {
      const options = this.#pending;
      this.#pending = null;
      const chosen = /^[+-]?\d+$/.test(text) ? options[Number(text)] : undefined;
      return this.#run(chosen ?? null);
    }
    const readings = this.#read(plain(text), this.reach());
    if (readings.length === 0) return UNMATCHED;
    if (readings.length > 1) return this.#ask(this.#read(plain(text), this.#inOrder()));
    return this.#run(readings[0]!);
  }

  /** Things a command can speak of now, with their names. */
  reach(): Nameable {
    const { agent, changes } = this.world;
    if (this.#reachAt !== changes.count) {
      this.#reach = nameable(candidates(agent), agent.parent!);
      this.#reachAt = changes.count;
    }
    return this.#reach!;
  }

  /** Number of ways in which a command can be understood now. */
  countReadings(text: string): number {
    return this.#read(plain(text), this.reach()).length;
  }

  /** The same in id order, the order in which several readings are listed. */
  #inOrder(): Nameable {
    const { agent } = this.world;
    return nameable(
      candidates(agent).sort((a, b) => a.id - b.id),
      agent.parent!,
    );
  }

  #read(text: string, near: Nameable): Reading<Action>[] {
    const { agent } = this.world;
    const readings: Reading<Action>[] = [];
    for (const action of this.actions) {
      const words = action.pattern[0]!;
      if (!words.some((word) => text.startsWith(word))) continue;
      if (action.when === 'teleport') this.settle();
      const far = action.when === 'teleport';
      const things = far ? nameable(candidatesAnywhere(this.world.universe), agent.parent!) : near;
      for (const tuple of match(action.pattern, text, things)) readings.push({ action, things: tuple });
    }
    return readings;
  }

  #ask(readings: Reading<Action>[]): string {
    const order = [...new Set(readings.map(({ action }) => action.name))].sort();
    const options = order.flatMap((name) => readings.filter(({ action }) => action.name === name));
    this.#pending = options;
    const room = this.world.agent.parent!;
    const several =
      order.length > 1
        ? `Ambiguous request: Multiple different possible actions were matched to this input (${order.join(', ')}). It's possible the action space needs to be refined to remove possible duplicate/ambiguous patterns.`
        : '';
    const rows = options.map(({ action, things }, i) => `${i}:\t${optionText(action.pattern, things, room)}\n`);
    return several + AMBIGUOUS + rows.join('');
  }

  #run(reading: Reading<Action> | null): string {
    let output = '';
    let queued = reading;
    for (;;) {
      let time = true;
      if (queued) {
        const { action, things } = queued;
        const [x, y] = things as [Thing, Thing];
        for (const thing of things) this.world.settle(thing);
        this.#history.push({ action, things });
        output = action.refuse(this, x, y) ?? action.run(this, x, y);
        time = !action.free;
        queued = null;
      }
      this.#lookAtGoals();
      if (time) {
        tickWorld(this.world);
        this.moves++;
      }
      this.#lookAtGoals();
      if (this.waiting <= 0) break;
      this.waiting--;
    }
    const text = output.trim().replace(/ +/g, ' ');
    return text === '' ? UNKNOWN : text;
  }

  #lookAtGoals(): void {
    if (this.focus) this.world.settle(this.focus);
    this.focus = this.goals.tick(this.focus);
  }

  #help(): string {
    return `Possible actions: \n\t${this.forms().join('\n\t')}`;
  }

  #objects(): string {
    return `Possible object references: \n\t${this.objects().join('\n\t')}`;
  }

  /** Names of what lies open to view, sorted; where they collide, choosing them draws random numbers. */
  objects(): string[] {
    const room = this.world.agent.parent!;
    return chooseReferents(listAccessible(room), room, this.world.random).sort();
  }

  /** Forms of the actions: `move OBJ to OBJ`. */
  forms(): string[] {
    const words = (action: Action) => action.pattern.map((part) => (part ? part[0] : 'OBJ')).join(' ');
    return this.actions.map(words).sort();
  }
}

/** Task by its name. */
export function findRegistered(name: string): Registered | undefined {
  return REGISTRY.get(name);
}
