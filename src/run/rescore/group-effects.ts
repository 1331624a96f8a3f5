/** Effects of new rewards on groups: of how many a group-relative learner would have learnt something else. Pure. */

/** Returns of a group's members under the recorded rewards and under the new ones. */
export interface GroupReturns {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** Counts of groups, by what the new rewards change for a group-relative learner. */
export interface GroupEffects {
  /** Groups of two episodes or more, all of them with a new reward. */
  readonly groups: number;
  /** Groups that teach something else: an advantage has another sign, or two members another order. */
  readonly changed: number;
  /** Changed groups in which an episode that was reinforced is now discouraged, or the other way round. */
  readonly reversed: number;
  /** Changed groups without a signal before: all returns were equal. */
  readonly gained: number;
  /** Changed groups without a signal now. */
  readonly lost: number;
}

/** Relative difference below which two returns are equal: sums of rewards in another order differ by less. */
const EQUAL = 1e-9;

/**
 * Counts the groups whose lesson changes. GRPO's advantage of a member is its return less the group's mean, over their standard
 * deviation (eq. in 2402.03300, section 4.1.2), so its sign and the members' order are what a group teaches.
 */
export function countGroupEffects(groups: readonly GroupReturns[]): GroupEffects {
  const compared = groups.filter(({ before }) => before.length > 1);
  const effects = compared.map(compareGroup);
  const count = (fact: keyof (typeof effects)[number]) => effects.filter((one) => one[fact]).length;
  return {
    groups: compared.length,
    changed: count('changed'),
    reversed: count('reversed'),
    gained: count('gained'),
    lost: count('lost'),
  };
}

function compareGroup({ before, after }: GroupReturns) {
  const [old, fresh] = [signsOf(before), signsOf(after)];
  const hasOtherSign = old.some((sign, i) => sign !== fresh[i]);
  const hasOtherOrder = before.some((a, i) =>
    before.some((b, j) => compareReturns(a, b) !== compareReturns(after[i]!, after[j]!)),
  );
  const hadSignal = old.some((sign) => sign !== 0);
  const hasSignal = fresh.some((sign) => sign !== 0);
  return {
    changed: hasOtherSign || hasOtherOrder,
    reversed: old.some((sign, i) => sign * fresh[i]! < 0),
    gained: !hadSignal && hasSignal,
    lost: hadSignal && !hasSignal,
  };
}

/** Signs of the members' advantages. */
function signsOf(returns: readonly number[]): readonly number[] {
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
  return returns.map((value) => compareReturns(value, mean));
}

function compareReturns(a: number, b: number): number {
  return Math.abs(a - b) <= EQUAL * Math.max(1, Math.abs(a), Math.abs(b)) ? 0 : Math.sign(a - b);
}
