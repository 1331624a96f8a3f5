/** Options of the world, checked: `env: { id: tau2, options: { … } }`. */
import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Domain } from './domain.ts';
import { DOMAINS } from './domains.ts';
import { DEFAULT_LIMITS } from './orchestrator.ts';

/** Partner of the agent: none, with a ticket in the opening; or a user who follows a script. */
export type UserKind = 'solo' | 'scripted';
/** Tasks of training: the published ones, or all that are not held out. */
export type SplitKind = 'published' | 'full';

/** Options of the world; README.md explains each. */
export interface Tau2Options {
  readonly domain: Domain;
  readonly user: UserKind;
  readonly split: SplitKind;
  readonly maxSteps: number;
  readonly maxErrors: number;
  readonly userTurns: number;
}

const KNOWN = ['domain', 'user', 'split', 'maxSteps', 'maxErrors', 'userTurns'];

/**
 * Reads the options.
 * @throws {UserError} BAD_CONFIG for an option or a value that the world does not have
 */
export function readOptions(options: EnvOptions): Tau2Options {
  for (const key of Object.keys(options)) {
    if (KNOWN.includes(key)) continue;
    throw new UserError('BAD_CONFIG', `tau2 has no option "${key}"; it has: ${KNOWN.join(', ')}`);
  }
  const domain = DOMAINS[oneOf(options, 'domain', Object.keys(DOMAINS), 'retail')]!;
  const users = usersOf(domain);
  return {
    domain,
    user: oneOf(options, 'user', users, users[0]!, ` in the domain ${domain.id}`),
    split: oneOf(options, 'split', ['published', 'full'], 'published'),
    maxSteps: integer(options, 'maxSteps', DEFAULT_LIMITS.maxSteps),
    maxErrors: integer(options, 'maxErrors', DEFAULT_LIMITS.maxErrors),
    userTurns: integer(options, 'userTurns', 10),
  };
}

/** Users that a domain can be played with, the default first. */
function usersOf({ hasSolo, hasScript, tools }: Domain): readonly UserKind[] {
  const users: UserKind[] = [];
  if (hasScript ?? tools('user').length === 0) users.push('scripted');
  if (hasSolo) users.push('solo');
  return users;
}

function oneOf<T extends string>(options: EnvOptions, name: string, values: readonly T[], fallback: T, where = ''): T {
  const value = options[name] ?? fallback;
  const found = values.find((known) => known === value);
  if (found !== undefined) return found;
  const expected = values.map((known) => JSON.stringify(known)).join(' or ');
  throw new UserError('BAD_CONFIG', `tau2: ${name} must be ${expected}${where}, got ${describeValue(value)}`);
}

function integer(options: EnvOptions, name: string, fallback: number): number {
  const value = options[name] ?? fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 10_000) return value;
  throw new UserError('BAD_CONFIG', `tau2: ${name} must be an integer in [1, 10000], got ${describeValue(value)}`);
}
