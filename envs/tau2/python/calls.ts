/** Calls of Python functions by keyword arguments, with the texts of what does not fit a signature. */
import { typeError } from './errors.ts';
import type { PyValue } from './values.ts';

/** Arguments by name, in the order in which they were written. */
export type Arguments = ReadonlyMap<string, PyValue>;

/** Method of a class: its parameters behind `self`, and what it does with their values. */
export interface Method<S> {
  readonly parameters: readonly string[];
  /** Values of the parameters that may be left out. */
  readonly defaults: Readonly<Record<string, PyValue>>;
  run(self: S, ...values: PyValue[]): PyValue;
}

/** Makes a method. @param parameters their names, separated by blanks */
export function method<S>(
  parameters: string,
  run: (self: S, ...values: PyValue[]) => PyValue,
  defaults: Readonly<Record<string, PyValue>> = {},
): Method<S> {
  return { parameters: parameters === '' ? [] : parameters.split(' '), defaults, run };
}

/**
 * Values of the parameters, in their order.
 * @param name of the method with its class, e.g. `RetailTools.calculate`
 * @throws {PyError} `TypeError` for arguments that are unexpected or missing
 */
export function bindArguments(
  name: string,
  { parameters, defaults }: Pick<Method<never>, 'parameters' | 'defaults'>,
  given: Arguments,
): PyValue[] {
  for (const key of given.keys()) {
    if (key === 'self') throw typeError(`${name}() got multiple values for argument 'self'`);
    if (!parameters.includes(key)) throw typeError(`${name}() got an unexpected keyword argument '${key}'`);
  }
  const missing = parameters.filter((parameter) => !given.has(parameter) && !(parameter in defaults));
  if (missing.length > 0) {
    const count = `${missing.length} required positional argument${missing.length === 1 ? '' : 's'}`;
    throw typeError(`${name}() missing ${count}: ${joinNames(missing)}`);
  }
  return parameters.map((parameter) => (given.has(parameter) ? given.get(parameter)! : defaults[parameter]!));
}

/** `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`. */
function joinNames(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 3) return quoted.join(' and ');
  return `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`;
}
