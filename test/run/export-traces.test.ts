/** Answers of language models: kept whole in traces, and exported as other trainers read them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { exportTraces } from '../../src/cli/commands/export.ts';
import { episodeLines } from '../../src/console/episode-frame.ts';
import { err } from '../../src/console/terminal.ts';
import { render } from '../../src/console/text.ts';
import type { ModelResponse } from '../../src/core/trajectory.ts';
import { agentTraj, chatRecord, preferenceRecord } from '../../src/run/export-traces.ts';
import { writeParquet } from '../../src/storage/parquet.ts';
import { parseLine, type TraceLine, traceLine } from '../../src/storage/trace.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { ACKNOWLEDGEMENT, buildRecordedConversation } from '../../src/text/prompts/conversation.ts';
import { trajectoryOf } from '../support/traces.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-export-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const opening = { system: 'Be brief.', instructions: 'Reach the end.', listed: true };
const responseOf = (text: string, more: Partial<ModelResponse> = {}): ModelResponse => ({
  text,
  promptTokens: 40,
  completionTokens: 5,
  ...more,
});

/** A model looks, answers something that cannot be read, and goes. */
function talked(last = 'go', success = true, episode = 0): TraceLine {
  const plain = trajectoryOf({ episode, actions: ['look', '', last], success });
  const responses = [
    responseOf('<think>first</think>\nAction: look', { opening }),
    responseOf('Hm.', { formatError: 'no action' }),
    responseOf(`Action: ${last}`),
  ];
  const turns = plain.turns.map(({ decision: _, ...turn }, t) => ({
    ...turn,
    observation: `seen ${t}`,
    response: responses[t]!,
  }));
  return {
    ...plain,
    actionTable: ['look', 'go'],
    turns: turns.map((turn) => ({ ...turn, actions: Int32Array.of(0, 1) })),
    purpose: 'train',
  };
}

const list = '\n\nAvailable actions:\nlook\ngo';
const conversation = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Reach the end.' },
  { role: 'assistant', content: ACKNOWLEDGEMENT },
  { role: 'user', content: `seen 0${list}` },
  { role: 'assistant', content: '<think>first</think>\nAction: look' },
  { role: 'user', content: `seen 1${list}` },
  { role: 'assistant', content: 'Hm.' },
  { role: 'user', content: `no action\n\nseen 2${list}` },
  { role: 'assistant', content: 'Action: go' },
];

describe('a conversation with a language model', () => {
  it('comes back from a trace whole: instructions, answers, reasoning, format errors, rewards', () => {
    const { episode } = parseLine(traceLine(talked(), 'train').trimEnd());
    const messages = buildRecordedConversation(episode!);
    expect(messages.map(({ role, content }) => ({ role, content }))).toEqual(conversation);
    expect(messages.filter(({ role }) => role === 'assistant').map(({ reward }) => reward)).toEqual([
      undefined,
      0,
      0,
      1,
    ]);
    expect(messages.flatMap(({ formatError }) => formatError ?? [])).toEqual(['no action']);
  });

  it('is exported word for word, with the reward of each answer', () => {
    expect(chatRecord(talked())).toMatchObject({ messages: conversation, rewards: [0, 0, 0, 1], reward: 1 });
    const { conversations, rewards } = agentTraj(talked());
    expect(conversations[0]!.value).toBe('Be brief.\n\nReach the end.');
    expect(conversations.map(({ loss }) => loss)).toEqual([null, false, null, true, null, false, null, true]);
    expect(conversations.slice(1).map(({ value }) => value)).toEqual(
      conversation.slice(2).map(({ content }) => content),
    );
    expect(rewards).toEqual([0, 1]);
  });

  it('makes a pair with another of its task, from where they part', () => {
    const pair = preferenceRecord(talked(), talked('look', false, 1))!;
    expect(pair.prompt).toEqual(conversation.slice(0, 8));
    expect([pair.chosen, pair.rejected]).toEqual([[conversation[8]], [{ role: 'assistant', content: 'Action: look' }]]);
    expect([pair.score_chosen, pair.score_rejected]).toEqual([1, 0]);
    expect(preferenceRecord(talked(), talked())).toBeUndefined();
  });

  it('is shown by replay, answer by answer', () => {
    const shown = episodeLines(talked(), 80).map((line) => render(line, false).trim());
    for (const text of [
      'INSTRUCTIONS',
      'Reach the end.',
      '<think>first</think>',
      'not understood: no action',
      '> go  reward 1',
    ])
      expect(shown).toContain(text);
  });

  it('has columns of its own in Parquet', async () => {
    const path = join(root, 'turns.parquet');
    writeParquet(path, [talked()]);
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    expect(rows[0]).toMatchObject({
      instructions: 'Reach the end.',
      system: 'Be brief.',
      answer: '<think>first</think>\nAction: look',
    });
    expect(rows[1]).toMatchObject({ instructions: null, answer: 'Hm.', formatError: 'no action', promptTokens: 40 });
  });
});

