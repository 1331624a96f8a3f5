/**
 * Original text world of AgentGym as it is, mistakes included, as the recorded episodes show it.
 *
 * @see WooooDyy/AgentGym `agentenv-babyai`
 */
import { IMAGE_BYTES } from './grid.ts';
import { generate, NUM_LEVELS } from './levels.ts';
import { expand, type Macro, originalMacros } from './macro.ts';
import { readScene, type Scene } from './scene.ts';
import { describe, text } from './text.ts';
import type { World } from './world.ts';

/** Answer of AgentGym's server. */
export interface Payload {
  readonly observation: string;
  readonly reward: number;
  /** Sum of the rewards so far; what AgentGym's client hands on as the reward. */
  readonly score: number;
  readonly done: boolean;
}

export class OriginalText {
  readonly world: World;
  /** Goal: the mission without its order; "then" and "after you" both become "and". */
  readonly goal: string;
  payload: Payload;
  /** True when the instruction was fulfilled, whatever reward and done flag the original made of it. */
  success = false;
  #scene: Scene;
  #macros: readonly Macro[];
  #reward = 0;
  /** Last answer, without the list. */
  #state: string;
  /** Image that the next one is compared with, for "did anything change?". */
  readonly #image = new Uint8Array(IMAGE_BYTES);
  readonly #next = new Uint8Array(IMAGE_BYTES);

  /** @param index data index: level index % 40 + 1, seed ⌊index / 40⌋ @throws {RangeError} for a negative one */
  constructor(index: number) {
    const world = (this.world = generate((index % NUM_LEVELS) + 1, Math.floor(index / NUM_LEVELS), 2));
    this.goal = world.mission.replaceAll('then', 'and').replaceAll('after you', 'and');
    // The text of a level that starts with a full hand is made from the image of before.
    world.observe(this.#image);
    if (world.staleImage) this.#image.set(world.staleImage);
    this.#scene = readScene(world, this.#image);
    this.#macros = originalMacros(this.#scene, world);
    this.#state = describe(this.#scene, world.codes[world.carrying]!);
    this.payload = { observation: this.observe(), reward: 0, score: 0, done: false };
  }

  /** Observation as the server repeats it on request: the goal, the last answer and the list. */
  observe(): string {
    return `${text.goal(this.goal)}\n${this.#state}${this.#list()}`;
  }

  /** Actions listed, in order. */
  available(): string[] {
    return this.#macros.map((macro) => macro.action);
  }

  /** Low-level actions that an action stands for; empty where it is not listed. */
  expand(action: string): number[] {
    const macro = this.#find(normalise(action));
    return macro ? [...expand(macro, this.#scene, this.world, true)] : [];
  }

  #find(action: string): Macro | undefined {
    return this.#macros.find((macro) => macro.action === action);
  }

  #list(): string {
    return text.available(this.available());
  }

  /** Takes one action. The server refuses to go on after `done`; here it may, and means nothing. */
  step(action: string): Payload {
    const wanted = normalise(action);
    let done = this.payload.done;
    const macro = this.#find(wanted);
    // Anything with "check" in it is a look at the list; a refused or idle action leaves the last reward standing.
    if (wanted.includes('check')) this.#state = text.youCanTake(this.available());
    else if (wanted === '') this.#state = text.noChange;
    else if (!macro) this.#state = this.#refusal(wanted);
    else {
      const low = expand(macro, this.#scene, this.world, true);
      if (low.length === 0) this.#state = text.noChange;
      else [this.#state, done] = this.#play(low);
    }
    const reward = this.#reward;
    this.payload = { observation: this.#state + this.#list(), reward, score: this.payload.score + reward, done };
    return this.payload;
  }

  /** Plays low-level actions until the image stays the same. Only the last one's reward and end count. */
  #play(low: readonly number[]): [observation: string, done: boolean] {
    const { world } = this;
    for (const action of low) {
      world.step(action);
      if (world.success) this.success = true;
      world.observe(this.#next);
      if (equalBytes(this.#next, this.#image)) break;
      this.#image.set(this.#next);
    }
    this.#scene = readScene(world, this.#image);
    this.#macros = originalMacros(this.#scene, world);
    this.#reward = world.reward;
    const description = describe(this.#scene, world.codes[world.carrying]!);
    // A late success (reward ≤ ½) and a failure are reported as completion, and the episode goes on.
    return world.terminated ? [description + text.completed, world.reward > 0.5] : [description, false];
  }

  #refusal(action: string): string {
    const refusals = new Map<string, string>();
    originalMacros(this.#scene, this.world, refusals);
    return refusals.get(action) ?? text.unrecognised;
  }
}

function normalise(action: string): string {
  return action.toLowerCase().trim();
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
