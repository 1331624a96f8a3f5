/** Configuration of a run as servers of experiments show it: one value a key. */
import { isRecord } from '../../core/record.ts';
import { redact } from '../../core/secrets.ts';

/** Flattens a configuration: `learner.kl.in` → `loss`; lists and numbers as JSON. */
export function flattenConfig(config: unknown, path = ''): [string, string][] {
  if (!isRecord(config)) return path === '' ? [] : [[path, redact(textOf(config))]];
  return Object.entries(config).flatMap(([key, value]) => flattenConfig(value, path === '' ? key : `${path}.${key}`));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
