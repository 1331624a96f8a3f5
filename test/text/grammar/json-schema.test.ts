/** JSON schemas as grammars: what is accepted is JSON of the schema, and what a schema cannot be held to is refused by name. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  choice,
  Grammar,
  type GrammarState,
  type Node,
  sequence,
  textNode,
} from '../../../src/text/grammar/grammar.ts';
import { checkSchema, schemaNode } from '../../../src/text/grammar/json-schema.ts';
import { printJson } from '../../../src/text/tools/literal.ts';

function accepts(grammar: Grammar, text: string): boolean {
  let state: GrammarState | undefined = grammar.start;
  for (const byte of Buffer.from(text)) state = state && grammar.step(state, byte);
  return state?.accepts === true;
}
const ofSchema = (schema: object) => new Grammar(schemaNode(schema as Record<string, unknown>));

/** A random text of a grammar, byte by byte; undefined where it does not end soon. */
function draw(grammar: Grammar, numbers: readonly number[]): string | undefined {
  let state = grammar.start;
  const bytes: number[] = [];
  for (let i = 0; i < 400; i++) {
    const number = numbers[i % numbers.length]! + i * 7;
    if (state.accepts && (number % 3 === 0 || i > 200)) break;
    const next = [...Array(256).keys()].filter((byte) => grammar.step(state, byte));
    if (next.length === 0) break;
    // Quotes and closing brackets are likelier, or texts would not end.
    const closing = next.filter((byte) => '"]},'.includes(String.fromCharCode(byte)));
    const from = closing.length > 0 && number % 2 === 0 ? closing : next;
    const byte = from[number % from.length]!;
    bytes.push(byte);
    state = grammar.step(state, byte)!;
  }
  return state.accepts ? new TextDecoder('utf8', { fatal: true }).decode(Uint8Array.from(bytes)) : undefined;
}

describe('an acceptor', () => {
  it('walks sequences, choices, repeats and texts up to a mark', () => {
    const grammar = new Grammar(
      sequence(choice(textNode('ab'), textNode('a')), { kind: 'repeat', item: textNode('c'), min: 1, max: 2 }),
    );
    for (const text of ['abc', 'ac', 'acc', 'abcc']) expect(accepts(grammar, text), text).toBe(true);
    for (const text of ['', 'ab', 'accc', 'b', 'abd']) expect(accepts(grammar, text), text).toBe(false);
    const until = new Grammar(sequence({ kind: 'until', text: Buffer.from('aab') }, textNode('!')));
    for (const text of ['aab!', 'aaab!', 'xaaxaab!', 'aaaab!']) expect(accepts(until, text), text).toBe(true);
    for (const text of ['aab', 'aa!', 'aabb!', 'aab!!']) expect(accepts(until, text), text).toBe(false);
  });

  it('finds the mark wherever a text has it first', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 });
    fc.assert(
      fc.property(letters, fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 }), (text, mark) => {
        const until = new Grammar({ kind: 'until', text: Buffer.from(mark) });
        expect(accepts(until, text)).toBe(text.indexOf(mark) >= 0 && text.indexOf(mark) === text.length - mark.length);
      }),
      { numRuns: 500 },
    );
  });

  it('has few states, however long a text is', () => {
    const grammar = ofSchema({ type: 'array', items: { type: 'string' } });
    const states = new Set<GrammarState>();
    let state = grammar.start;
    for (const byte of Buffer.from(`[${Array(500).fill('"a\\u00e9b é"').join(', ')}]`)) {
      state = grammar.step(state, byte)!;
      states.add(state);
    }
    expect(state.accepts).toBe(true);
    expect(states.size).toBeLessThan(20);
  });

  it('ends on what refers to itself at once', () => {
    const loop: Node = { kind: 'lazy', make: () => choice(loop, textNode('a')) };
    expect(accepts(new Grammar(loop), 'a')).toBe(true);
    expect(accepts(ofSchema({ $ref: '#' }), '1')).toBe(false);
  });
});

const person = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Whole name.' },
    age: { type: 'integer', minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
    tags: { type: 'array', items: { enum: ['a', 'b "c"', 1, null] }, maxItems: 2 },
    note: { type: ['string', 'null'] },
  },
  required: ['name', 'tags'],
  additionalProperties: false,
};

