/**
 * Failures: a failed episode is data, attributed to one boundary and recorded once. It is re-issued or dropped, and
 * never becomes a reward.
 */
import { AGENT } from './agent-call.ts';

/** Causes of a failure, in the order of the boundary that noticed it. */
export const FAILURE_CAUSES = [
  'threw', // the env's code threw or rejected
  'timeout', // no answer within the deadline
  'exited', // the thread or process ended
  'out-of-memory',
  'unclonable', // the answer could not cross the thread
  'oversized', // the answer exceeds the env's stated bound
  'protocol', // an answer for another episode, or one that breaks the time-step contract
  'lost', // its host ended by another's fault, and its actions must not be taken again
  'unreachable', // no connection to the env's server, or no answer of it in time
  'policy', // the policy could not decide
  'worker', // the machine that played it went away, or sent what cannot be believed
  'injected-drop', // chaos mode lost the message
] as const;

/** Cause of a failure. */
export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** Cure of failures, by their cause: what a person does next. @param env id of the world; an agent has cures of its own */
export function cureOf(cause: FailureCause, env: string): string {
  if (cause === 'policy') return 'see that the policy answers, then resume';
  if (env !== AGENT) {
    return cause === 'unreachable' ? "start the environment's server again, then resume" : 'run `longplay check-env`';
  }
  if (cause === 'unreachable') return "start the agent's service again, then resume";
  if (cause === 'timeout') return 'let the program call its model sooner, or raise rollout.stepDeadlineMs';
  return 'play it once by `longplay rollout --agent <program> --policy random --episodes 1`';
}

/** Failure of an episode: its cause, and a line that describes it. */
export interface Failure {
  readonly cause: FailureCause;
  /** Path of the actor that noticed it, e.g. `/env-hosts/2`. */
  readonly where: string;
  readonly message: string;
}

/**
 * Account of every launched episode, by its outcome. The identity `launched = trained + stale + filtered + failed +
 * inFlight` holds after every update; a run in which it does not is a bug.
 */
export interface Accounting {
  readonly launched: number;
  /** Consumed by an update. */
  readonly trained: number;
  /** Finished, but older than `maxLag` allows. */
  readonly stale: number;
  /** Finished and left out on purpose (no signal in the group, evaluation, …). */
  readonly filtered: number;
  readonly failed: Readonly<Partial<Record<FailureCause, number>>>;
  /** Running, or finished and waiting for an update. */
  readonly inFlight: number;
}

/** Number of failed episodes, all causes. */
export function countFailed({ failed }: Pick<Accounting, 'failed'>): number {
  return Object.values(failed).reduce((sum, count) => sum + (count ?? 0), 0);
}

/** Episodes launched minus those accounted for; 0 when the identity holds. */
export function countUnaccounted(accounting: Accounting): number {
  const { launched, trained, stale, filtered, inFlight } = accounting;
  return launched - trained - stale - filtered - countFailed(accounting) - inFlight;
}
