/** Identity of a run: the keys that worker and learner must have in common, and the announcement that carries them. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { readJsonFile } from '../core/bounded-file.ts';
import { LongplayError, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { Identity } from '../learning/learner/run-state.ts';
import type { ServedAdapter } from '../policy/served-adapters.ts';
import { packageRoot } from '../runtime/module-url.ts';
import { firstIssue } from '../storage/trajectory-schema.ts';
import { pinEnv } from '../world/env-id.ts';

/** Version of tickets, results and announcements. */
export const PROTOCOL = 1;

export interface ClusterIdentity extends Identity {
  readonly protocol: number;
  /** Version of longplay. */
  readonly longplay: string;
  /** SHA-256 of a user's own world; absent for those of the package. */
  readonly world?: string | undefined;
}

/** Reads the version of this package. */
export function longplayVersion(): string {
  const { version } = readJsonFile(new URL('package.json', packageRoot)) as { version: string };
  return version;
}

/** Returns the identity of a run. A user's own world is identified by its bytes: its path differs by machine. */
export function clusterIdentity(
  { identity: own }: { readonly identity: Identity },
  config: RunConfig,
): ClusterIdentity {
  const { env } = config;
  const { base: _, adapter: __, ...read } = own.model;
  // A generation server has the base and its adapter: workers only read and write tokens.
  const identity = policyKindOf(config).isServed ? { ...own, model: read } : own;
  const world = pinEnv(env, '.').sha256;
  const named = world === undefined ? identity : { ...identity, env: 'a module' };
  return { ...named, protocol: PROTOCOL, longplay: longplayVersion(), world };
}

/** Announcement of a run: its identity, its configuration, and its current weights. */
export interface Announcement {
  readonly format: 1;
  readonly identity: ClusterIdentity;
  readonly config: RunConfig;
  /** Number of the learner's process. A learner that reads a higher number than its own has been replaced. */
  readonly life: number;
  readonly version: number;
  /** Digest of the weights (`digestOf`), which is their name in the store, and their size in bytes. */
  readonly digest: string;
  readonly bytes: number;
  /** Adapter under which a generation server has these weights; workers then need none. */
  readonly adapter?: Omit<ServedAdapter, 'version'> | undefined;
  /** True once training has ended for good. */
  readonly ended: boolean;
  /** Names of workers whose results are refused unread. */
  readonly banned?: readonly string[] | undefined;
}

const count = z.int().min(0);
const announcementSchema = z.looseObject({
  format: z.literal(1),
  identity: z.looseObject({ protocol: count, longplay: z.string() }),
  config: z.looseObject({ env: z.looseObject({ id: z.string() }) }),
  life: count,
  version: count,
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count.max(2 ** 31),
  adapter: z.looseObject({ name: z.string().max(200).optional(), folder: z.string().max(4096) }).optional(),
  ended: z.boolean(),
  banned: z.array(z.string()).optional(),
});

export function encodeAnnouncement(announcement: Announcement): Uint8Array {
  return Buffer.from(JSON.stringify(announcement));
}

/** Decodes an announcement. @throws {LongplayError} REMOTE_FAILED for invalid bytes */
export function decodeAnnouncement(bytes: Uint8Array): Announcement {
  let value: unknown;
  try {
    value = parseJson(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new LongplayError('REMOTE_FAILED', 'the announcement of the run is not JSON');
  }
  const checked = announcementSchema.safeParse(value);
  if (checked.success) return value as Announcement;
  throw new LongplayError('REMOTE_FAILED', `the announcement of the run: ${firstIssue(checked.error)}`);
}

/** Characters of a value in a message. */
const MAX_SHOWN = 120;

/**
 * Checks that this machine has what the learner announced.
 * @throws {UserError} BAD_CONFIG naming the first key that differs, what the run has and what is here
 */
export function checkIdentity(run: string, theirs: ClusterIdentity, ours: ClusterIdentity): void {
  const keys = ['protocol', 'longplay', 'env', 'world', 'view', 'vocabulary', 'decoder'] as const;
  const pairs: [string, unknown, unknown][] = keys.map((key) => [key, theirs[key], ours[key]]);
  const models = { ...theirs.model, ...ours.model };
  for (const key of Object.keys(models) as (keyof typeof models)[]) {
    pairs.push([`model.${key}`, theirs.model?.[key], ours.model[key]]);
  }
  for (const [key, a, b] of pairs) {
    if (isDeepStrictEqual(toJson(a), toJson(b))) continue;
    throw new UserError('BAD_CONFIG', `run '${run}' has ${key} ${format(a)}, here it is ${format(b)}`);
  }
}

function toJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function format(value: unknown): string {
  return (JSON.stringify(value) ?? 'none').slice(0, MAX_SHOWN);
}
