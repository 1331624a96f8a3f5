/** Any JSON value is a request or is refused; nothing else comes out of a dialect. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DialectId, RefusedCall, type StoredItems } from '../../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { FIELDS } from '../../../src/gateway/dialects/fields.ts';
import { parseCount } from '../../../src/gateway/dialects/messages.ts';

const items: StoredItems = {
  response: (id) => (id === 'a' ? [{ role: 'user', content: 'Q' }] : undefined),
  item: (id) =>
    id === 'a' ? { type: 'message', content: 'Q' } : id === 'b' ? { type: 'reasoning', text: 'R' } : undefined,
};

/** Words of the three dialects, from which records are made that come close to a request. */
const KEYS = [
  ...new Set(
    Object.values(FIELDS).flatMap(({ request, nested }) =>
      [...request.keys(), ...nested.keys()].flatMap((path) => path.split(/\[\]\.|\.|\[\]/)),
    ),
  ),
  '__proto__',
];
const VALUES = [
  ...[
    'user',
    'assistant',
    'system',
    'developer',
    'tool',
    'text',
    'function',
    'custom',
    'message',
    'function_call',
    'any',
  ],
  ...[
    'function_call_output',
    'reasoning',
    'item_reference',
    'compaction',
    'tool_use',
    'tool_result',
    'thinking',
    'auto',
  ],
  ...['input_text', 'output_text', 'required', 'allowed_tools', 'json_schema', 'json_object', 'a', 'b', ''],
];

const { close } = fc.letrec<{ close: unknown; list: unknown[]; record: object }>((tie) => ({
  close: fc.oneof(
    { maxDepth: 6, depthSize: 'medium' },
    fc.constantFrom(...VALUES, null, true, false, 0, 1, 1.5),
    tie('list'),
    tie('record'),
  ),
  list: fc.array(tie('close'), { maxLength: 3 }),
  record: fc.dictionary(fc.constantFrom(...KEYS), tie('close'), { maxKeys: 6 }),
}));

const text = fc.record({ role: fc.constantFrom('user', 'system'), content: fc.string({ unit: 'binary' }) });
/** Messages or items of each dialect that belong together. */
const WHOLE: Readonly<Record<DialectId, readonly object[]>> = {
  chat: [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'found' }] },
  ],
  responses: [
    { type: 'reasoning', id: 'b', summary: [] },
    { type: 'item_reference', id: 'a' },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'found' }] },
  ],
  messages: [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '' },
        { type: 'tool_use', id: 'a', name: 'f', input: {} },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'found' }] }] },
  ],
};

/** Puts another value somewhere in a copy of a value. */
function alter(value: unknown, path: readonly number[], other: unknown, key: string): unknown {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null) return other;
  const keys = [...Object.keys(value), ...(Array.isArray(value) ? [] : [key])];
  if (keys.length === 0) return other;
  const at = keys[first % keys.length]!;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copy[at] = alter(copy[at], rest, other, key);
  return copy;
}

/** Bodies of a dialect: whole requests, such in which one value is another, and anything. */
function bodiesOf(id: DialectId) {
  const list = fc.tuple(text, fc.constant(WHOLE[id]), text).map(([first, middle, last]) => [first, ...middle, last]);
  const request = list.map((messages) => ({ model: 'm', [id === 'responses' ? 'input' : 'messages']: messages }));
  const path = fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 6 });
  const altered = fc
    .tuple(request, path, close, fc.constantFrom(...KEYS))
    .map(([body, at, value, key]) => alter(body, at, value, key));
  return fc.oneof(
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
    { weight: 1, arbitrary: close },
    { weight: 1, arbitrary: request },
    { weight: 8, arbitrary: altered },
  );
}

describe.each<DialectId>(['chat', 'responses', 'messages'])('%s', (id) => {
  it('reads or refuses any value', () => {
    const outcomes = { read: 0, refused: 0 };
    fc.assert(
      fc.property(bodiesOf(id), (body) => {
        const before = JSON.stringify(body);
        try {
          const request = DIALECTS[id].parse(body, items);
          outcomes.read++;
          expect(request.call.messages.length).toBeGreaterThan(0);
          for (const one of request.call.messages) expect(typeof one.content).toBe('string');
        } catch (thrown) {
          if (!(thrown instanceof RefusedCall)) throw thrown;
          outcomes.refused++;
          expect([400, 404]).toContain(thrown.status);
          expect(thrown.message.startsWith(`${thrown.param}: `), thrown.message).toBe(true);
          expect(thrown.message.length).toBeLessThan(500);
        }
        expect(JSON.stringify(body)).toBe(before);
        expect(({} as { role?: unknown }).role).toBeUndefined();
      }),
      { numRuns: 3000 },
    );
    expect(outcomes.refused).toBeGreaterThan(100);
    expect(outcomes.read).toBeGreaterThan(100);
  });
});

it('counts or refuses any value', () => {
  fc.assert(
    fc.property(bodiesOf('messages'), (body) => {
      try {
        parseCount(body);
      } catch (thrown) {
        if (!(thrown instanceof RefusedCall)) throw thrown;
      }
    }),
    { numRuns: 1000 },
  );
});
