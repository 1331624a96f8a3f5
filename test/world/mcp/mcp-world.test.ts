/** MCP worlds against a server by hand: what a policy reads and does, and what a bad server can do to an episode. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type AgentCall, readAgentCall, readReport } from '../../../src/core/agent-call.ts';
import type { EnvOptions, EnvStep } from '../../../src/core/env.ts';
import { act, callTool, fixtures, openMcp, switches } from './lab.ts';

const task = (index: number) => ({ env: 'mcp', index, seed: 0 });

/** Plays in one session of a world. */
async function play<T>(
  options: EnvOptions,
  body: (session: Awaited<ReturnType<typeof openSession>>) => Promise<T>,
  index = 0,
): Promise<T> {
  const { env, dispose } = await openMcp(options);
  try {
    const session = await openSession(env, index);
    try {
      return await body(session);
    } finally {
      await session.close();
    }
  } finally {
    await dispose();
  }
}

async function openSession(env: Awaited<ReturnType<typeof openMcp>>['env'], index: number, horizon?: number) {
  return env.open(task(index), horizon === undefined ? undefined : { horizon });
}

function messagesOf(step: { readonly observation: string }): AgentCall['messages'] {
  return readAgentCall(step.observation).messages;
}

describe('an MCP world', () => {
  it('opens with the instructions, the prompt and the tools, all pages of them', async () => {
    await play(switches({ system: 'You are careful.' }), async ({ first }) => {
      const { messages, tools } = readAgentCall(first.observation);
      expect(messages).toEqual([
        { role: 'system', content: 'You are careful.\n\nPress gently.' },
        { role: 'user', content: 'Press the red switch.' },
      ]);
      expect(tools?.map(({ name }) => name)).toEqual(['press', 'state', 'fault', 'reset']);
      expect(tools?.[0]?.parameters).toEqual({
        type: 'object',
        properties: { color: { enum: ['red', 'green', 'blue'] } },
        required: ['color'],
      });
    });
  });

  it('pays 1 for an end state that meets the check, and 0 for one that does not', async () => {
    const playColor = (color: string) =>
      play(switches(), async (session) => {
        const mid = await session.step(act([['press', { color }]]));
        expect(mid).toMatchObject({ kind: 'mid', reward: 0 });
        expect(messagesOf(mid)).toEqual([{ role: 'tool', callId: 'call_0_0', content: `${color} clicks` }]);
        return session.step(act([], 'Done.'));
      });
    expect(await playColor('red')).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    expect(await playColor('blue')).toMatchObject({ kind: 'terminated', reward: 0, success: false });
  });

  it('reports its calls at the end', async () => {
    const last = await play(switches(), async (session) => {
      await session.step(
        act([
          ['press', { color: 'red' }],
          ['press', { color: 'pink' }],
        ]),
      );
      return session.step(act([]));
    });
    expect(readReport(last.observation)).toMatchObject({
      metrics: { changed_tools: 0 },
      tools: { replies: 2, calls: 2, errors: 1 },
    });
  });

  it('ends at the first reply after which the check is met, where it is told to', async () => {
    await play(switches({ until: 'verified' }), async (session) => {
      expect(await session.step(act([['fault', { kind: 'error' }]]))).toMatchObject({ kind: 'mid', reward: 0 });
      const last = await session.step(act([['press', { color: 'red' }]]));
      expect(last).toMatchObject({ kind: 'terminated', reward: 1, success: true });
      expect(last.observation).toContain('red clicks');
    });
  });

  it('compares the answer where the check names no tool', async () => {
    const options = switches({ verify: undefined, tasks: [{ prompt: 'Say 4.', expect: '4' }] });
    expect(await play(options, (session) => Promise.resolve(session.step(act([], ' 4\n'))))).toMatchObject({
      reward: 1,
    });
    expect(await play(options, (session) => Promise.resolve(session.step(act([], '5'))))).toMatchObject({ reward: 0 });
  });

  it('compares structured content, and lets a task have its own check', async () => {
    const own = { tool: 'fault', arguments: { kind: 'json' } };
    const tasks = [
      { prompt: 'x', verify: { ...own, expect: { value: 7 } } },
      { prompt: 'y', verify: own, expect: { value: 8 } },
    ];
    const options = switches({ tasks });
    const end = (index: number) => play(options, (session) => Promise.resolve(session.step(act([]))), index);
    expect(await end(0)).toMatchObject({ reward: 1 });
    expect(await end(1)).toMatchObject({ reward: 0 });
  });

  it('verifies the state at the horizon, unless told not to', async () => {
    for (const [rewardAtHorizon, reward] of [
      ['keep', 1],
      ['drop', 0],
    ] as const) {
      const { env, dispose } = await openMcp(switches({ rewardAtHorizon }));
      const session = await openSession(env, 0, 1);
      expect(await session.step(act([['press', { color: 'red' }]]))).toMatchObject({ kind: 'mid', reward });
      await session.close();
      await dispose();
    }
  });

  it('asks the verifier once for a reply, at the horizon too', async () => {
    const { verify: _verify, tasks: _tasks, ...options } = switches({ until: 'verified' });
    const { env, dispose } = await openMcp({ ...options, module: join(fixtures, 'verify.mjs') });
    const session = await openSession(env, 6, 1);
    const step = await session.step(act([['press', { color: 'red' }]]));
    expect(step).toMatchObject({ kind: 'mid', reward: 0.5 });
    expect(readReport(step.observation).metrics).toMatchObject({ asked: 1 });
    await session.close();
    await dispose();
  });

  it('lets a policy that chooses press a switch in stages', async () => {
    await play(switches({ tools: ['press'] }), async (session) => {
      let step: EnvStep | undefined;
      for (let i = 0; i < 3 && step?.observation !== 'over'; i++) {
        const action = session.actions().find((text) => /press|red/.test(text)) ?? session.actions()[0]!;
        step = await session.step(action);
        if (!(step.kind === 'mid' && step.partial)) break;
      }
      expect(messagesOf(step!)[0]?.content).toMatch(/clicks/);
    });
  });

  it('keeps tools that are not offered from the policy, and leaves them to the check', async () => {
    const last = await play(switches({ tools: ['press'] }), async (session) => {
      expect(readAgentCall(session.first.observation).tools?.map(({ name }) => name)).toEqual(['press']);
      expect(await callTool(session, 'state')).toBe("error: Error: there is no tool 'state'");
      await callTool(session, 'press', { color: 'red' });
      return session.step(act([]));
    });
    expect(last).toMatchObject({ reward: 1 });
  });

  it('answers what it cannot call in words', async () => {
    await play(switches({ maxCalls: 2 }), async (session) => {
      expect(await callTool(session, 'nothing')).toBe("error: Error: there is no tool 'nothing'");
      expect(await callTool(session, 'press', '{"color":')).toMatch(/^error: Error: the arguments are no JSON: /);
      expect(await callTool(session, 'press', '[1]')).toBe('error: Error: the arguments must be a JSON object');
      expect(await callTool(session, 'press', { color: 'pink' })).toBe('error: no switch pink');
      expect(await callTool(session, 'fault', { kind: 'unknown' })).toMatch(/^error: Error: .*Unknown tool: fault/);
      expect(await callTool(session, 'press', { color: 'red' })).toBe(
        'error: Error: not called: an episode may make 2 calls',
      );
    });
  });

  it('reads the parts of a result, and what is not well formed', async () => {
    await play(switches(), async (session) => {
      expect(await callTool(session, 'fault', { kind: 'parts' })).toBe('one\n[image image/png]\n[resource file:///a]');
      expect(await callTool(session, 'fault', { kind: 'half' })).toBe('a half \ufffd pair');
      expect(await callTool(session, 'fault', { kind: 'malformed' })).toMatch(/^error: Error: /);
      expect(await callTool(session, 'fault', { kind: 'json' })).toBe('seven');
      expect(await callTool(session, 'fault', { kind: 'refuse' })).toMatch(/^error: Error: .*internal trouble/);
    });
  });

  it('cuts a long result with a mark', async () => {
    await play(switches({ maxResultChars: 100 }), async (session) => {
      const text = await callTool(session, 'fault', { kind: 'huge' });
      expect(text).toBe(`${'x'.repeat(100)}\n[cut: ${50 * 2 ** 20 - 100} more characters]`);
    });
  });

  it('passes over noise on both outputs', async () => {
    await play(switches({}, ['shouts']), async (session) => {
      expect(await callTool(session, 'fault', { kind: 'noise' })).toBe('still here');
      expect(await callTool(session, 'press', { color: 'red' })).toBe('red clicks');
    });
  });

  it('refuses samples, roots and questions to a user', async () => {
    await play(switches(), async (session) => {
      expect(await callTool(session, 'fault', { kind: 'ask' })).toBe('refused: -32601 -32601 -32601');
    });
  });

  it('gives a call up in time, and reports it to the policy', async () => {
    await play(switches({ callTimeoutMs: 100 }), async (session) => {
      expect(await callTool(session, 'fault', { kind: 'slow' })).toBe('error: Error: no result within 100 ms');
      expect(await callTool(session, 'fault', { kind: 'deep' })).toBe('error: Error: no result within 100 ms');
      expect(await callTool(session, 'press', { color: 'red' })).toBe('red clicks');
      const slow = Array.from({ length: 12 }, () => ['fault', { kind: 'slow' }] as const);
      const messages = messagesOf(await session.step(act(slow)));
      expect(messages.at(-1)?.content).toBe('Error: not called: the reply has no time left');
    });
  });

  it('keeps the list of tools for the episode, and notes that it has changed', async () => {
    const last = await play(switches(), async (session) => {
      expect(await callTool(session, 'fault', { kind: 'change' })).toBe('changed');
      expect(await callTool(session, 'new')).toBe("error: Error: there is no tool 'new'");
      return session.step(act([]));
    });
    expect(readReport(last.observation).metrics).toMatchObject({ changed_tools: 1 });
  });

  it.each([
    ['die', /^the server exited with code 3$/],
    ['abort', /^the server was ended by SIGABRT/],
    ['flood', /^the server sent 10000 messages in a row that nobody had asked for/],
    ['endless', /^the server sent a message of more than 64 MiB/],
  ])('fails an episode whose server breaks: %s', async (kind, message) => {
    await play(switches(), async (session) => {
      await expect(session.step(act([['fault', { kind }]]))).rejects.toThrow(message);
    });
  });

  it('fails an episode that cannot be verified', async () => {
    const options = switches({ verify: { tool: 'fault', arguments: { kind: 'slow' } }, callTimeoutMs: 100 });
    await play(options, async (session) => {
      await expect(session.step(act([]))).rejects.toThrow('verify: fault: Error: no result within 100 ms');
    });
  });

  it('ends a call when the episode is closed', async () => {
    await play(switches(), async (session) => {
      const step = Promise.resolve(session.step(act([['fault', { kind: 'slow' }]])));
      const failed = expect(step).rejects.toThrow('the episode was closed during a call');
      await session.close();
      await failed;
    });
  });

  it('starts each episode with a server of its own', async () => {
    const { env, dispose } = await openMcp(
      switches({ verify: { tool: 'state', expect: 'red' }, tasks: [{ prompt: 'x' }] }),
    );
    const [one, other] = [await openSession(env, 0), await openSession(env, 0)];
    await one.step(act([['press', { color: 'red' }]]));
    expect(await other.step(act([]))).toMatchObject({ reward: 0 });
    expect(await one.step(act([]))).toMatchObject({ reward: 1 });
    await Promise.all([one.close(), other.close()]);
    await dispose();
  });

  it('starts no more processes than it may', async () => {
    const { env, dispose } = await openMcp(switches({ maxServers: 2 }));
    const [one, other] = await Promise.all([openSession(env, 0), openSession(env, 0)]);
    await expect(openSession(env, 0)).rejects.toThrow('2 servers run already: lower rollout.concurrentGroups');
    await one.close();
    await (await openSession(env, 0)).close();
    await other.close();
    await dispose();
  });

  it('resets a used server by a call', async () => {
    const { env, dispose } = await openMcp(switches({ reset: { tool: 'reset' }, tools: ['press', 'fault'] }));
    for (let round = 0; round < 3; round++) {
      const session = await openSession(env, 0);
      await callTool(session, 'press', { color: 'red' });
      expect(await session.step(act([]))).toMatchObject({ reward: 1 }); // not "red red"
      await session.close();
    }
    await dispose();
  });

  it('verifies by the function of a module, which gets the episode and the hidden tools', async () => {
    process.env.MCP_SEEN = 'a';
    process.env.MCP_HIDDEN = 'b';
    const module = join(fixtures, 'verify.mjs');
    const { tasks, verify, ...rest } = switches({
      module,
      variables: ['MCP_SEEN'],
      env: { GIVEN: '1' },
      tools: ['press'],
    });
    const end = (index: number) =>
      play(
        rest,
        async (session) => {
          await callTool(session, 'press', { color: 'red' });
          return session.step(act([], 'four'));
        },
        index,
      );
    await expect(end(0)).rejects.toThrow('no verdict');
    expect(await end(1)).toMatchObject({ reward: 1, success: true });
    await expect(end(2)).rejects.toThrow('got "text"');
    const last = await end(3);
    delete process.env.MCP_SEEN;
    delete process.env.MCP_HIDDEN;
    expect(last).toMatchObject({ reward: 4, success: false });
    const seen = { index: 3, seed: 0, messages: 5, seen: 1, hidden: 0, given: 1 };
    expect(readReport(last.observation).metrics).toMatchObject(seen);
  });

  it('plays a server in memory, in both generations of the protocol', async () => {
    for (const [file, spec] of MEMORY) {
      await play({ module: join(fixtures, file), spec }, async (session) => {
        expect(await callTool(session, 'write', { text: 'z' })).toMatch(/^error: /);
        expect(await callTool(session, 'read')).toBe('to write: a');
        expect(await callTool(session, 'write', { text: 'a' })).toBe('written');
        expect(await session.step(act([]))).toMatchObject({ reward: 1 });
      });
    }
  });

  it('gives each episode a folder with the files of its task', async () => {
    const command = [process.execPath, '-e', FOLDER_SERVER, '{folder}'];
    const tasks = [{ prompt: 'x', files: { 'notes/a.txt': 'one' }, expect: 'notes/a.txt', verify: { tool: 'list' } }];
    for (const reset of ['restart', 'none']) {
      const { env, dispose } = await openMcp({ command, tasks, reset });
      let folder = '';
      for (let round = 0; round < 2; round++) {
        const session = await openSession(env, 0);
        folder = await callTool(session, 'where');
        expect(existsSync(join(folder, 'notes/a.txt'))).toBe(true);
        if (round === 0) await callTool(session, 'litter');
        else expect(await session.step(act([]))).toMatchObject({ reward: 1 });
        await session.close();
      }
      await dispose();
      expect(folder).toContain('longplay-mcp-');
      expect(existsSync(folder)).toBe(false);
    }
  });
});

