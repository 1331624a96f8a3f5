/**
 * Independent peers: servers of others as worlds, and clients of others in our worlds. They are installed on demand:
 * `npm install --ignore-scripts --no-package-lock --prefix test/world/mcp/peers`, and `pip install mcp` for Python's.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readAgentCall } from '../../../../src/core/agent-call.ts';
import type { EnvOptions, Session } from '../../../../src/core/env.ts';
import { startEnvServer } from '../../../../src/run/serve-worlds.ts';
import { readMcpFile } from '../../../../src/world/mcp/options-file.ts';
import { act, callTool, findProcesses, openMcp } from '../lab.ts';

const isLong = process.env.LONGPLAY_LONG === '1';
const packages = join(import.meta.dirname, 'node_modules/@modelcontextprotocol');
const python = process.env.PYTHON ?? 'python3';
const bin = new URL('../../../../bin/longplay.js', import.meta.url).pathname;

/** Reason why a peer is not played; undefined where it is. */
function whySkipped(name: string, isThere: boolean): string | undefined {
  if (!isLong) return `${name}: npm run test:long plays it`;
  return isThere ? undefined : `${name} is not installed: see ${import.meta.filename}`;
}

const skipped = Object.fromEntries(
  ['server-everything', 'server-filesystem', 'server-memory', 'sdk'].map((name) => [
    name,
    whySkipped(name, existsSync(join(packages, name))),
  ]),
);
const withoutPython = whySkipped("Python's mcp", isLong && spawnSync(python, ['-c', 'import mcp']).status === 0);
for (const reason of [...Object.values(skipped), withoutPython])
  if (isLong && reason !== undefined) console.log(`skipped: ${reason}`);

const serverOf = (name: string) => [process.execPath, join(packages, name, 'dist/index.js')];

async function play(options: EnvOptions, body: (session: Session) => Promise<void>): Promise<void> {
  const { env, dispose } = await openMcp(options);
  const session = await env.open({ env: 'mcp', index: 0, seed: 0 });
  try {
    await body(session);
  } finally {
    await session.close();
    await dispose();
  }
}

const toolsOf = (session: Session) => readAgentCall(session.first.observation).tools!.map(({ name }) => name);

