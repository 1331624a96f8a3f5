/**
 * Call for an env host on another machine: a run calls, machines with a free place offer it, one offer is taken, and from
 * then on the two speak over a channel (`channel.ts`).
 *
 *     call (to all) → offer or refusal (of each) → take (one) → the channel's signs of life
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';

/** Version of calls, offers and channels. */
export const HOST_PROTOCOL = 2;

/** World of a call, and what both machines must have in common. */
export interface HostIdentity {
  readonly protocol: number;
  /** Version of longplay. */
  readonly longplay: string;
  /** Id of a world of the package; `a module` for a user's own. */
  readonly env: string;
  /** SHA-256 of a user's own world; absent for those of the package. */
  readonly world?: string | undefined;
}

/** Call for a host, from a run to all machines. */
export interface HostCall {
  readonly type: 'call';
  /** Name of the channel that answers come on. */
  readonly channel: string;
  readonly identity: HostIdentity;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Answer to a call: a place, or the reason why there is none. */
export type HostAnswer = HostOffer | HostRefusal;

export interface HostOffer {
  readonly type: 'offer';
  /** Name of the machine's process. */
  readonly server: string;
  /** Places that are free, ≥ 1. */
  readonly free: number;
}

export interface HostRefusal {
  readonly type: 'refusal';
  readonly server: string;
  /** `full` for now, or `other`: this machine will not have what the run needs. */
  readonly reason: 'full' | 'other';
  readonly why: string;
}

/** Acceptance of an offer, with what the host is made from. */
export interface HostTake {
  readonly type: 'take';
  /** Machine whose offer it is; the others forget theirs. */
  readonly server: string;
  /** Id under which episodes name the world. */
  readonly id: string;
  readonly listActions: boolean;
  readonly where: string;
  readonly watchful: boolean;
  /** Faults to inject. */
  readonly chaos?: { readonly spec: unknown; readonly slowMs: number } | undefined;
  /** V8 heap of the host, MiB. */
  readonly heapMb?: number | undefined;
  /** Environment variables that the host inherits from its machine, or does not. */
  readonly variables: { readonly secret: readonly string[]; readonly passed: readonly string[] };
}

/** Kind of a message before the channel, its first byte. */
const CALL = 0;
/** Bytes of such a message. */
const MOST_BYTES = 2 ** 18;

const name = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);
const text = z.string().max(10_000);
const call = z.object({
  type: z.literal('call'),
  channel: z.string().regex(/^[0-9a-f]{32}$/),
  identity: z.object({ protocol: z.int(), longplay: text, env: text, world: text.optional() }),
  options: z.record(z.string(), z.unknown()),
});
const answer = z.discriminatedUnion('type', [
  z.object({ type: z.literal('offer'), server: name, free: z.int().min(1).max(1_000_000) }),
  z.object({ type: z.literal('refusal'), server: name, reason: z.enum(['full', 'other']), why: text }),
]);
const names = z.array(text).max(1000);
const take = z.object({
  type: z.literal('take'),
  server: name,
  id: text,
  listActions: z.boolean(),
  where: text,
  watchful: z.boolean(),
  chaos: z.object({ spec: z.unknown(), slowMs: z.number() }).optional(),
  heapMb: z.number().min(1).optional(),
  variables: z.object({ secret: names, passed: names }),
});

/** Name of a new channel: nobody can guess it. */
export function newChannel(): string {
  return randomBytes(16).toString('hex');
}

export function encodeCall(message: HostCall | HostAnswer | HostTake): Uint8Array {
  return Buffer.concat([Uint8Array.of(CALL), Buffer.from(JSON.stringify(message))]);
}

/** @returns undefined for what is no call */
export function decodeHostCall(bytes: Uint8Array): HostCall | undefined {
  return decoded(call, bytes) as HostCall | undefined;
}

/** @returns undefined for what is no answer */
export function decodeHostAnswer(bytes: Uint8Array): HostAnswer | undefined {
  return decoded(answer, bytes);
}

/** @returns undefined for what is no acceptance */
export function decodeHostTake(bytes: Uint8Array): HostTake | undefined {
  return decoded(take, bytes) as HostTake | undefined;
}

function decoded<T>(schema: z.ZodType<T>, bytes: Uint8Array): T | undefined {
  if (bytes[0] !== CALL || bytes.length > MOST_BYTES) return undefined;
  try {
    return schema.safeParse(JSON.parse(Buffer.from(bytes.subarray(1)).toString('utf8'))).data;
  } catch {
    return undefined;
  }
}

/** Says what a machine has otherwise than a run needs it; undefined where nothing is. */
export function differingHost(theirs: HostIdentity, ours: HostIdentity): string | undefined {
  for (const key of ['protocol', 'longplay', 'env', 'world'] as const) {
    if (theirs[key] !== ours[key]) return `the run has ${key} ${shown(theirs[key])}, here it is ${shown(ours[key])}`;
  }
  return undefined;
}

function shown(value: string | number | undefined): string {
  return (JSON.stringify(value) ?? 'none').slice(0, 120);
}
