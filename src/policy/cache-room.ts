/** Room for keys and values: how many groups may run at the same time. Pure. */

import type { ModelConfig } from '../compute/model/config.ts';
import type { RunConfig } from '../config/run-config.ts';
import { UserError } from '../core/errors.ts';
import { KvCache } from './kv-cache.ts';

/**
 * Fits the episodes in flight into `policy.cacheMb`, counted as if every one grew as long as the model reads: then none
 * ever has to leave the cache. Fewer groups run at a time, and a batch has no more slots than they take.
 * @returns the configuration, lowered where it has to be, and a notice of that
 * @throws {UserError} BAD_CONFIG when not even one group fits
 */
export function fitCache(
  config: RunConfig,
  model: ModelConfig,
): { readonly config: RunConfig; readonly notice: string | undefined } {
  const { rollout, policy, evaluation } = config;
  const { groupSize, concurrentGroups, maxBatch } = rollout;
  if (policy.cacheMb === undefined) return { config, notice: undefined };
  // Evaluations run under the same limit, with groups of their own size.
  const members = Math.max(groupSize, evaluation.episodesPerTask);
  const one = KvCache.countMaxBytes(model, 1, members);
  const groups = Math.floor((policy.cacheMb * 2 ** 20) / one);
  const size = `a group of ${members} episodes of ${model.maxPositions} tokens takes ${Math.ceil(one / 2 ** 20)} MiB`;
  if (groups < 1) {
    throw new UserError(
      'BAD_CONFIG',
      `policy.cacheMb: ${size}, got ${policy.cacheMb}; raise it, or lower policy.chat.contextTokens or rollout.groupSize`,
    );
  }
  if (groups >= concurrentGroups) return { config, notice: undefined };
  const fitting = { concurrentGroups: groups, maxBatch: Math.min(maxBatch, groups * members) };
  return {
    config: { ...config, rollout: { ...rollout, ...fitting } },
    notice: `policy.cacheMb: ${size}, so ${groups} run at a time instead of rollout.concurrentGroups ${concurrentGroups}`,
  };
}
