/** Turns that a policy does not decide, as the rollouts take them: an episode that ends is truncated, another one has failed. */
import type { Failure } from '../core/failure.ts';
import type { Unanswered } from './policy.ts';

/** Event of an episode that failed at its policy. */
interface FailedTurn {
  readonly type: 'failed';
  readonly episode: number;
  readonly failure: Failure;
}

/** Divides them. @param where path of the actor that asked the policy */
export function divideUnanswered(
  unanswered: readonly Unanswered[],
  where: string,
): { readonly truncated: readonly number[]; readonly failed: readonly FailedTurn[] } {
  const truncated = unanswered.filter(({ ends }) => ends).map(({ episode }) => episode);
  const failed = unanswered
    .filter(({ ends }) => !ends)
    .map(
      ({ episode, message }): FailedTurn => ({ type: 'failed', episode, failure: { cause: 'policy', where, message } }),
    );
  return { truncated, failed };
}
