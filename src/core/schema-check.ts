/**
 * Check of JSON values against JSON Schemas, as far as schemas of tools use them: `type`, `enum`, `const`, `required`, `properties`,
 * `additionalProperties`, `items`, `anyOf`, `oneOf`, `allOf` and references within the schema. Other keywords are passed over.
 */
import type { JsonSchema } from './model-call.ts';
import { isRecord } from './record.ts';

/** References that are followed one after another: they may go in circles. */
const MAX_REFERENCES = 8;
/** Schemas that are looked at for one value, and how deep they may lie; beyond them it counts as fitting. */
const MAX_SCHEMAS = 4096;
const MAX_DEPTH = 500;

/** Follows references within a schema (`#/$defs/Color`). @returns `{}`, which any value fits, where one leads nowhere */
export function followReferences(schema: unknown, root: JsonSchema): JsonSchema {
  let found = schema;
  for (let i = 0; i < MAX_REFERENCES && isRecord(found) && typeof found.$ref === 'string'; i++) {
    const path = found.$ref.startsWith('#/') ? found.$ref.slice(2).split('/') : [];
    found = path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
  }
  return isRecord(found) && found.$ref === undefined ? found : {};
}

/** Returns true where a value of JSON fits a schema. @param root schema that its references start from */
export function fitsSchema(value: unknown, schema: JsonSchema, root: JsonSchema = schema): boolean {
  let schemas = 0;
  let depth = 0;
  const fits = (one: unknown, given: unknown): boolean => {
    if (given === false) return false;
    if (!isRecord(given) || depth >= MAX_DEPTH || ++schemas > MAX_SCHEMAS) return true;
    depth++;
    const isFitting = fitsHere(one, given);
    depth--;
    return isFitting;
  };
  const fitsHere = (one: unknown, given: JsonSchema): boolean => {
    const { type, enum: listed, const: only, anyOf, oneOf, allOf, ...rest } = followReferences(given, root);
    if (type !== undefined && !(Array.isArray(type) ? type : [type]).some((name) => isOfType(one, name))) return false;
    if (Array.isArray(listed) && !listed.some((other) => isSame(one, other))) return false;
    if (only !== undefined && !isSame(one, only)) return false;
    if (Array.isArray(anyOf) && !anyOf.some((member) => fits(one, member))) return false;
    if (Array.isArray(oneOf) && !oneOf.some((member) => fits(one, member))) return false;
    if (Array.isArray(allOf) && !allOf.every((member) => fits(one, member))) return false;
    if (Array.isArray(one)) return rest.items === undefined || one.every((item) => fits(item, rest.items));
    return isRecord(one) ? fitsObject(one, rest, fits) : true;
  };
  return fits(value, schema);
}

function fitsObject(
  value: Readonly<Record<string, unknown>>,
  { required, properties, additionalProperties: others }: JsonSchema,
  fits: (value: unknown, schema: unknown) => boolean,
): boolean {
  if (Array.isArray(required) && !required.every((name) => Object.hasOwn(value, String(name)))) return false;
  const known = isRecord(properties) ? properties : {};
  return Object.entries(value).every(([name, one]) => {
    if (Object.hasOwn(known, name)) return fits(one, known[name]);
    return others === undefined || fits(one, others);
  });
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'string':
    case 'boolean':
      return typeof value === type;
    case 'number':
      return typeof value === 'number';
    case 'integer':
      return Number.isInteger(value);
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    default:
      return true; // a type that JSON Schema does not have
  }
}

/** Compares values of JSON; the order of an object's keys does not count. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((one, i) => isSame(one, b[i]));
  if (!isRecord(a) || !isRecord(b)) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]));
}
