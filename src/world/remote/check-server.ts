/** Checks, before a run starts, that the server which plays its environment answers: while a person waits for it. */
import type { RunConfig } from '../../config/run-config.ts';
import { systemClock } from '../../core/clock.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { Rng } from '../../core/rng.ts';
import { attempt } from '../../http/attempts.ts';
import { HttpClient } from '../../http/http-client.ts';
import { isUnanswered } from '../../http/retry.ts';
import { AGENTGYM } from '../env-id.ts';

/** Milliseconds in which a server must give its first answer: one that has just been started is there by then. */
const LIMITS = { attempts: 10, minMs: 200, maxMs: 1000, attemptMs: 5000, totalMs: 5000 };

/** Server of a configuration's environment, and the key that names it; undefined for a world played here, or connected to. */
function serverOf({
  env,
  rollout,
}: Pick<RunConfig, 'env' | 'rollout'>): readonly [key: string, url: string] | undefined {
  if (rollout.envServer !== undefined) return ['rollout.envServer', rollout.envServer];
  const { url } = env.options;
  return env.id === AGENTGYM && typeof url === 'string' && URL.canParse(url) ? ['env.options.url', url] : undefined;
}

/**
 * Checks that an environment's server answers something, whatever it is.
 * @throws {UserError} REMOTE_FAILED where nothing answers within five seconds
 */
export async function checkEnvServer(config: Pick<RunConfig, 'env' | 'rollout'>): Promise<void> {
  const [key, url] = serverOf(config) ?? [];
  if (url === undefined) return;
  const client = new HttpClient({ baseUrl: url });
  try {
    const context = { clock: systemClock, rng: Rng.fromSeed(0) }; // only the waits are drawn
    await attempt(LIMITS, context, (deadlineMs) => client.exchange('GET', '', undefined, deadlineMs));
  } catch (thrown) {
    if (!isUnanswered(thrown)) return; // what cannot be read is an answer too
    throw new UserError(
      'REMOTE_FAILED',
      `${url}: the environment's server does not answer: ${messageOf(thrown)}; start it, or set ${key} to where it is`,
    );
  } finally {
    client.close();
  }
}
