/** Tool formats: the examples of each family, what is printed read back, repairs, and what is no call. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Tool } from '../../../src/core/model-call.ts';
import { deepseekV3, deepseekV31 } from '../../../src/text/tools/deepseek.ts';
import { formatOf, TOOL_FORMATS } from '../../../src/text/tools/formats.ts';
import { gemma } from '../../../src/text/tools/gemma.ts';
import { harmony } from '../../../src/text/tools/harmony.ts';
import { hermes } from '../../../src/text/tools/hermes.ts';
import { llamaJson } from '../../../src/text/tools/llama-json.ts';
import { mistralArgs, mistralList } from '../../../src/text/tools/mistral.ts';
import { pythonic } from '../../../src/text/tools/pythonic.ts';
import type { ParsedReply, ToolFormat, WrittenCall } from '../../../src/text/tools/tool-format.ts';
import { xmlParameters } from '../../../src/text/tools/xml-parameters.ts';

const weather: Tool = {
  name: 'get_weather',
  description: 'Weather of a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' }, note: { type: ['string', 'null'] } },
    required: ['city'],
  },
};
const tools = [weather];
const paris = { name: 'get_weather', arguments: { city: 'Paris', days: 2 } };
const rome = { name: 'get_weather', arguments: { city: 'Rome' } };

/** Reply with its arguments as values. */
function valuesOf({ content, calls, repairs, reasoning, malformed }: ParsedReply) {
  return {
    content,
    calls: calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
    repairs,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(malformed === undefined ? {} : { malformed: true }),
  };
}
const writtenOf = (calls: readonly { readonly name: string; readonly arguments: object }[]): WrittenCall[] =>
  calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) }));
const read = (format: ToolFormat, text: string, isCut = false) => valuesOf(format.parse(text, tools, isCut));

/** Texts as the models of each family write them. */
const examples: readonly (readonly [ToolFormat, string, readonly object[]])[] = [
  [
    hermes,
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>\n' +
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>',
    [paris, rome],
  ],
  [
    xmlParameters,
    '<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n' +
      '</function>\n</tool_call>',
    [paris],
  ],
  [llamaJson, '{"name": "get_weather", "parameters": {"city": "Paris", "days": 2}}', [paris]],
  [pythonic.bare, "[get_weather(city='Paris', days=2), get_weather(city='Rome')]", [paris, rome]],
  [
    pythonic.llama4,
    "<|python_start|>[get_weather(city='Paris', days=2), get_weather(city='Rome')]<|python_end|>",
    [paris, rome],
  ],
  [
    pythonic.lfm2,
    "<|tool_call_start|>[get_weather(city='Paris', days=2), get_weather(city='Rome')]<|tool_call_end|>",
    [paris, rome],
  ],
  [
    pythonic.olmo,
    "<function_calls>get_weather(city='Paris', days=2)\nget_weather(city='Rome')</function_calls>",
    [paris, rome],
  ],
  [mistralList, '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]', [paris]],
  [
    mistralArgs,
    '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 2}[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}',
    [paris, rome],
  ],
  [
    gemma.functionGemma,
    '<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call>',
    [paris],
  ],
  [gemma.gemma4, '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>', [paris]],
  [
    harmony,
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris", "days": 2}',
    [paris],
  ],
  [
    deepseekV3,
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris", "days": 2}\n```' +
      '<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Rome"}\n```' +
      '<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [paris, rome],
  ],
  [
    deepseekV31,
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris", "days": 2}<｜tool▁call▁end｜>' +
      '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [paris, rome],
  ],
];

describe.each(examples)('$id', (format, text, calls) => {
  it('reads and prints the example of its family', () => {
    expect(read(format, text)).toEqual({ content: '', calls, repairs: [] });
    expect(format.print('', writtenOf(calls as readonly (typeof paris)[]))).toBe(text);
  });

  it('reads a text without a call as it is', () => {
    for (const plain of ['', 'It is warm.\n', 'a < b, [1] and {x}', ' \nlines\n\n']) {
      expect(format.parse(plain, tools)).toEqual({ content: plain, calls: [], repairs: [] });
    }
  });

  it('takes what is no call for text, and says so', () => {
    if (format === xmlParameters) return; // its values are any text
    const quote = format.markers.at(-1) ?? '';
    const isQuoted = text.includes(`${quote}Paris${quote}`); // Gemma's texts may hold anything but their quote
    const broken = text.replace(isQuoted ? `Paris${quote}` : 'Par', `"'`);
    expect(read(format, broken)).toEqual({ content: broken, calls: [], repairs: [], malformed: true });
  });

  it('leaves out a call that was cut off, wherever it was', () => {
    for (let length = 0; length < text.length; length++) {
      const cut = read(format, text.slice(0, length), true);
      expect(cut.malformed).toBeUndefined();
      expect(calls.slice(0, cut.calls.length)).toEqual(cut.calls);
    }
  });
});

