/** Form of a model call for a person: tools by number, arguments one by one, bad input asked again. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallForm, describeHint, isSameReply } from '../../src/cli/call-form.ts';
import { printAgentCall, printAgentReply, readAgentReply } from '../../src/core/agent-call.ts';
import type { Tool, ToolChoice } from '../../src/core/model-call.ts';
import { fitsSchema } from '../../src/core/schema-check.ts';

const object = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const BOOK: Tool = {
  name: 'book_seat',
  description: 'Book seats.\nOnly free ones.',
  parameters: {
    ...object(
      {
        rows: { type: 'array', items: { $ref: '#/$defs/Row' } },
        class: { enum: ['first', 'second'], description: 'of the train' },
        price: { anyOf: [{ type: 'number' }, { type: 'null' }] },
        note: { type: 'string' },
        quiet: { type: 'boolean' },
      },
      ['rows', 'class'],
    ),
    $defs: { Row: { type: 'integer' } },
  },
};
const STOP: Tool = { name: 'stop', parameters: object({}) };

function formOf(tools: readonly Tool[] = [BOOK, STOP], toolChoice: ToolChoice = 'auto') {
  const form = new CallForm();
  const messages = [{ role: 'user', content: 'Two seats.' }] as const;
  const shown = form.observe(printAgentCall({ call: 0, parent: null, messages, tools, toolChoice }));
  return { form, shown };
}

/** Types lines. @returns what the last of them gave */
function type(form: CallForm, ...lines: string[]) {
  return lines.map((line) => form.take(line)).at(-1)!;
}

const called = (name: string, args: unknown) => ({
  reply: { content: '', calls: [{ name, arguments: JSON.stringify(args) }], finish: 'calls', usage: expect.anything() },
});

