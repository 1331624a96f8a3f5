/** What demonstrations of language models hold is what is learnt: thoughts, calls of tools, and no answer that could not be read. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prompt } from '../../../envs/textcraft/index.ts';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import type { FormatId } from '../../../src/core/prompt.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { ChatPrompting } from '../../../src/policy/remote/chat-prompting.ts';
import { readCompletion } from '../../../src/policy/remote/openai-client.ts';
import { agentTraj, chatRecord } from '../../../src/run/export-traces.ts';
import { convertChatLog } from '../../../src/run/offline/chat-logs.ts';
import { convertAgentTraj, type Demonstration, readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { fromDemonstration } from '../../../src/run/offline/teach.ts';
import type { TraceLine } from '../../../src/storage/trace.ts';
import { TraceFiles } from '../../../src/storage/trace-files.ts';
import { FORMATS } from '../../../src/text/prompts/formats.ts';
import { worldPrompt } from '../../../src/text/prompts/world-prompt.ts';
import { ChatCodec } from '../../../src/text/reading/chat-codec.ts';
import { openText } from '../../../src/text/templates/model-text.ts';
import { smallConfig } from '../../support/small-run.ts';
import { trajectoryOf } from '../../support/traces.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-replies-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

const world = worldPrompt({ prompt } as never, {}, 'Craft.');
const formats = Object.keys(FORMATS) as FormatId[];

function codecOf(format: FormatId): ChatCodec {
  const { config, endTokens } = openModel(folder);
  const { tokenizer, template } = openText(folder);
  const room = { contextTokens: 100_000, answerTokens: 50, listActions: false };
  return new ChatCodec({
    tokenizer,
    template: template!,
    endTokens,
    vocabSize: config.vocabSize,
    world,
    format,
    ...room,
  });
}

const episode = (turns: Demonstration['turns']): Demonstration => ({
  source: 'made',
  task: 'textcraft_1',
  turns,
  finalObservation: 'over',
  score: 1,
});

/** Texts of the answers that a language model would learn. */
function learnt(format: FormatId, demonstration: Demonstration, thoughts?: boolean): string[] {
  const codec = codecOf(format);
  const reader = { codec, decoder: 'tokens', masked: false, thoughts } as const;
  const { turns } = fromDemonstration(reader, demonstration, 0, 0);
  return turns.map(({ decision }) => {
    if (decision?.kind !== 'tokens') throw new Error('expected tokens');
    return codec.decode(decision.tokens);
  });
}

describe('an answer that is imitated', () => {
  const long = 'The log comes first. '.repeat(60).trim();
  const reply = `Thought:\n${long}\n\nAction:\nget 1 oak log`;

  it('is learnt whole, thought and all, as it was written', () => {
    const made = episode([{ observation: 'Goal', action: 'get 1 oak log', reply }]);
    expect(learnt('react', made)).toEqual([reply]);
    const short = episode([
      { observation: 'Goal', action: 'get 1 oak log', reply: 'Thought:\nx\n\nAction:\nget 1 oak log' },
    ]);
    expect(learnt('react', short)).not.toEqual(learnt('react', made));
  });

  it('is written in the format that the policy answers in', () => {
    const made = episode([{ observation: 'Goal', action: 'get 1 oak log', reply }]);
    for (const format of formats) {
      const [text] = learnt(format, made);
      expect(FORMATS[format].parse(text!, world), format).toEqual({
        action: 'get 1 oak log',
        thought: format === 'action' ? '' : long,
      });
    }
  });

  it('is its action alone where thoughts are left out, or there are none', () => {
    const made = episode([{ observation: 'Goal', action: 'get 1 oak log', reply }]);
    const bare = FORMATS.react.print('', 'get 1 oak log', world);
    expect(learnt('react', made, false)).toEqual([bare]);
    expect(learnt('react', episode([{ observation: 'Goal', action: 'get 1 oak log' }]))).toEqual([bare]);
  });

  it('is its action alone where the action was named anew, and no wording of the thought reads back to it', () => {
    const odd = 'Thought:\nAction: this\n\nAction:\nget 1 oak log';
    const made = episode([{ observation: 'Goal', action: 'get 1 oak log', reply: odd }]);
    expect(learnt('react', made)).toEqual([FORMATS.react.print('', 'get 1 oak log', world)]);
  });
});

