/**
 * Environment of an episode: the database of the agent's side, in some domains one of the user's side, and the functions that read
 * and change them. A call is answered by a text, as the original's `get_response` answers it.
 */

import { digestOf, hashOf } from './digest.ts';
import { type Arguments, bindArguments, type Method } from './python/calls.ts';
import { PyError, typeError, valueError } from './python/errors.ts';
import { dumps, str } from './python/format.ts';
import { isDict, Model, type PyValue } from './python/values.ts';
import type { HistoryMessage } from './tasks.ts';

/** Side of an episode: who calls, and whose functions are called. */
export type Side = 'assistant' | 'user';

/** Functions of one side of a domain. */
export interface Toolkit<S = never> {
  /** Class of the original, which its errors name, e.g. `RetailTools`. */
  readonly className: string;
  /** Tools, by name: whether each changes a database. Other functions prepare an episode or check its end. */
  readonly tools: ReadonlyMap<string, { readonly mutates: boolean }>;
  readonly methods: Readonly<Record<string, Method<S>>>;
}

/** One side of an environment: its functions, and what they work on. */
export interface Kit {
  readonly tools: Toolkit['tools'];
  /** Database that the hash of this side is taken of. */
  readonly database: PyValue;
  /** Runs a function, a tool or another. @throws {PyError} */
  run(name: string, given: Arguments): PyValue;
}

/**
 * Makes a side.
 * @param self state that the functions get
 * @param database read when a hash is taken
 */
export function createKit<S>({ className, tools, methods }: Toolkit<S>, self: S, database: () => PyValue): Kit {
  return {
    tools,
    get database() {
      return database();
    },
    run(name, given) {
      const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
      if (!method) throw new PyError('AttributeError', `'${className}' object has no attribute '${name}'`);
      return method.run(self, ...bindArguments(`${className}.${name}`, method, given));
    },
  };
}

/** Answer to a call. */
export interface CallResult {
  /** Text that the caller reads. */
  readonly text: string;
  /** True where an exception was raised; it counts towards `max_errors`. */
  readonly error: boolean;
}

/** Sides of an environment; a domain makes them anew for each episode. */
export interface Sides {
  readonly agent: Kit;
  /** Absent where the user has no tools. */
  readonly user?: Kit | undefined;
  /** Brings the two sides into line, after each call. */
  sync?(): void;
}

/** Environment of an episode. Its state is its own: nothing is shared but frozen rows. */
export class Environment {
  readonly #sides: Sides;
  readonly #isSolo: boolean;

  /** @param isSolo the agent has the user's tools, and there is no user */
  constructor(sides: Sides, isSolo = false) {
    this.#sides = sides;
    this.#isSolo = isSolo;
    sides.sync?.();
  }

  /** Answers a call of a tool: its result or its error, in words. The sides are brought into line where it succeeded. */
  call(side: Side, name: string, given: Arguments): CallResult {
    let result: PyValue;
    try {
      result = this.make(side, name, given);
      this.#sides.sync?.();
    } catch (thrown) {
      if (thrown instanceof PyError) return { text: `Error: ${thrown.message}`, error: true };
      throw thrown;
    }
    return { text: formatResult(result), error: false };
  }

  /** Makes a call of a tool, and no more: this is how gold actions run. @throws {PyError} */
  make(side: Side, name: string, given: Arguments): PyValue {
    // Python's own parameters: of two values for `requestor` the call itself is refused, by the function's full name.
    if (given.has('requestor')) {
      const name = 'tau2.environment.environment.Environment.make_tool_call()';
      throw typeError(`${name} got multiple values for keyword argument 'requestor'`);
    }
    for (const own of ['self', 'tool_name']) {
      if (given.has(own)) throw typeError(`Environment.make_tool_call() got multiple values for argument '${own}'`);
    }
    const { agent, user } = this.#sides;
    if (side === 'user') {
      if (this.#isSolo) throw valueError('User tool calls are not allowed in solo mode');
      if (!user) throw valueError('User tools not available');
      return useTool(user, name, given);
    }
    return useTool(this.#isSolo && user?.tools.has(name) ? user : agent, name, given);
  }

  /** Runs any function of a side: initial actions and assertions. @throws {PyError} */
  run(side: Side, name: string, given: Arguments): PyValue {
    const kit = side === 'user' ? this.#sides.user : this.#sides.agent;
    if (!kit) throw new PyError('AttributeError', `'NoneType' object has no attribute '${name}'`);
    const result = kit.run(name, given);
    this.#sides.sync?.();
    return result;
  }

  /** True for a tool of either side. */
  isKnown(name: string): boolean {
    return this.#sides.agent.tools.has(name) || Boolean(this.#sides.user?.tools.has(name));
  }

  /** Makes those calls of a history that change a database. */
  replay(history: readonly Pick<HistoryMessage, 'role' | 'calls'>[]): void {
    for (const { role, calls } of history) {
      if (role === 'tool') continue;
      for (const { name, args } of calls) if (this.#isMutating(name)) this.call(role, name, args);
    }
  }

  /** True for a tool that changes a database, and for one that nobody knows. */
  #isMutating(name: string): boolean {
    const kit = [this.#sides.agent, this.#sides.user].find((one) => one?.tools.has(name));
    return kit?.tools.get(name)?.mutates ?? true;
  }

  /** Database of a side; undefined where it has none. */
  databaseOf(side: Side): PyValue | undefined {
    return side === 'user' ? this.#sides.user?.database : this.#sides.agent.database;
  }

  /** Hash of a side's database as the original computes it; null without one. */
  hash(side: Side): string | null {
    const database = this.databaseOf(side);
    return database === undefined ? null : hashOf(database);
  }

  /** Digest of a side's database for ports; null without one. */
  digest(side: Side): string | null {
    const database = this.databaseOf(side);
    return database === undefined ? null : digestOf(database);
  }
}

function useTool(kit: Kit, name: string, given: Arguments): PyValue {
  if (!kit.tools.has(name)) throw valueError(`Tool '${name}' not found.`);
  return kit.run(name, given);
}

/**
 * Text of a result: a text as it is, else JSON. Models keep their numbers; in plain dictionaries and lists numbers and booleans
 * become texts, as the original has it.
 */
export function formatResult(result: PyValue): string {
  if (typeof result === 'string') return result;
  if (!(result instanceof Model && Object.isFrozen(result))) return dumps(stringify(result));
  let text = sharedTexts.get(result);
  if (text === undefined) sharedTexts.set(result, (text = dumps(result)));
  return text;
}

/** Texts of rows that episodes share. */
const sharedTexts = new WeakMap<Model, string>();

function stringify(value: PyValue): PyValue {
  switch (typeof value) {
    case 'bigint':
    case 'number':
    case 'boolean':
      return str(value);
  }
  if (typeof value !== 'object' || value === null || value instanceof Model) return value;
  if (Array.isArray(value)) return value.map(stringify);
  return isDict(value) ? new Map(Array.from(value, ([key, one]) => [key, stringify(one)])) : value;
}