describe('the form of a call', () => {
  it('shows the conversation and lists tools with their arguments', () => {
    const { form, shown } = formOf();
    expect(shown).toBe(`[user]\nTwo seats.\n\n${form.list()}`);
    expect(form.list().split('\n')).toEqual([
      'tools',
      '  1  book_seat',
      '       Book seats.',
      '       Only free ones.',
      '       - rows (required): list of integer',
      '       - class (required): one of first, second',
      '       - price (optional): number or null',
      '       - note (optional): string',
      '       - quiet (optional): boolean',
      '  2  stop',
    ]);
  });

  it('asks for each argument, and again with the reason after bad input', () => {
    const { form } = formOf();
    type(form, '1');
    expect(form.question).toBe('    rows (required): list of integer > ');
    expect(type(form, '3, four')).toEqual({ text: 'rows: expected list of integer, got "3, four"' });
    expect(type(form, '')).toEqual({ text: 'rows: expected list of integer, got nothing' });
    type(form, '3, 4');
    expect(form.question).toBe('       of the train\n    class (required): one of first, second > ');
    expect(type(form, 'third')).toEqual({ text: 'class: expected one of first, second, got "third"' });
    type(form, '2');
    expect(form.question).toBe('    price (optional, empty leaves it out): number or null > ');
    type(form, '');
    type(form, '12');
    expect(type(form, 'true')).toEqual(called('book_seat', { rows: [3, 4], class: 'second', note: '12', quiet: true }));
    expect(form.question).toBeUndefined();
  });

  it('keeps numbers as they were typed', () => {
    const pay: Tool = { name: 'pay', parameters: object({ amount: { type: 'number' } }, ['amount']) };
    const { form } = formOf([pay]);
    const sent = (typed: ReturnType<typeof type>) => ('reply' in typed ? typed.reply?.calls[0]?.arguments : undefined);
    expect(sent(type(form, 'pay', '100.0'))).toBe('{"amount":100.0}');
    expect(sent(type(form, 'pay {"amount": 12345678901234567890}'))).toBe('{"amount": 12345678901234567890}');
  });

  it('takes a tool by its name, without arguments at once, and takes one back', () => {
    const { form } = formOf();
    expect(type(form, 'stop')).toEqual(called('stop', {}));
    expect(type(form, 'book_seat', 'cancel')).toEqual({ text: 'book_seat is taken back' });
    expect(form.question).toBeUndefined();
    expect(type(form, 'book_seat {"rows":[1],"class":"first"}')).toEqual(
      called('book_seat', { rows: [1], class: 'first' }),
    );
  });

  it('takes words, and JSON of a reply', () => {
    const { form } = formOf();
    const words = (content: string) => ({ reply: { content, calls: [], finish: 'stop', usage: expect.anything() } });
    expect(type(form, 'Which class?')).toEqual(words('Which class?'));
    expect(type(form, 'reply 7')).toEqual(words('7'));
    const json = printAgentReply({
      ...words('a').reply,
      finish: 'stop',
      calls: [],
      usage: { promptTokens: 0, completionTokens: 0 },
    });
    expect(type(form, json)).toMatchObject({ reply: { content: 'a' } });
  });

  it.each([
    ['9', 'tools have numbers 1 to 2, got 9; reply 9 sends it as words'],
    ['book_seats', 'there is no tool book_seats; did you mean book_seat? reply book_seats sends it as words'],
    ['reply', 'reply: expected your words behind it, got none'],
    ['book_seat {"rows": 1}', 'book_seat: rows: expected list of integer, got 1'],
    ['book_seat {"rows": [1]}', 'book_seat: class: expected one of first, second, got nothing'],
    ['book_seat {rows}', 'book_seat: expected arguments as a JSON object, got "{rows}"'],
    ['stop {"x": 1}', 'stop: expected no arguments, got {"x":1}'],
    ['{"calls": 1}', /^expected a reply as JSON/],
  ])('answers %j by the reason', (line, text) => {
    const { form } = formOf();
    expect(type(form, line)).toEqual({ text: typeof text === 'string' ? text : expect.stringMatching(text) });
    expect(form.question).toBeUndefined();
  });

  it('keeps to the constraint on tools', () => {
    expect(type(formOf([STOP], 'required').form, 'hello')).toEqual({
      text: 'this call expects a tool, got words; ? lists the tools',
    });
    expect(type(formOf([STOP], 'none').form, 'stop')).toEqual({ text: 'this call expects words, got a tool' });
    expect(type(formOf([BOOK, STOP], { name: 'stop' }).form, 'book_seat')).toEqual({
      text: 'this call expects the tool stop, got book_seat',
    });
  });

  it('keeps the tools of a conversation that goes on', () => {
    const { form } = formOf();
    const next = { call: 1, parent: 0, messages: [{ role: 'tool', callId: 'call_0_0', content: 'no', isError: true }] };
    expect(form.observe(printAgentCall(next as Parameters<typeof printAgentCall>[0]))).toBe('[result, an error]\nno');
    expect(type(form, '2')).toEqual(called('stop', {}));
    expect(form.observe('{"reward":1}')).toBe('{"reward":1}');
  });

  it('never makes a call that breaks its schema, whatever is typed', () => {
    const line = fc.oneof(
      { arbitrary: fc.constantFrom('1', '2', 'first', '', '4, 5', 'true', '[1, 2]', 'null'), weight: 8 },
      { arbitrary: fc.string(), weight: 1 },
      { arbitrary: fc.json(), weight: 1 },
    );
    let calls = 0;
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const { form } = formOf();
        for (const typed of ['1', ...lines]) {
          const taken = form.take(typed.trim());
          if (!('reply' in taken)) continue;
          for (const { name, arguments: args } of taken.reply.calls) {
            if (name !== 'book_seat') continue;
            calls++;
            expect(fitsSchema(JSON.parse(args), BOOK.parameters)).toBe(true);
          }
        }
      }),
      { numRuns: 2000 },
    );
    expect(calls).toBeGreaterThan(50);
  });
});

describe('advice', () => {
  const usage = { promptTokens: 0, completionTokens: 0 };
  const reply = (content: string, ...args: string[]) =>
    printAgentReply({ content, calls: args.map((one) => ({ name: 'add', arguments: one })), finish: 'stop', usage });
  it('is a line that the form reads as the same reply', () => {
    const { form } = formOf([{ name: 'add', parameters: {} }]);
    for (const action of [
      reply('', '{"b": 1, "a": "x"}'),
      reply('All done.'),
      reply('add'),
      reply('two\nlines'),
      reply('', '{}', '{}'),
    ]) {
      const taken = form.take(describeHint(action));
      expect('reply' in taken && isSameReply(taken.reply, readAgentReply(action))).toBe(true);
    }
  });
  it('is followed by equal arguments in any order, and by no others', () => {
    const same = (a: string, b: string) => isSameReply(readAgentReply(a), readAgentReply(b));
    expect(same(reply('', '{"b": 1, "a": 2}'), reply('', '{"a":2,"b":1}'))).toBe(true);
    expect(same(reply('', '{"b": 1}'), reply('', '{"b": 2}'))).toBe(false);
    expect(same(reply('yes'), reply('no'))).toBe(false);
  });
});
