import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentReply } from '../../src/core/agent-call.ts';
import {
  END_OF_LIST,
  isReply,
  listChoices,
  NEXT_OBJECT,
  REPLY,
  type ReplyStage,
  SeenValues,
  valuesIn,
} from '../../src/core/call-stages.ts';
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from '../../src/core/env.ts';
import type { JsonSchema, Tool, ToolChoice } from '../../src/core/model-call.ts';
import { checkCall } from '../../src/core/tool-counts.ts';

const tool = (name: string, properties: Record<string, object>, required = Object.keys(properties)): Tool => ({
  name,
  parameters: { type: 'object', properties, required },
});
const SEARCH = tool('search', { query: { type: 'string' } });
const PAY = tool('pay', { amount: { type: 'integer' }, urgent: { type: 'boolean' }, how: { enum: ['card', 'cash'] } });
const STOP = tool('stop', {});

function seen(...texts: string[]): SeenValues {
  const values = new SeenValues();
  values.add(texts.map((content) => ({ role: 'user', content })));
  return values;
}

const tools = [SEARCH, PAY, STOP];

/** Takes choices in order; each must be listed. */
function choose(choices: readonly string[], values: SeenValues, toolChoice: ToolChoice = 'auto', of = tools) {
  let stage: ReplyStage | undefined;
  let reply: AgentReply | undefined;
  const listed: string[][] = [];
  for (const text of choices) {
    const now = listChoices({ tools: of, toolChoice }, stage, values);
    listed.push([...now.texts]);
    const taken = now.take(text)!;
    if (isReply(taken)) reply = taken;
    else stage = taken;
  }
  return { listed, reply };
}

describe('values of a conversation', () => {
  it.each([
    ['{"page": "p3", "titles": ["copper lamp", "7 cups"], "n": 4}', ['p3', 'copper lamp', '7 cups', '4']],
    ['What is the color of the "copper lamp"?', ['What is the color of the "copper lamp"?', 'copper lamp']],
    ['you have: oak log, stick', ['you have: oak log, stick', 'you have', 'oak log', 'stick']],
    ['', []],
    [`x${'y'.repeat(300)}`, []],
  ])('of %j', (text, values) => {
    expect(valuesIn(text).filter((value) => values.includes(value))).toEqual(values);
    expect(valuesIn(text).length >= values.length).toBe(true);
  });
  it('are listed newest first, each once, and never our own words', () => {
    const values = seen('"a", "b"');
    values.add([{ role: 'assistant', content: '"c"' }]);
    values.add([{ role: 'tool', callId: '', content: '["a"]' }]);
    expect(values.newest(2)).toEqual(['a', 'b']);
  });

  it('keep those that are given before all, and name none twice', () => {
    const values = new SeenValues(['k', '7', 'k']);
    values.add([{ role: 'user', content: JSON.stringify(['a', 'k', 8]) }]);
    values.add([{ role: 'user', content: JSON.stringify(Array.from({ length: 99 }, (_, i) => `v${i}`)) }]);
    expect(values.newest(4)).toEqual(['k', '7', 'v98', 'v97']);
    expect(values.newest(200).filter((value) => value === 'k')).toHaveLength(1);
    expect(values.newestNumbers(2)).toEqual(['7', '8']);
  });
});

