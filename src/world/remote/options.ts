/** Options that every remote environment takes, checked. */
import { MAX_MS } from '../../config/ranges.ts';
import { describeValue } from '../../core/describe-value.ts';
import type { EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';

export interface RemoteEnvOptions {
  /** URL of the server (for AgentGym's the place where `/create` is). */
  readonly url: string;
  /** World that it serves; names prompts and, on a longplay server, the env. */
  readonly world: string;
  /** Milliseconds of one attempt. Default 5000. */
  readonly attemptMs: number;
  /**
   * Milliseconds of an action with all its attempts; opening gets three times as long. Keep it below
   * `rollout.stepDeadlineMs`, which ends the whole host. Default 9000.
   */
  readonly deadlineMs: number;
  /** Times a request is sent at most. Default 5. */
  readonly attempts: number;
  /** Environment variable with the server's bearer token. Default LONGPLAY_SERVER_TOKEN. */
  readonly tokenEnv: string;
}

/** Share of `deadlineMs` that opening an episode gets: three times as much as an action. */
export const OPEN_SHARE = 3;

const DEFAULTS = { attemptMs: 5000, deadlineMs: 9000, attempts: 5, tokenEnv: 'LONGPLAY_SERVER_TOKEN' };

/** Environment variable in which a remote environment finds its server's token. */
export function tokenVariable({ tokenEnv }: EnvOptions): string {
  return typeof tokenEnv === 'string' ? tokenEnv : DEFAULTS.tokenEnv;
}

/**
 * Checks the options.
 * @param env for messages
 * @param further names of options that are the caller's to check
 * @throws {UserError} BAD_CONFIG
 */
export function remoteEnvOptions(env: string, options: EnvOptions, further: readonly string[]): RemoteEnvOptions {
  const known = ['url', 'world', ...Object.keys(DEFAULTS), ...further];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new UserError('BAD_CONFIG', `${env} has no option '${unknown}'; it has: ${known.join(', ')}`);
  }
  const { url, world } = options;
  if (typeof url !== 'string' || !URL.canParse(url)) {
    throw new UserError('BAD_CONFIG', `${env}: url: expected e.g. http://127.0.0.1:36001, got ${describeValue(url)}`);
  }
  if (typeof world !== 'string' || world === '') {
    throw new UserError(
      'BAD_CONFIG',
      `${env}: world: name the world that the server has (\`longplay envs\` lists them)`,
    );
  }
  const { tokenEnv = DEFAULTS.tokenEnv } = options;
  const count = (key: 'attemptMs' | 'deadlineMs' | 'attempts', max: number) => {
    const value = options[key] ?? DEFAULTS[key];
    if (typeof value === 'number' && value >= 1 && value <= max) return value;
    const expected = `a number from 1 to ${max}`;
    throw new UserError('BAD_CONFIG', `${env}: ${key}: expected ${expected}, got ${describeValue(value)}`);
  };
  if (typeof tokenEnv !== 'string') throw new UserError('BAD_CONFIG', `${env}: tokenEnv must be a variable's name`);
  return {
    url,
    world,
    attemptMs: count('attemptMs', MAX_MS),
    deadlineMs: count('deadlineMs', Math.floor(MAX_MS / OPEN_SHARE)),
    attempts: count('attempts', 10_000),
    tokenEnv,
  };
}