/** Servers in memory with generations of the protocol that they are played in. */
const MEMORY = [
  ['memory.mjs', undefined],
  ['memory.mjs', 'legacy'],
  ['memory.mjs', 'auto'],
  ['memory-modern.mjs', undefined],
  ['memory-modern.mjs', '2026-07-28'],
] as const;

/** Server with two tools on its folder. */
const FOLDER_SERVER = `
  const { readdirSync, writeFileSync } = require('node:fs');
  const tool = (name) => ({ name, inputSchema: { type: 'object' } });
  const { createInterface } = require('node:readline');
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const result = {
      initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'f', version: '1' } }),
      'tools/list': () => ({ tools: [tool('where'), tool('list'), tool('litter')] }),
      'tools/call': () => {
        if (params.name === 'litter') writeFileSync('litter.txt', '');
        const found = readdirSync('.', { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
        const text = params.name === 'where' ? process.argv[1] : found.map((one) => (one.parentPath + '/' + one.name).replace('./', '')).join(' ');
        return { content: [{ type: 'text', text }] };
      },
    }[method]?.();
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
`;

describe('a server that cannot be played', () => {
  const open = async (options: EnvOptions) => {
    const { dispose } = await openMcp(options);
    await dispose();
  };
  it.each([
    ['has no folder', { cwd: '/nowhere' }, /the server cannot be started: cwd: there is no folder \/nowhere/],
    ['is not there', { command: ['no-such-server'] }, /^mcp: no-such-server: the server cannot be started: .*ENOENT/],
    ['exits', switches({}, ['exits']), /: the server exited with code 1: the database is not there$/],
    ['never answers', switches({ startTimeoutMs: 300 }, ['silent']), /: the MCP server does not answer: .*timed out/],
    [
      'speaks no revision of a pinned generation',
      switches({ spec: '2026-07-28' }),
      /did not offer pinned protocol version/,
    ],
    ['speaks no known revision', switches({}, ['ancient']), /protocol version/],
    ['lists a tool twice', switches({}, ['twice']), /the server lists the tool press twice/],
    ['lists too many tools', switches({}, ['many']), /the server lists 2000 tools, more than 1024/],
    ['lacks a tool', switches({ tools: ['press', 'push'] }), /tools: the server has no 'push'; it lists press, state/],
    [
      'has other tools',
      switches({ toolsHash: '0123' }),
      /toolsHash: expected 0123, the server offers tools with [0-9a-f]{16}/,
    ],
  ] as const)('%s', async (_name, options, message) => {
    await expect(open({ ...switches(), ...options })).rejects.toThrow(message);
  });
  it('fails its reset', async () => {
    const { env, dispose } = await openMcp(switches({ reset: { tool: 'reset' } }, ['reset-fails']));
    await expect(openSession(env, 0)).rejects.toThrow('the reset reset failed: stuck');
    await dispose();
  });
});