const name = fc.stringMatching(/^[A-Za-z_][\w-]{0,20}$/);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((one) => one.toWellFormed()),
  fc.constantFrom('"', "'", '\n', '\\', '</tool_call>', '<tool_call>', '"}\n</tool_call>', '[ARGS]', '<|call|>', '```'),
  fc.constantFrom('True', 'null', '2', '{"a": 1}', 'élan 🚲', '\u2028', 'it\'s "so"\n', '}}', '; {', ')]'),
);
const number = fc.oneof(
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((one) => one || 0),
);
const scalar = fc.oneof(text, number, fc.boolean(), fc.constant(null));

/** Calls with arguments whose keys and texts a format can carry. */
function callsOf(key: fc.Arbitrary<string>, texts: fc.Arbitrary<unknown> = scalar, several = true) {
  const value = fc.oneof(
    texts,
    fc.array(texts, { maxLength: 3 }),
    fc.dictionary(key, fc.oneof(texts, fc.array(texts, { maxLength: 2 })), { maxKeys: 3, noNullPrototype: true }),
  );
  const call = fc.record({ name, arguments: fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true }) });
  return fc.array(call, { minLength: 1, maxLength: several ? 3 : 1 });
}
const notProto = (one: string) => one !== '__proto__';
const anyKey = text.filter(notProto);
const word = fc.stringMatching(/^[A-Za-z_]\w{0,12}$/).filter(notProto);
/** Texts without the markers of formats that cannot escape them. */
const unmarked = fc.oneof(
  text.filter((one) => !/<|>|\||\[|｜/.test(one)),
  number,
  fc.boolean(),
  fc.constant(null),
);

const carried: readonly (readonly [ToolFormat, ReturnType<typeof callsOf>])[] = [
  [hermes, callsOf(anyKey)],
  [llamaJson, callsOf(anyKey)],
  [mistralList, callsOf(anyKey)],
  [mistralArgs, callsOf(anyKey)],
  [deepseekV3, callsOf(anyKey)],
  [deepseekV31, callsOf(anyKey)],
  [harmony, callsOf(anyKey)],
  [pythonic.bare, callsOf(word)],
  [pythonic.llama4, callsOf(word)],
  [pythonic.lfm2, callsOf(word)],
  [pythonic.olmo, callsOf(word)],
  [gemma.functionGemma, callsOf(word, unmarked)],
  [gemma.gemma4, callsOf(word, unmarked)],
];

describe.each(carried)('$id', (format, calls) => {
  it('reads back whatever calls it prints', () => {
    fc.assert(
      fc.property(calls, (one) => {
        const parsed = format.parse(format.print('', writtenOf(one)), []);
        expect(valuesOf(parsed)).toEqual({ content: '', calls: one, repairs: [] });
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the digits of numbers within values', () => {
    const args = '{"a": {"b": [1.0, 12345678901234567890]}}';
    const [call] = format.parse(format.print('', [{ name: 'f', arguments: args }]), []).calls;
    expect(call!.arguments.replaceAll(' ', '')).toBe(args.replaceAll(' ', ''));
  });

  it('reads any text without an error', () => {
    const junk = fc.array(
      fc.oneof(text, fc.constantFrom(...format.markers, '{', '[', 'a(', 'a=1', ')', ', ', '"name": "a"')),
    );
    fc.assert(
      fc.property(junk, fc.boolean(), (pieces, isCut) => {
        const parsed = format.parse(pieces.join(''), tools, isCut);
        for (const call of parsed.calls) expect(typeof JSON.parse(call.arguments)).toBe('object');
        if (parsed.malformed !== undefined) expect(parsed.calls).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

it('is found for each family, and every format is covered here', () => {
  expect(new Set(carried.map(([format]) => format)).size + 1).toBe(TOOL_FORMATS.length); // XML parameters: below
  expect(new Set(examples.map(([format]) => format)).size).toBe(TOOL_FORMATS.length);
});

describe('hermes', () => {
  it('keeps the text before the first call, and leaves out what stands behind it', () => {
    const call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>';
    expect(read(hermes, `I look.\n${call}\nand more`)).toEqual({
      content: 'I look.',
      calls: [{ name: 'f', arguments: {} }],
      repairs: [],
    });
    expect(hermes.print('I look.', [{ name: 'f', arguments: '{}' }])).toBe(`I look.\n${call}`);
  });

  it('keeps arguments as they were written', () => {
    const args = '{"n":1.0,  "big": 12345678901234567890}';
    const [call] = hermes.parse(`<tool_call>{"name": "f", "arguments": ${args}}</tool_call>`, []).calls;
    expect(call!.arguments).toBe(args);
    expect(hermes.print('', [call!])).toContain('{"n": 1.0, "big": 12345678901234567890}');
  });

  it('divides off the reasoning, with calls in it', () => {
    const thought = 'maybe <tool_call>{"name": "f"}</tool_call>';
    expect(read(hermes, `<think>\n${thought}\n</think>\n\nHello`)).toEqual({
      ...{ content: 'Hello', calls: [], repairs: [], reasoning: thought },
    });
    expect(read(hermes, `<think>\n${thought}`)).toEqual({ content: '', calls: [], repairs: [], reasoning: thought });
  });

  it.each([
    ['python-literals', `{'name': 'f', 'arguments': {'a': True, 'b': None}}`, { a: true, b: null }],
    ['string-arguments', '{"name": "f", "arguments": "{\\"a\\": 1}"}', { a: 1 }],
    ['parameters', '{"name": "f", "parameters": {"a": 1}}', { a: 1 }],
    ['wrapper', '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}', { a: 1 }],
    ['close-brace', '{"name": "f", "arguments": {"a": "b"}', { a: 'b' }],
    ['fence', '```json\n{"name": "f", "arguments": {"a": 1}}\n```', { a: 1 }],
  ])('repairs %s, and counts it', (repair, inner, args) => {
    const expected = { content: '', calls: [{ name: 'f', arguments: args }], repairs: [repair] };
    expect(read(hermes, `<tool_call>\n${inner}\n</tool_call>`)).toEqual(expected);
  });

  it('reads an unclosed last tag, several calls in a tag, and a fence in place of tags', () => {
    const f = '{"name": "f", "arguments": {}}';
    const call = { name: 'f', arguments: {} };
    expect(read(hermes, `<tool_call>\n${f}`)).toEqual({ content: '', calls: [call], repairs: ['close-tag'] });
    for (const several of [`${f}\n${f}`, `[${f}, ${f}]`]) {
      const expected = { content: '', calls: [call, call], repairs: ['several-in-tag'] };
      expect(read(hermes, `<tool_call>${several}</tool_call>`)).toEqual(expected);
    }
    const fence = '```json\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n```';
    expect(read(hermes, `So:\n${fence}`)).toEqual({ content: 'So:', calls: [rome], repairs: ['fence'] });
    const unknown = fence.replace('get_weather', 'other'); // an answer about JSON
    expect(read(hermes, unknown)).toEqual({ content: unknown, calls: [], repairs: [] });
  });

  it('takes arguments with white space that JSON does not have for no JSON', () => {
    const text = '<tool_call>{"name": "f", "arguments": {\u00a0"a": 1}}</tool_call>';
    expect(read(hermes, text)).toEqual({ content: text, calls: [], repairs: [], malformed: true });
  });

  it('has no calls at all where one of them cannot be read', () => {
    const text = '<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>go</tool_call>';
    expect(read(hermes, text)).toEqual({ content: text, calls: [], repairs: [], malformed: true });
  });
});

describe('XML parameters', () => {
  it('reads types from the schema', () => {
    const typed = (value: string, type: unknown) => {
      const tool = { name: 'f', parameters: { type: 'object', properties: { a: type === undefined ? {} : { type } } } };
      const written = `<tool_call>\n<function=f>\n<parameter=a>\n${value}\n</parameter>\n</function>\n</tool_call>`;
      const [call] = xmlParameters.parse(written, [tool]).calls;
      return JSON.parse(call!.arguments).a;
    };
    expect(typed('2', 'string')).toBe('2');
    expect(typed('2', 'integer')).toBe(2);
    expect(typed('two', 'integer')).toBe('two');
    expect(typed('null', ['string', 'null'])).toBe(null);
    expect(typed('[1, "a"]', 'array')).toEqual([1, 'a']);
    expect(typed('{"b": false}', 'object')).toEqual({ b: false });
    expect(typed('2', undefined)).toBe(2); // no schema: JSON where it is JSON
    expect(typed('a\n<b>\n c', 'string')).toBe('a\n<b>\n c');
    expect(typed('', 'string')).toBe('');
  });

  it('reads back what it prints under the schema', () => {
    const tag = /<\/?(?:parameter|function|tool_call)/;
    const texts = text.filter((one) => !tag.test(one));
    const properties = {
      text: { type: 'string' },
      integer: { type: 'integer' },
      list: { type: 'array' },
      flag: { type: 'boolean' },
    };
    const args = fc.record(
      { text: texts, integer: fc.integer(), list: fc.array(texts), flag: fc.boolean() },
      { requiredKeys: [], noNullPrototype: true },
    );
    fc.assert(
      fc.property(fc.array(fc.record({ name, arguments: args }), { minLength: 1, maxLength: 3 }), (calls) => {
        const known = calls.map((call) => ({ name: call.name, parameters: { type: 'object', properties } }));
        const parsed = xmlParameters.parse(xmlParameters.print('', writtenOf(calls)), known);
        expect(valuesOf(parsed)).toEqual({ content: '', calls, repairs: [] });
      }),
    );
  });

  it('repairs tags that are missing', () => {
    const body = '<function=f>\n<parameter=a>\n1\n</parameter>\n</function>';
    const call = { name: 'f', arguments: { a: 1 } };
    expect(read(xmlParameters, `${body}\n</tool_call>`)).toEqual({ content: '', calls: [call], repairs: ['open-tag'] });
    expect(read(xmlParameters, `<tool_call>\n${body}`)).toEqual({ content: '', calls: [call], repairs: ['close-tag'] });
    const unclosed = '<tool_call>\n<function=f>\n<parameter=a>\n1\n</function>\n</tool_call>';
    expect(read(xmlParameters, unclosed)).toEqual({ content: '', calls: [call], repairs: ['close-tag'] });
  });
});

describe("Llama's JSON", () => {
  it('reads several calls, either name of the arguments, and built-in tools', () => {
    const one = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
    expect(read(llamaJson, `<|python_tag|>${one}; ${one}`)).toEqual({ content: '', calls: [rome, rome], repairs: [] });
    const search = { name: 'brave_search', arguments: { query: 'a "b"' } };
    const builtIn = `<|python_tag|>brave_search.call(query="a \\"b\\"")`;
    expect(read(llamaJson, builtIn)).toEqual({ content: '', calls: [search], repairs: [] });
  });

  it('reads JSON that is no call as text', () => {
    for (const answer of ['{"answer": 42}', '{"temperature": {"name": "x"}}']) {
      expect(read(llamaJson, answer)).toEqual({ content: answer, calls: [], repairs: [] });
    }
  });
});

describe('harmony', () => {
  it('divides channels, and takes the recipient before or behind the channel', () => {
    const text =
      '<|channel|>analysis<|message|>to=functions.x? {"a": 1}<|end|><|start|>assistant<|channel|>commentary<|message|>I look.' +
      '<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Rome"}';
    expect(read(harmony, text)).toEqual({
      ...{ content: 'I look.', calls: [rome], repairs: [], reasoning: 'to=functions.x? {"a": 1}' },
    });
    const final = '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done.';
    expect(read(harmony, final)).toEqual({ content: 'Done.', calls: [], repairs: [], reasoning: 'hm' });
  });
});

it('reads the ids of Mistral calls away', () => {
  const list = '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Rome"}, "id": "abcdefgh1"}]';
  const named = '[TOOL_CALLS]get_weather[CALL_ID]abcdefgh1[ARGS]{"city": "Rome"}';
  for (const written of [list, named]) {
    for (const format of [mistralList, mistralArgs]) expect(read(format, written).calls).toEqual([rome]);
  }
});

it('is found by the template that writes it', () => {
  const templates: readonly (readonly [string, ToolFormat | undefined])[] = [
    ['{{- \'<tool_call>\\n{"name": "\' }}', hermes],
    ["{{- '<tool_call>\\n<function=' + name }}", xmlParameters],
    ['{{- \'{"name": "\' + name + \'", \' }}{{- \'"parameters": \' }}', llamaJson],
    ["{{ '<tool_call>' + name }}<arg_key>", undefined],
    ["{{ message.content + '<|im_end|>' }}", undefined],
    ['[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}', mistralArgs],
    ['[TOOL_CALLS] [{{ calls }}]', mistralList],
  ];
  for (const [template, format] of templates) expect(formatOf(template)?.id).toBe(format?.id);
});
