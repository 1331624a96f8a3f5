/** One line about a rollout under way. */
import type { InferenceReport } from '../../actors/inference/protocol.ts';
import type { RolloutStatus } from '../../actors/rollout/protocol.ts';
import { failedTotal } from '../core/failure.ts';

export function rolloutLine(
  status: RolloutStatus,
  { turns, tokens, remote }: InferenceReport,
  { before, total }: { readonly before: number; readonly total: number },
): string {
  const parts = [
    `episodes ${before + status.episodes}/${total}`,
    `turns ${turns}`,
    `running ${status.runningEpisodes}`,
    `tokens ${tokens}`,
  ];
  const failed = failedTotal(status.accounting);
  if (failed > 0) parts.push(`failed ${failed}`);
  if (remote) {
    parts.push(
      `in flight ${remote.inFlight}`,
      `latency ${Math.round(remote.latencyMs / Math.max(1, remote.requests))} ms`,
    );
    const retries = Object.entries(remote.retries);
    if (retries.length > 0) parts.push(`retries ${retries.map(([why, count]) => `${why}×${count}`).join(' ')}`);
    if (remote.formatErrors > 0) parts.push(`format errors ${remote.formatErrors}`);
    if (remote.cost > 0) parts.push(`cost ${remote.cost.toFixed(2)}`);
  }
  return parts.join(' · ');
}
