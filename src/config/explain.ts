/** Messages about a configuration: the key, what was expected, what came, and what was probably meant. */
import { z } from 'zod';
import { cutText, describeValue } from '../core/describe-value.ts';
import { isRecord } from '../core/record.ts';
import { nearest } from './nearest.ts';
import { runConfigSchema } from './run-config.ts';
import { getLiteral, isWrapper } from './union-defaults.ts';

/** Counts the mistakes of an issue. */
export function countMistakes(issue: z.core.$ZodIssue): number {
  return issue.code === 'unrecognized_keys' ? issue.keys.length : 1;
}

/**
 * Explains an issue, one line for each mistake.
 * @param raw the configuration that was checked
 * @param maxLines lines; each takes a search for what was meant
 * @returns a line for each mistake of an issue, the first `maxLines`
 */
export function explain(issue: z.core.$ZodIssue, raw: unknown, maxLines: number): string[] {
  const at = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, maxLines).map((key) => {
      const full = `${at ? `${at}.` : ''}${key}`;
      return `unknown key '${cutText(full)}'${suggestKey(issue.path, key, raw)}`;
    });
  }
  const value = getValue(issue.path, raw);
  const union = findUnion(issue, raw);
  if (union && at) {
    const { discriminator, kinds } = union;
    const meant = typeof value === 'string' ? nearest(value, kinds) : undefined;
    const inKind = at === discriminator || at.endsWith(`.${discriminator}`);
    const form = (kind: string) => (inKind ? `${at}=${kind}` : `${at}={${discriminator}: ${kind}}`);
    const whole = inKind ? at : `${at}.${discriminator}`;
    return [
      `${whole}: expected one of ${kinds.join(', ')} (got ${describeValue(value)})${meant ? `; did you mean ${form(meant)}?` : ''}`,
    ];
  }
  const object = unwrap(findSchema(issue.path, raw));
  if (at && value === undefined && issue.code === 'invalid_type') return [describeMissing(at, object, issue.expected)];
  if (at && value !== undefined && object instanceof z.ZodObject) return [describeNoSection(at, object, value)];
  const meant = suggestValue(issue, value);
  const message = describeExpected(issue) ?? lowerFirst(issue.message);
  return [
    `${cutText(at) || 'the configuration'}: ${message} (got ${describeValue(value)})${meant ? `; did you mean ${meant}?` : ''}`,
  ];
}

/** Describes a key that has no default and is absent. */
function describeMissing(at: string, schema: unknown, expected: string): string {
  const several = at === 'env' ? '; several worlds are a list (worlds)' : '';
  return `${at}: must be given: ${schema instanceof z.ZodObject ? `keys and values (${listKeys(schema)})` : expected}${several}`;
}

/** Lists the keys of a section, the first `MAX_KEYS` of them. */
function listKeys({ shape }: z.ZodObject): string {
  const keys = Object.keys(shape);
  return keys.length > MAX_KEYS ? `${keys.slice(0, MAX_KEYS).join(', ')}, …` : keys.join(', ');
}

/** Describes a value in the place of a section: the key that it was probably meant for, else all there are. */
function describeNoSection(at: string, section: z.ZodObject, value: unknown): string {
  const { shape } = section;
  const keys = Object.keys(shape);
  const worded = keys.flatMap((key) => {
    const inner = unwrap(shape[key]);
    const word = inner instanceof z.ZodEnum ? nearest(String(value), inner.options.map(String)) : undefined;
    return word === undefined ? [] : [{ key, word }];
  });
  const best = worded.find(({ word }) => word === value) ?? worded[0];
  const needed = keys.find((key) => !isWrapper(shape[key]));
  const fits = needed !== undefined && (shape[needed] as z.ZodType).safeParse(value).success;
  const meant = best ? `${at}.${best.key}=${best.word}` : fits ? `${at}.${needed}=${String(value)}` : undefined;
  return `${at}: expected keys and values (${listKeys(section)}), got ${describeValue(value)}${meant ? `; did you mean ${meant}?` : ''}`;
}

/** Describes the kinds that a union without a discriminator takes. */
function describeExpected(issue: z.core.$ZodIssue): string | undefined {
  if (issue.code !== 'invalid_union') return undefined;
  const kinds = issue.errors.flatMap(([first]) => {
    if (first?.code === 'invalid_type') return [first.expected];
    return first?.code === 'invalid_value' ? first.values.map(String) : [];
  });
  return kinds.length > 0 ? `expected ${kinds.join(' or ')}` : undefined;
}

/** Keys of a section that a message names. */
const MAX_KEYS = 8;

/** Paths of all keys of a configuration, once they were asked for: one text has many unknown ones. */
let knownPaths: readonly string[] | undefined;

