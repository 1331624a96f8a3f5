/**
 * Verification of an episode by the user's function: its reward from what the episode is. Worlds of MCP servers call it as an
 * episode ends, `longplay rescore` calls it on saved ones.
 */
import { type AgentOutcome, readOutcome } from './agent-call.ts';
import { describeValue } from './describe-value.ts';
import type { ConversationMessage } from './model-call.ts';

/** Facts of an episode that every such function is given: one that reads no others serves wherever it is called. */
export interface VerifyFacts {
  /** Entry of the world's list of tasks; `{ env, index, seed }` for a world without one. */
  readonly task: unknown;
  readonly index: number;
  readonly seed: number;
  /** Text of the policy's last reply; empty where that only called tools. */
  readonly answer: string;
  /** Messages of the whole episode: opening, replies, results. */
  readonly transcript: readonly ConversationMessage[];
}

/**
 * Verifies by a user's function. It answers a number, true for 1 and false for 0, or `{ reward, success?, metrics? }`; a reward
 * above 0 is a success unless it says otherwise.
 * @throws {TypeError} for a result that is no outcome; what the function throws
 */
export async function verifyBy<R extends VerifyFacts>(
  verify: (request: R) => unknown,
  request: R,
): Promise<AgentOutcome> {
  const value = await verify(request);
  const outcome = readOutcome(typeof value === 'boolean' ? Number(value) : value, 'verify');
  if (outcome) return outcome;
  throw new TypeError(`expected a number, true, false or { reward } of verify, got ${describeValue(value)}`);
}
