/** Agents that run as a service: started by Eval Protocol's `/init`, ended by a posted reward or by the status. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { connect } from '../../src/gateway/agent-world.ts';
import { openRemoteProgram } from '../../src/gateway/remote-program.ts';
import { type OpenGateway, openGateway } from '../../src/gateway/server.ts';

interface Init {
  readonly rollout_id: string;
  readonly model_base_url: string;
  readonly reward_url: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: readonly unknown[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Service of an agent. @param play what an episode does @param status answer to questions for it, absent: 404 */
async function startService(
  play: (init: Init) => unknown,
  { status, started = {}, code = 200 }: { status?: (id: string) => object; started?: object; code?: number } = {},
) {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://x');
    asked.push(`${request.method} ${pathname}`);
    let text = '';
    for await (const chunk of request) text += chunk;
    const send = (statusCode: number, value: object) => {
      response.writeHead(statusCode, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (request.method === 'POST' && pathname === '/agents/init') {
      send(code, code === 200 ? started : { error: 'busy' });
      if (code === 200) void play(JSON.parse(text) as Init);
      return;
    }
    if (status && /\/(status|progress)$/.test(pathname)) return send(200, status(searchParams.get('rollout_id') ?? ''));
    send(404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/agents/init`, asked };
}

const post = (url: string, body: object) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

/** Calls the model once, with no key but the one in the URL. */
async function callModel({ model_base_url: base, messages }: Init): Promise<string> {
  const answer = await post(`${base}/chat/completions`, { model: 'policy', messages });
  const { choices } = (await answer.json()) as { choices: readonly { message: { content: string } }[] };
  return choices[0]!.message.content;
}

async function open(url: string, tasks: readonly unknown[]) {
  const world = await connect(new URLSearchParams({ agent: JSON.stringify({ url, tasks }) }));
  const resources = await world.start!({}, {} as never);
  closers.push(() => resources.dispose?.());
  return world.createEnv!({}, resources);
}

const tasks = [{ side: 'left' }, { messages: [{ role: 'user', content: 'Bet.' }], tools: [{ type: 'function' }] }];

describe('an episode of a service', () => {
  it('is started with its task, calls the model at its URL, and ends with the reward it posts', async () => {
    const inits: Init[] = [];
    const { url } = await startService(async (init) => {
      inits.push(init);
      const side = await callModel(init);
      const answer = await post(init.reward_url, { reward: side === 'left' ? 1 : 0, metrics: { turns: 1 } });
      expect(answer.status).toBe(200);
    });
    const env = await open(url, tasks);
    const session = await env.open({ env: 'agent', index: 0, seed: 5 }, { horizon: 3 });
    expect(session.first.observation).toContain('left');
    expect(await session.step('left')).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    const [init] = inits as [Init];
    expect(init.messages).toEqual([{ role: 'user', content: '{"side":"left"}' }]);
    expect(init.metadata).toMatchObject({
      rollout_id: init.rollout_id,
      row_id: '0',
      task: tasks[0],
      seed: 5,
      horizon: 3,
    });
    expect(init.model_base_url).toContain(init.rollout_id);
  });

  it('gets the messages and tools of its task', async () => {
    let init: Init | undefined;
    const { url } = await startService(async (given) => {
      init = given;
      await callModel(given);
      await post(given.reward_url, { reward: 0 });
    });
    const session = await (await open(url, tasks)).open({ env: 'agent', index: 1, seed: 1 });
    await session.step('x');
    expect(init).toMatchObject({ messages: [{ role: 'user', content: 'Bet.' }], tools: [{ type: 'function' }] });
  });

  it('ends with its status, where that has the reward', async () => {
    const ended = new Set<string>();
    const { url } = await startService(
      async (init) => {
        await callModel(init);
        ended.add(init.rollout_id);
      },
      { status: (id) => (ended.has(id) ? { terminated: true, reward: 0.5 } : { terminated: false }) },
    );
    const session = await (await open(url, tasks)).open({ env: 'agent', index: 0, seed: 1 });
    expect(await session.step('x')).toMatchObject({ kind: 'terminated', reward: 0.5 });
  });

  it('fails where it ends without a reward, or is not started', async () => {
    const ended = new Set<string>();
    const silent = await startService(
      async (init) => {
        await callModel(init);
        ended.add(init.rollout_id);
      },
      { status: (id) => ({ terminated: ended.has(id) }) },
    );
    const session = await (await open(silent.url, tasks)).open({ env: 'agent', index: 0, seed: 1 });
    await expect(session.step('x')).rejects.toThrow(/ended without a reward/);
    const busy = await startService(() => {}, { code: 503 });
    await expect((await open(busy.url, tasks)).open({ env: 'agent', index: 0, seed: 1 })).rejects.toThrow(/HTTP 503/);
  });
});

describe('the status', () => {
  const model = { baseURL: 'http://x/e/id/v1', root: 'http://x/e/id', apiKey: 'k', name: 'policy' };
  const run = (signal: AbortSignal) => ({ task: 1, index: 0, seed: 1, horizon: undefined, model, signal });

  it('is asked where the service says', async () => {
    const { url, asked } = await startService(() => {}, {
      started: { status_url: '/agents/mine/progress' },
      status: () => ({ terminated: true, reward: 1 }),
    });
    const program = openRemoteProgram(url, 1);
    closers.push(program.close);
    expect(await program.play(run(new AbortController().signal))).toMatchObject({ reward: 1 });
    expect(asked).toEqual(['POST /agents/init', 'GET /agents/mine/progress']);
  });

  it('of another server is refused', async () => {
    const { url } = await startService(() => {}, { started: { status_url: 'http://elsewhere.example/status' } });
    const program = openRemoteProgram(url, 1);
    closers.push(program.close);
    await expect(program.play(run(new AbortController().signal))).rejects.toThrow(/a status of another server/);
  });

  it('is asked no more once there is none, or the episode is over', async () => {
    const { url, asked } = await startService(() => {});
    const program = openRemoteProgram(url, 1);
    closers.push(program.close);
    const ending = new AbortController();
    const played = program.play(run(ending.signal));
    while (asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    ending.abort();
    expect(await played).toBeUndefined();
    expect(asked).toEqual(['POST /agents/init', 'GET /agents/status']);
  });
});

describe('a key in the path', () => {
  let gateway: OpenGateway;
  it('opens its own episode alone', async () => {
    gateway = await openGateway();
    closers.push(() => gateway.close());
    const [mine, other] = [gateway.open(), gateway.open()];
    const status = async (key: string) => (await fetch(`${mine.root}/key/${key}/v1/models`)).status;
    expect(await status(mine.key)).toBe(200);
    expect(await status(other.key)).toBe(403);
    expect(await status('wrong')).toBe(401);
  });
});
