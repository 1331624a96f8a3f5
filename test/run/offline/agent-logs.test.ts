/** Agent logs: conversations with tools are learnt as the episodes that an agent's program would have played. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { readAgentCall, readAgentReply } from '../../../src/core/agent-call.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { convertAgentLog } from '../../../src/run/offline/agent-logs.ts';
import { readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { fromDemonstration } from '../../../src/run/offline/teach.ts';
import { openAgentCodec } from '../../../src/text/reading/agent-codec.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-agent-logs-'));
afterAll(() => rmSync(folder, { recursive: true }));

const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
const called = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":"door"}' } });
const conversation = {
  messages: [
    { role: 'system', content: 'Find the key.' },
    { role: 'user', content: 'You are in a room.' },
    { role: 'assistant', content: null, tool_calls: [called('a'), called('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'A door.' },
    { role: 'tool', tool_call_id: 'b', content: 'The same door.' },
    { role: 'assistant', content: 'It is locked.' },
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: 'No.' },
  ],
  tools,
};

it('become calls and replies', () => {
  const [demonstration] = convertAgentLog([conversation], 'log');
  const turns = demonstration!.turns.map(
    ({ observation, action }) => [readAgentCall(observation), readAgentReply(action)] as const,
  );
  expect(turns.map(([{ call, parent, messages }]) => [call, parent, messages.map(({ role }) => role)])).toEqual([
    [0, null, ['system', 'user']],
    [1, 0, ['tool', 'tool']],
    [2, 1, ['user']],
  ]);
  expect(turns[0]![0].tools).toEqual([{ name: 'look', parameters: { type: 'object' } }]);
  expect(turns.map(([, { calls, content }]) => [calls.length, content])).toEqual([
    [2, ''],
    [0, 'It is locked.'],
    [0, 'No.'],
  ]);
});

it('begin anew behind a turn that continues no reply', () => {
  const messages = [
    { role: 'user', content: 'One.' },
    { role: 'assistant', content: 'Two.' },
    { role: 'assistant', content: 'Three.' },
  ];
  const [{ turns }] = convertAgentLog([{ messages }], 'log') as [ReturnType<typeof convertAgentLog>[number]];
  const calls = turns.map(({ observation }) => readAgentCall(observation));
  expect(calls.map(({ parent, messages }) => [parent, messages.length])).toEqual([
    [null, 1],
    [null, 2],
  ]);
});

it('are learnt by a language model, in its own form, each reply once', () => {
  const path = join(folder, 'log.jsonl');
  writeFileSync(path, `${JSON.stringify(conversation)}\n`);
  const model = join(folder, 'model');
  writeTinyChatModel(model);
  const { config, endTokens } = openModel(model);
  const codec = openAgentCodec(model, { endTokens, vocabSize: config.vocabSize, contextTokens: 4000 });
  const [demonstration] = readDemonstrations(path, undefined, undefined, true);
  const { turns } = fromDemonstration({ codec, decoder: 'tokens', masked: false }, demonstration!, 0, 0);
  const learnt = turns.map(({ decision }) => (decision!.kind === 'tokens' ? codec.decode(decision!.tokens) : ''));
  expect(learnt[0]).toContain('"name": "look"');
  expect(learnt.slice(1)).toEqual(['It is locked.', 'No.']);
  expect(codec.decode(turns[1]!.decision!.context)).toContain('The same door.');
});

describe('that are none are refused', () => {
  it.each([
    ['no messages', {}, /conversation 0: expected \{ messages, tools\? \}.*messages/],
    ['a result of no call', { messages: [{ role: 'tool', tool_call_id: 'x', content: 'y' }] }, /tool_call_id/],
    ['no turn of the model', { messages: [{ role: 'user', content: 'go' }] }, /a message before one of the model/],
  ])('%s', (_, given, message) => {
    expect(() => convertAgentLog([given], 'log')).toThrow(message);
  });
});
