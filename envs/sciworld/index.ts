/** SciWorld as the framework loads it. */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { type Rules, SciWorld } from './env.ts';
import { oracle } from './oracle.ts';
import { SIMPLIFICATIONS } from './simulator.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { SciWorld, SciWorldSession } from './env.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export { view } from './view.ts';

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
  throw bad(`${key} must be one of ${names}, got ${JSON.stringify(value)}`);
}

/**
 * @param options `fidelity`: `corrected` (default) or `original`; `tasks`: `agentgym` (default) or `scienceworld`; `failure`: `keeps` (default) or `forfeits`;
 * `simplifications`: a list of ScienceWorld's, see README.md
 * @throws {UserError} BAD_CONFIG for an option or a value that is none of these
 */
export function createEnv(options: EnvOptions = {}): SciWorld {
  const { fidelity = 'corrected', tasks = 'agentgym', failure = 'keeps', simplifications = [], ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw bad(`no option "${unknown}"; it has: fidelity, tasks, failure, simplifications`);
  if (!Array.isArray(simplifications)) {
    throw bad(`simplifications must be a list, got ${JSON.stringify(simplifications)}`);
  }
  const rules: Rules = {
    fidelity: oneOf('fidelity', fidelity, FIDELITIES),
    tasks: oneOf('tasks', tasks, TABLES),
    failure: oneOf('failure', failure, FAILURES),
    simplifications: simplifications.map((name) => oneOf('simplifications', name, SIMPLER)),
  };
  return new SciWorld(rules);
}

/** The scripted solver under these options. */
export function createOracle(options: EnvOptions = {}): Oracle {
  return oracle(createEnv(options));
}
