/** Trivial rules as policies: they know nothing of the task, so a reward that they earn is no sign of skill. */
import { Rng, seedFrom } from '../core/rng.ts';
import { ImmediatePolicy, type Undecided } from './immediate-policy.ts';
import { type ActRequest, nothingListed } from './policy.ts';

/**
 * Rules, by name. `first`, `last`: that one of the listed actions; `same`: one action drawn at random, again and again while it
 * is listed; `empty`, `word`: the text '' or 'ok', whatever is listed; `end`: an action that ends the episode by its name, else
 * the first.
 */
export const RULES = ['first', 'last', 'same', 'empty', 'word', 'end'] as const;

/** Rule: one of `RULES`. */
export type Rule = (typeof RULES)[number];

/** True for an action whose name says that it ends the episode: `stop`, `submit answer`, `finish`. */
export function isEndAction(action: string): boolean {
  return /^(?:end|stop|finish|done|quit|exit|submit|terminate|give[ _-]?up)(?![a-z])/i.test(action);
}

/** Rule policy: decides by its rule alone; `same` draws by (sampling seed, turn), so it depends on no batch and no time. */
export class RulePolicy extends ImmediatePolicy {
  readonly #rule: Rule;

  constructor(maxBatch: number, rule: Rule) {
    super(maxBatch);
    this.#rule = rule;
  }

  protected decide(request: ActRequest, table: readonly string[]): string | Undecided {
    if (this.#rule === 'empty') return '';
    if (this.#rule === 'word') return 'ok';
    const listed = [...request.actions].map((index) => table[index]!);
    if (listed.length === 0) return { message: nothingListed(request) };
    return this.#choose(request, listed);
  }

  #choose({ lastAction, samplingSeed, turn }: ActRequest, listed: readonly string[]): string {
    switch (this.#rule) {
      case 'last':
        return listed.at(-1)!;
      case 'end':
        return listed.find(isEndAction) ?? listed[0]!;
      case 'same':
        if (lastAction !== undefined && listed.includes(lastAction)) return lastAction;
        return Rng.fromSeed(seedFrom(samplingSeed, turn)).pick(listed);
      default:
        return listed[0]!;
    }
  }
}
