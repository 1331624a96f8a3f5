/** Configuration of a run as servers of experiments show it: one value a key, none of them a secret. */
import { isRecord } from '../../core/record.ts';
import { isSecretName, redact } from '../../core/secrets.ts';

/**
 * Flattens a configuration: `learner.kl.in` → `loss`; lists and numbers as JSON. Values of keys that name a secret, and
 * variables of a world's server (`env.options.env`), are `[key]`; URLs have no query.
 */
export function flattenConfig(config: unknown): [string, string][] {
  return flatten(hideSecrets(config, []), '');
}

function flatten(config: unknown, path: string): [string, string][] {
  if (!isRecord(config)) return path === '' ? [] : [[path, redact(textOf(config))]];
  return Object.entries(config).flatMap(([key, value]) => flatten(value, path === '' ? key : `${path}.${key}`));
}

/** Copies a value without its secrets. @param keys path of the value; places in lists are no part of it */
function hideSecrets(value: unknown, keys: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => hideSecrets(one, keys));
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hideSecrets(one, [...keys, key])]));
  }
  if (value === undefined || value === null) return value;
  const isVariable = keys.some((key, i) => key === 'env' && keys[i - 1] === 'options' && i + 1 < keys.length);
  if (isVariable || keys.some(isSecretName)) return '[key]';
  return typeof value === 'string' ? stripQueries(value) : value;
}

/** Text whose URLs have no query: keys of servers stand there. */
function stripQueries(text: string): string {
  return text.replace(/[^\s"']+/g, (word) => {
    const begin = word.indexOf('://');
    const end = begin < 0 ? -1 : word.indexOf('?', begin);
    return end < 0 ? word : word.slice(0, end);
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
