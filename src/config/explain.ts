/** Words for what a configuration has wrong: the key, what was expected, what came, and what was probably meant. */
import { closest, distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { runConfigSchema } from './run-config.ts';
import { isWrapper, literalOf } from './union-defaults.ts';

/** UTF-16 units of what came that a message repeats. */
const REPEATED_CHARS = 120;

/** @param raw the configuration that was checked @returns a line for each mistake of an issue */
export function explain(issue: z.core.$ZodIssue, raw: unknown): string[] {
  const at = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(issue.path, raw);
    return issue.keys.map((key) => {
      const nearest = known.length > 0 ? `; did you mean '${closest(key, known)}'?` : '';
      return `unknown key '${repeated(`${at ? `${at}.` : ''}${key}`)}'${nearest}`;
    });
  }
  const value = valueAt(issue.path, raw);
  const union = unionAt(issue, raw);
  if (union && at) {
    const { discriminator, kinds } = union;
    const meant = typeof value === 'string' ? nearest(value, kinds) : undefined;
    const inKind = at === discriminator || at.endsWith(`.${discriminator}`);
    const form = (kind: string) => (inKind ? `${at}=${kind}` : `${at}={${discriminator}: ${kind}}`);
    const whole = inKind ? at : `${at}.${discriminator}`;
    return [
      `${whole}: expected one of ${kinds.join(', ')} (got ${describe(value)})${meant ? `; did you mean ${form(meant)}?` : ''}`,
    ];
  }
  const meant = meantBy(issue, value);
  return [
    `${repeated(at) || 'the configuration'}: ${lowerFirst(issue.message)} (got ${describe(value)})${meant ? `; did you mean ${meant}?` : ''}`,
  ];
}

/** A value as a message shows it. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  return repeated(JSON.stringify(value));
}

/** A part of what came, cut to what a message repeats of it. */
export function repeated(text: string): string {
  return text.length > REPEATED_CHARS ? `${text.slice(0, REPEATED_CHARS)}…` : text;
}

/** The right value that a wrong one resembles. */
function meantBy(issue: z.core.$ZodIssue, value: unknown): string | undefined {
  if (issue.code === 'invalid_value') {
    return typeof value === 'string' ? nearest(value, issue.values.map(String)) : undefined;
  }
  if (issue.code !== 'invalid_type' || value === undefined) return undefined;
  if (issue.expected === 'array' && !Array.isArray(value) && typeof value !== 'object') return `[${String(value)}]`;
  if (issue.expected === 'boolean') {
    if (/^(yes|on|1|y|true)$/i.test(String(value))) return 'true';
    return /^(no|off|0|n|false)$/i.test(String(value)) ? 'false' : undefined;
  }
  if (issue.expected === 'number' && typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)))
    return String(Number(value));
  return undefined;
}

/** The word that another one is a misspelling of; undefined where none is near. */
function nearest(word: string, words: readonly string[]): string | undefined {
  const low = word.toLowerCase();
  const begun = low.length >= 3 ? words.find((one) => one.startsWith(low)) : undefined;
  if (begun !== undefined) return begun;
  const found = closest(low, words);
  return distance(low, found) <= Math.max(1, Math.floor(found.length / 2)) ? found : undefined;
}

/** The union whose kind an issue is about: an unknown kind, or a value that names no kind. */
function unionAt(issue: z.core.$ZodIssue, raw: unknown): { discriminator: string; kinds: string[] } | undefined {
  const { path } = issue;
  for (const to of issue.code === 'invalid_union'
    ? [path.slice(0, -1), path]
    : issue.code === 'invalid_type'
      ? [path]
      : []) {
    const schema = bare(schemaAt(to, raw));
    if (!(schema instanceof z.ZodDiscriminatedUnion)) continue;
    const { discriminator } = schema.def;
    const kinds = schema.options.flatMap((option) =>
      option instanceof z.ZodObject ? [String(literalOf(option, discriminator))] : [],
    );
    return { discriminator, kinds };
  }
  return undefined;
}

function valueAt(path: readonly PropertyKey[], raw: unknown): unknown {
  return path.reduce<unknown>(
    (value, key) => (isRecord(value) || Array.isArray(value) ? (value as never)[key] : undefined),
    raw,
  );
}

/** The keys the schema knows at a path; of a union, those of the variant that the value names. */
function keysAt(path: readonly PropertyKey[], raw: unknown): string[] {
  const object = variantOf(schemaAt(path, raw), valueAt(path, raw));
  return object instanceof z.ZodObject ? Object.keys(object.shape) : [];
}

function schemaAt(path: readonly PropertyKey[], raw: unknown): unknown {
  let schema: unknown = runConfigSchema;
  let value: unknown = raw;
  for (const key of path) {
    schema = variantOf(schema, value);
    schema = schema instanceof z.ZodObject ? schema.shape[String(key)] : undefined;
    value = isRecord(value) ? value[String(key)] : undefined;
  }
  return schema;
}

/** A schema without its default. */
function bare(schema: unknown): unknown {
  let inner = schema;
  while (isWrapper(inner)) {
    inner = inner.unwrap();
  }
  return inner;
}

/** The object that a value is checked against: of a union, the variant that it names. */
function variantOf(schema: unknown, value: unknown): unknown {
  const inner = bare(schema);
  if (!(inner instanceof z.ZodDiscriminatedUnion)) return inner;
  const { discriminator } = inner.def;
  const named = isRecord(value) ? value[discriminator] : undefined;
  return inner.options.find((option) => option instanceof z.ZodObject && literalOf(option, discriminator) === named);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
