/**
 * Traces: versioned JSONL, one episode a line after a header line. A line is a `Trajectory` with its typed arrays as
 * plain ones. Readers accept a truncated last line: a killed process leaves one.
 */
import { readFileSync } from 'node:fs';
import { UserError } from '../core/errors.ts';
import type { Decision, Trajectory, Turn } from '../core/trajectory.ts';

export const TRACE_FORMAT = 1;

/** First line of every trace file. */
export interface TraceHeader {
  readonly format: 'longplay-trace';
  readonly version: number;
  /** The run's resolved configuration. */
  readonly config: unknown;
}

/** One line: the trajectory, and whether it was for training or which evaluation. */
export interface TraceLine extends Trajectory {
  readonly purpose: string;
}

export function traceHeader(config: unknown): string {
  const header: TraceHeader = { format: 'longplay-trace', version: TRACE_FORMAT, config };
  return `${JSON.stringify(header)}\n`;
}

export function traceLine(trajectory: Trajectory, purpose: string): string {
  return `${JSON.stringify({ purpose, ...trajectory }, plainArrays)}\n`;
}

/** A record as plain JSON values: typed arrays become plain ones. @returns a copy */
export function toJson<T>(record: T): T {
  return JSON.parse(JSON.stringify(record, plainArrays)) as T;
}

/** Turns as they were before `toJson`. */
export function reviveTurns(turns: readonly Turn[]): Turn[] {
  return turns.map((turn) => ({
    ...turn,
    actions: Int32Array.from(turn.actions),
    ...(turn.decision ? { decision: reviveDecision(turn.decision) } : {}),
  }));
}

/**
 * @returns the header and the episodes; a truncated last line is left out
 * @throws {UserError} BAD_TRACE for a file that is no trace, of another version, or broken before its end
 */
export function readTrace(path: string): { header: TraceHeader; episodes: TraceLine[] } {
  const lines = readFileSync(path, 'utf8').split('\n');
  const [first, ...rest] = lines;
  const header = parse(first ?? '') as TraceHeader | undefined;
  if (header?.format !== 'longplay-trace' || header.version !== TRACE_FORMAT) {
    throw new UserError(
      'BAD_TRACE',
      `${path}: expected a trace of version ${TRACE_FORMAT} (its first line says so), got ${(first ?? '').slice(0, 60)}`,
    );
  }
  const episodes: TraceLine[] = [];
  rest.forEach((line, i) => {
    if (line === '') return;
    const value = parse(line);
    if (value === undefined && i === rest.length - 1) return; // cut off while it was written
    if (value === undefined)
      throw new UserError('BAD_TRACE', `${path}: line ${i + 2} is not JSON; the file is damaged`);
    episodes.push(revive(value as TraceLine));
  });
  return { header, episodes };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function plainArrays(_key: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<number>) : value;
}

function revive(line: TraceLine): TraceLine {
  return { ...line, turns: reviveTurns(line.turns) };
}

function reviveDecision(decision: Decision): Decision {
  const context = Int32Array.from(decision.context);
  return decision.kind === 'choice'
    ? { ...decision, context }
    : {
        ...decision,
        context,
        tokens: Int32Array.from(decision.tokens),
        logprobs: Float32Array.from(decision.logprobs),
      };
}
