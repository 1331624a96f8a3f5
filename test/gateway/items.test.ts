import { expect, it } from 'vitest';
import type { AssistantMessage, ConversationMessage } from '../../src/core/model-call.ts';
import type { ParsedRequest } from '../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../src/gateway/dialects/dialects.ts';
import { mintIds } from '../../src/gateway/episode.ts';
import { KeptReplies } from '../../src/gateway/items.ts';

const user = (content: string): ConversationMessage => ({ role: 'user', content });
const turn = (content: string): AssistantMessage => ({ role: 'assistant', content });
const ids = (n: number) => mintIds(DIALECTS.responses, n, 0);
const request = (messages: readonly ConversationMessage[], instructions: 0 | 1 = 0) =>
  ({ call: { messages }, instructions }) as unknown as ParsedRequest;

/** Conversation of so many replies, each kept behind the one before. */
function converse(kept: KeptReplies, replies: number): ConversationMessage[] {
  const messages: ConversationMessage[] = [];
  for (let n = 0; n < replies; n++) {
    const shared = messages.length;
    messages.push(user(`q${n}`));
    const echoed = structuredClone(messages); // each request is parsed anew
    kept.keep(ids(n), request(echoed), turn(`a${n}`), n > 0 ? `resp_${n - 1}` : undefined, shared);
    messages.push(turn(`a${n}`));
  }
  return messages;
}

it('gives back the whole context of a reply, whatever was shared', () => {
  const kept = new KeptReplies();
  const messages = converse(kept, 5);
  for (let n = 0; n < 5; n++) expect(kept.response(`resp_${n}`)).toEqual(messages.slice(0, 2 * n + 2));
  expect(kept.response('resp_5')).toBe(undefined);
  // The past is held once, not once a reply.
  for (let n = 1; n < 5; n++) expect(kept.response(`resp_${n}`)![0]).toBe(kept.response('resp_0')![0]);
});

it('forgets the oldest replies and their items, and keeps the contexts of those that continue them', () => {
  const kept = new KeptReplies(3);
  const messages = converse(kept, 5);
  expect([0, 1, 2, 3, 4].map((n) => kept.response(`resp_${n}`)?.length)).toEqual([undefined, undefined, 6, 8, 10]);
  expect(kept.response('resp_4')).toEqual(messages);
  expect([0, 1, 2].map((n) => kept.item(`msg_${n}`)?.type)).toEqual([undefined, undefined, 'message']);
});

it('keeps a context whole where what it continues is not kept, or had instructions of its own', () => {
  const kept = new KeptReplies();
  const [q, a, r] = [user('q'), turn('a'), user('r')];
  kept.keep(ids(1), request([q, a, r]), turn('b'), 'resp_0', 2);
  expect(kept.response('resp_1')).toEqual([q, a, r, turn('b')]);
  const system: ConversationMessage = { role: 'system', content: 's' };
  kept.keep(ids(2), request([system, q], 1), a);
  expect(kept.response('resp_2')).toEqual([q, a]);
  kept.keep(ids(3), request([system, q, a, r]), turn('b'), 'resp_2', 3); // it said the same in a message of its own
  expect(kept.response('resp_3')).toEqual([system, q, a, r, turn('b')]);
});

it('keeps the parts of a reply that it has', () => {
  const kept = new KeptReplies();
  const calls = ['search', 'read'].map((name, i) => ({ id: `call_0_${i}`, name, arguments: '{}' }));
  kept.keep(ids(0), request([user('q')]), { role: 'assistant', content: '', reasoning: 'hm', calls });
  expect(kept.item('msg_0')).toBe(undefined);
  expect(kept.item('rs_0')).toEqual({ type: 'reasoning', text: 'hm' });
  expect(kept.item('fc_0_1')).toEqual({ type: 'call', callId: 'call_0_1', name: 'read', arguments: '{}' });
  expect(kept.item('fc_0_2')).toBe(undefined);
});