describe('an answer that could not be read', () => {
  it('is context of what follows, counted, and learnt nowhere', () => {
    const plain = trajectoryOf({ episode: 0, actions: ['look', '', 'go'], success: true });
    const texts = ['Action: look', 'Hm.', 'Action: go'];
    const line: TraceLine = {
      ...plain,
      purpose: 'train',
      turns: plain.turns.map(({ decision: _, ...turn }, t) => ({
        ...turn,
        response: {
          text: texts[t]!,
          promptTokens: 1,
          completionTokens: 1,
          ...(t === 1 ? { formatError: 'no action' } : {}),
        },
      })),
    };
    const dir = join(folder, 'traces');
    const files = new TraceFiles({ dir, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12 });
    files.episodes([line], 'train', 'toy');
    files.close();
    const notices: string[] = [];
    const [read] = readDemonstrations(dir, (text) => notices.push(text), world);
    expect(read!.turns.map(({ untrained }) => untrained === true)).toEqual([false, true, false]);
    expect(read!.trajectory!.turns.map(({ untrained }) => untrained === true)).toEqual([false, true, false]);
    expect(notices).toEqual([expect.stringMatching(/1 answers that could not be read are context, and not learnt/)]);
    const { conversations } = agentTraj(line);
    expect(conversations.filter(({ from }) => from === 'gpt').map(({ loss }) => loss)).toEqual([true, false, true]);
  });
});

