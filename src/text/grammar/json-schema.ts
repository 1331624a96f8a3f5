/**
 * JSON schemas as grammars: which JSON texts a model may write. Objects have their properties in the schema's order and no
 * others; values are spaced as Python spaces them. Integers have at most fifteen digits, so that they stay exact.
 */
import type { JsonSchema } from '../../core/model-call.ts';
import { isRecord } from '../../core/record.ts';
import { printJson } from '../tools/literal.ts';
import { choice, type Node, sequence, textNode } from './grammar.ts';

/** Keywords that constrain nothing here: names, comments, and `format`, which is a comment by the standard. */
const COMMENTS: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$anchor', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples'],
  ...['deprecated', 'readOnly', 'writeOnly', 'format', 'contentEncoding', 'contentMediaType', 'strict'],
]);
/** Keywords that are obeyed, by the type that they belong to. */
const OBEYED: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
  null: [],
};
const TYPES = Object.keys(OBEYED);
/** Keywords that stand alone: nothing beside them is obeyed but the type. */
const ALONE = ['$ref', 'anyOf', 'oneOf', 'allOf', 'enum', 'const'] as const;
/** Most items and characters that are counted. */
const MAX_COUNTED = 10_000;
/** Levels of schemas within schemas. */
const MAX_LEVELS = 100;

/**
 * Checks that replies can be held to a schema.
 * @returns the reason why not, which names the keyword and its place; undefined where they can
 */
export function checkSchema(schema: JsonSchema): string | undefined {
  try {
    schemaNode(schema);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof RangeError) return thrown.message;
    throw thrown;
  }
}

/** Grammar of the texts of a schema. @throws {RangeError} as `checkSchema` returns it */
export function schemaNode(schema: JsonSchema): Node {
  return new SchemaReader(schema).read();
}

/** Grammar of any JSON object. */
export function anyObject(): Node {
  return ANY_OBJECT;
}