describe('longplay export', () => {
  const dir = join(root, 'traces');
  const files = new TraceFiles({ dir, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12 });
  files.episodes([talked(), talked('look', false, 1)], 'train', 'toy');
  files.close();
  const exported = async (format: string) => {
    const out = join(root, `${format}.jsonl`);
    const program = new Command();
    exportTraces(program);
    await program.parseAsync(['export', dir, '--format', format, '--out', out], { from: 'user' });
    return { out, lines: readFileSync(out, 'utf8').trim().split('\n') };
  };

  it('writes pairs of better and worse episodes', async () => {
    const { lines } = await exported('dpo');
    expect(lines.map((line) => JSON.parse(line))).toEqual([preferenceRecord(talked(), talked('look', false, 1))]);
  });

  it.each([
    ['chatml', /^1 of 2 episodes, 3 turns → .*chatml\.jsonl$/m],
    ['dpo', /^0 of 1 pairs → .*dpo\.jsonl$/m],
  ])('reports progress where it takes long: %s', async (format, progress) => {
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 20_000));
    let words = '';
    try {
      await err.capture(
        (text) => (words += text),
        async () => void (await exported(format)),
      );
    } finally {
      clock.mockRestore();
    }
    expect(words).toMatch(progress);
  });

  const datasets = spawnSync('python3', ['-c', 'import datasets']).status === 0;
  if (!datasets) console.log("skipped: Python's datasets is not installed");
  it.skipIf(!datasets)('is read by Hugging Face datasets', { timeout: 120_000 }, async () => {
    for (const [format, columns] of [
      ['chatml', 'messages'],
      ['dpo', 'prompt,chosen,rejected'],
    ] as const) {
      const { out } = await exported(format);
      const code = `import datasets,sys; d=datasets.load_dataset("json",data_files=sys.argv[1],split="train"); assert set(sys.argv[2].split(",")) <= set(d.column_names); print(d[0]["${columns.split(',')[0]}"][0]["role"])`;
      expect(execFileSync('python3', ['-c', code, out, columns], { encoding: 'utf8' }).trim()).toBe('system');
    }
  });

  const trl = spawnSync('python3', ['-c', 'import trl']).status === 0;
  if (!trl) console.log("skipped: Python's trl is not installed");
  it.skipIf(!trl)('is a conversation to TRL, to imitate and to prefer', { timeout: 120_000 }, async () => {
    const code =
      'import json,sys; from trl import is_conversational; print(all(is_conversational(json.loads(line)) for line in open(sys.argv[1])))';
    for (const format of ['chatml', 'dpo']) {
      const { out } = await exported(format);
      expect(execFileSync('python3', ['-c', code, out], { encoding: 'utf8' }).trim(), format).toBe('True');
    }
  });
});