describe('an answer that called a tool', () => {
  const action = fc.constantFrom(...world.forms).chain((form) => {
    const names = [...form.template.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name!);
    const value = fc.stringMatching(/^[a-z0-9]+( [a-z0-9]+){0,3}$/);
    return fc.tuple(...names.map(() => value)).map((values) => ({
      name: form.name,
      args: Object.fromEntries(names.map((name, i) => [name, values[i]!])),
      text: names.reduce((text, name, i) => text.replace(`{${name}}`, values[i]!), form.template),
    }));
  });
  const content = fc.oneof(
    fc.constantFrom('', 'I look.', 'Action: x', '```y```', '<think>a</think>'),
    fc.string({ maxLength: 20 }),
  );
  const reasoning = fc.option(fc.constantFrom('hm', 'Action: no'), { nil: undefined });

  it.each(formats)('reads back to the same action by %s, from the trace and from every export', (format) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(action, content, reasoning), { minLength: 1, maxLength: 3 }), (answers) => {
        const { openai, chat } = smallConfig().policy;
        const prompting = new ChatPrompting(openai, { ...chat, format }, 'm', world);
        const turns = answers.map(([called, text, thought], turn) => {
          const request = {
            episode: 0,
            turn,
            observation: `seen ${turn}`,
            actions: [],
            newActions: [],
            samplingSeed: 1,
            temperature: 1,
          };
          prompting.ask(request as never);
          const message = {
            content: text,
            ...(thought === undefined ? {} : { reasoning_content: thought }),
            tool_calls: [{ function: { name: called.name, arguments: JSON.stringify(called.args) } }],
          };
          const acted = prompting.read(
            request as never,
            readCompletion('chat', { choices: [{ message, finish_reason: 'stop' }] }),
          );
          expect(acted.action).toBe(called.text);
          expect(FORMATS[format].parse(acted.response!.text, world)).toMatchObject({ action: called.text });
          return acted;
        });
        const plain = trajectoryOf({ episode: 0, actions: answers.map(([called]) => called.text), success: true });
        const line = {
          ...plain,
          purpose: 'train',
          turns: plain.turns.map((turn, t) => ({ ...turn, action: answers[t]![0].text, response: turns[t]!.response })),
        } as unknown as TraceLine;
        const expected = answers.map(([called]) => called.text);
        const actionsIn = ([one]: readonly Demonstration[]) => one!.turns.map((turn) => turn.action);
        expect(actionsIn(convertAgentTraj([agentTraj(line)], 'file', world))).toEqual(expected);
        expect(actionsIn(convertChatLog([chatRecord(line)], 'file', world))).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});

describe('logs of other tools', () => {
  const read = (text: string, name = 'log.jsonl') => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return readDemonstrations(path, () => {}, world);
  };
  const messages = [
    { role: 'system', content: 'Craft.' },
    { role: 'user', content: 'Goal: a log' },
    {
      role: 'assistant',
      content: 'Logs first.',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'get', arguments: '{"item": "1 oak log"}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'Got 1 oak log' },
    { role: 'assistant', content: 'Thought:\nnow see\n\nAction:\ninventory' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Inventory: ' },
        { type: 'text', text: '[oak log] (1)' },
      ],
    },
  ];
  const expected = [
    { observation: 'Goal: a log', action: 'get 1 oak log', reply: expect.stringContaining('Logs first.') },
    { observation: 'Got 1 oak log', action: 'inventory', reply: expect.stringContaining('now see') },
  ];

  it.each([
    [
      'lines of messages',
      'a.jsonl',
      `${JSON.stringify({ messages, reward: 0.5 })}\n\n${JSON.stringify({ messages })}\n`,
      2,
    ],
    ['a list of them', 'b.json', JSON.stringify([{ messages }]), 1],
    ['one alone', 'c.json', `\ufeff${JSON.stringify({ messages })}`, 1],
    ['a bare list of messages', 'd.json', JSON.stringify(messages), 1],
    ['lists of messages', 'e.json', JSON.stringify([messages, messages]), 2],
  ])("OpenAI's form: %s", (_, name, text, count) => {
    const all = read(text, name);
    expect(all).toHaveLength(count);
    expect(all[0]!.turns).toEqual(expected);
    expect(all[0]!.finalObservation).toBe('Inventory: [oak log] (1)');
    expect(all[0]!.score).toBe(name === 'a.jsonl' ? 0.5 : 1);
  });

  it('ShareGPT, calls of functions too', () => {
    const conversations = [
      { from: 'system', value: 'Craft.' },
      { from: 'human', value: 'Goal: a log' },
      { from: 'function_call', value: '{"name": "get", "arguments": {"item": "1 oak log"}}' },
      { from: 'observation', value: 'Got 1 oak log' },
      { from: 'gpt', value: 'inventory' },
    ];
    const [one] = read(JSON.stringify([{ id: 'x', conversations }]), 'share.json');
    expect(one!.turns.map(({ observation, action, untrained }) => [observation, action, untrained])).toEqual([
      ['Goal: a log', 'get 1 oak log', undefined],
      ['Got 1 oak log', 'inventory', undefined],
    ]);
    expect(one!.source).toContain('share.json, x');
  });

  it('several calls at once are context: no world takes them', () => {
    const both = [
      messages[1],
      { ...messages[2], tool_calls: [0, 1].map(() => (messages[2] as { tool_calls: object[] }).tool_calls[0]) },
      messages[3],
    ];
    expect(read(JSON.stringify({ messages: both }), 'both.json')[0]!.turns[0]!.untrained).toBe(true);
  });

  it('that are something else are refused by what they seem to be', () => {
    const refused = (value: unknown, name: string) => () => read(JSON.stringify(value), name);
    expect(refused([{ prompt: 'a', chosen: 'b', rejected: 'c' }], 'f.json')).toThrow(
      /f\.json.*seems to be preference pairs/,
    );
    expect(refused([{ steps: [] }], 'g.json')).toThrow(/seems to be trajectories of another tool/);
    expect(refused([{ a: 1, b: 2 }], 'h.json')).toThrow(/seems to be objects with the keys a, b/);
    expect(refused(3, 'i.json')).toThrow(/seems to be a number/);
    expect(refused({ messages: [{ role: 'assistant', content: 'x' }] }, 'j.json')).toThrow(
      /message 0: expected a message of the user before it/,
    );
    expect(refused({ messages: [{ role: 'robot', content: 'x' }] }, 'k.json')).toThrow(
      /seems to be conversations of the roles robot/,
    );
    expect(() => read('{"messages": [\n', 'l.jsonl')).toThrow(/l\.jsonl: line 1 is no JSON/);
  });
});
