/** Programs in other languages: a command gets its task and a model's address, and ends with a reward. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { printAgentReply } from '../../src/core/agent-call.ts';
import { type AgentRun, CommandPool, commandProgram } from '../../src/gateway/agent-program.ts';
import { connect } from '../../src/gateway/agent-world.ts';
import { type OpenGateway, openGateway } from '../../src/gateway/server.ts';
import { openWorld } from '../../src/world/open-world.ts';

const node = (code: string) => [process.execPath, '--input-type=module', '-e', code];
const task: Omit<AgentRun, 'model' | 'signal'> = { task: { q: 'ü' }, index: 3, seed: 7, horizon: 5 };
const model = { baseURL: 'http://127.0.0.1:1/v1', root: 'http://127.0.0.1:1', apiKey: 'k', name: 'policy' };

function play(code: string, signal = new AbortController().signal) {
  return commandProgram(node(code), process.cwd())({ ...task, model, signal });
}

describe('a command', () => {
  it('reads its task on its input and in a variable, and the model in others', async () => {
    const outcome = await play(`
      import { readFileSync } from 'node:fs';
      const task = readFileSync(0, 'utf8');
      const same = task.trim() === process.env.LONGPLAY_TASK && JSON.parse(task).task.q === 'ü';
      const { OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, LONGPLAY_MODEL } = process.env;
      console.log('{"not": "the reward"}\\nwords {');
      const named = [OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, LONGPLAY_MODEL].join(' ');
      console.log(JSON.stringify({ reward: same && named === '${model.baseURL} k ${model.root} k policy' ? 1 : 0 }));
      console.log('more words');`);
    expect(outcome).toEqual({ reward: 1, success: true, metrics: {} });
  });
  it('that prints no reward has none yet: it may have posted it', async () => {
    expect(await play('console.log("done")')).toBeUndefined();
  });
  it.each([
    ['process.exit(3)', 'exited with code 3'],
    ['throw new Error("no such page")', 'no such page'],
    ['process.kill(process.pid, "SIGKILL")', 'was ended by SIGKILL'],
    ['console.log(\'{"reward": "high"}\')', 'got reward "high"'],
  ])('that ends by %s fails with the reason', async (code, reason) => {
    await expect(play(code)).rejects.toThrow(reason);
  });
  it('that is not there fails', async () => {
    const missing = commandProgram(['no-such-program'], process.cwd());
    const { signal } = new AbortController();
    await expect(missing({ ...task, model, signal })).rejects.toThrow('no-such-program cannot be started');
  });
  it('ends when the episode is over', async () => {
    const over = new AbortController();
    const played = play('setInterval(() => {}, 1000); console.log(1)', over.signal);
    setTimeout(() => over.abort(), 300);
    await expect(played).rejects.toThrow('was ended by SIGTERM');
  });
});

describe('a command whose processes are used again', () => {
  const pool = (code: string) => new CommandPool(node(code), process.cwd());
  const line = (code: string) => `
    import { createInterface } from 'node:readline';
    for await (const line of createInterface({ input: process.stdin })) { const run = JSON.parse(line); ${code} }`;
  const run = (index: number, signal = new AbortController().signal) => ({ ...task, index, model, signal });
  it('plays one episode after another in one process, and several at once in several', async () => {
    const { play, dispose } = bound(
      pool(line('console.log(JSON.stringify({ reward: process.pid + run.index / 10 }));')),
    );
    const rewards: number[] = [];
    for (const index of [0, 1]) rewards.push((await play(run(index)))!.reward);
    expect(Math.trunc(rewards[0]!)).toBe(Math.trunc(rewards[1]!));
    const both = await Promise.all([play(run(0)), play(run(0))]);
    expect(new Set(both.map((one) => one!.reward)).size).toBe(2);
    dispose();
  });
  it('fails an episode that reports an error, whose process exits, or that is cut', async () => {
    const { play, dispose } = bound(
      pool(
        line(
          'if (run.index === 0) console.log(JSON.stringify({ error: "no page" })); if (run.index === 1) process.exit(0);',
        ),
      ),
    );
    await expect(play(run(0))).rejects.toThrow('the agent failed: "no page"');
    await expect(play(run(1))).rejects.toThrow('ended before its episode did');
    const over = new AbortController();
    const cut = play(run(2, over.signal));
    setTimeout(() => over.abort(), 300);
    await expect(cut).rejects.toThrow('was ended by SIGTERM');
    dispose();
  });
  const bound = (one: CommandPool) => ({ play: one.play, dispose: () => one.dispose() });
});

describe('a world of a command', () => {
  let gateway: OpenGateway;
  beforeAll(async () => {
    gateway = await openGateway();
  });
  afterAll(() => gateway.close());

  it('plays calls of the program, and takes the reward that it posts', async () => {
    const program = `
      const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key } = process.env;
      const headers = { 'content-type': 'application/json', authorization: 'Bearer ' + key };
      const body = JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: 'hello' }] });
      const answer = await (await fetch(base + '/chat/completions', { method: 'POST', headers, body })).json();
      const reward = answer.choices[0].message.content === 'hi' ? 0.5 : 0;
      await fetch(base.replace(/v1$/, 'reward'), { method: 'POST', headers, body: JSON.stringify({ reward }) });`;
    const options = { command: node(program), tasks: 3 };
    const world = await connect(new URLSearchParams({ agent: JSON.stringify(options) }));
    const { env, dispose } = await openWorld(world, 'agent', options, '/test');
    try {
      const session = await env.open({ env: 'agent', index: 2, seed: 0 }, { horizon: 4 });
      expect(session.first.observation).toContain('"hello"');
      const usage = { promptTokens: 0, completionTokens: 0 };
      const step = await session.step(printAgentReply({ content: 'hi', calls: [], finish: 'stop', usage }));
      expect(step).toMatchObject({ kind: 'terminated', reward: 0.5, success: true });
      await session.close();
      await expect(async () => env.open({ env: 'agent', index: 3, seed: 0 })).rejects.toThrow(
        'task 3: there are 0 … 2',
      );
    } finally {
      await dispose();
    }
  });
  it('leaves no process behind when an episode is closed', async () => {
    const options = {
      command: node(
        '/* longplay-left-behind */ setInterval(() => {}, 1000); await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" }, body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] }) })',
      ),
      tasks: 1,
    };
    const world = await connect(new URLSearchParams({ agent: JSON.stringify(options) }));
    const { env, dispose } = await openWorld(world, 'agent', options, '/test');
    const session = await env.open({ env: 'agent', index: 0, seed: 0 });
    await session.close();
    await dispose();
    const count = () => Number(execFileSync('sh', ['-c', 'pgrep -fc longplay-left-behin[d] || true']).toString());
    for (let wait = 0; wait < 40 && count() > 0; wait++) await new Promise((resolve) => setTimeout(resolve, 100));
    expect(count()).toBe(0);
  });
});
