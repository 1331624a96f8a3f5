/** Decisions of a policy, as the policy server needs it: one turn in, its decision out. The actors implement it. */
import type { TokenSampling } from '../core/model-call.ts';
import type { Acted, GivenPrompt } from '../policy/policy.ts';

export interface DecisionRequest {
  readonly given: GivenPrompt;
  /** Actions to choose among; empty where the policy may write anything. */
  readonly actions: readonly string[];
  /** Temperature; 0 is greedy. */
  readonly temperature: number;
  /** Settings that reshape the distribution of tokens; absent: the whole distribution. */
  readonly sampling?: TokenSampling | undefined;
  /** Texts that end an answer; the server cuts them off. */
  readonly stop?: readonly string[] | undefined;
}

export interface Decisions {
  /** Decides a turn. @param gone gives it up @throws {LongplayError} when the policy is down, late, or has no room for the turn */
  decide(request: DecisionRequest, gone: AbortSignal): Promise<Acted>;
  readonly healthy: boolean;
  /** Turns that wait for their decision. */
  readonly waiting: number;
  /** Bytes held for them. */
  readonly waitingBytes: number;
}
