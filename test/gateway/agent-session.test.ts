/** Episodes of agents, from the program's first call to its reward, over the real gateway. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentOutcome, type AgentReply, printAgentReply, readAgentCall } from '../../src/core/agent-call.ts';
import type { Mid, Terminated } from '../../src/core/env.ts';
import { AgentSession } from '../../src/gateway/agent-session.ts';
import { CLOSING_TEXT } from '../../src/gateway/episode.ts';
import { type OpenGateway, openGateway } from '../../src/gateway/server.ts';

let gateway: OpenGateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

interface Wire {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
}

/** Calls the model as a program does. @returns its message */
type Ask = (messages: readonly object[], more?: object, signal?: AbortSignal) => Promise<Wire>;
type Program = (ask: Ask, signal: AbortSignal) => Promise<Partial<AgentOutcome> & { readonly reward: number }>;

interface Limits {
  readonly horizon?: number;
  readonly rewardAtHorizon?: 'keep' | 'drop';
}

function open(program: Program, { horizon, rewardAtHorizon = 'keep' }: Limits = {}): Promise<AgentSession> {
  const episode = gateway.open();
  const ask: Ask = async (messages, more = {}, signal) => {
    const response = await fetch(`${episode.baseURL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${episode.key}` },
      body: JSON.stringify({ model: 'policy', messages, ...more }),
      ...(signal ? { signal } : {}),
    });
    const body = (await response.json()) as { choices?: { message: Wire }[]; error?: { message: string } };
    if (!response.ok) throw new Error(`${response.status} ${body.error?.message}`);
    return body.choices![0]!.message;
  };
  const run = async (signal: AbortSignal) => ({ success: false, metrics: {}, ...(await program(ask, signal)) });
  return AgentSession.open({ gateway: episode, run, horizon, rewardAtHorizon });
}

const say = (content: string): string =>
  printAgentReply({ content, calls: [], finish: 'stop', usage: { promptTokens: 1, completionTokens: 1 } });
const user = (content: string) => ({ role: 'user', content });
const TOOL = {
  type: 'function',
  function: { name: 'act', parameters: schema({ action: { enum: ['left', 'right'] } }) },
};
const PAY = { type: 'function', function: { name: 'pay', parameters: schema({ to: { type: 'string' } }) } };

function schema(properties: object) {
  return { type: 'object', properties, required: Object.keys(properties) };
}

