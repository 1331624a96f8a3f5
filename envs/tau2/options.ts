/** Options of the world, checked: `env: { id: tau2, options: { … } }`. */
import { type ChatModelOptions, readChatModelOptions } from '../../src/core/chat-model.ts';
import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { JudgeOptions } from '../../src/core/judge.ts';
import { isRecord } from '../../src/core/record.ts';
import type { Domain } from './domain.ts';
import { DOMAINS } from './domains.ts';
import { DEFAULT_LIMITS } from './orchestrator.ts';

/** Partner of the agent: none, with a ticket in the opening; a user who follows a script; or one that is a language model. */
export type UserKind = 'solo' | 'scripted' | 'openai';
/** Tasks of training: the published ones, or all that are not held out. */
export type SplitKind = 'published' | 'full';

/** Options of the world; README.md explains each. */
export interface Tau2Options {
  readonly domain: Domain;
  readonly user: UserKind;
  /** Model of the user `openai`. */
  readonly userModel: ChatModelOptions | undefined;
  /** Judge of the statements that a task demands; absent: nobody judges them. */
  readonly judge: JudgeModel | undefined;
  readonly split: SplitKind;
  readonly maxSteps: number;
  readonly maxErrors: number;
  readonly userTurns: number;
}

/** Judge: its model, and how it is asked. */
export interface JudgeModel {
  readonly model: ChatModelOptions;
  readonly options: JudgeOptions;
}

const KNOWN = ['domain', 'user', 'judge', 'split', 'maxSteps', 'maxErrors', 'userTurns'];

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
  const { kind, model } = readUser(options, domain);
  return {
    domain,
    user: kind,
    userModel: model,
    judge: readJudge(options.judge),
    split: oneOf(options, 'split', ['published', 'full'], 'published'),
    maxSteps: integer(options, 'maxSteps', DEFAULT_LIMITS.maxSteps),
    maxErrors: integer(options, 'maxErrors', DEFAULT_LIMITS.maxErrors),
    userTurns: integer(options, 'userTurns', 20),
  };
}

/** Reads the user: a name, or `{ kind: openai, url, model, … }`. */
function readUser(
  options: EnvOptions,
  { id, hasSolo, isSoloByDefault }: Domain,
): { readonly kind: UserKind; readonly model: ChatModelOptions | undefined } {
  const { user } = options;
  if (isRecord(user) && user.kind === 'openai') {
    const { kind, ...model } = user;
    return { kind, model: readChatModelOptions(model, 'tau2: user') };
  }
  const names: readonly UserKind[] = hasSolo ? ['scripted', 'solo'] : ['scripted'];
  const where = ` or { kind: openai, url, model } in the domain ${id}`;
  return { kind: oneOf(options, 'user', names, isSoloByDefault ? 'solo' : 'scripted', where), model: undefined };
}

/** Reads the judge: its model's options, and `votes`. */
function readJudge(value: unknown): JudgeModel | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) return { model: readChatModelOptions(value, 'tau2: judge'), options: {} }; // throws the reason
  const { votes = 1, ...model } = value;
  if (!(typeof votes === 'number' && Number.isInteger(votes) && votes % 2 === 1 && votes >= 1 && votes <= 15)) {
    throw new UserError(
      'BAD_CONFIG',
      `tau2: judge.votes: expected an odd number in [1, 15], got ${describeValue(votes)}`,
    );
  }
  return { model: readChatModelOptions(model, 'tau2: judge'), options: { votes } };
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
