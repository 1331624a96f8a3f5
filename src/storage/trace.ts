/**
 * Traces: versioned JSONL. After a header line, each line is an episode (a `Trajectory` with its typed arrays as plain
 * ones) or, once an update has consumed them, the advantages of some groups. Readers accept a truncated last line: a
 * killed process leaves one.
 */
import { describeValue } from '../core/describe-value.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { Decision, Trajectory, Turn } from '../core/trajectory.ts';
import { LONGEST_LINE, wholeLines } from './lines.ts';
import { creditLineSchema, episodeLineSchema, firstIssue } from './trajectory-schema.ts';

const TRACE_FORMAT = 1;

/** First line of every trace file. */
export interface TraceHeader {
  readonly format: 'longplay-trace';
  readonly version: number;
  /** Configuration of the run, resolved. */
  readonly config: unknown;
}

/** Turn as traces hold it. */
export interface TraceTurn extends Turn {
  /** Advantage that its decision was credited with; absent where it was not trained on, or before it was. */
  readonly advantage?: number;
}

/** Trace line of an episode: the trajectory, and its purpose: training, or which evaluation. */
export interface TraceLine extends Trajectory {
  readonly purpose: string;
  /** Sub-task of the task; absent in traces of programs that do not name it. */
  readonly label?: string;
  readonly turns: readonly TraceTurn[];
  /** Origin of its rewards, where `longplay rescore` gave it new ones. */
  readonly rescored?: RescoredMark;
  /** Episode that it goes on from, where `longplay replay --from-turn` played it. */
  readonly parent?: ParentMark;
}

/** Mark of an episode with new rewards: who gave them, and the recorded ones. */
export interface RescoredMark {
  /** File name and hash of the module that gave them. */
  readonly verify: string;
  readonly sha256: string;
  /** Named parts of the new reward. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Success and rewards by turn as they were. */
  readonly old: { readonly success: boolean; readonly rewards: readonly number[] };
}

/** Mark of a continuation: the episode that it shares its beginning with. */
export interface ParentMark {
  readonly episode: number;
  /** Turns that it shares. Their rewards and actions are recorded ones; the policy decided from the next turn on. */
  readonly turn: number;
}

/** Credit that an update gave to groups. */
export interface CreditLine {
  readonly kind: 'credit';
  /** Policy version after the update. */
  readonly update: number;
  readonly groups: readonly { readonly group: number; readonly advantages: readonly (readonly number[])[] }[];
}

export interface Credit {
  readonly group: number;
  /** [member][decision] */
  readonly advantages: readonly ArrayLike<number>[];
}

/** Purposes whose episodes are there to learn from; those of all others are evaluations. */
const PLAYED: readonly string[] = ['train', 'rollout'];

/** True for episodes of an evaluation: their tasks may be held out, and nothing is learnt from them. */
export function isEvaluation(purpose: string): boolean {
  return !PLAYED.includes(purpose);
}

export function traceHeader(config: unknown): string {
  const header: TraceHeader = { format: 'longplay-trace', version: TRACE_FORMAT, config };
  return `${JSON.stringify(header)}\n`;
}

export function traceLine(trajectory: Trajectory, purpose: string, label?: string): string {
  const about = label === undefined ? { purpose } : { purpose, label };
  return `${JSON.stringify({ ...about, ...plainTrajectory(trajectory) })}\n`;
}

/** Converts a trajectory to plain JSON values, several times as fast as `toJson`. @returns a copy */
export function plainTrajectory(trajectory: Trajectory): object {
  return { ...trajectory, turns: trajectory.turns.map(plainTurn) };
}

export function creditLine(update: number, groups: readonly Credit[]): string {
  const line: CreditLine = {
    kind: 'credit',
    update,
    groups: groups.map(({ group, advantages }) => ({ group, advantages: advantages.map((one) => Array.from(one)) })),
  };
  return `${JSON.stringify(line)}\n`;
}

/** Converts a record to plain JSON values: typed arrays become plain ones. @returns a copy */
export function toJson<T>(record: T): T {
  return JSON.parse(JSON.stringify(record, plainArray)) as T;
}

/** Revives a trajectory as it was before `plainTrajectory` or `toJson`. */
export function reviveTrajectory(trajectory: Trajectory): Trajectory {
  return { ...trajectory, turns: reviveTurns(trajectory.turns) };
}

/** Revives turns as they were before `toJson`. */
export function reviveTurns(turns: readonly Turn[]): Turn[] {
  return turns.map((turn) => ({
    ...turn,
    actions: Int32Array.from(turn.actions ?? []),
    ...(turn.decision ? { decision: reviveDecision(turn.decision) } : {}),
  }));
}

/**
 * Reads a whole trace file.
 * @returns the header and the episodes, with the advantages the file holds; a truncated last line is left out
 * @throws {UserError} BAD_TRACE for a file that is no trace, of another version, or broken before its end
 */
export function readTrace(path: string): { header: TraceHeader; episodes: TraceLine[] } {
  let header: TraceHeader | undefined;
  const episodes: TraceLine[] = [];
  const credits: CreditLine[] = [];
  let number = 0;
  for (const { text } of wholeLines(path)) {
    number++;
    if (!header) {
      header = readHeader(text ?? '', path);
      continue;
    }
    const { episode, credit, fault } = parseLine(text);
    if (fault !== undefined) throw createDamagedError(path, `line ${number}`, fault);
    if (credit) credits.push(credit);
    if (episode) episodes.push(episode);
  }
  return { header: header ?? readHeader('', path), episodes: withCredit(episodes, credits) };
}

