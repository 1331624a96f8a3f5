/** Verification of an episode: the reward that its end state is worth, by the user's function or by a check. */
import { isDeepStrictEqual } from 'node:util';
import type { AgentOutcome } from '../../core/agent-call.ts';
import { parseJson } from '../../core/json-text.ts';
import type { VerifyFacts } from '../../core/verify.ts';
import type { ToolOutput } from './connection.ts';
import type { Check, McpTask } from './options.ts';

/** Episode as its verifier sees it. */
export interface VerifyRequest extends VerifyFacts {
  readonly task: McpTask;
  /** Path of the episode's folder; undefined where the server has none. */
  readonly folder: string | undefined;
  /** Calls any tool of the server, those that the policy never sees among them. Rejects where the server does not answer. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<ToolOutput>;
}

/**
 * Verifier, which a module exports: a number, true for 1 and false for 0, or `{ reward, success?, metrics? }`. One that throws
 * fails the episode.
 */
export type Verify = (request: VerifyRequest) => unknown;

/**
 * Verifies by a check: 1 where the result of its call, or the answer, equals the expected value; else 0. Texts are compared
 * without the space around them. A tool that fails meets no check.
 */
export async function verifyCheck(
  { tool, arguments: args = {}, expect }: Check,
  request: VerifyRequest,
): Promise<AgentOutcome> {
  const output: ToolOutput =
    tool === undefined ? { text: request.answer, isError: false } : await request.call(tool, args);
  const isMet = !output.isError && isDeepStrictEqual(comparableOf(output, expect), comparable(expect));
  return { reward: Number(isMet), success: isMet, metrics: {} };
}

function comparable(expect: unknown): unknown {
  return typeof expect === 'string' ? expect.trim() : expect;
}

/** Part of an output that is compared with a value; undefined, which equals none, where there is no JSON for it. */
function comparableOf({ text, structured }: ToolOutput, expect: unknown): unknown {
  if (typeof expect === 'string') return text.trim();
  if (structured !== undefined) return structured;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
