/** Corrected text world, without the original's mistakes; the README lists the differences row by row. */

import { type Command, parse, print } from './grammar.ts';
import { DOOR, FORWARD, IMAGE_BYTES, LEFT, LOCKED, RIGHT } from './grid.ts';
import { generate, NUM_LEVELS } from './levels.ts';
import { expand, listCorrectedMacros, type Macro } from './macro.ts';
import { nameOf, readScene, type Scene } from './scene.ts';
import { describe, text } from './text.ts';
import type { World } from './world.ts';

/** Answer to one step. */
export interface Answer {
  readonly observation: string;
  /** Reward max(0, 1 − 0.9·steps/maxSteps) on the step that fulfils the instruction, else 0. */
  readonly reward: number;
  readonly terminated: boolean;
  readonly success: boolean;
}

export class CorrectedText {
  readonly world: World;
  answer: Answer;
  #scene: Scene;
  #macros: readonly Macro[];
  readonly #image = new Uint8Array(IMAGE_BYTES);

  /** @param index level index % 40 + 1, seed ⌊index / 40⌋ @throws {RangeError} for a negative one */
  constructor(index: number) {
    const world = (this.world = generate((index % NUM_LEVELS) + 1, Math.floor(index / NUM_LEVELS), 2));
    world.forgiving = true;
    [this.#scene, this.#macros] = this.#look();
    this.answer = {
      observation: this.#observation(this.#describeState()),
      reward: 0,
      terminated: false,
      success: false,
    };
    // Levels may start with a full hand: what was carried then is seen in the hand, not on the floor.
    world.staleImage = undefined;
  }

  /** Actions that would change the world, in a fixed order. */
  available(): string[] {
    return this.#macros.map((macro) => macro.action);
  }

  /** Low-level actions that an action stands for; empty where it is not available. */
  expand(action: string): readonly number[] {
    const macro = this.#find(print(parse(action)));
    return macro ? expand(macro, this.#scene, this.world, false) : [];
  }

  /** Takes one action. Past the end the answer stays what it was, without reward. */
  step(action: string): Answer {
    if (this.answer.terminated) return (this.answer = { ...this.answer, reward: 0 });
    const command = parse(action);
    const macro = this.#find(print(command));
    const { world } = this;
    if (!macro) {
      const observation = this.#observation(this.#refusal(command));
      return (this.answer = { observation, reward: 0, terminated: false, success: false });
    }
    // Things out of sight may stop a macro on its way; the end of the episode always does.
    for (const low of expand(macro, this.#scene, world, false)) if (!this.#play(low) || world.terminated) break;
    [this.#scene, this.#macros] = this.#look();
    const { terminated, success } = world;
    const end = terminated ? (success ? text.completed : text.failed) : '';
    return (this.answer = {
      observation: this.#observation(this.#describeState() + end),
      reward: Math.max(0, world.reward),
      terminated,
      success,
    });
  }

  /**
   * Plays a low-level action.
   * @returns whether it changed the world
   */
  #play(low: number): boolean {
    const { world } = this;
    const { front, carrying, agentX, agentY } = world;
    const id = world.cells[front]!;
    const code = world.codes[id]!;
    world.step(low);
    if (low === LEFT || low === RIGHT) return true;
    if (low === FORWARD) return world.agentX !== agentX || world.agentY !== agentY;
    return world.carrying !== carrying || world.cells[front] !== id || world.codes[id] !== code;
  }

  #look(): [Scene, Macro[]] {
    this.world.observe(this.#image);
    const scene = readScene(this.world, this.#image);
    return [scene, listCorrectedMacros(scene, this.world)];
  }

  #find(action: string): Macro | undefined {
    return this.#macros.find((macro) => macro.action === action);
  }

  #describeState(): string {
    return describe(this.#scene, this.world.codes[this.world.carrying]!);
  }

  #observation(outcome: string): string {
    return `${text.goal(this.world.mission)}\n${outcome}${text.available(this.available())}`;
  }

  /** Refusal: the reason why an action, understood or not, cannot be carried out now. */
  #refusal(command: Command): string {
    if (command.type === 'unparsed') return text.unrecognised;
    if (command.type === 'plain') {
      if (command.action === 'check available actions') return text.youCanTake(this.available());
      if (command.action === 'move forward') return text.barrier;
      if (command.action === 'toggle') return text.nothingToToggle;
      return this.world.carrying === 0 ? text.dropNothing : text.dropBlocked;
    }
    const { verb, name, number } = command;
    const what = `${name} ${number}`;
    const thing = this.#scene.things.find((other) => other.name === name && other.number === number);
    if (!thing) return text.notInSight(what);
    const isDoor = (thing.code & 0xff) === DOOR;
    const carried = this.world.codes[this.world.carrying]!;
    if (isDoor === (verb === 'pickup') || (!isDoor && verb !== 'pickup' && verb !== 'go to')) return text.unrecognised;
    if (verb === 'pickup' && this.world.carrying !== 0) return text.handsFull(what);
    if (verb === 'go to' && thing.front === 1 && thing.right === 0) return text.alreadyThere(what);
    const state = thing.code >>> 16;
    if (verb === 'go through' && state !== 0) return text.isClosed(what);
    if (verb === 'toggle and go through') {
      if (state === 0) return text.unrecognised;
      if (state === LOCKED && !nameOf(carried).endsWith('key')) return text.noKey(what);
      if (state === LOCKED && (carried & 0xff00) !== (thing.code & 0xff00)) return text.wrongKey(what);
    }
    return text.noPath(verb, what);
  }
}