describe('an episode of an agent', () => {
  it('is its calls and its reward', async () => {
    const session = await open(async (ask) => {
      const first = await ask([user('hello')]);
      const second = await ask([user('hello'), first, user('and now?')]);
      return { reward: second.content === 'two' ? 1 : 0, success: true };
    });
    expect(readAgentCall(session.first.observation)).toEqual({
      call: 0,
      parent: null,
      messages: [{ role: 'user', content: 'hello' }],
      tools: [],
    });
    const step = await session.step(say('one'));
    expect(step).toMatchObject({ kind: 'mid', reward: 0 });
    expect(readAgentCall(step.observation)).toEqual({
      call: 1,
      parent: 0,
      messages: [{ role: 'user', content: 'and now?' }],
    });
    expect(await session.step(say('two'))).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    session.close();
  });

  it('without a call has a reward, and its only action reaches nobody', async () => {
    const session = await open(async () => ({ reward: 0.5, success: true }));
    expect(session.actions()).toHaveLength(1);
    expect(await session.step('anything')).toEqual({
      kind: 'terminated',
      observation: '',
      reward: 0.5,
      success: true,
      undelivered: true,
    });
  });

  it('fails where the program throws, before its first call or later', async () => {
    await expect(
      open(async () => {
        throw new Error('no such file');
      }),
    ).rejects.toThrow('no such file');
    const session = await open(async (ask) => {
      await ask([user('hello')]);
      throw new Error('lost');
    });
    await expect(session.step(say('hi'))).rejects.toThrow('lost');
  });

  it('ends at the horizon: closing texts, the reward that the program gives, a step that the horizon cuts', async () => {
    const texts: (string | null)[] = [];
    const program: Program = async (ask) => {
      for (let turn = 0; turn < 5; turn++) texts.push((await ask([user(`turn ${turn}`)])).content);
      return { reward: 0.25 };
    };
    for (const [rewardAtHorizon, reward] of [
      ['keep', 0.25],
      ['drop', 0],
    ] as const) {
      texts.length = 0;
      const session = await open(program, { horizon: 2, rewardAtHorizon });
      expect(((await session.step(say('a'))) as Mid).reward).toBe(0);
      expect(await session.step(say('b'))).toMatchObject({ kind: 'mid', reward });
      expect(texts).toEqual(['a', 'b', CLOSING_TEXT, CLOSING_TEXT, CLOSING_TEXT]);
    }
  });

  it('is cut, not failed, where the program cannot live with the closing text', async () => {
    const session = await open(
      async (ask) => {
        for (;;) await ask([user('go on')], { tools: [TOOL], tool_choice: 'required' });
      },
      { horizon: 1 },
    );
    expect(await session.step(say('a'))).toMatchObject({ kind: 'mid', reward: 0 });
  });

  it('joins sub-agents as a tree, and answers calls that are open at once one after another', async () => {
    const session = await open(async (ask) => {
      const lead = await ask([user('lead')]);
      const [a, b] = await Promise.all([ask([user('sub a')]), ask([user('sub b')])]);
      const last = await ask([user('lead'), lead, user(`${a.content} ${b.content}`)]);
      return { reward: last.content === 'done' ? 1 : 0 };
    });
    const parents: (number | null)[] = [readAgentCall(session.first.observation).parent];
    let step = (await session.step(say('0'))) as Mid | Terminated;
    for (let turn = 1; step.kind === 'mid'; turn++) {
      const call = readAgentCall(step.observation);
      parents.push(call.parent);
      step = (await session.step(say(turn === 3 ? 'done' : String(turn)))) as Mid | Terminated;
    }
    expect([parents, step.reward]).toEqual([[null, null, null, 0], 1]);
  });

  it('counts a reply that reached nobody as no turn', async () => {
    const session = await open(
      async (ask) => {
        const leaving = new AbortController();
        const left = ask([user('first')], {}, leaving.signal).catch(() => undefined);
        await ready;
        leaving.abort();
        await left;
        const answers = [await ask([user('second')]), await ask([user('third')])];
        return { reward: answers.map(({ content }) => content).join('') === 'bc' ? 1 : 0 };
      },
      { horizon: 2 },
    );
    leave();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const step = await session.step(say('a'));
    expect(step).toMatchObject({ kind: 'mid', reward: 0, partial: true, undelivered: true });
    expect(await session.step(say('b'))).toMatchObject({ kind: 'mid', reward: 0 }); // the first of two turns
    expect(await session.step(say('c'))).toMatchObject({ kind: 'terminated', reward: 1 });
  });
  let leave = () => {};
  const ready = new Promise<void>((resolve) => {
    leave = resolve;
  });

  it('ends the program by its signal when it is closed', async () => {
    let aborted = false;
    const session = await open(async (ask, signal) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      await ask([user('hello')]);
      return { reward: 1 };
    });
    session.close();
    session.close();
    expect(aborted).toBe(true);
  });
});

describe('choices among replies', () => {
  const program: Program = async (ask) => {
    const messages: object[] = [user('pay "Ada" or "Bob"')];
    const reply = await ask(messages, { tools: [TOOL, PAY], tool_choice: 'required' });
    const [call] = reply.tool_calls!;
    return { reward: (call!.function as unknown as { arguments: string }).arguments === '{"to":"Ada"}' ? 1 : 0 };
  };
  it('come in stages, which use no turn', async () => {
    const session = await open(program, { horizon: 1 });
    expect(session.actions()).toEqual(['act', 'pay']);
    expect(await session.step('pay')).toEqual({ kind: 'mid', observation: '', reward: 0, partial: true });
    expect(session.actions()).toContain('Ada');
    expect(await session.step('Ada')).toMatchObject({ kind: 'terminated', reward: 1 });
  });
  it('pass over a stage with one choice', async () => {
    const session = await open(async (ask) => {
      await ask([user('go')], { tools: [TOOL], tool_choice: 'required' });
      return { reward: 1 };
    });
    expect(session.actions()).toEqual(['left', 'right']);
    expect(await session.step('right')).toMatchObject({ kind: 'terminated', reward: 1 });
  });
  it('are understood where nobody listed them, and a whole reply too', async () => {
    for (const actions of [['pay', 'Ada'], [JSON.stringify(replyOf('pay', '{"to":"Ada"}'))]]) {
      const session = await open(program);
      let step: Mid | Terminated | undefined;
      for (const action of actions) step = (await session.step(action)) as Mid | Terminated;
      expect(step).toMatchObject({ kind: 'terminated', reward: 1 });
    }
  });
});

function replyOf(name: string, args: string): AgentReply {
  const usage = { promptTokens: 1, completionTokens: 1 };
  return { content: '', calls: [{ name, arguments: args }], finish: 'calls', usage };
}
