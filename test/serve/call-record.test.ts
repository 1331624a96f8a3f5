/** Record of a gateway's calls: joined at its end, whatever an earlier process has left in it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { ConversationMessage, ModelCall } from '../../src/core/model-call.ts';
import type { WaitingCall } from '../../src/gateway/gateway.ts';
import { readDemonstrations } from '../../src/run/offline/demonstrations.ts';
import { CallRecord, isCallRecord, joinCalls } from '../../src/serve/call-record.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-record-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const fresh = () => join(folder, `${files++}.jsonl`);

const usage = { promptTokens: 1, completionTokens: 1 };

/** Call as a gateway gives it. */
function call(number: number, parent: number | null, ...texts: readonly string[]): WaitingCall {
  const messages = texts.map((content): ConversationMessage => ({ role: 'user', content }));
  const tools = [{ name: 'look', parameters: { type: 'object' } }];
  const asked: ModelCall = { messages, tools, toolChoice: 'auto', parallelCalls: true, stop: [], sampling: {} };
  return {
    ...{ number, parent, model: 'policy', call: asked, fresh: messages, gone: new AbortController().signal },
    callId: (i) => `call_${number}_${i}`,
    answer: () => Promise.resolve(),
    refuse: () => {},
  };
}

function reply(content: string) {
  return { content, calls: [], finish: 'stop' as const, usage };
}

/** Texts of the conversations in a file. */
function textsOf(path: string): string[][] {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => (JSON.parse(line).messages as { content: string }[]).map(({ content }) => content));
}

it('holds a conversation for each end of any tree, and each reply in at least one', () => {
  const parents = fc.array(fc.option(fc.nat(20)), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(parents, fc.uniqueArray(fc.nat(20)), (wanted, left) => {
      const path = fresh();
      const record = CallRecord.open(path);
      const tree = wanted.map((parent, i) => (parent !== null && parent < i ? parent : null));
      for (const [i, parent] of tree.entries()) record.add(call(i, parent, `ask ${i}`), reply(`reply ${i}`));
      // Only a call that nothing continues can have reached nobody.
      const undelivered = left.filter((i) => i < tree.length && !tree.includes(i));
      if (undelivered.length > 0) record.drop(undelivered);
      record.close();
      const chain = (i: number | null): string[] => (i === null ? [] : [...chain(tree[i]!), `ask ${i}`, `reply ${i}`]);
      const kept = tree.map((_, i) => i).filter((i) => !undelivered.includes(i));
      const ends = kept.filter((i) => !kept.some((other) => tree[other] === i));
      expect(textsOf(path)).toEqual(ends.map(chain));
    }),
    { numRuns: 60 },
  );
});

describe('a record that is opened again', () => {
  it('keeps its conversations, and joins the calls of a process that was killed in the middle of a line', () => {
    const path = fresh();
    const first = CallRecord.open(path);
    first.add(call(0, null, 'one'), reply('1'));
    first.close();
    const killed = CallRecord.open(path);
    killed.add(call(0, null, 'two'), reply('2'));
    killed.add(call(1, 0, 'three'), reply('3'));
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"call":2,"par`);
    CallRecord.open(path).close();
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"call":0,"par`); // and once more, in its first line
    const last = CallRecord.open(path);
    last.add(call(0, null, 'four'), reply('4'));
    expect(last.close().conversations).toBe(3);
    expect(textsOf(path)).toEqual([
      ['one', '1'],
      ['two', '2', 'three', '3'],
      ['four', '4'],
    ]);
  });

  it('is left alone where it is a file of something else', () => {
    for (const [text, line] of [
      ['{"a":1}\n', 1],
      ['{"messages":[]}\nno json\n', 2],
      ['half a line', 1],
    ] as const) {
      const path = fresh();
      writeFileSync(path, text);
      expect(() => CallRecord.open(path)).toThrow(`${path}:${line}: expected a new file, or one of conversations`);
      expect(readFileSync(path, 'utf8')).toBe(text);
    }
    expect(() => CallRecord.open(folder)).toThrow(/expected a file, found a folder/);
  });
});

it('takes no more than it may hold, and says so once', () => {
  const path = fresh();
  const notices: string[] = [];
  const record = CallRecord.open(path, { maxBytes: 1000, onNotice: (line) => notices.push(line) });
  for (let i = 0; i < 100; i++) record.add(call(i, null, `ask ${i}`), reply('x'));
  expect(readFileSync(path).length).toBeLessThanOrEqual(1000);
  expect(notices).toEqual([expect.stringContaining('1000 at most: no further call is recorded')]);
  expect(record.close().conversations).toBeGreaterThan(2);
});

it('is read by sft while it is open, as once it is joined', () => {
  const path = fresh();
  const record = CallRecord.open(path);
  record.add(call(0, null, 'one'), reply('go'));
  record.add(call(1, 0, 'two'), reply('stop'));
  const open = readDemonstrations(path);
  record.close();
  expect(open.map(({ turns }) => turns.map(({ action }) => action))).toEqual([['go', 'stop']]);
  expect(readDemonstrations(path)).toEqual(open);
});

it('is no record where nothing is a call', () => {
  expect(isCallRecord([{ messages: [] }])).toBe(false);
  expect(isCallRecord(undefined)).toBe(false);
  expect([...joinCalls([{ call: 1, parent: 0, asked: [], reply: {} }])]).toEqual([]); // its parent is not there
});
