/**
 * Half a surrogate pair is a text in no encoding: kept in a trace it poisons whoever reads it. Every entrance of a text
 * makes it well-formed, whether it comes raw or as an escape of JSON.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { copyActions, copyStep } from '../../actors/env/check.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { WorldPrompt } from '../../src/core/prompt.ts';
import { parseAnswer } from '../../src/http/http-client.ts';
import { joinStream } from '../../src/policy/remote/answer-stream.ts';
import { readCompletion } from '../../src/policy/remote/openai-client.ts';
import { readPassage } from '../../src/retrieval/corpus.ts';
import { readDemonstrations } from '../../src/run/offline/demonstrations.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { actionOfCall, FORMATS } from '../../src/text/prompts/formats.ts';
import { trajectoryOf } from '../support/traces.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-surrogates-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A raw half, and one that only an escape shows. */
const HALF = 'a\ud800b';
const ESCAPED = String.raw`a\ud800b`;
const WHOLE = 'a\ufffdb';

const world: WorldPrompt = {
  role: 'You play.',
  forms: [{ name: 'take', template: 'take {thing}', meaning: 'takes a thing' }],
  hints: [],
  format: 'action',
};
const bounds = { minReward: 0, maxReward: 1, maxObservationChars: 1000 };

function written(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

function chat(message: object): unknown {
  return readCompletion('chat', parseAnswer(JSON.stringify({ choices: [{ message }] })));
}

function streamed(...pieces: readonly string[]): unknown {
  const lines = pieces.map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}`);
  return readCompletion('chat', joinStream('chat', `${lines.join('\n\n')}\n\ndata: [DONE]\n`));
}

const conversation = [
  { from: 'human', loss: null, value: HALF },
  { from: 'gpt', loss: false, value: 'OK' },
  { from: 'human', loss: null, value: HALF },
  { from: 'gpt', loss: true, value: `Action: ${HALF}` },
];

const entrances: Readonly<Record<string, () => unknown>> = {
  "a world's observation": () => copyStep(bounds, { kind: 'first', observation: HALF }, true),
  "a world's last observation": () =>
    copyStep(bounds, { kind: 'terminated', observation: HALF, reward: 1, success: true }, false),
  "a world's actions": () => copyActions([HALF, 'x']),
  "a world's error": () => messageOf(new Error(HALF)),
  'an action of a model': () => FORMATS.action.parse(HALF, world),
  'an action in ReAct form': () => FORMATS.react.parse(`Thought: x\nAction: take ${HALF}`, world),
  'an action behind a thought': () => FORMATS.think.parse(`<think>x</think>\ntake ${HALF}`, world),
  'an action in a fence': () => FORMATS.fenced.parse(`\`\`\`take ${HALF}\`\`\``, world),
  'an action as JSON': () =>
    FORMATS['function-calling'].parse(`{"function_name": "take", "arguments": {"thing": "${ESCAPED}"}}`, world),
  'an action as Python': () => FORMATS.code.parse(`take(thing="${ESCAPED}")`, world),
  'an action as the call of a tool': () => actionOfCall(world, 'take', `{"thing": "${ESCAPED}"}`),
  'an unknown function': () => actionOfCall(world, `${'x'.repeat(39)}😀`, '{}'),
  "a server's answer": () => chat({ content: HALF }),
  "a server's thought": () => chat({ content: 'x', reasoning_content: HALF }),
  "a server's call of a tool": () => chat({ tool_calls: [{ function: { name: HALF, arguments: ESCAPED } }] }),
  "a server's stream": () => streamed('x', HALF, 'y'),
  'a passage of a corpus': () => readPassage(Buffer.from(`{"id": "${ESCAPED}", "contents": "${ESCAPED}"}`), 'c'),
  'demonstrations of AgentTraj': () =>
    readDemonstrations(written('traj.json', JSON.stringify([{ item_id: 'toy_1', conversations: conversation }]))),
};

for (const [name, read] of Object.entries(entrances)) {
  it(`${name} is made well-formed`, () => {
    let texts = 0;
    const check = (value: unknown): void => {
      if (typeof value === 'string') {
        texts++;
        expect(value.isWellFormed(), JSON.stringify(value)).toBe(true);
      } else if (typeof value === 'object' && value !== null) Object.values(value).forEach(check);
    };
    const value = read();
    check(value);
    expect(texts).toBeGreaterThan(0);
    expect(JSON.stringify(value)).toContain('\ufffd');
  });
}

it('a character that a stream spreads over two chunks is one character', () => {
  expect(streamed('a\ud83d', '\ude00b')).toMatchObject({ text: 'a😀b' });
});

it('an episode of a trace is read well-formed', () => {
  const files = new TraceFiles({ dir, config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
  files.episodes([{ ...trajectoryOf({ observation: HALF }), finalObservation: HALF }], 'train', HALF);
  files.close();
  const store = TraceStore.open(join(dir, '00001.jsonl'));
  const read = store.read(0);
  expect([read.turns[0]!.observation, read.finalObservation, store.episodes[0]!.label]).toEqual([WHOLE, WHOLE, WHOLE]);
});
