import { type Env, type EnvStep, type First, type Session, terminated } from '../../src/core/env.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Task, TaskTable } from '../../src/core/task.ts';
import { type Amounts, listActions, OfferBook, type Offers } from './actions.ts';
import { Effects, type Fidelity, type Taken } from './effects.ts';
import { type Amount, minus, plus } from './grammar.ts';
import { type Order, treeOf } from './order.ts';
import type { Item, Tree } from './recipes.ts';
import { drawStart } from './start.ts';
import { EVAL_SEED, tasksOf } from './tasks.ts';
import * as text from './text.ts';
import { Variants } from './variants.ts';

/** Options of the world; README.md explains each. */
export interface TextCraftOptions {
  readonly fidelity: Fidelity;
  readonly order: Order;
  /** Names of items. `permuted`: permuted per task seed, the evaluation seed aside. */
  readonly names: 'true' | 'permuted';
  /** Recipes. `recombined`: recombined per task seed, the evaluation seed aside; `mixed`: so under seven seeds of ten. */
  readonly recipes: 'true' | 'recombined' | 'mixed';
  /** Amounts in which a found item is listed. */
  readonly amounts: Amounts;
  /** True when `inventory` is among the listed actions; the action itself is always valid. */
  readonly listInventory: boolean;
}

export const DEFAULTS: TextCraftOptions = {
  fidelity: 'corrected',
  order: 'sorted',
  names: 'true',
  recipes: 'true',
  amounts: 'named',
  listInventory: true,
};

/** Share of task seeds whose recipes are recombined. */
const SHARE_RECOMBINED: Readonly<Record<TextCraftOptions['recipes'], number>> = { true: 0, mixed: 0.7, recombined: 1 };

/** Rule books of recent task seeds that are kept; the members of a group share one. */
const REMEMBERED_BOOKS = 64;

/** Rule book and what follows from it. */
interface RuleBook {
  readonly tree: Tree;
  readonly effects: Effects;
  readonly offers: OfferBook;
}

/** Items held, in the order in which they came to be held; one used up and made again goes to the end. */
export type Inventory = Map<Item, Amount>;

/**
 * TextCraft: find and craft Minecraft items until the goal item exists.
 *
 * Observation  English text; the first lists the recipes and the goal, each later one states what happened or why not.
 * Action       `craft N item using N item, …` | `get N item` | `inventory`; anything else costs a turn.
 * Reward       1 on the turn that makes the goal item, else 0.
 * Terminates   when the goal item is made. Truncation belongs to the horizon.
 * Randomness   which recipes are listed beside the needed ones and in what order, and by options also the names and
 *              recipes themselves, from the task seed. Steps have none.
 * Source       AgentGym, agentenv-textcraft at 3ef9235d, after Prasad et al. 2024 (ADaPT), https://arxiv.org/abs/2311.05772
 * Differs      see the table in README.md; `fidelity: 'original'` differs nowhere the golden traces reach.
 */
export class TextCraft implements Env {
  readonly id = 'textcraft';
  readonly description = 'Find and craft Minecraft items from a list of recipes until the goal item exists.';
  readonly tasks: TaskTable;
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars: number;
  readonly #options: TextCraftOptions;
  readonly #book: RuleBook;
  /** Source of variants; none where names and recipes are the true ones. */
  readonly #variants: Variants | undefined;
  /** Books of variants by task seed, oldest first. */
  readonly #varied = new Map<number, RuleBook>();

