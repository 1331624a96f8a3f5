/** Grammars of replies: what a format prints of the calls that are asked for, and nothing else. */
import { describe, expect, it } from 'vitest';
import type { AgentCall } from '../../../src/core/agent-call.ts';
import type { Tool } from '../../../src/core/model-call.ts';
import { Grammar, type GrammarState } from '../../../src/text/grammar/grammar.ts';
import { replyNode, type Thought } from '../../../src/text/grammar/reply-grammar.ts';
import { TokenGrammar, Vocabulary } from '../../../src/text/grammar/token-mask.ts';
import { TOOL_FORMATS } from '../../../src/text/tools/formats.ts';
import { hermes } from '../../../src/text/tools/hermes.ts';

const tools: readonly Tool[] = [
  { name: 'look', parameters: { type: 'object', properties: {} } },
  { name: 'go', parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] } },
];
const call: AgentCall = { call: 0, parent: null, messages: [] };

function grammarOf(
  asked: Partial<AgentCall>,
  format = hermes,
  thought: Thought = 'none',
  declared = tools,
): (text: string) => boolean {
  const grammar = new Grammar(replyNode({ ...call, ...asked }, declared, format, thought)!);
  return (text) => {
    let state: GrammarState | undefined = grammar.start;
    for (const byte of Buffer.from(text)) state = state && grammar.step(state, byte);
    return state?.accepts === true;
  };
}
const look = { name: 'look', arguments: '{}' };
const go = { name: 'go', arguments: '{"place": "<\\"north\\">"}' };
const bad = { name: 'go', arguments: '{"place": 1}' };

const unframed = ['xml-parameters', 'pythonic', 'pythonic-llama4', 'pythonic-lfm2', 'pythonic-olmo'];
const framed = TOOL_FORMATS.filter(({ id }) => !unframed.includes(id) && !id.startsWith('gemma'));

describe.each(framed)('a call in the format $id', (format) => {
  it('is one of the tools, with arguments of its schema', () => {
    const isReply = grammarOf({ toolChoice: 'required' }, format);
    for (const calls of [[look], [go], [look, go, go]]) {
      const text = format.print('', calls);
      expect(isReply(text), text).toBe(true);
      expect(format.parse(text, tools).calls).toHaveLength(calls.length);
    }
    for (const calls of [[], [bad], [look, bad], [{ name: 'fly', arguments: '{}' }]]) {
      expect(isReply(format.print('', calls))).toBe(false);
    }
    expect(isReply(`Well,\n${format.print('', [look])}`)).toBe(false);
  });

  it('stands alone where one is asked for', () => {
    for (const asked of [{ toolChoice: 'required', parallelCalls: false }, { toolChoice: { name: 'go' } }] as const) {
      const isReply = grammarOf(asked, format);
      expect(isReply(format.print('', [go]))).toBe(true);
      expect(isReply(format.print('', [go, go]))).toBe(false);
    }
    expect(grammarOf({ toolChoice: { name: 'go' } }, format)(format.print('', [look]))).toBe(false);
  });
});

describe.each(framed)('a reply in the format $id that may call strict tools', (format) => {
  const strict = tools.map((tool) => (tool.name === 'go' ? { ...tool, strict: true as const } : tool));
  const accepts = grammarOf({}, format, 'none', strict);
  const canFollowText = format.parse(`Well.\n${format.print('', [look])}`, tools).calls.length > 0;

  it('is any text, or calls that fit', () => {
    for (const text of ['', 'Well, <b> { } [x] é\n\n', format.print('Well.', [])])
      expect(accepts(text), text).toBe(true);
    for (const calls of [[look], [go], [go, look, go]]) {
      expect(accepts(format.print('', calls))).toBe(true);
      expect(accepts(`Well.\n${format.print('', calls)}`)).toBe(canFollowText);
    }
  });

  it('holds strict tools alone to their schemas', () => {
    const free = { name: 'look', arguments: '{"where": [1, {}]}' };
    expect(accepts(format.print('', [free, go]))).toBe(true);
    for (const calls of [[bad], [look, bad], [{ name: 'go', arguments: '{}' }], [{ name: 'fly', arguments: '{}' }]]) {
      expect(accepts(format.print('', calls))).toBe(false);
      expect(accepts(format.print('Well.', calls))).toBe(false);
    }
    expect(accepts(format.print('', [go]).slice(0, -1))).toBe(false);
  });
});

