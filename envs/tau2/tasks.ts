/** Tasks of τ²-bench as its files give them. */
import type { InitialData } from './domain.ts';
import type { Side } from './environment.ts';
import type { Arguments } from './python/calls.ts';
import type { PyDict, PyValue } from './python/values.ts';

/** Component of a reward. */
export type RewardType = 'DB' | 'ENV_ASSERTION' | 'ACTION' | 'COMMUNICATE' | 'NL_ASSERTION';

/** Call of a function by a task: an initial action. */
export interface TaskCall {
  readonly side: Side;
  readonly name: string;
  readonly args: Arguments;
}

/** Gold action: a call that leads to the target state. */
export interface GoldAction extends TaskCall {
  readonly id: string;
  /** Arguments that a call must share with it; null: those that the call has. */
  readonly compareArgs: readonly string[] | null;
}

/** Check of the end state: a function that answers with a boolean, and the boolean that is wanted. */
export interface EnvAssertion extends TaskCall {
  readonly wanted: boolean;
}

/** Criteria of success. */
export interface Criteria {
  /** Null where the task gives none, which is not the same as an empty list. */
  readonly actions: readonly GoldAction[] | null;
  readonly assertions: readonly EnvAssertion[] | null;
  /** Texts that the agent must say. */
  readonly communicate: readonly string[];
  /** Statements about the conversation, for a judge. */
  readonly statements: readonly string[];
  readonly basis: readonly RewardType[];
}

/** Message of a conversation that precedes the episode. */
export interface HistoryMessage {
  readonly role: Side | 'tool';
  readonly content: string | null;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: Arguments }[];
  /** Id of the call that a message of a tool answers. */
  readonly callId?: string | undefined;
}

/** Instructions of the user: a text, or parts with names. */
export type Instructions = string | Readonly<Partial<Record<InstructionPart, string>>>;
export type InstructionPart = 'domain' | 'reason_for_call' | 'known_info' | 'unknown_info' | 'task_instructions';

/** Task. */
export interface TauTask {
  readonly id: string;
  /** Character of a user that is a language model. */
  readonly persona: string | null;
  readonly instructions: Instructions;
  /** Request for an agent without a user. */
  readonly ticket: string | null;
  readonly initialData: InitialData | undefined;
  readonly initialActions: readonly TaskCall[];
  readonly history: readonly HistoryMessage[];
  /** Null: every episode is a success. */
  readonly criteria: Criteria | null;
}

const PARTS: readonly InstructionPart[] = [
  'domain',
  'reason_for_call',
  'known_info',
  'unknown_info',
  'task_instructions',
];
/** Components that count where a task names none. */
const DEFAULT_BASIS: readonly RewardType[] = ['DB', 'COMMUNICATE'];

/** Reads a list of tasks. @throws {TypeError} for a file that has another form */
export function readTasks(list: PyValue): readonly TauTask[] {
  return items(list).map((task) => readTask(record(task)));
}

function readTask(task: PyDict): TauTask {
  const scenario = record(task.get('user_scenario'));
  const state = optional(task.get('initial_state'), record);
  const data = optional(state?.get('initialization_data'), record);
  return {
    id: text(task.get('id')),
    persona: textOrNull(scenario.get('persona')),
    instructions: readInstructions(scenario.get('instructions')),
    ticket: textOrNull(task.get('ticket')),
    initialData: data && { agent: data.get('agent_data') ?? undefined, user: data.get('user_data') ?? undefined },
    initialActions: items(state?.get('initialization_actions') ?? []).map((one) => readCall(record(one))),
    history: items(state?.get('message_history') ?? []).map((one) => readMessage(record(one))),
    criteria: optional(task.get('evaluation_criteria'), (one) => readCriteria(record(one))) ?? null,
  };
}

function readInstructions(value: PyValue | undefined): Instructions {
  if (typeof value === 'string') return value;
  const parts = record(value);
  const given = PARTS.map((part) => [part, textOrNull(parts.get(part))] as const);
  return Object.fromEntries(given.filter(([, one]) => one !== null));
}

function readCriteria(criteria: PyDict): Criteria {
  const actions = optional(criteria.get('actions'), items);
  const assertions = optional(criteria.get('env_assertions'), items);
  return {
    actions: actions?.map((one) => readAction(record(one))) ?? null,
    assertions: assertions?.map((one) => readAssertion(record(one))) ?? null,
    communicate: items(criteria.get('communicate_info') ?? []).map(text),
    statements: items(criteria.get('nl_assertions') ?? []).map(text),
    basis: optional(criteria.get('reward_basis'), items)?.map((one) => text(one) as RewardType) ?? DEFAULT_BASIS,
  };
}

function readAction(action: PyDict): GoldAction {
  const compared = optional(action.get('compare_args'), items);
  return {
    id: text(action.get('action_id')),
    side: (textOrNull(action.get('requestor')) ?? 'assistant') as Side,
    name: text(action.get('name')),
    args: record(action.get('arguments')) as Map<string, PyValue>,
    compareArgs: compared?.map(text) ?? null,
  };
}

function readAssertion(assertion: PyDict): EnvAssertion {
  return { ...readCall(assertion), wanted: (assertion.get('assert_value') ?? true) === true };
}

function readCall(call: PyDict): TaskCall {
  return {
    side: text(call.get('env_type')) as Side,
    name: text(call.get('func_name')),
    args: record(call.get('arguments') ?? new Map()) as Map<string, PyValue>,
  };
}

function readMessage(message: PyDict): HistoryMessage {
  const id = textOrNull(message.get('id'));
  return {
    role: text(message.get('role')) as HistoryMessage['role'],
    content: textOrNull(message.get('content')),
    calls: items(message.get('tool_calls') ?? []).map((one) => {
      const call = record(one);
      const args = record(call.get('arguments')) as Map<string, PyValue>;
      return { id: text(call.get('id')), name: text(call.get('name')), args };
    }),
    ...(id === null ? {} : { callId: id }),
  };
}

function optional<T>(value: PyValue | undefined, read: (value: PyValue) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

function record(value: PyValue | undefined): PyDict {
  if (value instanceof Map) return value;
  throw new TypeError('a task: expected a dictionary');
}

function items(value: PyValue): PyValue[] {
  if (Array.isArray(value)) return value;
  throw new TypeError('a task: expected a list');
}

function text(value: PyValue | undefined): string {
  if (typeof value === 'string') return value;
  throw new TypeError('a task: expected a text');
}

function textOrNull(value: PyValue | undefined): string | null {
  return value === undefined || value === null ? null : text(value);
}
