/** Values against schemas, by table and by property. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../src/core/model-call.ts';
import { fitsSchema } from '../../src/core/schema-check.ts';

const object = (properties: Record<string, unknown>, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...more,
});

describe('a value fits a schema', () => {
  it.each<[string, JsonSchema, unknown, boolean]>([
    ['its type', { type: 'integer' }, 3, true],
    ['a float for an integer', { type: 'integer' }, 3.5, false],
    ['a text for a number', { type: 'number' }, '3', false],
    ['one of several types', { type: ['string', 'null'] }, null, true],
    ['none of several types', { type: ['string', 'null'] }, 0, false],
    ['a list for an object', { type: 'object' }, [], false],
    ['one of an enum', { enum: ['a', 'b'] }, 'b', true],
    ['none of an enum', { enum: ['a', 'b'] }, 'c', false],
    ['a constant', { const: { a: 1 } }, { a: 1 }, true],
    ['another constant', { const: { a: 1 } }, { a: 2 }, false],
    ['all required', object({}, { required: ['n'] }), { n: 1 }, true],
    ['one missing', object({}, { required: ['n'] }), {}, false],
    ['an unknown key', object({ n: {} }), { m: 1 }, true],
    ['an unknown key that is refused', object({ n: {} }, { additionalProperties: false }), { m: 1 }, false],
    ['a key of another type', object({ n: { type: 'string' } }), { n: 1 }, false],
    ['other keys of another type', { additionalProperties: { type: 'string' } }, { n: 1 }, false],
    ['items', { type: 'array', items: { type: 'string' } }, ['a'], true],
    ['an item of another type', { type: 'array', items: { type: 'string' } }, ['a', 1], false],
    ['any of', { anyOf: [{ type: 'string' }, { type: 'null' }] }, null, true],
    ['none of', { anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, false],
    ['one not of all', { allOf: [{ type: 'string' }, { const: 'a' }] }, 'b', false],
    ['a reference', { $ref: '#/$defs/A', $defs: { A: { type: 'string' } } }, 1, false],
    ['a reference that leads nowhere', { $ref: '#/$defs/A' }, 1, true],
    ['a reference in circles', { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/A' } } }, 1, true],
    ['a schema that allows nothing', object({ n: false }), { n: 1 }, false],
  ])('%s', (_, schema, value, fits) => expect(fitsSchema(value, schema)).toBe(fits));

  it('and ends where schemas go in circles', () => {
    const members = Array.from({ length: 64 }, () => ({ $ref: '#/$defs/A' }));
    const schema = { $ref: '#/$defs/A', $defs: { A: { allOf: members } } };
    expect(fitsSchema(1, schema)).toBe(true);
  });

  it('of exactly its shape, and not without one of its required keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (value) => {
        const keys = Object.keys(value);
        const properties = Object.fromEntries(keys.map((key) => [key, { const: value[key] }]));
        const schema = object(properties, { required: keys, additionalProperties: false });
        const json = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
        expect(fitsSchema(json, schema)).toBe(true);
        const { [keys[0]!]: _, ...less } = json;
        expect(fitsSchema(less, schema)).toBe(false);
      }),
    );
  });
});