describe('a schema', () => {
  it('accepts its texts, in order, spaced as Python spaces them', () => {
    const grammar = ofSchema(person);
    const good: readonly object[] = [
      { name: 'x', tags: [] },
      { name: 'é "q"\n', age: -12, tags: ['a', 'b "c"'], note: null },
      { name: '', tags: [1], note: 'n' },
    ];
    for (const value of good) expect(accepts(grammar, printJson(value)), printJson(value)).toBe(true);
    const bad: readonly object[] = [
      { name: 'x' },
      { tags: [], name: 'x' },
      { name: 1, tags: [] },
      { name: 'x', age: 1.5, tags: [] },
      { name: 'x', tags: ['a', 'a', 'a'] },
      { name: 'x', tags: ['c'] },
      { name: 'x', tags: [], other: 1 },
    ];
    for (const value of bad) expect(accepts(grammar, printJson(value)), printJson(value)).toBe(false);
    expect(accepts(grammar, JSON.stringify(good[0]))).toBe(false); // without blanks
  });

  it.each<[object, readonly unknown[], readonly unknown[]]>([
    [{ type: 'boolean' }, [true, false], [null, 'true']],
    [{ const: { a: [1, 'x'] } }, [{ a: [1, 'x'] }], [{ a: [1] }]],
    [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, [1, 'a'], [true, 1.5]],
    [{ oneOf: [{ type: 'null' }, { type: 'array', items: { type: 'null' } }] }, [null, [null, null]], [[1]]],
    [{ allOf: [{ $ref: '#/$defs/n' }], $defs: { n: { type: 'number' } } }, [1.5, -0.25, 1e21], ['1']],
    [
      { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 3 },
      [
        [1, 2],
        [1, 2, 3],
      ],
      [[1], [1, 2, 3, 4]],
    ],
    [{ type: 'string', minLength: 1, maxLength: 2 }, ['a', 'éé', '\n"'], ['', 'abc']],
    [{ type: 'object' }, [{}, { a: { b: [1, null, 'x', {}] } }], [[], 1]],
    [{ type: 'object', properties: {} }, [{}], [{ a: 1 }]],
    [
      { type: 'object', properties: { a: { const: 1 }, b: { const: 2 }, c: { const: 3 } }, required: ['b'] },
      [{ b: 2 }, { a: 1, b: 2 }, { b: 2, c: 3 }, { a: 1, b: 2, c: 3 }],
      [{}, { a: 1 }, { c: 3 }, { a: 1, c: 3 }],
    ],
    [{ type: 'object', additionalProperties: { type: 'integer' } }, [{}, { a: 1, 'b c': 2 }], [{ a: 'x' }]],
    [{}, [1, 'a', [], {}, null, [{ a: 1 }]], []],
    [{ enum: ['a', 1], type: 'string' }, ['a'], [1]],
    [
      {
        $ref: '#/definitions/tree',
        definitions: {
          tree: {
            type: 'object',
            properties: { v: { type: 'integer' }, kids: { type: 'array', items: { $ref: '#/definitions/tree' } } },
            required: ['v', 'kids'],
          },
        },
      },
      [{ v: 1, kids: [{ v: 2, kids: [] }] }],
      [{ v: 1, kids: [{ v: 2 }] }],
    ],
  ])('of %j', (schema, good, bad) => {
    expect(checkSchema(schema as Record<string, unknown>)).toBeUndefined();
    const grammar = ofSchema(schema);
    for (const value of good) expect(accepts(grammar, printJson(value)), printJson(value)).toBe(true);
    for (const value of bad) expect(accepts(grammar, printJson(value)), printJson(value)).toBe(false);
  });

  it('accepts nothing that is no JSON, whatever is drawn from it', () => {
    let drawn = 0;
    const schemas = [person, {}, { type: 'array', items: { type: 'number' } }, { type: 'string', maxLength: 5 }];
    const grammars = schemas.map(ofSchema);
    fc.assert(
      fc.property(fc.nat(3), fc.array(fc.nat(10_000), { minLength: 5, maxLength: 40 }), (which, numbers) => {
        const text = draw(grammars[which]!, numbers);
        if (text === undefined) return;
        drawn++;
        JSON.parse(text);
      }),
      { numRuns: 100 },
    );
    expect(drawn).toBeGreaterThan(20);
  });

  it.each<[object, string]>([
    [{ type: 'string', pattern: '^a' }, 'pattern at #'],
    [{ type: 'object', properties: { a: { type: 'integer', minimum: 1 } } }, 'minimum at #/properties/a'],
    [{ type: 'array', items: { type: 'number', multipleOf: 2 } }, 'multipleOf at #/items'],
    [{ not: { type: 'string' } }, 'not at #'],
    [{ allOf: [{}, {}] }, 'allOf of several'],
    [{ type: 'array', uniqueItems: true }, 'uniqueItems'],
    [{ type: 'object', patternProperties: {} }, 'patternProperties'],
    [{ anyOf: [{ type: 'string' }], properties: {} }, 'properties at #'],
    [{ $ref: 'https://example.com/a' }, '$ref to elsewhere'],
    [{ $ref: '#/$defs/missing' }, 'names nothing'],
    [{ $ref: '#/%E0%A4%A' }, 'names nothing'],
    [{ type: 'text' }, 'a type that is none: "text"'],
    [{ type: 'object', properties: {}, required: ['a'] }, 'required property without a schema: "a"'],
    [{ type: 'array', items: [{ type: 'string' }] }, 'no object at #/items'],
  ])('refuses %j by name', (schema, why) => {
    expect(checkSchema(schema as Record<string, unknown>)).toContain(why);
  });
});