class SchemaReader {
  readonly #root: JsonSchema;
  /** Nodes of what `$ref` names, by pointer; undefined while it is being read. */
  readonly #referred = new Map<string, Node | undefined>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  read(): Node {
    return this.#schema(this.#root, '#', 0);
  }

  #schema(schema: unknown, at: string, level: number): Node {
    if (schema === true) return ANY_VALUE;
    if (!isRecord(schema)) return refuse(at, 'a schema that is no object');
    if (level > MAX_LEVELS) return refuse(at, `schemas within schemas, more than ${MAX_LEVELS} levels`);
    const alone = ALONE.filter((keyword) => keyword in schema);
    const [keyword] = alone;
    const types = typesOf(schema, at);
    this.#checkKeywords(schema, at, keyword === undefined ? types : [], alone.slice(0, 1));
    switch (keyword) {
      case '$ref':
        return this.#ref(schema.$ref, at, level);
      case 'enum':
      case 'const': {
        const values = keyword === 'const' ? [schema.const] : schema.enum;
        if (!Array.isArray(values) || values.length === 0) return refuse(at, 'an enum without values');
        const allowed = values.filter((value) => types.length === 0 || types.some((type) => isOfType(value, type)));
        if (allowed.length === 0) return refuse(at, 'an enum without a value of its type');
        return { kind: 'choice', items: allowed.map((value) => textNode(printJson(value))) };
      }
      case 'anyOf':
      case 'oneOf':
      case 'allOf': {
        const branches = schema[keyword];
        if (!Array.isArray(branches) || branches.length === 0) return refuse(at, `${keyword} without schemas`);
        if (keyword === 'allOf' && branches.length > 1) return refuse(at, 'allOf of several schemas');
        const items = branches.map((branch, i) => this.#schema(branch, `${at}/${keyword}/${i}`, level + 1));
        return { kind: 'choice', items };
      }
      default:
        if (types.length === 0) return ANY_VALUE;
        return { kind: 'choice', items: types.map((type) => this.#type(type, schema, at, level)) };
    }
  }

  #type(type: string, schema: JsonSchema, at: string, level: number): Node {
    switch (type) {
      case 'object':
        return this.#object(schema, at, level);
      case 'array': {
        const item = schema.items === undefined ? ANY_VALUE : this.#schema(schema.items, `${at}/items`, level + 1);
        const [min, max] = boundsOf(schema, 'minItems', 'maxItems', at);
        return list('[', item, min, max, ']');
      }
      case 'string': {
        const [min, max] = boundsOf(schema, 'minLength', 'maxLength', at);
        return stringNode(min, max);
      }
      case 'boolean':
        return choice(textNode('true'), textNode('false'));
      case 'null':
        return textNode('null');
      default:
        return type === 'integer' ? INTEGER : NUMBER;
    }
  }

  /** Objects: properties in order, those that are not required left out or not. */
  #object(schema: JsonSchema, at: string, level: number): Node {
    const { properties, required = [], additionalProperties } = schema;
    if (properties === undefined) {
      if (Array.isArray(required) && required.length > 0) return refuse(at, 'required without properties');
      if (additionalProperties === false) return textNode('{}');
      if (!isRecord(additionalProperties)) return ANY_OBJECT;
      const value = this.#schema(additionalProperties, `${at}/additionalProperties`, level + 1);
      return list('{', sequence(STRING, textNode(': '), value), 0, Number.POSITIVE_INFINITY, '}');
    }
    if (!isRecord(properties) || !Array.isArray(required)) return refuse(at, 'properties or required of another form');
    const missing = required.find((name) => !Object.hasOwn(properties, String(name)));
    if (missing !== undefined) return refuse(at, `a required property without a schema: ${printJson(missing)}`);
    // From the end: what follows is shared by all ways to it.
    let first: Node = textNode('}');
    let later: Node = first;
    for (const [name, property] of Object.entries(properties).reverse()) {
      const member = sequence(
        textNode(`${printJson(name)}: `),
        this.#schema(property, `${at}/properties/${name}`, level + 1),
        later,
      );
      const withComma = sequence(textNode(', '), member);
      const isRequired = required.includes(name);
      first = isRequired ? member : choice(member, first);
      later = isRequired ? withComma : choice(withComma, later);
    }
    return sequence(textNode('{'), first);
  }

  #ref(ref: unknown, at: string, level: number): Node {
    if (typeof ref !== 'string' || !/^#(?:$|\/)/.test(ref)) return refuse(at, `a $ref to elsewhere: ${printJson(ref)}`);
    if (!this.#referred.has(ref)) {
      this.#referred.set(ref, undefined);
      this.#referred.set(ref, this.#schema(this.#resolve(ref, at), ref, level + 1));
    }
    return { kind: 'lazy', make: () => this.#referred.get(ref)! };
  }

  #resolve(ref: string, at: string): unknown {
    let value: unknown = this.#root;
    for (const part of ref.split('/').slice(1)) {
      const key = decodePart(part).replaceAll('~1', '/').replaceAll('~0', '~');
      if ((!isRecord(value) && !Array.isArray(value)) || !Object.hasOwn(value, key)) {
        return refuse(at, `a $ref that names nothing: ${printJson(ref)}`);
      }
      value = (value as Record<string, unknown>)[key];
    }
    return value;
  }

  #checkKeywords(schema: JsonSchema, at: string, types: readonly string[], alone: readonly string[]): void {
    const obeyed = new Set(['type', ...alone, ...types.flatMap((type) => OBEYED[type]!)]);
    for (const [keyword, value] of Object.entries(schema)) {
      if (COMMENTS.has(keyword)) continue;
      // A bound of one type says nothing of the others; beside what stands alone it would.
      const isOfOtherType =
        alone.length === 0 && types.length > 0 && TYPES.some((type) => OBEYED[type]!.includes(keyword));
      if (!obeyed.has(keyword) && !isOfOtherType) refuse(at, keyword);
      if (keyword === 'additionalProperties' && typeof value !== 'boolean' && !isRecord(value)) refuse(at, keyword);
      // Libraries state the range of exact integers; any other one cannot be held.
      if ((keyword === 'minimum' || keyword === 'maximum') && Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER) {
        refuse(at, keyword);
      }
    }
  }
}

