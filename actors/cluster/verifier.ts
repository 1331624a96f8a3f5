/**
 * Verifier of workers' results: plays a share of them again, on the learner's machine. An environment's answers are a
 * function of task and actions, so the first group that is played again exposes a worker that makes up observations or
 * rewards.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { GroupResult } from '../../src/cluster/result.ts';
import type { Env } from '../../src/core/env.ts';
import { recheck } from '../../src/storage/recheck.ts';

/**
 * Creates the verifier of a share of groups. It chooses them by a secret, so that workers cannot foresee which.
 * @param share of groups, in [0, 1]
 * @param env opens the world; called when it is first needed
 * @returns resolves with what is wrong with a result, or with undefined; returns undefined for a group that is not chosen
 */
export function createVerifier(
  share: number,
  env: () => Promise<Env>,
): (result: GroupResult) => Promise<string | undefined> | undefined {
  const secret = randomBytes(32);
  const isChosen = (group: number) =>
    createHash('sha256').update(secret).update(String(group)).digest().readUInt32BE(0) < share * 2 ** 32;
  let opened: Promise<Env> | undefined;
  return ({ ticket, trajectories }) => {
    if (trajectories.length === 0 || !isChosen(ticket.group)) return undefined;
    opened ??= env();
    return opened.then(async (world) => {
      for (const one of trajectories) {
        const found = await recheck(world, one, true);
        if (!found) continue;
        const { turn, what, recorded, now } = found;
        const cut = (text: string) => JSON.stringify(text.slice(0, 80));
        return `played again here, turn ${turn} has another ${what}: ${cut(recorded)}, here ${cut(now)}`;
      }
      return undefined;
    });
  };
}
