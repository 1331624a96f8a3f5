import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AssistantMessage, ConversationMessage, Tool } from '../../src/core/model-call.ts';
import { CallTree, canonicalMessage, type TreeCall } from '../../src/gateway/call-tree.ts';

const tools: readonly Tool[] = [{ name: 'search', parameters: { type: 'object' } }];
const user = (content: string): ConversationMessage => ({ role: 'user', content });
const turn = (content: string, more: Partial<AssistantMessage> = {}): AssistantMessage => {
  return { role: 'assistant', content, ...more };
};
const calling = (id: string, text = '{"query":"a"}'): AssistantMessage => {
  return turn('', { calls: [{ id, name: 'search', arguments: text }] });
};

/** Adds a call and answers it. */
function play(tree: CallTree, messages: readonly ConversationMessage[], answer: AssistantMessage): TreeCall {
  const call = tree.add({ messages, tools });
  tree.answer(call, answer);
  return call;
}

describe('canonical messages', () => {
  it('count arguments as JSON values', () => {
    const forms = ['{"a":1,"b":[1.0,"/"]}', '{ "b" : [ 1, "\\/" ], "a" : 1 }', '{"b":[1e0,"\\u002f"],"a":1}'];
    expect(new Set(forms.map((form) => canonicalMessage(calling('x', form)))).size).toBe(1);
    expect(canonicalMessage(calling('x', ''))).toBe(canonicalMessage(calling('y', '{}')));
  });

  it('keep broken arguments as they stand: an echo of {} is another turn', () => {
    expect(canonicalMessage(calling('x', '{"query": "capi'))).not.toBe(canonicalMessage(calling('x', '{}')));
  });

  it('read hostile arguments', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(canonicalMessage(calling('x', deep))).toContain('[[[');
    expect(canonicalMessage(calling('x', '{"__proto__":{"a":1}}'))).not.toBe(canonicalMessage(calling('x', '{}')));
  });

  it('are equal for equal messages alone', () => {
    const text = fc.constantFrom('', 'a', '"', ' a', 'a"', '["a",[]]');
    const call = fc.record({
      id: fc.constant('i'),
      name: text,
      arguments: fc.constantFrom('{}', '{"a":1}', '"a"', '['),
    });
    const message: fc.Arbitrary<ConversationMessage> = fc.oneof(
      fc.record({ role: fc.constantFrom('system' as const, 'user' as const), content: text }),
      fc.record({ role: fc.constant('tool' as const), callId: text, content: text }),
      fc.record({ role: fc.constant('assistant' as const), content: text, calls: fc.array(call, { maxLength: 2 }) }),
    );
    const plain = (one: ConversationMessage) => JSON.stringify('callId' in one ? { ...one, callId: '' } : one);
    fc.assert(
      fc.property(message, message, (a, b) => {
        expect(canonicalMessage(a) === canonicalMessage(b)).toBe(plain(a) === plain(b));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('parents', () => {
  it('are the longest earlier context with its answer', () => {
    const tree = new CallTree();
    const first = play(tree, [user('q')], turn('a'));
    const second = play(tree, [user('q'), turn('a'), user('r')], turn('b'));
    expect(second.parent).toBe(first);
    const third = tree.add({ messages: [user('q'), turn('a'), user('r'), turn('b'), user('s')], tools });
    expect([third.parent, third.shared]).toEqual([second, 4]);
    const forked = tree.add({ messages: [user('q'), turn('a'), user('r'), turn('c'), user('s')], tools });
    expect([forked.parent, forked.shared]).toEqual([first, 2]);
    const edited = tree.add({ messages: [user('x'), turn('a'), user('r')], tools });
    expect([edited.parent, edited.shared]).toEqual([null, 0]);
    const other = tree.add({ messages: [user('q'), turn('a'), user('r')], tools: [] });
    expect(other.parent).toBe(null);
  });

  it('are no calls that wait, were refused, or whose context alone is repeated', () => {
    const tree = new CallTree();
    const waiting = tree.add({ messages: [user('q')], tools });
    expect(tree.add({ messages: [user('q'), turn('a'), user('r')], tools }).parent).toBe(null);
    tree.answer(waiting, turn('a'));
    expect(tree.add({ messages: [user('q')], tools }).parent).toBe(null);
    tree.withdraw(waiting);
    tree.withdraw(waiting);
    expect(tree.add({ messages: [user('q'), turn('a'), user('r')], tools }).parent).toBe(null);
    tree.answer(waiting, turn('a')); // too late
    expect(tree.add({ messages: [user('q'), turn('a'), user('r')], tools }).parent).toBe(null);
  });

  it('are the twin that stays, where the other was withdrawn, or answered twice', () => {
    const tree = new CallTree();
    const [a, b] = [play(tree, [user('q')], turn('t')), play(tree, [user('q')], turn('t'))];
    tree.answer(a, turn('t'));
    const next = () => tree.add({ messages: [user('q'), turn('t'), user('r')], tools }).parent;
    tree.withdraw(a);
    expect([next(), next()]).toEqual([b, b]);
  });

  it('are, among equals, the call that came first, whichever was answered first', () => {
    const tree = new CallTree();
    const [a, b] = [tree.add({ messages: [user('q')], tools }), tree.add({ messages: [user('q')], tools })];
    tree.answer(b, turn('t'));
    tree.answer(a, turn('t'));
    const next = () => tree.add({ messages: [user('q'), turn('t'), user('r')], tools }).parent;
    expect([next(), next(), next(), next()]).toEqual([a, b, a, b]);
  });

  it('are, among equals, the call whose ids are echoed, in this round or an earlier one', () => {
    const tree = new CallTree();
    const [a, b] = [play(tree, [user('q')], calling('call_0_0')), play(tree, [user('q')], calling('call_1_0'))];
    const result = (callId: string): ConversationMessage => ({ role: 'tool', callId, content: 'found' });
    const echo = (id: string) => [user('q'), calling(id), result(id)];
    const nextB = play(tree, echo('call_1_0'), turn('t'));
    const nextA = play(tree, echo('call_0_0'), turn('t'));
    expect([nextA.parent, nextB.parent]).toEqual([a, b]);
    const last = (id: string) => tree.add({ messages: [...echo(id), turn('t'), user('more')], tools }).parent;
    expect(last('call_0_0')).toBe(nextA);
    expect(last('call_0_0')).toBe(nextA); // though it was continued more than its twin
    expect(last('call_1_0')).toBe(nextB);
  });

  it('are, among equals without ids, the one continued least, then the oldest', () => {
    const tree = new CallTree();
    const [a, b] = [play(tree, [user('q')], turn('t')), play(tree, [user('q')], turn('t'))];
    const next = () => tree.add({ messages: [user('q'), turn('t'), user('r')], tools });
    const first = next();
    expect(first.parent).toBe(a);
    expect(next().parent).toBe(b);
    tree.withdraw(first); // it was refused: its retry continues the same call
    expect(next().parent).toBe(a);
  });

  it('have the reasoning that is echoed, where any is', () => {
    const tree = new CallTree();
    const thinking = play(tree, [user('q')], turn('a', { reasoning: 'hm' }));
    const echo = (reasoning?: string) => [user('q'), turn('a', { reasoning }), user('r')];
    expect(tree.add({ messages: echo('hm'), tools }).parent).toBe(thinking);
    expect(tree.add({ messages: echo('no'), tools }).parent).toBe(null);
    const given = [user('x'), turn('a', { reasoning: 'hm' }), user('r')]; // of a conversation that began elsewhere
    const begun = play(tree, given, turn('b'));
    const onwards = (reasoning: string) => [user('x'), turn('a', { reasoning }), user('r'), turn('b'), user('s')];
    expect(tree.add({ messages: onwards('hm'), tools }).parent).toBe(begun);
    expect(tree.add({ messages: onwards('no'), tools }).parent).toBe(null);
    const dropped = play(tree, echo(), turn('b', { reasoning: 'so' }));
    expect(dropped.parent).toBe(thinking);
    // What a call dropped is known of its chain all the same.
    const later = (reasoning: string) => [...echo(reasoning), turn('b', { reasoning: 'so' }), user('s')];
    expect(tree.add({ messages: later('hm'), tools }).parent).toBe(dropped);
    expect(tree.add({ messages: later('no'), tools }).parent).toBe(null);
  });

  it('are those of a search over all earlier calls', () => {
    const word = fc.constantFrom('a', 'b');
    fc.assert(
      fc.property(
        fc.array(fc.record({ from: fc.nat(), keep: fc.boolean(), text: word, said: word }), { maxLength: 12 }),
        (plan) => {
          const tree = new CallTree();
          const played: { call: TreeCall; whole: readonly ConversationMessage[] }[] = [];
          for (const { from, keep, text, said } of plan) {
            const base = keep && played.length > 0 ? played[from % played.length]!.whole : [];
            const messages = [...base, user(text)];
            const isPrefix = (whole: readonly ConversationMessage[]) =>
              whole.length < messages.length + 1 &&
              whole.every((one, i) => messages[i] && canonicalMessage(one) === canonicalMessage(messages[i]));
            const length = Math.max(
              0,
              ...played.filter(({ whole }) => isPrefix(whole)).map(({ whole }) => whole.length),
            );
            const call = play(tree, messages, turn(said));
            expect(call.shared).toBe(length);
            played.push({ call, whole: [...messages, turn(said)] });
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('work', () => {
  /** Messages that count how often they are read. */
  function counted(length: number): { messages: ConversationMessage[]; reads: () => number } {
    let reads = 0;
    const messages = Array.from({ length }, (_, i): ConversationMessage => {
      const role = i % 2 === 0 ? 'user' : 'assistant';
      return {
        role,
        get content() {
          reads++;
          return `${role} ${i}`;
        },
      } as ConversationMessage;
    });
    return { messages, reads: () => reads };
  }

  it('is one pass over a context, whatever came before', () => {
    const tree = new CallTree();
    const counts: number[] = [];
    for (let length = 1; length < 800; length += 2) {
      const { messages, reads } = counted(length);
      play(tree, messages, turn(`assistant ${length}`));
      counts.push(reads() / length);
    }
    expect(new Set(counts)).toEqual(new Set([1]));
    const { messages, reads } = counted(801);
    expect(tree.add({ messages, tools }).shared).toBe(800);
    expect(reads()).toBe(801);
  });
});
