/**
 * Tickets and results as bytes. A result comes from another machine, so it is untrusted until it was checked against the
 * ticket that it answers.
 */
import { isDeepStrictEqual } from 'node:util';
import { deflateSync, inflateSync } from 'node:zlib';
import { z } from 'zod';
import { LongplayError, messageOf } from '../core/errors.ts';
import { FAILURE_CAUSES, type Failure } from '../core/failure.ts';
import { parseJson } from '../core/json-text.ts';
import type { GroupTicket } from '../core/ticket.ts';
import { type Trajectory, turnsUsed, versionRuns } from '../core/trajectory.ts';
import { ticketSchema } from '../storage/ticket-schema.ts';
import { plainTrajectory, reviveTrajectory } from '../storage/trace.ts';
import { firstIssue, trajectorySchema } from '../storage/trajectory-schema.ts';

/** Result of a group, from a worker. */
export interface GroupResult {
  /** Ticket that it answers, whole. */
  readonly ticket: GroupTicket;
  readonly worker: string;
  /** Number of times that the ticket was delivered: all but the last were lost with their workers. */
  readonly delivery: number;
  /** Digests of the weights that decided, by version. */
  readonly digests: Readonly<Record<string, string>>;
  /** Attempts that failed and were made again. */
  readonly failed: readonly Failure[];
  /** Trajectories by member; none where the group was given up. */
  readonly trajectories: readonly Trajectory[];
  readonly gaveUp?: { readonly failure: Failure; readonly attempts: number } | undefined;
}

/** Deliveries that a result may claim: each but the last counts `size` episodes as failed. */
const MAX_DELIVERIES = 1000;
/** Bytes of a result, deflated and inflated. */
export const MAX_RESULT_BYTES = 8 * 2 ** 20;
const MAX_TEXT_BYTES = 256 * 2 ** 20;
/** Fastest: level 1 takes a group to a ninth, and more levels to hardly less. */
const LEVEL = 1;

const count = z.int().min(0);
const failure = z.looseObject({
  cause: z.enum(FAILURE_CAUSES),
  where: z.string().max(1000),
  message: z.string().max(10_000),
});
const resultSchema = z.looseObject({
  ticket: ticketSchema,
  worker: z.string().regex(/^[A-Za-z0-9_-]{1,200}$/),
  delivery: count.min(1).max(MAX_DELIVERIES),
  digests: z.record(z.string().regex(/^\d{1,10}$/), z.string().max(128)),
  failed: z.array(failure).max(100_000),
  trajectories: z.array(trajectorySchema),
  gaveUp: z.looseObject({ failure, attempts: count.min(1) }).optional(),
});

export function encodeTicket(ticket: GroupTicket): Uint8Array {
  return Buffer.from(JSON.stringify(ticket));
}

/** Decodes a ticket. @throws {LongplayError} REMOTE_FAILED for invalid bytes */
export function decodeTicket(bytes: Uint8Array): GroupTicket {
  return parse(ticketSchema, Buffer.from(bytes).toString('utf8')) as GroupTicket;
}

export function encodeResult(result: GroupResult): Uint8Array {
  const plain = { ...result, trajectories: result.trajectories.map(plainTrajectory) };
  return deflateSync(JSON.stringify(plain), { level: LEVEL });
}

/**
 * Decodes a result and checks it against its ticket.
 * @param vocabSize tokens are below it
 * @throws {LongplayError} REMOTE_FAILED naming what is wrong with it
 */
export function decodeResult(bytes: Uint8Array, ticket: GroupTicket, vocabSize: number): GroupResult {
  if (bytes.length > MAX_RESULT_BYTES) throw refusal(`${bytes.length} bytes, expected at most ${MAX_RESULT_BYTES}`);
  let text: string;
  try {
    text = inflateSync(bytes, { maxOutputLength: MAX_TEXT_BYTES }).toString('utf8');
  } catch (thrown) {
    throw refusal(`it cannot be inflated: ${messageOf(thrown)}`);
  }
  const plain = parse(resultSchema, text) as GroupResult;
  const result = { ...plain, trajectories: plain.trajectories.map(reviveTrajectory) };
  const why = explainInvalidResult(result, ticket, vocabSize);
  if (why !== undefined) throw refusal(why);
  return result;
}

function parse(schema: z.ZodType, text: string): unknown {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw refusal('it is not JSON');
  }
  const checked = schema.safeParse(value);
  if (!checked.success) throw refusal(firstIssue(checked.error));
  return value;
}

function refusal(why: string): LongplayError {
  return new LongplayError('REMOTE_FAILED', why);
}

/** Returns what is wrong with a result; undefined where nothing is. */
function explainInvalidResult(
  { ticket, gaveUp, trajectories, digests }: GroupResult,
  asked: GroupTicket,
  vocabSize: number,
) {
  if (!isDeepStrictEqual(ticket, JSON.parse(JSON.stringify(asked)))) return 'it answers another ticket';
  if (gaveUp) return trajectories.length === 0 ? undefined : 'given up, with trajectories';
  if (trajectories.length !== asked.size) return `${trajectories.length} trajectories, expected ${asked.size}`;
  for (const one of trajectories) {
    const why = explainInvalidTrajectory(one, asked, vocabSize, digests);
    if (why !== undefined) return why;
  }
  return undefined;
}

function explainInvalidTrajectory(
  { group, task, horizon, turns }: Trajectory,
  asked: GroupTicket,
  vocabSize: number,
  digests: GroupResult['digests'],
): string | undefined {
  if (group !== asked.group || horizon !== asked.horizon || !isDeepStrictEqual(task, asked.task)) {
    return `a trajectory of group ${group}, task ${task.index} under horizon ${horizon}`;
  }
  if (turns.length === 0 || turnsUsed(turns) > asked.horizon)
    return `${turnsUsed(turns)} turns under horizon ${horizon}`;
  for (const { decision } of turns) {
    if (!decision) {
      // A server's log-probabilities are those of temperature 1: what is evaluated otherwise is not for training.
      if (asked.purpose.name !== 'train') continue;
      return 'a turn without a decision';
    }
    const logprobs = decision.kind === 'choice' ? [decision.logprob] : decision.logprobs;
    for (const logprob of logprobs)
      if (!(logprob <= 0 && logprob > Number.NEGATIVE_INFINITY)) return `log-probability ${logprob}`;
    if (!Number.isFinite(decision.value)) return `value ${decision.value}`;
    const ids = decision.kind === 'tokens' ? [decision.context, decision.tokens] : [decision.context];
    for (const list of ids) for (const id of list) if (id < 0 || id >= vocabSize) return `token ${id} of ${vocabSize}`;
    for (const { version } of versionRuns(decision)) {
      if (!Object.hasOwn(digests, version)) return `version ${version} without the digest of its weights`;
      if (version < asked.version) return `version ${version}, although its ticket waits for ${asked.version}`;
    }
  }
  return undefined;
}
