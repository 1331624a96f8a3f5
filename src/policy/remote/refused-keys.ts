/** Keys of a request that a server does not take: found in its refusal, and left out from then on. Pure. */
import type { RemoteError } from '../../http/retry.ts';

/** Keys that a request can do without, and what may stand in their place. */
const DISPENSABLE: Readonly<Record<string, string | undefined>> = {
  max_tokens: 'max_completion_tokens',
  seed: undefined,
  top_p: undefined,
};

const REFUSAL =
  /unsupported|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed|accepted)|does(?: not|n't) support|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|invalid|deprecated/i;

/** A key that was refused. */
export interface RefusedKey {
  readonly key: string;
  /** The key that the server asks for in its place. */
  readonly instead?: string;
}

/** @returns the key of `body` that a server's refusal names, where the request can do without it */
export function findRefusedKey(error: RemoteError, body: Readonly<Record<string, unknown>>): RefusedKey | undefined {
  if (error.fault !== 'status' || (error.status !== 400 && error.status !== 422) || !REFUSAL.test(error.message)) {
    return undefined;
  }
  for (const [key, other] of Object.entries(DISPENSABLE)) {
    if (!(key in body) || !new RegExp(`\\b${key}\\b`).test(error.message)) continue;
    return other !== undefined && !(other in body) && error.message.includes(other) ? { key, instead: other } : { key };
  }
  return undefined;
}

/** A request without the refused keys; a key that stands in for one has its value. */
export function omitKey(
  body: Readonly<Record<string, unknown>>,
  refused: readonly RefusedKey[],
): Readonly<Record<string, unknown>> {
  if (refused.length === 0) return body;
  const kept = { ...body };
  for (const { key, instead } of refused) {
    if (instead !== undefined && key in kept) kept[instead] = kept[key];
    delete kept[key];
  }
  return kept;
}
