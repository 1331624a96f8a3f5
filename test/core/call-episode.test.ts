import { describe, expect, it } from 'vitest';
import { printAgentCall, printAgentReply } from '../../src/core/agent-call.ts';
import { isCallEpisode, listConversations, readCallTurns } from '../../src/core/call-episode.ts';
import type { ConversationMessage } from '../../src/core/model-call.ts';

const tools = [
  {
    name: 'act',
    parameters: { type: 'object', properties: { side: { enum: ['left', 'right'] } }, required: ['side'] },
  },
  { name: 'stop', parameters: { type: 'object', properties: {} } },
];
const call = (number: number, parent: number | null, ...messages: ConversationMessage[]) =>
  printAgentCall({ call: number, parent, messages, ...(parent === null ? { tools } : {}) });
const user = (content: string): ConversationMessage => ({ role: 'user', content });
const usage = { promptTokens: 0, completionTokens: 0 };
const reply = (content: string, ...names: string[]) =>
  printAgentReply({ content, calls: names.map((name) => ({ name, arguments: '{}' })), finish: 'stop', usage });

describe('conversations of an episode', () => {
  it('are its leaves, with ids that the results name', () => {
    const result: ConversationMessage = { role: 'tool', callId: 'toolu_7_0', content: 'done' };
    const turns = [
      { observation: call(0, null, user('lead')), action: reply('', 'stop') },
      { observation: call(1, null, user('sub')), action: reply('found') },
      { observation: call(2, 0, result), action: reply('lost'), untrained: true as const },
      { observation: call(3, 0, result), action: reply('bye') },
    ];
    expect(isCallEpisode(turns)).toBe(true);
    expect(listConversations(turns).map(({ messages }) => messages)).toEqual([
      [user('sub'), { role: 'assistant', content: 'found' }],
      [
        user('lead'),
        { role: 'assistant', content: '', calls: [{ id: 'toolu_7_0', name: 'stop', arguments: '{}' }] },
        result,
        { role: 'assistant', content: 'bye' },
      ],
    ]);
  });
  it('read choices made in stages', () => {
    const turns = [
      { observation: call(0, null, user('go')), action: 'act', partial: true as const },
      { observation: '', action: 'right' },
      { observation: call(1, 0, user('and?')), action: 'reply' },
    ];
    const [conversation] = listConversations(turns);
    expect(conversation!.messages[1]).toEqual({
      role: 'assistant',
      content: '',
      calls: [{ id: 'call_0_0', name: 'act', arguments: '{"side":"right"}' }],
    });
    expect(conversation!.tools.map(({ name }) => name)).toEqual(['act', 'stop']);
  });
  it('are none of other worlds', () => {
    expect(isCallEpisode([{ observation: 'You are in a kitchen.' }])).toBe(false);
    expect(isCallEpisode([])).toBe(false);
  });
});

describe('turns of an episode', () => {
  const result = (callId: string, content: string, isError?: true): ConversationMessage => ({
    role: 'tool',
    callId,
    content,
    ...(isError ? { isError } : {}),
  });

  it('have their calls beside the results, whichever turn brought those', () => {
    const turns = [
      { observation: call(0, null, user('lead')), action: reply('', 'stop', 'act') },
      { observation: call(1, null, user('sub')), action: reply('found') },
      { observation: call(2, 0, result('x_1', 'no', true), result('x_0', 'yes'), user('and?')), action: reply('bye') },
    ];
    const read = readCallTurns(turns, '{"reward":1}')!;
    expect(read.map(({ call, parent, tools }) => [call, parent, tools])).toEqual([
      [0, null, ['act', 'stop']],
      [1, null, ['act', 'stop']],
      [2, 0, []],
    ]);
    expect(read[0]!.reply).toEqual({
      content: '',
      calls: [
        { name: 'stop', arguments: '{}', result: 'yes', isError: false },
        { name: 'act', arguments: '{}', result: 'no', isError: true },
      ],
      next: [user('and?')],
    });
    expect(read[1]!.reply).toEqual({ content: 'found', calls: [], next: [] });
    expect(read[2]!.reply).toMatchObject({ content: 'bye', next: [] });
  });

  it('take the last result from the final observation, and stages as parts of a reply', () => {
    const turns = [
      { observation: call(0, null, user('go')), action: 'act', partial: true as const },
      { observation: '', action: 'right' },
    ];
    const read = readCallTurns(turns, call(1, 0, result('call_0_0', 'gone right')))!;
    expect(read[0]).toMatchObject({ messages: [user('go')], reply: undefined });
    expect(read[1]).toMatchObject({
      messages: [],
      reply: { calls: [{ name: 'act', arguments: '{"side":"right"}', result: 'gone right' }] },
    });
  });

  it('are none of other worlds, nor of a trace that was edited', () => {
    expect(readCallTurns([{ observation: 'You are in a kitchen.', action: 'look' }], '')).toBeUndefined();
    expect(readCallTurns([{ observation: '{"call":"x"}', action: 'look' }], '')).toBeUndefined();
    expect(readCallTurns([{ observation: call(0, null, user('go')), action: 'reply' }], '{"call":7}')).toBeUndefined();
  });
});
