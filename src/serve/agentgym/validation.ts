/**
 * Reads request bodies and queries as AgentGym's servers do: FastAPI 0.92 over pydantic 1.10, their conversions
 * (`"3"` is 3, `0.5` is 0, `5` is `"5"`) and the words of their 422 answers.
 *
 * Differs: a float that is whole (`5.0`) is the integer here, because JSON in JavaScript cannot tell them apart.
 */
import { type HttpAnswer, type HttpRequest, json } from '../http-server.ts';
import { findJsonMistake } from './python-json.ts';

export interface Field {
  readonly kind: 'int' | 'str';
  /** Taken where the field is missing; without it the field is required. */
  readonly fallback?: number | string | null;
}

export type Fields = Readonly<Record<string, Field>>;

/** What the fields hold; a field without a fallback is never null. */
export type Values<F extends Fields> = {
  readonly [K in keyof F]: F[K]['kind'] extends 'int' ? number : string;
};

interface Complaint {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** The fields of a JSON body, or the answer that refuses it. */
export function readBody<F extends Fields>(request: HttpRequest, fields: F): Values<F> | HttpAnswer {
  const { body, contentType } = request;
  let parsed: unknown;
  if (body === '') parsed = null;
  else if (contentType !== undefined && !/^application\/([\w.-]+\+)?json\b/i.test(contentType)) parsed = body;
  else {
    try {
      parsed = JSON.parse(body);
    } catch {
      return refuse([jsonComplaint(body)]);
    }
  }
  if (parsed === null) return refuse([missing(['body'])]);
  if (typeof parsed !== 'object' || (Array.isArray(parsed) && parsed.length > 0)) {
    return refuse([{ loc: ['body'], msg: 'value is not a valid dict', type: 'type_error.dict' }]);
  }
  return readFields(parsed as Record<string, unknown>, fields, 'body');
}

/** The fields of a query, or the answer that refuses it. */
export function readQuery<F extends Fields>({ query }: HttpRequest, fields: F): Values<F> | HttpAnswer {
  return readFields(Object.fromEntries(new URLSearchParams(query)), fields, 'query');
}

/** True for an answer, false for the values. */
export function isRefusal(read: object): read is HttpAnswer {
  return 'status' in read && 'body' in read;
}

function readFields<F extends Fields>(given: Record<string, unknown>, fields: F, where: string) {
  const complaints: Complaint[] = [];
  const values: Record<string, unknown> = {};
  for (const name in fields) {
    const { kind, fallback } = fields[name]!;
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (kind === 'str' ? typeof value === 'string' : Number.isInteger(value)) {
      values[name] = value;
      continue;
    }
    const loc = [where, name];
    if (value === undefined) {
      if (fallback === undefined) complaints.push(missing(loc));
      else values[name] = fallback;
    } else if (value === null) {
      if (fallback === null) values[name] = null;
      else complaints.push({ loc, msg: 'none is not an allowed value', type: 'type_error.none.not_allowed' });
    } else {
      const converted = kind === 'int' ? asInteger(value) : asString(value);
      if (converted !== undefined) values[name] = converted;
      else if (kind === 'int')
        complaints.push({ loc, msg: 'value is not a valid integer', type: 'type_error.integer' });
      else complaints.push({ loc, msg: 'str type expected', type: 'type_error.str' });
    }
  }
  return complaints.length > 0 ? refuse(complaints) : (values as Values<F>);
}

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

function missing(loc: readonly string[]): Complaint {
  return { loc, msg: 'field required', type: 'value_error.missing' };
}

function jsonComplaint(doc: string): Complaint {
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
}

function refuse(detail: readonly Complaint[]): HttpAnswer {
  return json({ detail }, 422);
}
