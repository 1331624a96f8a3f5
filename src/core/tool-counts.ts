/** Counts of calls of tools: how many were valid, and what was wrong with the others. */
import type { AgentReply } from './agent-call.ts';
import { parseJson } from './json-text.ts';
import type { Tool } from './model-call.ts';
import { isRecord } from './record.ts';
import { fitsSchema } from './schema-check.ts';

/** Counts of an episode, or of several. Each call is one of valid, unknownTools, invalidArguments and malformedArguments. */
export interface ToolCounts {
  /** Replies of the policy, with calls or without. */
  readonly replies: number;
  readonly calls: number;
  /** Calls of a known tool with arguments that fit its schema. */
  readonly valid: number;
  readonly unknownTools: number;
  /** Calls whose arguments do not fit the schema: one is missing, unknown, of another type or not among those listed. */
  readonly invalidArguments: number;
  /** Calls whose arguments are no JSON of an object. */
  readonly malformedArguments: number;
  /** Calls that the world answered by an error, valid or not. */
  readonly errors: number;
}

/** Kind of a call. */
export type CallKind = 'valid' | 'unknownTools' | 'invalidArguments' | 'malformedArguments';

export const NO_TOOL_COUNTS: ToolCounts = {
  replies: 0,
  calls: 0,
  valid: 0,
  unknownTools: 0,
  invalidArguments: 0,
  malformedArguments: 0,
  errors: 0,
};

/** Names of the counts, in order. */
const NAMES = Object.keys(NO_TOOL_COUNTS) as (keyof ToolCounts)[];

/** Checks a call against the tools. Blank arguments are those of a tool that takes none. */
export function checkCall(call: AgentReply['calls'][number], tools: readonly Tool[]): CallKind {
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) return 'unknownTools';
  let args: unknown;
  try {
    args = call.arguments.trim() === '' ? {} : parseJson(call.arguments);
  } catch {
    return 'malformedArguments';
  }
  if (!isRecord(args)) return 'malformedArguments';
  return fitsSchema(args, tool.parameters) ? 'valid' : 'invalidArguments';
}

/** Adds a reply to counts. @param errors results that were errors */
export function countReply(
  counts: ToolCounts,
  { calls }: Pick<AgentReply, 'calls'>,
  tools: readonly Tool[],
  errors: number,
): ToolCounts {
  const added = { ...counts };
  added.replies++;
  added.calls += calls.length;
  added.errors += errors;
  for (const call of calls) added[checkCall(call, tools)]++;
  return added;
}

/** Sums counts up. */
export function addToolCounts(a: ToolCounts, b: ToolCounts): ToolCounts {
  return Object.fromEntries(NAMES.map((name) => [name, a[name] + b[name]])) as unknown as ToolCounts;
}

/** Rates of counts, by the names of their metrics; those of calls are absent where none was made. */
export interface ToolRates {
  /** Calls a reply. */
  readonly callsPerTurn: number;
  /** Shares of the calls. */
  readonly validCalls?: number;
  readonly unknownTools?: number;
  readonly invalidArguments?: number;
  readonly malformedArguments?: number;
  readonly toolErrors?: number;
}

/** Rates of counts. @returns undefined without a reply */
export function toolRates(counts: ToolCounts): ToolRates | undefined {
  const { replies, calls, valid, unknownTools, invalidArguments, malformedArguments, errors } = counts;
  if (replies === 0) return undefined;
  if (calls === 0) return { callsPerTurn: 0 };
  return {
    callsPerTurn: calls / replies,
    validCalls: valid / calls,
    unknownTools: unknownTools / calls,
    invalidArguments: invalidArguments / calls,
    malformedArguments: malformedArguments / calls,
    toolErrors: errors / calls,
  };
}

/** Reads counts back. @returns undefined for anything else */
export function readToolCounts(value: unknown): ToolCounts | undefined {
  if (!isRecord(value)) return undefined;
  return NAMES.every((name) => Number.isSafeInteger(value[name]) && (value[name] as number) >= 0)
    ? (Object.fromEntries(NAMES.map((name) => [name, value[name]])) as unknown as ToolCounts)
    : undefined;
}