describe('values of an argument', () => {
  const list = (parameters: JsonSchema) => {
    const tool: Tool = { name: 'paint', description: '', parameters: { required: ['color'], ...parameters } };
    return listChoices({ tools: [tool], toolChoice: 'auto' }, { tool, chosen: [] }, seen('["a", "b"]')).texts;
  };
  const color = { enum: ['red', 'blue'] };

  it.each<[string, JsonSchema, readonly string[]]>([
    ['a reference', { properties: { color: { $ref: '#/$defs/Color' } }, $defs: { Color: color } }, ['red', 'blue']],
    [
      'two references',
      { properties: { color: { $ref: '#/$defs/A' } }, $defs: { A: { $ref: '#/$defs/B' }, B: color } },
      ['red', 'blue'],
    ],
    [
      'a list, or any text',
      { properties: { color: { anyOf: [{ $ref: '#/$defs/Color' }, { type: 'string' }] } }, $defs: { Color: color } },
      ['red', 'blue'],
    ],
    [
      'an object, or a text',
      { properties: { color: { anyOf: [{ type: 'object' }, { type: 'string' }] } } },
      ['b', 'a'],
    ],
    [
      'a reference to an object',
      { properties: { color: { $ref: '#/$defs/O' } }, $defs: { O: { type: 'object' } } },
      [],
    ],
    ['a reference that leads nowhere', { properties: { color: { $ref: '#/$defs/Color' } } }, ['b', 'a']],
    [
      'a reference to itself',
      { properties: { color: { $ref: '#/$defs/A' } }, $defs: { A: { $ref: '#/$defs/A' } } },
      ['b', 'a'],
    ],
  ])('of %s', (_, parameters, expected) => {
    expect(list(parameters)).toEqual(expected);
  });

  it('end where schemas go in circles', () => {
    const members = Array.from({ length: 64 }, () => ({ $ref: '#/$defs/A' }));
    const circle = { properties: { color: { $ref: '#/$defs/A' } }, $defs: { A: { anyOf: members } } };
    expect(list(circle)).toEqual([]);
  });
});

describe('choices of a reply', () => {
  it('are the tools, then each required argument', () => {
    const { listed, reply } = choose(['pay', '12', 'false', 'cash'], seen('12 cups, "red"'));
    expect(listed[0]).toEqual(['search', 'pay', 'stop', REPLY]);
    expect(listed.slice(2)).toEqual([
      ['true', 'false'],
      ['card', 'cash'],
    ]);
    expect(reply?.calls).toEqual([{ name: 'pay', arguments: '{"amount":12,"urgent":false,"how":"cash"}' }]);
  });
  it('leave out a tool whose arguments nothing has shown', () => {
    const { texts } = listChoices({ tools, toolChoice: 'required' }, undefined, seen());
    expect(texts).toEqual(['stop']);
  });
  it.each<[ToolChoice, string[]]>([
    ['auto', ['search', 'stop', REPLY]],
    ['required', ['search', 'stop']],
    ['none', [REPLY]],
    [{ name: 'stop' }, ['stop']],
  ])('under tool choice %j', (toolChoice, texts) => {
    expect(listChoices({ tools, toolChoice }, undefined, seen('red')).texts).toEqual(texts);
  });
  it('take nothing that is not listed', () => {
    expect(listChoices({ tools, toolChoice: 'none' }, undefined, seen('red')).take('search')).toBeUndefined();
  });
  it('are at most as many as a stage has, whatever was shown', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 300 }), (texts) => {
        const values = seen(JSON.stringify(texts), ...texts);
        const stage = { tool: SEARCH, chosen: [] };
        const { texts: listed } = listChoices({ tools, toolChoice: 'auto' }, stage, values);
        expect(listed.length).toBeLessThanOrEqual(ACTIONS_PER_STAGE);
        expect(new Set(listed).size).toBe(listed.length);
      }),
    );
  });
});