describe('servers of others', () => {
  it.skipIf(skipped['server-filesystem'])('server-filesystem, in the folder of the episode', async () => {
    const options = {
      command: [...serverOf('server-filesystem'), '{folder}'],
      tools: ['read_text_file', 'write_file', 'list_directory', 'move_file', 'search_files'],
      verify: { tool: 'read_text_file', arguments: { path: 'notes/b.txt' } },
      tasks: [{ prompt: 'Move notes/a.txt to notes/b.txt.', files: { 'notes/a.txt': 'hello' }, expect: 'hello' }],
    };
    await play(options, async (session) => {
      expect(toolsOf(session)).toHaveLength(5);
      expect(await callTool(session, 'list_directory', { path: 'notes' })).toBe('[FILE] a.txt');
      expect(await callTool(session, 'read_text_file', { path: '/etc/passwd' })).toMatch(/^error: .*outside allowed/);
      expect(await callTool(session, 'move_file', { source: 'notes/a.txt' })).toMatch(/^error: /);
      await callTool(session, 'move_file', { source: 'notes/a.txt', destination: 'notes/b.txt' });
      expect(await session.step(act([]))).toMatchObject({ reward: 1, success: true });
    });
    await play(options, async (session) => {
      expect(await session.step(act([]))).toMatchObject({ reward: 0, success: false });
    });
    expect(findProcesses('longplay-mcp-')).toEqual([]);
  });

  it.skipIf(skipped['server-filesystem'])('server-filesystem, by the file of experiments/mcp', async () => {
    const file = new URL('../../../../experiments/mcp/files.yaml', import.meta.url).pathname;
    const options = { ...readMcpFile(file), command: [...serverOf('server-filesystem'), '{folder}'] };
    const { env, dispose } = await openMcp(options);
    const solutions = [
      [['move_file', { source: 'notes/draft.txt', destination: 'notes/final.txt' }]],
      [['write_file', { path: 'status.txt', content: 'done' }]],
      [['write_file', { path: 'longest.txt', content: 'one two three four' }]],
      [['write_file', { path: 'next.txt', content: '42' }]],
    ] as const;
    expect(solutions).toHaveLength(env.tasks.count);
    for (const [index, calls] of solutions.entries()) {
      for (const reward of [0, 1]) {
        const session = await env.open({ env: 'mcp', index, seed: 0 });
        if (reward === 1) await session.step(act(calls));
        expect(await session.step(act([], 'done'))).toMatchObject({ reward });
        await session.close();
      }
    }
    await dispose();
  });

  it.skipIf(skipped['server-memory'])('server-memory, with the end state in structured content', async () => {
    const entity = { name: 'Ada', entityType: 'person', observations: ['writes'] };
    const options = {
      command: serverOf('server-memory'),
      env: { MEMORY_FILE_PATH: '{folder}/memory.jsonl' },
      verify: { tool: 'read_graph' },
      tasks: [{ prompt: 'Remember that Ada, a person, writes.', expect: { entities: [entity], relations: [] } }],
    };
    await play(options, async (session) => {
      await callTool(session, 'create_entities', { entities: [entity] });
      expect(await session.step(act([]))).toMatchObject({ reward: 1 });
    });
    await play(options, async (session) => {
      expect(await session.step(act([]))).toMatchObject({ reward: 0 }); // nothing is left of the episode before
    });
  });

  it.skipIf(skipped['server-everything'])('server-everything, with each kind of result', async () => {
    const options = {
      command: serverOf('server-everything'),
      tasks: [{ prompt: 'What is 2 + 3?', expect: '5' }],
      callTimeoutMs: 2000,
    };
    await play(options, async (session) => {
      const names = toolsOf(session);
      expect(names).toEqual(expect.arrayContaining(['echo', 'get-sum', 'get-tiny-image']));
      // Tools that ask the client for something are not listed to one that offers nothing.
      expect(names.filter((name) => /sampling|elicitation|roots/.test(name))).toEqual([]);
      expect(await callTool(session, 'echo', { message: 'hi' })).toBe('Echo: hi');
      expect(await callTool(session, 'get-sum', { a: 2, b: 3 })).toContain('5');
      expect(await callTool(session, 'get-sum', { a: 'two' })).toMatch(/^error: /);
      expect(await callTool(session, 'get-tiny-image')).toContain('[image image/png]');
      const slow = { duration: 20, steps: 20 };
      expect(await callTool(session, 'trigger-long-running-operation', slow)).toBe(
        'error: Error: no result within 2000 ms',
      );
      expect(await session.step(act([], '5'))).toMatchObject({ reward: 1 });
    });
  });
});

describe('clients of others', () => {
  const expected = {
    names: ['start', 'act', 'actions'],
    steps: [expect.objectContaining({ turn: 0, done: false }), expect.objectContaining({ turn: 1, done: false })],
  };

  it.skipIf(skipped.sdk)('the TypeScript client of the first generation, both ways', async () => {
    const load = (path: string) => import(pathToFileURL(join(packages, 'sdk/dist/esm', path)).href);
    const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }] = await Promise.all(
      ['client/index.js', 'client/stdio.js', 'client/streamableHttp.js'].map(load),
    );
    const server = await startEnvServer(['textcraft'], { mcp: true });
    const args = [bin, 'serve-env', 'textcraft', '--mcp', 'stdio'];
    for (const transport of [
      new StdioClientTransport({ command: process.execPath, args }),
      new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/textcraft`)),
    ]) {
      const client = new Client({ name: 'v1', version: '1' });
      await client.connect(transport);
      const { tools } = await client.listTools();
      const first = await client.callTool({ name: 'start', arguments: { task: 0 } });
      const { episode } = first.structuredContent;
      const second = await client.callTool({ name: 'act', arguments: { action: 'inventory', episode } });
      const steps = [first.structuredContent, second.structuredContent];
      expect({ names: tools.map(({ name }: { name: string }) => name), steps }).toEqual(expected);
      await client.close();
    }
    await server.close();
  });

  it.skipIf(withoutPython)("Python's client, by standard input and output", () => {
    const command = [process.execPath, bin, 'serve-env', 'textcraft', '--mcp', 'stdio'];
    const { stdout, stderr } = spawnSync(python, [join(import.meta.dirname, 'play.py'), ...command], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(expected);
  });
});
