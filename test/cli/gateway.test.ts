/** Command `gateway` as a person types it: it prints where it is, serves until it is interrupted, and leaves its record. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { bodyOf, send } from '../gateway/lab.ts';
import { startChatServer } from '../support/chat-server.ts';

vi.setConfig({ testTimeout: 60_000 });
const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const folder = mkdtempSync(join(tmpdir(), 'longplay-gateway-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(args: readonly string[], key?: string) {
  const env = { ...process.env, ...(key === undefined ? {} : { HOSTED_KEY: key }) };
  const child = spawn(process.execPath, [main, 'gateway', '--port', '0', ...args], { cwd: folder, env });
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, ended, lines, errors: () => errors };
}

it('answers with the hosted model, and joins its record on Ctrl-C', async () => {
  const upstream = await startChatServer(() => ({ message: { content: 'Hello.' } }), { key: 'hosted-key-1234' });
  const flags = ['--upstream', upstream.url, '--record', 'calls.jsonl', '--token-env', 'HOSTED_KEY', '--json'];
  const { child, ended, lines, errors } = start(flags, 'hosted-key-1234');
  const shown = JSON.parse((await lines.next()).value as string);
  expect(shown).toMatchObject({ model: 'hosted', upstream: upstream.url, record: 'calls.jsonl' });
  expect(shown.baseURL).toBe(`${shown.root}/v1`);
  const { status, text } = await send(`${shown.root}/v1/messages`, bodyOf('messages', [{ user: 'go' }]), {
    headers: { 'x-api-key': shown.key },
  }).received;
  expect([status, JSON.parse(text).content]).toEqual([200, [{ type: 'text', text: 'Hello.' }]]);
  expect(text).not.toContain('hosted-key-1234');
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  expect(errors()).toMatch(/^calls\.jsonl: 1 conversations, \d+ bytes\n$/);
  const [line, ...rest] = readFileSync(join(folder, 'calls.jsonl'), 'utf8').trim().split('\n');
  expect(rest).toEqual([]);
  expect(JSON.parse(line!).messages.at(-1)).toEqual({ role: 'assistant', content: 'Hello.' });
  await upstream.close();
});

it('is plain words otherwise, and stays where its port, its key or its file is wrong', async () => {
  const upstream = await startChatServer(() => ({ message: { content: 'Hello.' } }), { key: 'hosted-key-1234' });
  const plain = start(['--upstream', upstream.url, '--token-env', 'HOSTED_KEY'], 'hosted-key-1234');
  const read = async () => (await plain.lines.next()).value as string;
  expect(await read()).toBe(`forwarding hosted of ${upstream.url}  (Ctrl-C ends it)`);
  const base = await read();
  expect(base).toMatch(/^OPENAI_BASE_URL=http:\/\/127\.0\.0\.1:\d+\/e\/[\w-]+\/v1 OPENAI_API_KEY=lp-[\w-]+$/);
  expect(await read()).toMatch(/^ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:\d+\/e\/[\w-]+ ANTHROPIC_API_KEY=lp-[\w-]+$/);

  const port = /:(\d+)\//.exec(base)![1]!;
  writeFileSync(join(folder, 'notes.txt'), 'notes\n');
  const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
    [['--token-env', 'HOSTED_KEY', '--port', port], /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/],
    [['--token-env', 'OTHER_KEY'], /refuses the key: set OTHER_KEY/],
    [['--token-env', 'HOSTED_KEY', '--record', 'notes.txt'], /notes\.txt:1: expected a new file/],
    [['--token-env', 'HOSTED_KEY', '--record', '/sys/nowhere/calls.jsonl'], /\/sys\/nowhere\/calls\.jsonl/],
  ];
  for (const [flags, message] of mistakes) {
    const { ended, errors } = start(['--upstream', upstream.url, ...flags], 'hosted-key-1234');
    expect(await ended).toBe(2);
    expect(errors()).toMatch(message);
    expect(errors().trimEnd().split('\n').length).toBe(1);
    expect(errors()).not.toContain('hosted-key-1234');
  }
  plain.child.kill('SIGTERM');
  expect(await plain.ended).toBe(0);
  await upstream.close();
});

it('leaves a record from which sft teaches an agent of the same tools', () => {
  const call = { id: 'a', type: 'function', function: { name: 'bet', arguments: '{"side":"left"}' } };
  const messages = [
    { role: 'user', content: 'Where?' },
    { role: 'assistant', content: null, tool_calls: [call] },
  ];
  const tools = [{ type: 'function', function: { name: 'bet', parameters: { type: 'object' } } }];
  writeFileSync(join(folder, 'teach.jsonl'), `${JSON.stringify({ messages, tools })}\n`);
  writeTinyChatModel(join(folder, 'model'), { config: { num_hidden_layers: 1 } });
  writeFileSync(join(folder, 'agent.mjs'), 'export default () => ({ reward: 1 });\nexport const tasks = 4;\n');
  const policy = {
    kind: 'checkpoint',
    path: './model',
    maxTokens: 64,
    adapter: { rank: 2 },
    chat: { contextTokens: 2000 },
  };
  const config = { agent: './agent.mjs', horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 }, policy };
  writeFileSync(join(folder, 'agent.yaml'), JSON.stringify(config));
  const args = ['sft', 'agent.yaml', '--data', 'teach.jsonl', '--epochs', '1', '--json'];
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { cwd: folder, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toMatchObject({ learnt: '1 episodes' });
});
