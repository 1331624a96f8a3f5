/**
 * Validation of request bodies and queries, as AgentGym's servers do it, with the words of their 422 answers. FastAPI
 * over pydantic 1.10: `"3"` is 3, `0.5` is 0, `5` is `"5"`. Over pydantic 2: `"3"` and `5.0` are integers, `0.5` is
 * refused, only a string is a text. A server that validates nothing answers a bare 500 to what it cannot read.
 *
 * Differs: a float that is whole (`5.0`) is the integer here, because JSON in JavaScript cannot distinguish them.
 */
import type { AgentGymField, AgentGymFields, AgentGymServer, AgentGymValues } from '../../core/agentgym.ts';
import { parseJson } from '../../core/json-text.ts';
import { type HttpAnswer, type HttpRequest, json } from '../../http/app.ts';
import { findJsonMistake } from './python-json.ts';

export type Validation = AgentGymServer['validation'];

type Place = readonly (string | number)[];

/** Complaint: one entry of a 422 answer. */
type Complaint = Readonly<Record<string, unknown>>;

/** Reads nothing: the values of a route without fields. */
export const readNothing: AgentGymValues = {};

/** Reads the fields of a JSON body, or of the query of a GET; or makes the answer that refuses them. */
export function readFields(
  request: HttpRequest,
  fields: AgentGymFields,
  validation: Validation,
): AgentGymValues | HttpAnswer {
  const words = WORDS[validation];
  if (request.method === 'GET') {
    return convertFields(Object.fromEntries(new URLSearchParams(request.query)), fields, 'query', words);
  }
  const { body, contentType } = request;
  let parsed: unknown;
  if (body === '') parsed = null;
  else if (!isJson(contentType)) parsed = body;
  else {
    try {
      parsed = parseJson(body);
    } catch {
      return words.refuse([words.badJson(body)]);
    }
  }
  if (parsed === null) return words.refuse([words.missing(['body'], null)]);
  const readable = typeof parsed === 'object' && !(Array.isArray(parsed) && (words.strictBody || parsed.length > 0));
  if (!readable) return words.refuse([words.refuseNonObject(parsed)]);
  return convertFields(parsed as Record<string, unknown>, fields, 'body', words);
}

/** True for the content types that FastAPI reads as JSON; a body without one is. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true;
  return /^application\/([\w.-]+\+)?json\b/i.test(contentType);
}

/** True for a refusing answer, false for the values. */
export function isRefusal(read: object): read is HttpAnswer {
  return 'status' in read && 'body' in read;
}

function convertFields(
  given: Record<string, unknown>,
  fields: AgentGymFields,
  where: 'body' | 'query',
  words: Words,
): AgentGymValues | HttpAnswer {
  const complaints: Complaint[] = [];
  const values: Record<string, number | string | null> = {};
  for (const name in fields) {
    const field = fields[name]!;
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    const loc = [where, name];
    if (value === undefined) {
      if (field.fallback === undefined) complaints.push(words.missing(loc, where === 'query' ? null : given));
      else values[name] = field.fallback;
    } else if (value === null && field.fallback === null) values[name] = null;
    else {
      const read = words.convert(value, field, loc);
      if (typeof read === 'object') complaints.push(read);
      else values[name] = read;
    }
  }
  return complaints.length > 0 ? words.refuse(complaints) : values;
}

/** Words of a framework: its reading of a value, and its wording of a refusal. */
interface Words {
  /** Refuses an empty array as a body. */
  readonly strictBody: boolean;
  /**
   * Converts a value.
   * @returns it, or the complaint
   */
  convert(value: unknown, field: AgentGymField, loc: Place): number | string | Complaint;
  missing(loc: Place, input: unknown): Complaint;
  refuseNonObject(body: unknown): Complaint;
  badJson(body: string): Complaint;
  refuse(detail: readonly Complaint[]): HttpAnswer;
}

const pydantic1: Words = {
  strictBody: false,
  convert(value, { kind }, loc) {
    if (value === null) return { loc, msg: 'none is not an allowed value', type: 'type_error.none.not_allowed' };
    const read = kind === 'int' ? asInteger(value) : asString(value);
    if (read !== undefined) return read;
    if (kind === 'int') return { loc, msg: 'value is not a valid integer', type: 'type_error.integer' };
    return { loc, msg: 'str type expected', type: 'type_error.str' };
  },
  missing: (loc) => ({ loc, msg: 'field required', type: 'value_error.missing' }),
  refuseNonObject: () => ({ loc: ['body'], msg: 'value is not a valid dict', type: 'type_error.dict' }),
  badJson(doc) {
    const { message, position } = findJsonMistake(doc) ?? { message: 'Expecting value', position: 0 };
    const before = [...doc].slice(0, position);
    const lineno = before.filter((char) => char === '\n').length + 1;
    const colno = position - before.lastIndexOf('\n');
    return {
      loc: ['body', position],
      msg: `${message}: line ${lineno} column ${colno} (char ${position})`,
      type: 'value_error.jsondecode',
      ctx: { msg: message, doc, pos: position, lineno, colno },
    };
  },
  refuse: (detail) => json({ detail }, 422),
};

const pydantic2: Words = {
  strictBody: true,
  convert(value, { kind }, loc) {
    if (kind === 'str') {
      if (typeof value === 'string') return value;
      return { type: 'string_type', loc, msg: 'Input should be a valid string', input: value };
    }
    if (typeof value === 'boolean') return value ? 1 : 0;
    if (typeof value === 'number') {
      if (Number.isInteger(value)) return value;
      const msg = 'Input should be a valid integer, got a number with a fractional part';
      return { type: 'int_from_float', loc, msg, input: value };
    }
    if (typeof value !== 'string') {
      return { type: 'int_type', loc, msg: 'Input should be a valid integer', input: value };
    }
    if (/^\s*[-+]?\d+(_\d+)*(\.0+)?\s*$/.test(value)) return Number(value.replaceAll('_', ''));
    const msg = 'Input should be a valid integer, unable to parse string as an integer';
    return { type: 'int_parsing', loc, msg, input: value };
  },
  missing: (loc, input) => ({ type: 'missing', loc, msg: 'Field required', input }),
  refuseNonObject(input) {
    const msg = 'Input should be a valid dictionary or object to extract fields from';
    return { type: 'model_attributes_type', loc: ['body'], msg, input };
  },
  badJson(doc) {
    const { message, position } = findJsonMistake(doc) ?? { message: 'Expecting value', position: 0 };
    return {
      type: 'json_invalid',
      loc: ['body', position],
      msg: 'JSON decode error',
      input: {},
      ctx: { error: message },
    };
  },
  refuse: (detail) => json({ detail }, 422),
};

/** Validation `none`: values pass as they are, and a missing one raises an error inside. */
const none: Words = {
  ...pydantic2,
  convert: (value) => (typeof value === 'number' || typeof value === 'string' ? value : String(value)),
  refuse: () => ({ status: 500, contentType: 'text/plain; charset=utf-8', body: 'Internal Server Error' }),
};

const WORDS: Readonly<Record<Validation, Words>> = { pydantic1, pydantic2, none };

function asInteger(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? Math.trunc(value) : undefined;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string' || !/^\s*[-+]?\d+(_\d+)*\s*$/.test(value)) return undefined;
  return Number(value.replaceAll('_', ''));
}

function asString(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return undefined;
}