/** Suggests the key that an unknown one was probably meant as: one beside it, one elsewhere, or all there are. */
function suggestKey(path: readonly PropertyKey[], key: string, raw: unknown): string {
  const pair = /^(\w+):(.+)$/.exec(key);
  if (pair) return `; a space belongs after the colon: '${pair[1]}: ${cutText(pair[2]!)}'`;
  const owner = findSchema(path, raw);
  const union = unwrap(owner);
  if (union instanceof z.ZodDiscriminatedUnion) {
    const { discriminator } = union.def;
    const kinds = listKinds(union);
    const value = getValue([...path, key], raw);
    if (typeof value === 'string' && nearest(value, kinds) === value) return `; did you mean '${discriminator}'?`;
    const others = union.options.flatMap((option) =>
      option instanceof z.ZodObject && Object.hasOwn(option.shape, key)
        ? [String(getLiteral(option, discriminator))]
        : [],
    );
    const at = path.join('.');
    if (others.length > 0) return `; it belongs to ${at}.${discriminator}=${others.join(' or ')}`;
  }
  const beside = nearest(key, listKeysAt(path, raw));
  if (beside !== undefined) return `; did you mean '${beside}'?`;
  knownPaths ??= listAllKeys(runConfigSchema);
  const elsewhere = [...new Set(knownPaths.filter((one) => isSameKey(key, one.split('.').at(-1)!)))];
  if (elsewhere.length > 0 && elsewhere.length <= 3) return `; did you mean '${elsewhere.join("' or '")}'?`;
  const here = listKeysAt(path, raw);
  return here.length > 0 ? `; known here: ${here.join(', ')}` : '';
}

/** True for two spellings of a key, or its initials: `learning_rate`, `lr`. */
function isSameKey(word: string, key: string): boolean {
  const plain = (text: string) => text.toLowerCase().replace(/[-_ ]/g, '');
  const initials = key.replace(/(?<=.)[a-z0-9]+/g, '').toLowerCase();
  return plain(word) === plain(key) || (initials.length > 1 && word.toLowerCase() === initials);
}

/** Lists the paths of all keys of a schema, those of every kind of a union among them. */
function listAllKeys(schema: unknown, path = ''): string[] {
  const inner = unwrap(schema);
  const objects = inner instanceof z.ZodDiscriminatedUnion ? inner.options : [inner];
  return objects.flatMap((object) => {
    if (!(object instanceof z.ZodObject)) return [];
    return Object.entries(object.shape).flatMap(([key, value]) => {
      const at = path === '' ? key : `${path}.${key}`;
      return [at, ...listAllKeys(value, at)];
    });
  });
}

/** Suggests the right value that a wrong one resembles. */
function suggestValue(issue: z.core.$ZodIssue, value: unknown): string | undefined {
  if (issue.code === 'invalid_value') {
    return typeof value === 'string' ? nearest(value, issue.values.map(String)) : undefined;
  }
  if (issue.code === 'invalid_union') {
    const listed = issue.errors.some(([first]) => first?.code === 'invalid_type' && first.expected === 'array');
    return listed && typeof value !== 'object' ? `[${String(value)}]` : undefined;
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

/** Finds the union whose kind an issue is about: an unknown kind, or a value that names no kind. */
function findUnion(issue: z.core.$ZodIssue, raw: unknown): { discriminator: string; kinds: string[] } | undefined {
  const { path } = issue;
  for (const to of issue.code === 'invalid_union'
    ? [path.slice(0, -1), path]
    : issue.code === 'invalid_type'
      ? [path]
      : []) {
    const schema = unwrap(findSchema(to, raw));
    if (!(schema instanceof z.ZodDiscriminatedUnion)) continue;
    return { discriminator: schema.def.discriminator, kinds: listKinds(schema) };
  }
  return undefined;
}

/** Lists the names of the kinds of a union. */
function listKinds({ options, def: { discriminator } }: z.ZodDiscriminatedUnion): string[] {
  return options.flatMap((option) =>
    option instanceof z.ZodObject ? [String(getLiteral(option, discriminator))] : [],
  );
}

function getValue(path: readonly PropertyKey[], raw: unknown): unknown {
  return path.reduce<unknown>(
    (value, key) => (isRecord(value) || Array.isArray(value) ? (value as never)[key] : undefined),
    raw,
  );
}

/** Lists the keys that the schema knows at a path; of a union, those of the variant that the value names. */
function listKeysAt(path: readonly PropertyKey[], raw: unknown): string[] {
  const object = findVariant(findSchema(path, raw), getValue(path, raw));
  return object instanceof z.ZodObject ? Object.keys(object.shape) : [];
}

function findSchema(path: readonly PropertyKey[], raw: unknown): unknown {
  let schema: unknown = runConfigSchema;
  let value: unknown = raw;
  for (const key of path) {
    schema = findVariant(schema, value);
    if (schema instanceof z.ZodArray) schema = schema.element;
    else schema = schema instanceof z.ZodObject ? schema.shape[String(key)] : undefined;
    value = getValue([key], value);
  }
  return schema;
}

/** Unwraps a schema: without its default. */
function unwrap(schema: unknown): unknown {
  let inner = schema;
  while (isWrapper(inner)) {
    inner = inner.unwrap();
  }
  return inner;
}

/** Finds the object that a value is checked against: of a union, the variant that it names. */
function findVariant(schema: unknown, value: unknown): unknown {
  const inner = unwrap(schema);
  if (!(inner instanceof z.ZodDiscriminatedUnion)) return inner;
  const { discriminator } = inner.def;
  const named = isRecord(value) ? value[discriminator] : undefined;
  return inner.options.find((option) => option instanceof z.ZodObject && getLiteral(option, discriminator) === named);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
