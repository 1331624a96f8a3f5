/** Random policy, uniform over the listed actions: the baseline beside every figure, and the load of benches. */
import { Rng, seedFrom } from '../core/rng.ts';
import { ImmediatePolicy, type Undecided } from './immediate-policy.ts';
import { type ActRequest, nothingListed } from './policy.ts';

/** Random policy: draws by (sampling seed, turn) alone, so its decisions depend on neither batches nor time. */
export class RandomPolicy extends ImmediatePolicy {
  protected decide(request: ActRequest, table: readonly string[]): string | Undecided {
    const { actions, samplingSeed, turn } = request;
    if (actions.length === 0) return { message: nothingListed(request) };
    return table[actions[Rng.fromSeed(seedFrom(samplingSeed, turn)).int(actions.length)]!]!;
  }
}
