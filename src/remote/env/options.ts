/** Options that both kinds of remote environment take (AgentGym's and OpenEnv's), checked. */
import { MAX_MS } from '../../config/ranges.ts';
import type { EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';

/** Attempts at a request of a remote environment, and its credentials. */
export interface RequestOptions {
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

/** Options of a world behind an AgentGym server. */
export interface RemoteEnvOptions extends RequestOptions {
  /** URL where the server's `/create` is. */
  readonly url: string;
  /** World that it serves; names the dialect and the prompt. */
  readonly world: string;
}

/** Share of `deadlineMs` that opening an episode gets: three times as much as an action. */
export const OPEN_SHARE = 3;

const DEFAULTS = { attemptMs: 5000, deadlineMs: 9000, attempts: 5, tokenEnv: 'LONGPLAY_SERVER_TOKEN' };

/** Environment variable in which a remote environment finds its server's token. */
export function tokenVariable({ tokenEnv }: EnvOptions): string {
  return typeof tokenEnv === 'string' ? tokenEnv : DEFAULTS.tokenEnv;
}

/**
 * Checks the options of an AgentGym client.
 * @param env for messages
 * @param further names of options that are the caller's to check
 * @throws {UserError} BAD_CONFIG
 */
export function remoteEnvOptions(env: string, options: EnvOptions, further: readonly string[]): RemoteEnvOptions {
  const requests = requestOptions(env, options, ['url', 'world', ...further]);
  const { url, world } = options;
  if (typeof url !== 'string' || !URL.canParse(url)) {
    throw new UserError('BAD_CONFIG', `${env}: url: expected e.g. http://127.0.0.1:36001, got ${JSON.stringify(url)}`);
  }
  if (typeof world !== 'string' || world === '') {
    throw new UserError(
      'BAD_CONFIG',
      `${env}: world: expected the world that the server has (\`longplay envs\` lists them)`,
    );
  }
  return { url, world, ...requests };
}

/**
 * Checks the options of requests.
 * @param env for messages
 * @param further names of options that are the caller's to check
 * @throws {UserError} BAD_CONFIG
 */
export function requestOptions(env: string, options: EnvOptions, further: readonly string[]): RequestOptions {
  const known = [...further, ...Object.keys(DEFAULTS)];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new UserError('BAD_CONFIG', `${env} has no option '${unknown}'; it has: ${known.join(', ')}`);
  }
  const { tokenEnv = DEFAULTS.tokenEnv } = options;
  if (typeof tokenEnv !== 'string') throw new UserError('BAD_CONFIG', `${env}: tokenEnv must be a variable's name`);
  return {
    attemptMs: numberOption(env, options, 'attemptMs', MAX_MS, DEFAULTS.attemptMs),
    deadlineMs: numberOption(env, options, 'deadlineMs', Math.floor(MAX_MS / OPEN_SHARE), DEFAULTS.deadlineMs),
    attempts: numberOption(env, options, 'attempts', 10_000, DEFAULTS.attempts),
    tokenEnv,
  };
}

/**
 * Reads a number from 1 to `max`.
 * @param env for messages
 * @throws {UserError} BAD_CONFIG
 */
export function numberOption(env: string, options: EnvOptions, key: string, max: number, fallback: number): number {
  const value = options[key] ?? fallback;
  if (typeof value === 'number' && value >= 1 && value <= max) return value;
  throw new UserError('BAD_CONFIG', `${env}: ${key}: expected a number from 1 to ${max}, got ${JSON.stringify(value)}`);
}