/** Part of a pointer without its percent signs, where they stand for something. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function refuse(at: string, what: string): never {
  throw new RangeError(`the schema has ${what} at ${at}, which replies cannot be held to`);
}

function typesOf({ type, properties, items }: JsonSchema, at: string): readonly string[] {
  if (type === undefined) return properties !== undefined ? ['object'] : items !== undefined ? ['array'] : [];
  const types = Array.isArray(type) ? type : [type];
  const unknown = types.find((one) => !TYPES.includes(one as string));
  if (unknown !== undefined || types.length === 0) return refuse(at, `a type that is none: ${printJson(unknown)}`);
  return types as string[];
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isRecord(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function boundsOf(schema: JsonSchema, least: string, most: string, at: string): readonly [number, number] {
  const { [least]: min = 0, [most]: max = Number.POSITIVE_INFINITY } = schema;
  const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_COUNTED;
  if (!isCount(min)) return refuse(at, least);
  if (max !== Number.POSITIVE_INFINITY && (!isCount(max) || Number(max) < Number(min))) return refuse(at, most);
  return [Number(min), Number(max)];
}

/** Items with commas between them, `min` to `max` of them. */
function list(open: string, item: Node, min: number, max: number, close: string): Node {
  if (max === 0) return textNode(open + close);
  const more = {
    kind: 'repeat',
    item: sequence(textNode(', '), item),
    min: Math.max(0, min - 1),
    max: max - 1,
  } as const;
  const some = sequence(item, more, textNode(close));
  return sequence(textNode(open), min === 0 ? choice(textNode(close), some) : some);
}

function byteIn(ranges: readonly (readonly [number, number])[]): Node {
  return { kind: 'class', has: (byte) => ranges.some(([low, high]) => byte >= low && byte <= high) };
}

const DIGIT = byteIn([[0x30, 0x39]]);
const HEX = byteIn([
  [0x30, 0x39],
  [0x41, 0x46],
  [0x61, 0x66],
]);
const TAIL = byteIn([[0x80, 0xbf]]);

/** Character of a JSON string, as UTF-8 or as an escape; halves of surrogate pairs are none. */
const CHARACTER = choice(
  byteIn([
    [0x20, 0x21],
    [0x23, 0x5b],
    [0x5d, 0x7e],
  ]),
  sequence(byteIn([[0xc2, 0xdf]]), TAIL),
  sequence(byteIn([[0xe0, 0xe0]]), byteIn([[0xa0, 0xbf]]), TAIL),
  sequence(
    byteIn([
      [0xe1, 0xec],
      [0xee, 0xef],
    ]),
    TAIL,
    TAIL,
  ),
  sequence(byteIn([[0xed, 0xed]]), byteIn([[0x80, 0x9f]]), TAIL),
  sequence(byteIn([[0xf0, 0xf0]]), byteIn([[0x90, 0xbf]]), TAIL, TAIL),
  sequence(byteIn([[0xf1, 0xf3]]), TAIL, TAIL, TAIL),
  sequence(byteIn([[0xf4, 0xf4]]), byteIn([[0x80, 0x8f]]), TAIL, TAIL),
  sequence(
    textNode('\\'),
    choice(
      { kind: 'class', has: (byte) => '"\\/bfnrt'.includes(String.fromCharCode(byte)) },
      sequence(
        textNode('u'),
        choice(
          sequence(
            byteIn([
              [0x30, 0x39],
              [0x41, 0x43],
              [0x45, 0x46],
              [0x61, 0x63],
              [0x65, 0x66],
            ]),
            HEX,
          ),
          sequence(choice(textNode('d'), textNode('D')), byteIn([[0x30, 0x37]])),
        ),
        HEX,
        HEX,
      ),
    ),
  ),
);

function stringNode(min = 0, max = Number.POSITIVE_INFINITY): Node {
  return sequence(textNode('"'), { kind: 'repeat', item: CHARACTER, min, max }, textNode('"'));
}

const STRING = stringNode();
const OPTIONAL_MINUS = choice(textNode(''), textNode('-'));
const INTEGER = sequence(
  OPTIONAL_MINUS,
  choice(textNode('0'), sequence(byteIn([[0x31, 0x39]]), { kind: 'repeat', item: DIGIT, min: 0, max: 14 })),
);
const NUMBER = sequence(
  INTEGER,
  choice(textNode(''), sequence(textNode('.'), { kind: 'repeat', item: DIGIT, min: 1, max: 15 })),
  choice(
    textNode(''),
    sequence(choice(textNode('e'), textNode('E')), choice(textNode(''), textNode('-'), textNode('+')), {
      ...{ kind: 'repeat', item: DIGIT, min: 1, max: 2 },
    }),
  ),
);
const ANY_VALUE: Node = {
  kind: 'lazy',
  make: () => ANY,
};
const ANY_OBJECT = list('{', sequence(STRING, textNode(': '), ANY_VALUE), 0, Number.POSITIVE_INFINITY, '}');
const ANY = choice(
  ANY_OBJECT,
  list('[', ANY_VALUE, 0, Number.POSITIVE_INFINITY, ']'),
  STRING,
  NUMBER,
  textNode('true'),
  textNode('false'),
  textNode('null'),
);