/**
 * Reads the header line.
 * @throws {UserError} BAD_TRACE
 */
export function readHeader(line: string, path: string): TraceHeader {
  const header = parse(line) as TraceHeader | undefined;
  if (header?.format !== 'longplay-trace' || header.version !== TRACE_FORMAT) {
    throw new UserError(
      'BAD_TRACE',
      `${path}: expected a trace of version ${TRACE_FORMAT} (its first line names it), got ${describeValue(line, 60)}`,
    );
  }
  return header;
}

/** Parsed line after the header: an episode, or credit, or what is wrong with it. */
export interface ParsedLine {
  readonly episode?: TraceLine;
  readonly credit?: CreditLine;
  readonly fault?: string;
}

/**
 * Parses a line after the header, and holds it to the schema: nothing else of a trace is believed.
 * @param text undefined for one that is too long to be read
 */
export function parseLine(text: string | undefined): ParsedLine {
  if (text === undefined) return { fault: `it is longer than ${LONGEST_LINE} bytes` };
  const value = parse(text);
  if (value === undefined) return { fault: 'it is not JSON' };
  const isCredit = typeof value === 'object' && value !== null && 'kind' in value;
  const checked = (isCredit ? creditLineSchema : episodeLineSchema).safeParse(value);
  if (!checked.success) return { fault: firstIssue(checked.error) };
  return isCredit ? { credit: reviveCredit(value as CreditLine) } : { episode: revive(value as TraceLine) };
}

/** @param at the place of the line in the file, e.g. `line 3` */
export function createDamagedError(path: string, at: string, fault: string): UserError {
  return new UserError('BAD_TRACE', `${path}: ${at} is no line of a trace: ${fault}; the file is damaged`);
}

/** Puts advantages on the turns they belong to: the k-th decision of a member has the k-th number. */
function withCredit(episodes: readonly TraceLine[], credits: readonly CreditLine[]): TraceLine[] {
  const byGroup = new Map(credits.flatMap(({ groups }) => groups.map((one) => [one.group, one.advantages] as const)));
  const members = new Map<number, number>();
  return episodes.map((episode) => {
    const member = members.get(episode.group) ?? 0;
    members.set(episode.group, member + 1);
    const advantages = episode.purpose === 'train' ? byGroup.get(episode.group)?.[member] : undefined;
    return advantages ? creditTurns(episode, advantages) : episode;
  });
}

/** Credits one episode with its advantages. */
export function creditTurns(episode: TraceLine, advantages: readonly number[]): TraceLine {
  let next = 0;
  const turns = episode.turns.map((turn): TraceTurn => {
    const advantage = turn.decision ? advantages[next++] : undefined;
    return advantage === undefined ? turn : { ...turn, advantage };
  });
  return { ...episode, turns };
}

function parse(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    return undefined;
  }
}

type Plain = Record<string, unknown>;

/**
 * Plain form of a turn: typed arrays as plain ones, milliseconds to the microsecond, which is the resolution of clocks.
 * Built by hand, as a copy that is written over. A replacer, which is called for every number, takes seventy times as
 * long; taking the turn apart and putting it together again takes fifteen times as long.
 */
function plainTurn(turn: Turn): object {
  const { decision, stages } = turn;
  const plain: Plain = { ...turn };
  plain.actions = listOf(turn.actions);
  plain.actMs = micro(turn.actMs);
  plain.envMs = micro(turn.envMs);
  if (decision) plain.decision = plainDecision(decision);
  if (stages) {
    const { waitMs, prefillMs, decodeMs } = stages;
    plain.stages = { waitMs: micro(waitMs), prefillMs: micro(prefillMs), decodeMs: micro(decodeMs) };
  }
  return plain;
}

function plainDecision(decision: Decision): object {
  const plain: Plain = { ...decision };
  plain.context = listOf(decision.context);
  if (decision.kind === 'choice') {
    if (decision.likeliest) plain.likeliest = listOf(decision.likeliest);
    return plain;
  }
  plain.tokens = listOf(decision.tokens);
  plain.logprobs = listOf(decision.logprobs);
  if (decision.versions) plain.versions = listOf(decision.versions);
  return plain;
}

/** List of a typed array's values, several times as fast as `Array.from`. */
function listOf(values: ArrayLike<number>): number[] {
  const list = new Array<number>(values.length);
  for (let i = 0; i < list.length; i++) list[i] = values[i]!;
  return list;
}

function micro(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function revive(line: TraceLine): TraceLine {
  return { ...line, turns: reviveTurns(line.turns) };
}

function reviveCredit(line: CreditLine): CreditLine {
  const groups = line.groups.map(({ group, advantages }) => ({
    group,
    advantages: advantages.map((own) => own.map(toNaN)),
  }));
  return { ...line, groups };
}

function reviveDecision(decision: Decision): Decision {
  const context = Int32Array.from(decision.context ?? []);
  const value = toNaN(decision.value);
  return decision.kind === 'choice'
    ? {
        ...decision,
        context,
        value,
        logprob: toNaN(decision.logprob),
        ...(decision.likeliest ? { likeliest: Int32Array.from(decision.likeliest) } : {}),
      }
    : {
        ...decision,
        context,
        value,
        tokens: Int32Array.from(decision.tokens),
        logprobs: Float32Array.from(decision.logprobs, toNaN),
        ...(decision.versions ? { versions: Int32Array.from(decision.versions) } : {}),
      };
}

/** `null` stands for a number that was not finite, which JSON cannot hold; taken for 0 it would be trained on. */
function toNaN(value: number | null): number {
  return value ?? Number.NaN;
}

function plainArray(_key: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<number>) : value;
}
