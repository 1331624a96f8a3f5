/** Options of MCP worlds: mistakes in one line, files of options, and what other parts read of them. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { poolOptions } from '../../../actors/env/init.ts';
import { loadRunConfig } from '../../../src/config/load.ts';
import type { Env, EnvOptions } from '../../../src/core/env.ts';
import { UserError } from '../../../src/core/errors.ts';
import { findWorld, worldUrl } from '../../../src/run/find-world.ts';
import { envLabel, envOfRun, isModulePath, locateEnv, moduleChange, pinEnv } from '../../../src/world/env-id.ts';
import { connect } from '../../../src/world/mcp/mcp-world.ts';
import { describeStartedServer, listHostVariables } from '../../../src/world/mcp/options.ts';
import { fixtures, switches } from './lab.ts';

const load = (options: EnvOptions) => connect(new URLSearchParams({ mcp: JSON.stringify(options) }));
const bare = { command: ['node', 'x.mjs'], tasks: [{ prompt: 'x', expect: 1 }] };

describe('options of an MCP world', () => {
  it.each([
    [{}, "mcp: give 'command' (a list of words), 'url', or 'module' (that exports createServer)"],
    [{ ...bare, url: 'http://127.0.0.1:1/mcp' }, 'mcp: expected one of command and url, got both'],
    [
      { ...bare, command: 'node x.mjs' },
      'mcp: command: Invalid input: expected array, received string, got "node x.mjs"',
    ],
    [{ ...bare, comand: [] }, "mcp: no option 'comand'; it has: command, cwd, url"],
    [
      { tasks: bare.tasks, url: 'localhost' },
      'mcp: url: expected a URL, e.g. http://127.0.0.1:3000/mcp, got "localhost"',
    ],
    [{ ...bare, tools: [] }, 'mcp: tools: '],
    [{ ...bare, reset: 'sometimes' }, 'mcp: reset: '],
    [{ ...bare, callTimeoutMs: 0 }, 'mcp: callTimeoutMs: '],
    [{ ...bare, rewardRange: [1, 0] }, 'mcp: rewardRange: expected [least, largest], got [1,0]'],
    [{ ...bare, spec: 'newest' }, 'mcp: spec: '],
    [{ ...bare, replay: 'pure' }, 'mcp: replay: '],
    [{ ...bare, tasks: undefined }, "mcp: tasks: give a list, a JSONL file, or a module that exports 'tasks'"],
    [{ ...bare, tasks: [] }, 'mcp: tasks: '],
    [{ ...bare, tasks: ['x'] }, 'mcp: tasks[0]: '],
    [{ ...bare, tasks: [{}] }, 'mcp: tasks[0].prompt: '],
    [{ ...bare, tasks: [{ prompt: 'x' }] }, "mcp: tasks[0]: nothing gives its reward: give it 'expect', or a module"],
    [
      { ...bare, tasks: [{ prompt: 'x', expect: 1, files: { a: 'b' } }] },
      "mcp: tasks[0].files: a task has files where a word of 'command'",
    ],
    [{ ...bare, tasks: 'nowhere.jsonl' }, 'mcp: tasks: '],
    [{ ...bare, module: '/nowhere.mjs' }, 'mcp: /nowhere.mjs cannot be loaded: '],
    [
      { ...bare, module: join(fixtures, 'memory.mjs') },
      'expected one of command, url and an export createServer, got both',
    ],
    [{ module: join(fixtures, 'verify.mjs') }, 'expected one of command, url and an export createServer, got neither'],
  ])('%j is refused', async (options, message) => {
    const thrown = await load(options as EnvOptions).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(UserError);
    expect((thrown as Error).message).toContain(message);
    expect((thrown as Error).message).not.toContain('\n');
  });

  it.each(['../a', '/a', 'a/../b', 'a//b', './a', 'a\\b', 'C:a', ''])('a file at %j is refused', async (path) => {
    const task = { prompt: 'x', expect: 1, files: { [path]: 'b' } };
    await expect(load({ command: ['node', '{folder}'], tasks: [task] })).rejects.toThrow(
      'expected paths within the folder',
    );
  });

  it('a file in another file is refused', async () => {
    const task = { prompt: 'x', expect: 1, files: { a: 'b', 'a/c': 'd' } };
    await expect(load({ command: ['node', '{folder}'], tasks: [task] })).rejects.toThrow(
      'mcp: tasks[0].files: a file lies in another file: "a/c"',
    );
  });

  it('whatever they are, the answer is a world or one line', async () => {
    const names = fc.constantFrom(
      'command',
      'url',
      'tasks',
      'tools',
      'reset',
      'verify',
      'env',
      'maxCalls',
      'spec',
      'expect',
    );
    const options = fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });
    await fc.assert(
      fc.asyncProperty(options, async (given) => {
        const found = await load(given as EnvOptions).catch((error: unknown) => error);
        if (found instanceof Error)
          expect([found instanceof UserError, found.message.includes('\n')]).toEqual([true, false]);
        else expect(found).toMatchObject({ tools: true });
      }),
      { numRuns: 300 },
    );
  });
});

describe('a file of options', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-options-'));
  const file = join(folder, 'switches.yaml');
  writeFileSync(join(folder, 'tasks.jsonl'), '{"prompt":"x","expect":"red"}\n{"prompt":"y","expect":"blue"}\n');
  writeFileSync(
    file,
    JSON.stringify({ ...switches({ tools: ['press'] }), tasks: 'tasks.jsonl', variables: ['A_KEY'], tokenEnv: 'B' }),
  );
  const env = { id: `mcp:${file}`, options: {} };

  it('is a world, with paths from its folder', async () => {
    const { env: facts } = await findWorld(env.id);
    expect([facts.id, facts.tasks.count, facts.replay]).toEqual(['mcp', 2, 'never']);
    const options = JSON.parse(worldUrl(env.id).searchParams.get('mcp')!);
    expect(options).toMatchObject({ cwd: folder, tasks: join(folder, 'tasks.jsonl'), tools: ['press'] });
  });

  it('yields to options beside it', async () => {
    const url = worldUrl(env.id, { tools: ['state'], cwd: '/tmp' });
    expect(JSON.parse(url.searchParams.get('mcp')!)).toMatchObject({ tools: ['state'], cwd: '/tmp' });
  });

  it('is found and pinned as a module is', () => {
    expect(isModulePath(env.id)).toBe(true);
    expect(envLabel(env.id)).toBe('switches');
    expect(locateEnv({ id: 'mcp:switches.yaml', options: {} }, folder).id).toBe(env.id);
    const pinned = pinEnv(env, folder);
    expect(pinned).toMatchObject({ fromRun: 'switches.yaml', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(moduleChange(pinned)).toBeUndefined();
    expect(moduleChange({ ...pinned, sha256: '0' })).toContain('has changed since the run was made');
    expect(() => moduleChange({ ...pinned, id: 'mcp:/nowhere.yaml' })).toThrow(
      "the run's world, the module /nowhere.yaml, is gone",
    );
    expect(envOfRun({ ...pinned, id: 'mcp:/moved/switches.yaml' }, folder).id).toBe(env.id);
  });

  it('has the deadlines of a program, as options have', () => {
    const rest = 'horizon: { type: fixed, rounds: 3 }, stop: { updates: 1 }';
    for (const id of [env.id, 'mcp', 'mcp:x.yaml']) {
      const { rollout } = loadRunConfig(`{ env: { id: ${JSON.stringify(id)} }, ${rest} }`, 'test');
      expect([rollout.stepDeadlineMs, rollout.openDeadlineMs]).toEqual([60_000, 60_000]);
    }
    expect(
      loadRunConfig(`{ env: { id: mcp }, rollout: { stepDeadlineMs: 5 }, ${rest} }`, 'test').rollout.stepDeadlineMs,
    ).toBe(5);
  });

  it('names the variables of its hosts, and the command that is started', () => {
    expect(listHostVariables(worldUrl(env.id))).toEqual(['A_KEY', 'B']);
    expect(listHostVariables(worldUrl('textcraft'))).toEqual([]);
    // Hosts of several worlds get those of each.
    const worlds = ['textcraft', env.id].map((id) => {
      const text = `{ env: { id: ${JSON.stringify(id)} }, horizon: { type: fixed, rounds: 3 }, stop: { updates: 1 } }`;
      return { config: loadRunConfig(text, 'test'), env: { id } as Env, module: worldUrl(id), shared: undefined };
    });
    const { config } = worlds[0]!;
    const hosts = poolOptions({ config, mode: 'serial' }, worlds, { outside() {} } as never, undefined);
    expect(hosts.variables!.passed).toEqual([...config.rollout.hostVariables, 'A_KEY', 'B']);
    const url = worldUrl('mcp', { ...bare, env: { KEY: 'hidden' } });
    expect(describeStartedServer(url)).toBe('starts the MCP server: node x.mjs (with KEY)');
    expect(describeStartedServer(worldUrl('textcraft'))).toBeUndefined();
  });

  it('is refused where it is none', () => {
    expect(() => worldUrl('mcp:/nowhere.yaml')).toThrow('/nowhere.yaml: ENOENT');
    writeFileSync(join(folder, 'list.yaml'), '- a\n');
    expect(() => worldUrl(`mcp:${folder}/list.yaml`)).toThrow('expected the options of an MCP server, got ["a"]');
    expect(() => worldUrl(`mcp:${folder}`)).toThrow('expected a file');
  });
});