it('refuses formats that it cannot frame by name', () => {
  expect(framed.length).toBeGreaterThan(6);
  for (const format of TOOL_FORMATS.filter((one) => !framed.includes(one))) {
    expect(() => grammarOf({ toolChoice: 'required' }, format)).toThrow(`cannot be held to the format ${format.id}`);
  }
});

it('lets an answer of a form stand beside calls, and free replies be', () => {
  const format = { type: 'json-schema', name: 'a', schema: { type: 'array', items: { type: 'null' } } } as const;
  const either = grammarOf({ format });
  expect([either('[null]'), either(hermes.print('', [look])), either('none')]).toEqual([true, true, false]);
  const alone = grammarOf({ format, toolChoice: 'none' });
  expect([alone('[null]'), alone(hermes.print('', [look]))]).toEqual([true, false]);
  for (const toolChoice of ['auto', 'none'] as const) {
    expect(replyNode({ ...call, toolChoice }, tools, hermes, 'none')).toBeUndefined();
  }
});

it('lets a thought go before', () => {
  const format = { type: 'json' } as const;
  const opened = grammarOf({ format }, hermes, 'opened');
  expect([opened('hm < {} </think>\n\n{}'), opened('{}'), opened('hm</think>{}')]).toEqual([true, false, true]);
  const optional = grammarOf({ format }, hermes, 'optional');
  expect([optional('<think>hm</think>\n{}'), optional('{}'), optional('hm</think>{}')]).toEqual([true, true, false]);
});

describe('a mask of tokens', () => {
  const texts = ['[', 'n', 'null', 'null]', 'ul', 'l', ', ', ',', ' ', '[null', ']', '], ', 'x'];
  const end = texts.length;
  const vocabulary = new Vocabulary(
    [...texts, 'null'].map((text, id) => (id === end ? undefined : Buffer.from(text))),
    [end],
  );
  const schema = { type: 'array', items: { type: 'null' } };
  const node = replyNode({ ...call, format: { type: 'json-schema', name: 'a', schema } }, [], hermes, 'none')!;

  it('allows the tokens whose bytes can follow, and the end where the text may end', () => {
    const mask = new TokenGrammar(new Grammar(node), vocabulary).begin();
    const shown = () => mask.allowed().map((id) => texts[id] ?? 'end');
    expect(shown()).toEqual(['[', '[null']);
    mask.advance(texts.indexOf('[null'));
    expect(shown()).toEqual([', ', ',', ']']);
    mask.advance(texts.indexOf(','));
    expect(shown()).toEqual([' ']);
    mask.advance(texts.indexOf(' '));
    expect(shown()).toEqual(['n', 'null', 'null]']);
    mask.advance(texts.indexOf('n'));
    expect(shown()).toEqual(['ul']);
    mask.advance(texts.indexOf('ul'));
    mask.advance(texts.indexOf('l'));
    mask.advance(texts.indexOf(']'));
    expect(mask.allowed()).toEqual([end]);
    mask.advance(end);
  });

  it('refuses a token that cannot follow', () => {
    const mask = new TokenGrammar(new Grammar(node), vocabulary).begin();
    expect(() => mask.advance(texts.indexOf('x'))).toThrow('cannot follow');
  });

  it('begins each run anew', () => {
    const grammar = new TokenGrammar(new Grammar(node), vocabulary);
    const first = grammar.begin();
    first.advance(0);
    expect(grammar.begin().allowed()).toEqual([0, texts.indexOf('[null')]);
    expect(first.allowed()).not.toEqual(grammar.begin().allowed());
  });
});