  constructor(options: Partial<TextCraftOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    const tree = treeOf(this.#options.order);
    this.tasks = tasksOf(tree, this.#options.order);
    this.#book = this.#ruleBook(tree);
    const names = this.#options.names === 'permuted';
    const recombined = SHARE_RECOMBINED[this.#options.recipes];
    this.#variants = names || recombined > 0 ? new Variants(tree, { names, recombined }) : undefined;
    // The original echoes actions of any length, so only the engine's longest string bounds its answers.
    this.maxObservationChars = this.#options.fidelity === 'original' ? 2 ** 29 : 65_536;
  }

  /** @throws {RangeError} for a task index outside the table */
  open(task: Task): TextCraftSession {
    const book = this.#bookOf(task.seed);
    return new TextCraftSession(book.effects, book.offers, drawStart(book.tree, task.index, task.seed), this.#options);
  }

  /**
   * Opens an episode from a recorded goal and list of commands instead of a task.
   * @param seed of the task, whose names and recipes hold where options vary them; absent: the true ones
   */
  openFrom(start: text.Start, seed = EVAL_SEED): TextCraftSession {
    const { effects, offers } = this.#bookOf(seed);
    return new TextCraftSession(effects, offers, start, this.#options);
  }

  /** Amounts in which a found item is listed. */
  get amounts(): Amounts {
    return this.#options.amounts;
  }

  /** Tree of the rule book that holds under a task seed. */
  treeUnder(seed: number): Tree {
    return this.#bookOf(seed).tree;
  }

  #bookOf(seed: number): RuleBook {
    if (seed === EVAL_SEED || !this.#variants) return this.#book;
    const known = this.#varied.get(seed);
    if (known) return known;
    const rng = Rng.fromSeed(seedFrom('textcraft variant', seed));
    const book = this.#ruleBook(this.#variants.draw(rng));
    const [oldest] = this.#varied.keys();
    if (this.#varied.size >= REMEMBERED_BOOKS) this.#varied.delete(oldest!);
    this.#varied.set(seed, book);
    return book;
  }

  #ruleBook(tree: Tree): RuleBook {
    const effects = new Effects(tree, this.#options.fidelity);
    return { tree, effects, offers: new OfferBook(effects, this.#options.amounts) };
  }
}

export class TextCraftSession implements Session {
  readonly first: First;
  readonly #effects: Effects;
  readonly #book: OfferBook;
  readonly #start: text.Start;
  readonly #goal: Item | undefined;
  readonly #held: Inventory = new Map();
  readonly #corrected: boolean;
  readonly #listInventory: boolean;
  #over = false;
  #offers: Offers | undefined;

  constructor(effects: Effects, book: OfferBook, start: text.Start, options: TextCraftOptions) {
    this.#effects = effects;
    this.#book = book;
    this.#start = start;
    this.#corrected = options.fidelity === 'corrected';
    this.#listInventory = options.listInventory;
    this.#goal = effects.tree.numberOf.get(start.goal);
    this.first = { kind: 'first', observation: text.opening(start) };
  }

  /** Inventory now: names and amounts, in order. */
  get inventory(): [name: string, amount: Amount][] {
    return Array.from(this.#held, ([item, amount]) => [this.#effects.tree.items[item]!, amount]);
  }

  step(action: string): EnvStep {
    if (this.#over && this.#corrected) return terminated(text.formatOver(this.#start.goal), 0, true);
    const effect = this.#effects.of(action);
    switch (effect.type) {
      case 'reply':
        return effect.answer;
      case 'inventory':
        return { kind: 'mid', observation: text.inventory(this.inventory), reward: 0 };
      case 'get':
        this.#add(effect.item, effect.amount);
        return this.#answer(effect.answer, effect.item);
      case 'craft':
        if (!this.#holds(effect.takes)) return effect.lacking;
        if (!effect.makes) return effect.answer;
        this.#remove(effect.takes);
        this.#add(effect.makes.item, effect.makes.count);
        return this.#answer(effect.answer, effect.makes.item);
    }
  }

  actions(): readonly string[] {
    if (this.#over && this.#corrected) return [];
    this.#offers ??= this.#book.of(this.#start.commands, this.#listInventory);
    return listActions(this.#offers, this.#held);
  }

  close(): void {}

  #answer(answer: EnvStep, obtained: Item): EnvStep {
    if (obtained !== this.#goal) return answer;
    this.#over = true;
    return terminated(answer.observation, 1);
  }

  #holds(takes: readonly Taken[]): boolean {
    for (const { item, amount } of takes) {
      const held = this.#held.get(item);
      if (held === undefined || held < amount) return false;
    }
    return true;
  }

  #add(item: Item, amount: Amount): void {
    const held = this.#held.get(item);
    if (held === undefined && amount === 0 && this.#corrected) return; // the original lists `[oak log] (0)`
    this.#held.set(item, held === undefined ? amount : plus(held, amount));
  }

  #remove(takes: readonly Taken[]): void {
    for (const { item, amount } of takes) {
      const left = minus(this.#held.get(item)!, amount);
      if (left === 0) this.#held.delete(item);
      else this.#held.set(item, left);
    }
  }
}
