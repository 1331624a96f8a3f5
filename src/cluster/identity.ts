/** Identity of a run, key by key: what a worker must have in common with the learner before a result of it means anything. */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { RunConfig } from '../config/run-config.ts';
import { LongplayError, UserError } from '../core/errors.ts';
import type { ServedAdapter } from '../policy/served-adapters.ts';
import type { Identity } from '../record/run-state.ts';
import { firstIssue } from '../record/trajectory-schema.ts';
import { packageRoot } from '../runtime/thread.ts';

/** Version of tickets, results and announcements. */
export const PROTOCOL = 1;

export interface ClusterIdentity extends Identity {
  readonly protocol: number;
  /** Version of longplay. */
  readonly longplay: string;
  /** SHA-256 of a user's own world; absent for those of the package. */
  readonly world?: string | undefined;
}

/** Version of this package. */
export function longplayVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as { version: string };
  return version;
}

/** Announcement of a run: its identity, its configuration, and the weights that it has now. */
export interface Announcement {
  readonly format: 1;
  readonly identity: ClusterIdentity;
  readonly config: RunConfig;
  /** Number of the learner's process: one that sees a higher number than its own has been replaced. */
  readonly life: number;
  readonly version: number;
  /** Digest of the weights (`digestOf`), under which name they are stored, and how many bytes they are. */
  readonly digest: string;
  readonly bytes: number;
  /** Adapter by which a generation server has these weights: workers ask it, and need none. */
  readonly adapter?: Omit<ServedAdapter, 'version'> | undefined;
  /** True once training has ended for good. */
  readonly ended: boolean;
  /** Names of workers of which nothing is taken any more. */
  readonly shutOut?: readonly string[] | undefined;
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
  shutOut: z.array(z.string()).optional(),
});

export function encodeAnnouncement(announcement: Announcement): Uint8Array {
  return Buffer.from(JSON.stringify(announcement));
}

/** @throws {LongplayError} REMOTE_FAILED for what is no announcement */
export function decodeAnnouncement(bytes: Uint8Array): Announcement {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new LongplayError('REMOTE_FAILED', 'the announcement of the run is not JSON');
  }
  const checked = announcementSchema.safeParse(value);
  if (checked.success) return value as Announcement;
  throw new LongplayError('REMOTE_FAILED', `the announcement of the run: ${firstIssue(checked.error)}`);
}

/** Characters of a value in a message. */
const SHOWN = 120;

/**
 * Compares what the learner announced with what this machine has.
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
    if (isDeepStrictEqual(plain(a), plain(b))) continue;
    throw new UserError('BAD_CONFIG', `run '${run}' has ${key} ${shown(a)}, here it is ${shown(b)}`);
  }
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'none').slice(0, SHOWN);
}
