/** Options of SciWorld, checked. */

import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Rules } from './env.ts';
import { SIMPLIFICATIONS } from './simulator.ts';

const FIDELITIES = ['corrected', 'original'] as const;
const TABLES = ['agentgym', 'scienceworld'] as const;
const FAILURES = ['keeps', 'forfeits'] as const;
const SIMPLER = [...SIMPLIFICATIONS, 'easy'] as const;

function bad(message: string): UserError {
  return new UserError('BAD_CONFIG', `sciworld: ${message}`);
}

function oneOf<T extends string>(key: string, value: unknown, allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T;
  const names = allowed.map((name) => `"${name}"`).join(', ');
  throw bad(`${key} must be one of ${names}, got ${describeValue(value)}`);
}

/**
 * Rules that options ask for.
 * @throws {UserError} BAD_CONFIG for an option or a value that README.md does not list
 */
export function rulesOf(options: EnvOptions): Rules {
  const { fidelity = 'corrected', tasks = 'agentgym', failure = 'keeps', simplifications = [], ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw bad(`no option "${unknown}"; it has: fidelity, tasks, failure, simplifications`);
  if (!Array.isArray(simplifications)) {
    throw bad(`simplifications must be a list, got ${describeValue(simplifications)}`);
  }
  return {
    fidelity: oneOf('fidelity', fidelity, FIDELITIES),
    tasks: oneOf('tasks', tasks, TABLES),
    failure: oneOf('failure', failure, FAILURES),
    simplifications: simplifications.map((name) => oneOf('simplifications', name, SIMPLER)),
  };
}
