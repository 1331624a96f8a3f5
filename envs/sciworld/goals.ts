/** Goal engine: ordered goals about the thing in focus, optional ones about the world, and the score of both. */
import type { Action } from './actions.ts';
import { isNamed } from './text.ts';
import type { Thing, World } from './thing.ts';

/** Action done, for goals about the past. */
export interface Done {
  readonly action: Action;
  readonly things: readonly Thing[];
}

/** Sight of the world, as goals test it. */
export class Sight {
  readonly world: World;
  readonly history: readonly Done[];
  /** Last thing that satisfied an ordered goal. */
  last: Thing | null = null;
  #near: readonly Thing[] = [];
  #living: readonly Thing[] | null = null;
  /** Near things by name, for the names looked up so far. */
  readonly #byName = new Map<string, readonly Thing[]>();
  /** Count of changes that all of these are of. */
  #at = -1;

  constructor(world: World, history: readonly Done[]) {
    this.world = world;
    this.history = history;
  }

  /** Things in the agent's place, at any depth, shut away or not; hidden things are left out. */
  get near(): readonly Thing[] {
    this.#look();
    return this.#near;
  }

  /** Those near that live or lived. */
  get living(): readonly Thing[] {
    this.#look();
    this.#living ??= this.#near.filter(({ life }) => life !== null);
    return this.#living;
  }

  /** Those near that are named or described so. */
  findNamed(name: string): readonly Thing[] {
    this.#look();
    let found = this.#byName.get(name);
    if (!found) {
      found = this.#near.filter((thing) => isNamed(thing, name));
      this.#byName.set(name, found);
    }
    return found;
  }

  #look(): void {
    const { agent, changes } = this.world;
    if (this.#at === changes.count) return;
    this.#at = changes.count;
    const near: Thing[] = [];
    gather(agent.parent!, near);
    this.#near = near;
    this.#living = null;
    this.#byName.clear();
  }
}

/** Verdict on a goal: met, not yet, or failed for good. */
export type Verdict = 'yes' | 'no' | 'failed';

/** One goal; `test` is called with the thing in focus, optional ones also with none. */
export interface Goal {
  readonly kind: string;
  readonly description: string;
  /** Optional goals: keys that have to be complete first. */
  readonly after?: readonly string[];
  /** Optional goals: key that is complete with this. */
  readonly key?: string;
  /** Ordered goals: the focus is dropped with this. */
  readonly clearsFocus?: boolean;
  test(focus: Thing | null, sight: Sight): Verdict;
}

/** Progress of one session. */
export class Goals {
  readonly ordered: readonly Goal[];
  readonly optional: readonly Goal[];
  readonly sight: Sight;
  #done = 0;
  #met: boolean[];
  #keys = new Set<string>();
  #failed = false;

  constructor(ordered: readonly Goal[], optional: readonly Goal[], world: World, history: readonly Done[]) {
    this.ordered = ordered;
    this.optional = optional;
    this.#met = optional.map(() => false);
    this.sight = new Sight(world, history);
  }

  /** Ticks: one look at the world. @returns the focus afterwards */
  tick(focus: Thing | null): Thing | null {
    let at = focus;
    while (at && this.#done < this.ordered.length) {
      const goal = this.ordered[this.#done]!;
      const verdict = goal.test(at, this.sight);
      if (verdict === 'failed') this.#failed = true;
      if (verdict !== 'yes') break;
      this.#done++;
      this.sight.last = at;
      if (goal.key) this.#keys.add(goal.key);
      if (goal.clearsFocus) at = null;
    }
    for (let added = true; added; ) {
      added = false;
      for (let i = 0; i < this.optional.length; i++) if (!this.#met[i] && this.#look(i, at)) added = true;
    }
    return at;
  }

  #look(i: number, focus: Thing | null): boolean {
    const goal = this.optional[i]!;
    for (const key of goal.after ?? []) if (!this.#keys.has(key)) return false;
    if (goal.test(null, this.sight) !== 'yes' && !(focus && goal.test(focus, this.sight) === 'yes')) return false;
    this.#met[i] = true;
    if (goal.key) this.#keys.add(goal.key);
    return true;
  }

  /** Resets to the start; keys and the memory of goals stay, as in the original. */
  reset(): void {
    this.#done = 0;
    this.#met.fill(false);
    this.#failed = false;
    this.sight.last = null;
  }

  get complete(): boolean {
    return this.#done === this.ordered.length;
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Score in [0, 1], or −1 after a failure. */
  get score(): number {
    if (this.#failed) return -1;
    const share = 1 / (this.ordered.length + 1) / this.optional.length;
    let extra = 0;
    for (const met of this.#met) if (met) extra += share;
    return Math.min(1, this.#done / this.ordered.length + extra);
  }

  /** Goals with their state, the ordered ones first. */
  get states(): {
    readonly kind: string;
    readonly description: string;
    readonly ordered: boolean;
    readonly met: boolean;
  }[] {
    const state = ({ kind, description }: Goal, ordered: boolean, met: boolean) => ({
      kind,
      description,
      ordered,
      met,
    });
    return [
      ...this.ordered.map((goal, i) => state(goal, true, i < this.#done)),
      ...this.optional.map((goal, i) => state(goal, false, this.#met[i]!)),
    ];
  }

  /** Goals with their state as text, as AgentGym's `/goals` answers. */
  get progress(): string {
    const line = '-'.repeat(100);
    const row = (goal: Goal, i: number, done: boolean) => `${i}\t${done}\t${goal.kind}\t${goal.description}`;
    return [
      `Completed keys: ${[...this.#keys].join(', ')}`,
      line,
      'Sequential Subgoals:',
      line,
      ...this.ordered.map((goal, i) => row(goal, i, i < this.#done)),
      line,
      'Unordered and Optional Subgoals:',
      line,
      ...this.optional.map((goal, i) => row(goal, i, this.#met[i]!)),
      line,
      '',
    ].join('\n');
  }
}

function gather(container: Thing, found: Thing[]): void {
  for (const thing of container.contents) {
    if (thing.hidden) continue;
    found.push(thing);
    if (thing.contents.length > 0) gather(thing, found);
  }
}
