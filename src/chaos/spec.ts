/** Chaos specification: the faults to inject and their rates, as written after `--chaos`. */
import { UserError } from '../core/errors.ts';

/** Kinds of faults. Each but the last strikes a step of an environment. */
export const faultKinds = [
  'kill', // the host's thread or process exits
  'hang', // never answers: half of them a promise that never settles, half a loop that never ends
  'slow', // answers late, within the deadline
  'oom', // fills its heap
  'throw',
  'drop', // the command is lost
  'duplicate', // the answer comes twice
  'nan', // the reward is not a number
  'disk-full', // a checkpoint meets ENOSPC
] as const;

export type FaultKind = (typeof faultKinds)[number];
export type StepFaultKind = Exclude<FaultKind, 'disk-full'>;

/** Faults to inject, and how often. */
export interface ChaosSpec {
  /** Seed, uint32. The same seed strikes the same (episode, turn) pairs and the same checkpoints. */
  readonly seed: number;
  /** Share of the env steps (of the checkpoints for `disk-full`) that are struck, each in [0, 1]; together ≤ 1. */
  readonly rates: Readonly<Partial<Record<FaultKind, number>>>;
}

/** Faults that end the thread they strike: not for hosts that share the caller's. */
export const deadlyKinds: readonly FaultKind[] = ['kill', 'oom'];

/**
 * Reads `throw=0.01,hang=0.001,seed=7`; `all=0.05` spreads a rate evenly over every kind that strikes steps.
 * @throws {UserError} BAD_ARGUMENT naming the part that is wrong
 */
export function parseChaos(text: string): ChaosSpec {
  const rates: { [K in FaultKind]?: number } = {};
  let seed = 1;
  const stepKinds = faultKinds.filter((kind) => kind !== 'disk-full');
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=').map((word) => word.trim());
    const number = value === '' ? Number.NaN : Number(value);
    if (name === 'seed') {
      if (!(Number.isInteger(number) && number >= 0 && number <= 0xffffffff)) throw wrong(part, 'a uint32');
      seed = number;
      continue;
    }
    const known = name === 'all' || (faultKinds as readonly string[]).includes(name);
    if (!known) throw wrong(part, `one of ${faultKinds.join(', ')}, all, seed`);
    if (!(number >= 0 && number <= 1)) throw wrong(part, 'a rate in [0, 1]');
    if (name === 'all') for (const kind of stepKinds) rates[kind] = number / stepKinds.length;
    else rates[name as FaultKind] = number;
  }
  const total = stepKinds.reduce((sum, kind) => sum + (rates[kind] ?? 0), 0);
  if (total > 1 + 1e-9) throw wrong(text, `rates of steps that sum to at most 1 (they sum to ${total})`);
  return { seed, rates };
}

function wrong(part: string, expected: string): UserError {
  return new UserError('BAD_ARGUMENT', `--chaos: '${part}': expected ${expected}, e.g. throw=0.01,hang=0.001,seed=7`);
}

/**
 * Checks the faults to inject against where envs run.
 * @throws {UserError} BAD_ARGUMENT for faults that would end this process itself
 */
export function checkChaos({ rates }: ChaosSpec, isolation: string): void {
  const deadly =
    isolation === 'inline' ? ([...deadlyKinds, 'hang'] as const).filter((kind) => (rates[kind] ?? 0) > 0) : [];
  if (deadly.length === 0) return;
  const why = 'envs share the main thread here (a serial run, or rollout.isolation: inline)';
  throw new UserError('BAD_ARGUMENT', `--chaos: ${deadly.join(', ')} would end the run itself: ${why}; leave them out`);
}
