/** Validation of request bodies as AgentGym's servers do it, in the words of pydantic 1, of pydantic 2, and of none. */
import { describe, expect, it } from 'vitest';
import { isRefusal, readFields, type Validation } from '../../src/serve/agentgym/validation.ts';

const FIELDS = { id: { kind: 'int' }, action: { kind: 'str', fallback: 'look' } } as const;

function read(body: string, validation: Validation = 'pydantic2', rest: object = {}) {
  const request = {
    method: 'POST',
    path: '/step',
    query: '',
    contentType: 'application/json',
    body,
    gone: new AbortController().signal,
    ...rest,
  };
  const found = readFields(request, FIELDS, validation);
  if (!isRefusal(found)) return found;
  const detail =
    typeof found.body === 'string' && found.body.startsWith('{') ? JSON.parse(found.body).detail : found.body;
  return { status: found.status, detail };
}

/** Values of `id` as JSON: what pydantic 1 and pydantic 2 make of it; undefined where they refuse it. */
const INTEGERS: readonly (readonly [json: string, one: number | undefined, two: number | undefined])[] = [
  ['3', 3, 3],
  ['5.0', 5, 5],
  ['0.5', 0, undefined],
  ['-0.5', 0, undefined],
  ['"3"', 3, 3],
  ['" +3 "', 3, 3],
  ['"1_000"', 1000, 1000],
  ['"3.0"', undefined, 3],
  ['"3.5"', undefined, undefined],
  ['"three"', undefined, undefined],
  ['""', undefined, undefined],
  ['true', 1, 1],
  ['false', 0, 0],
  ['[3]', undefined, undefined],
  ['{}', undefined, undefined],
];

describe('an integer', () => {
  it.each(INTEGERS)('%s: pydantic 1 reads %s, pydantic 2 %s', (json, one, two) => {
    for (const [validation, expected] of [
      ['pydantic1', one],
      ['pydantic2', two],
    ] as const) {
      const found = read(`{"id": ${json}}`, validation) as { id?: number; status?: number };
      if (expected === undefined) expect([validation, found.status]).toEqual([validation, 422]);
      else expect([validation, found.id! + 0]).toEqual([validation, expected]);
    }
  });

  it('that is none is refused in the words of each', () => {
    expect(read('{"id": "x"}', 'pydantic1')).toEqual({
      status: 422,
      detail: [{ loc: ['body', 'id'], msg: 'value is not a valid integer', type: 'type_error.integer' }],
    });
    expect(read('{"id": 0.5}')).toEqual({
      status: 422,
      detail: [
        {
          type: 'int_from_float',
          loc: ['body', 'id'],
          msg: 'Input should be a valid integer, got a number with a fractional part',
          input: 0.5,
        },
      ],
    });
    expect(read('{"id": "x"}')).toMatchObject({ detail: [{ type: 'int_parsing', input: 'x' }] });
    expect(read('{"id": []}')).toMatchObject({ detail: [{ type: 'int_type', input: [] }] });
    expect(read('{"id": null}', 'pydantic1')).toMatchObject({ detail: [{ type: 'type_error.none.not_allowed' }] });
  });
});

describe('a text', () => {
  it.each([
    ['"a"', 'a', 'a'],
    ['5', '5', undefined],
    ['true', 'True', undefined],
    ['[1]', undefined, undefined],
  ])('%s: pydantic 1 reads %s, pydantic 2 %s', (json, one, two) => {
    for (const [validation, expected] of [
      ['pydantic1', one],
      ['pydantic2', two],
    ] as const) {
      const found = read(`{"id": 1, "action": ${json}}`, validation) as { action?: string; status?: number };
      if (expected === undefined) expect(found.status).toBe(422);
      else expect(found.action).toBe(expected);
    }
  });
});

describe('fields that are missing', () => {
  it('take their fallback, or are required by name', () => {
    expect(read('{"id": 1}')).toEqual({ id: 1, action: 'look' });
    expect(read('{}')).toEqual({
      status: 422,
      detail: [{ type: 'missing', loc: ['body', 'id'], msg: 'Field required', input: {} }],
    });
    expect(read('{}', 'pydantic1')).toEqual({
      status: 422,
      detail: [{ loc: ['body', 'id'], msg: 'field required', type: 'value_error.missing' }],
    });
  });

  it('are not found on the prototype of an object', () => {
    const found = readFields(
      { method: 'POST', path: '/', query: '', contentType: undefined, body: '{}', gone: new AbortController().signal },
      { ['toString' as string]: { kind: 'str' } },
      'pydantic2',
    );
    expect(isRefusal(found)).toBe(true);
  });

  it('are all reported at once', () => {
    expect((read('{"action": 5}') as { detail: unknown[] }).detail).toHaveLength(2);
  });
});

describe('a body', () => {
  it.each([
    ['', 'missing', ['body']],
    ['null', 'missing', ['body']],
    ['5', 'model_attributes_type', ['body']],
    ['[]', 'model_attributes_type', ['body']],
    ['{"id": 1', 'json_invalid', ['body', 8]],
  ])('%j is refused by pydantic 2 as %s', (body, type, loc) => {
    expect(read(body)).toMatchObject({ status: 422, detail: [{ type, loc }] });
  });

  it('that is an empty list is an object for pydantic 1', () => {
    expect(read('[]', 'pydantic1')).toMatchObject({ detail: [{ loc: ['body', 'id'] }] });
    expect(read('[1]', 'pydantic1')).toMatchObject({ detail: [{ type: 'type_error.dict' }] });
  });

  it('with a mistake is refused by pydantic 1 with its place', () => {
    expect(read('{\n"id": }', 'pydantic1')).toMatchObject({
      detail: [{ type: 'value_error.jsondecode', ctx: { lineno: 2, colno: 7, pos: 8 } }],
    });
  });

  it('of another content type is a text, which is no object', () => {
    expect(read('{"id": 1}', 'pydantic2', { contentType: 'text/plain' })).toMatchObject({
      detail: [{ type: 'model_attributes_type', input: '{"id": 1}' }],
    });
    expect(read('{"id": 1}', 'pydantic2', { contentType: 'application/vnd.api+json; charset=utf-8' })).toMatchObject({
      id: 1,
    });
  });
});

describe('a query', () => {
  it('is read by the same rules', () => {
    const get = (query: string) => read('', 'pydantic2', { method: 'GET', query });
    expect(get('id=7&action=a+b')).toEqual({ id: 7, action: 'a b' });
    expect(get('id=x')).toMatchObject({ detail: [{ loc: ['query', 'id'] }] });
    expect(get('')).toMatchObject({ detail: [{ type: 'missing', loc: ['query', 'id'], input: null }] });
  });
});

describe('a server that validates nothing', () => {
  it('takes values as they are, and breaks on what is missing', () => {
    expect(read('{"id": "x", "action": true}', 'none')).toEqual({ id: 'x', action: 'true' });
    expect(read('{}', 'none')).toEqual({ status: 500, detail: 'Internal Server Error' });
    expect(read('{', 'none')).toEqual({ status: 500, detail: 'Internal Server Error' });
  });
});