describe('tools of many arguments, lists and objects', () => {
  const text = { type: 'string' };
  const many = (count: number) =>
    tool('many', Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, text])));
  const texts = { type: 'array', items: text };
  const FLIGHT = { type: 'object', properties: { number: text, date: text }, required: ['number', 'date'] };
  const flights = { type: 'array', items: { anyOf: [{ $ref: '#/$defs/Flight' }, { type: 'object' }] } };
  const MOVE: Tool = {
    name: 'move',
    parameters: { type: 'object', properties: { flights }, required: ['flights'], $defs: { Flight: FLIGHT } },
  };
  const argsOf = (choices: readonly string[], one: Tool, ...shown: string[]) =>
    JSON.parse(choose([one.name, ...choices], seen(...shown), 'auto', [one]).reply!.calls[0]!.arguments);
  const isOffered = (one: Tool) => listChoices({ tools: [one], toolChoice: 'required' }, undefined, seen('red')).texts;

  it('are offered with as many arguments as stages may follow each other', () => {
    expect(argsOf(Array<string>(7).fill('red'), many(7), 'red')).toEqual(
      Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`a${i}`, 'red'])),
    );
    expect([isOffered(many(MAX_PARTIAL_STEPS)), isOffered(many(MAX_PARTIAL_STEPS + 1))]).toEqual([['many'], []]);
  });

  it('take a list value by value, each once, until its end', () => {
    const pack = tool('pack', { items: texts, how: { enum: ['box'] } });
    const shown = '["a", "b", "c", "d", "e"]';
    expect(argsOf(['b', END_OF_LIST, 'box'], pack, shown)).toEqual({ items: ['b'], how: 'box' });
    expect(argsOf(['b', 'a', END_OF_LIST, 'box'], pack, shown)).toEqual({ items: ['b', 'a'], how: 'box' });
    const { listed, reply } = choose(['pack', 'a', 'b', 'c', 'd', 'box'], seen(shown), 'auto', [pack]);
    expect(listed.slice(1, 4)).toEqual([
      ['e', 'd', 'c', 'b', 'a'],
      [END_OF_LIST, 'e', 'd', 'c', 'b'],
      [END_OF_LIST, 'e', 'd', 'c'],
    ]);
    expect(reply?.calls[0]?.arguments).toBe('{"items":["a","b","c","d"],"how":"box"}');
    expect(argsOf(['a', 'a'], tool('at', { point: { ...texts, minItems: 2, maxItems: 2 } }), shown)).toEqual({
      point: ['a', 'a'],
    });
  });

  it('take a list of objects property by property', () => {
    const shown = '["HAT001", "2024-05-16"]';
    const one = ['HAT001', '2024-05-16'];
    const flight = { number: 'HAT001', date: '2024-05-16' };
    expect(argsOf([...one, END_OF_LIST], MOVE, shown)).toEqual({ flights: [flight] });
    expect(argsOf([...one, NEXT_OBJECT, ...one, END_OF_LIST], MOVE, shown)).toEqual({ flights: [flight, flight] });
  });

  it('are not offered where an argument has no value, or goes in circles', () => {
    expect(isOffered(tool('add', { numbers: { type: 'array', items: { type: 'integer' } } }))).toEqual([]);
    expect(isOffered(tool('set', { any: { type: 'object' } }))).toEqual([]);
    const circle = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' }, b: { $ref: '#/$defs/A' } },
      required: ['a', 'b'],
    };
    expect(isOffered({ name: 'loop', parameters: { ...circle, $defs: { A: circle } } })).toEqual([]);
  });

  it('end in a call of arguments that fit the schema, within the stages that are allowed, whatever is chosen', () => {
    const leaf = fc.constantFrom<object>(text, { enum: ['a', 1, false] }, { type: 'boolean' }, { type: 'integer' });
    const schema = fc.letrec<{ any: object }>((tie) => ({
      any: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.record({ type: fc.constant('array'), items: tie('any'), minItems: fc.integer({ min: 0, max: 2 }) }),
        fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('any'), { minKeys: 1 }).map((properties) => ({
          type: 'object',
          properties,
          required: Object.keys(properties),
          additionalProperties: false,
        })),
      ),
    })).any;
    let called = 0;
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('x', 'y', 'z'), schema),
        fc.infiniteStream(fc.nat()),
        (properties, draws) => {
          const one = tool('any', properties);
          const values = seen('["red", "blue", 3, 4, 5.5]');
          const call = { tools: [one], toolChoice: 'required' as const };
          let taken = listChoices(call, undefined, values).take('any');
          if (!taken) return;
          let stages = 0;
          while (!isReply(taken!)) {
            const { texts, take } = listChoices(call, taken as ReplyStage, values);
            expect(texts.length).toBeGreaterThan(0);
            taken = take(texts[draws.next().value % texts.length]!);
            stages++;
          }
          called++;
          expect(stages).toBeLessThanOrEqual(MAX_PARTIAL_STEPS);
          expect(checkCall(taken.calls[0]!, [one])).toBe('valid');
        },
      ),
      { numRuns: 500 },
    );
    expect(called).toBeGreaterThan(100);
  });
});
