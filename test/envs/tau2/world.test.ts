/** τ²-bench as a world: options, openings, courses of episodes, rewards, and what a policy gets for nothing. */
import { describe, expect, it } from 'vitest';
import { methods as airlineMethods } from '../../../envs/tau2/airline/tools.ts';
import { DOMAINS } from '../../../envs/tau2/domains.ts';
import { createEnv, createOracle } from '../../../envs/tau2/index.ts';
import type { Method } from '../../../envs/tau2/python/calls.ts';
import { methods as retailMethods } from '../../../envs/tau2/retail/tools.ts';
import { toFirstPerson } from '../../../envs/tau2/users.ts';
import { printAgentReply, readAgentCall } from '../../../src/core/agent-call.ts';
import type { EnvOptions, EnvStep, Session } from '../../../src/core/env.ts';

const usage = { promptTokens: 0, completionTokens: 0 };
type Call = readonly [name: string, args: string];
const reply = (content: string, ...calls: readonly Call[]) =>
  printAgentReply({
    content,
    calls: calls.map(([name, args]) => ({ name, arguments: args })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage,
  });

async function open(options: EnvOptions, index = 0): Promise<Session> {
  return createEnv(options).open({ env: 'tau2', index, seed: 0 });
}

const messagesOf = ({ observation }: EnvStep) => readAgentCall(observation).messages;
const lastOf = (step: EnvStep) => messagesOf(step).at(-1)!.content;

/** Tasks that a rule solves, by index. */
async function solvedBy(options: EnvOptions, rule: (turn: number) => string | undefined): Promise<number[]> {
  const env = createEnv(options);
  const solved: number[] = [];
  for (let index = 0; index < env.tasks.count; index++) {
    const session = await env.open({ env: 'tau2', index, seed: 0 });
    let step: EnvStep | undefined;
    for (let turn = 0; step?.kind !== 'terminated'; turn++) step = await session.step(rule(turn)!);
    if (step.success) solved.push(index);
  }
  return solved;
}

describe('options', () => {
  it.each([
    [{ domian: 'retail' }, 'tau2 has no option "domian"; it has: domain, user'],
    [{ domain: 'bank' }, 'domain must be "retail" or'],
    [
      { domain: 'retail', user: 'solo' },
      'user must be "scripted" or { kind: openai, url, model } in the domain retail, got "solo"',
    ],
    [{ maxSteps: 0 }, 'maxSteps must be an integer in [1, 10000], got 0'],
    [{ user: { kind: 'openai', url: 'x', model: 'm' } }, 'tau2: user.url: expected a URL'],
    [
      { user: { kind: 'openai', url: 'http://a', model: 'm', name: 1 } },
      'tau2: user.name: expected one of the options',
    ],
    [{ judge: { url: 'http://a' } }, 'tau2: judge.model: expected the name of a model, got nothing'],
    [{ judge: 'gpt' }, 'tau2: judge: expected { url, model, … }'],
    [{ judge: { url: 'http://a', model: 'm', votes: 2 } }, 'judge.votes: expected an odd number in [1, 15], got 2'],
    [{ split: 'all' }, 'split must be "published" or "full", got "all"'],
  ])('refuses %j', (options, message) => expect(() => createEnv(options as EnvOptions)).toThrow(message));
});

describe('tasks', () => {
  it('have the published splits, disjoint and complete', () => {
    const counts = ['retail', 'airline'].map((domain) => {
      const { count, split, sets } = createEnv({ domain }).tasks;
      return [count, split('train').length, split('test').length, sets!.base!.length];
    });
    expect(counts).toEqual([
      [114, 74, 40, 114],
      [50, 30, 20, 50],
    ]);
  });
});

describe('tools', () => {
  const tables: Readonly<Record<string, Readonly<Record<string, Method<never>>>>> = {
    retail: retailMethods as never,
    airline: airlineMethods as never,
  };
  it.each(Object.keys(tables))('of %s take what the original says, in its order', (id) => {
    const tools = DOMAINS[id]!.tools('assistant');
    expect(tools.length).toBeGreaterThan(13);
    for (const { tool } of tools) {
      const properties = Object.keys(tool.parameters.properties as object);
      expect([tool.name, ...tables[id]![tool.name]!.parameters]).toEqual([tool.name, ...properties]);
    }
  });
});

describe('an episode', () => {
  it('opens with the policy, the greeting and the reason of the call', async () => {
    const { messages, tools, toolChoice } = readAgentCall((await open({ domain: 'retail' })).first.observation);
    expect(messages.map(({ role }) => role)).toEqual(['system', 'assistant', 'user']);
    expect(messages[0]!.content).toMatch(
      /^<instructions>\n.*<\/instructions>\n<policy>\n# Retail agent policy.*<\/policy>$/s,
    );
    expect(messages[2]!.content).toMatch(/^I received my order #W2378156 and wish to exchange/);
    expect([tools!.length, toolChoice]).toEqual([16, undefined]);
  });

  it('opens with a ticket, and asks for calls, where there is no user', async () => {
    const first = readAgentCall((await open({ domain: 'mock', user: 'solo' })).first.observation);
    expect(first.messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(first.messages[1]!.content).toMatch(/^<ticket>\nUser needs to create a task/);
    expect([first.tools!.at(-1)!.name, first.toolChoice]).toEqual(['done', 'required']);
  });

  it('goes on from the history of a task', async () => {
    const first = readAgentCall((await open({ domain: 'mock' }, 4)).first.observation);
    expect(first.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
  });

  it('answers calls in order, and counts what fails', async () => {
    const session = await open({ domain: 'mock', maxErrors: 3 });
    const first = await session.step(reply('', ['get_users', '{}'], ['nothing', '{}'], ['get_users', '{"a": ']));
    expect(messagesOf(first)).toMatchObject([
      { role: 'tool', content: '[{"user_id": "user_1", "name": "Test User", "tasks": ["task_1"]}]' },
      { role: 'tool', content: "Error: Tool 'nothing' not found.", isError: true },
      { role: 'tool', content: expect.stringContaining('the arguments of get_users are no JSON'), isError: true },
    ]);
    const second = await session.step(reply('', ['get_users', '[]']));
    expect(second).toMatchObject({ kind: 'terminated', reward: 0, success: false });
    expect(lastOf(second)).toBe('[too_many_errors] reward 0');
  });

  it('keeps the kinds of numbers in arguments', async () => {
    const session = await open({ domain: 'airline' });
    const send = (amount: string) =>
      session.step(reply('', ['send_certificate', `{"user_id": "mia_li_3668", "amount": ${amount}}`]));
    expect(lastOf(await send('100'))).toMatch(/with amount 100\.$/);
    expect(lastOf(await send('100.0'))).toMatch(/with amount 100\.0\.$/);
  });

  it('makes 32 calls of a reply, and says so of the others', async () => {
    const session = await open({ domain: 'mock' });
    const calls = Array.from({ length: 34 }, (): Call => ['get_users', '{}']);
    const messages = messagesOf(await session.step(reply('', ...calls)));
    expect(messages).toHaveLength(34);
    expect(messages.slice(31).map(({ content }) => content.startsWith('Error: not made'))).toEqual([false, true, true]);
  });

  it('ends with nothing said or called, by its limits, and by the user', async () => {
    const silent = await (await open({ domain: 'mock' })).step(reply(' '));
    expect([silent.kind, lastOf(silent)]).toEqual(['terminated', '[agent_error] reward 0']);
    const cut = await (await open({ domain: 'mock', maxSteps: 2 })).step(reply('', ['get_users', '{}']));
    expect(lastOf(cut)).toBe('[max_steps] reward 0');
    const session = await open({ domain: 'retail' });
    await session.step(reply('', ['transfer_to_human_agents', '{"summary": "x"}']));
    expect(lastOf(await session.step(reply('Bye.')))).toMatch(/###TRANSFER###\n\[user_stop\] reward 0: DB 0/);
  });

  it('does not end by a stop of the agent, where there is a user', async () => {
    const session = await open({ domain: 'airline' });
    expect(await session.step(reply('###STOP###'))).toMatchObject({ kind: 'mid' });
  });

  it('ends by done without a user, whatever else is called with it', async () => {
    const session = await open({ domain: 'mock', user: 'solo' });
    const create = '{"user_id": "user_1", "title": "Important Meeting"}';
    await session.step(reply('', ['create_task', create]));
    const end = await session.step(reply('', ['create_task', create], ['done', '{}']));
    expect(end).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    expect(lastOf(end)).toBe('[agent_stop] reward 1: DB 1, COMMUNICATE 1');
    const speaks = await (await open({ domain: 'mock', user: 'solo' })).step(reply('Hello.'));
    expect(lastOf(speaks)).toBe('[agent_error] reward 0');
  });

  it('says that a judge has not looked', async () => {
    const env = createEnv({ domain: 'retail' });
    const index = DOMAINS.retail!.tasks().findIndex(({ criteria }) => criteria!.statements.length > 0);
    const session = await env.open({ env: 'tau2', index, seed: 0 });
    const next = createOracle({ domain: 'retail' })({ env: 'tau2', index, seed: 0 });
    let step: EnvStep | typeof session.first = session.first;
    for (let action = next(step); action !== undefined; action = next(step)) step = await session.step(action);
    expect(lastOf(step as EnvStep)).toMatch(
      /\[user_stop\] reward without a judge 1: DB 1, NL_ASSERTION not judged \(\d+\)$/,
    );
  });
});

describe('a policy that chooses', () => {
  it.each([
    ['retail', ['modify_pending_order_address', 'exchange_delivered_order_items', 'modify_user_address']],
    ['airline', ['book_reservation', 'update_reservation_flights', 'update_reservation_passengers']],
  ])('is offered all tools of %s once values were shown', async (domain, writes) => {
    const session = await open({ domain });
    const user = domain === 'retail' ? 'yusuf_rossi_9620' : 'mia_li_3668';
    await session.step(reply('', ['get_user_details', `{"user_id": "${user}"}`]));
    const names = readAgentCall(session.first.observation).tools!.map(({ name }) => name);
    expect(session.actions()).toEqual([...names, 'reply']);
    expect(names).toEqual(expect.arrayContaining(writes));
  });

  it('changes an address of seven parts', async () => {
    const session = await open({ domain: 'retail' });
    await session.step(reply('', ['get_order_details', '{"order_id": "#W2378156"}']));
    await session.step('modify_pending_order_address');
    for (let i = 0; i < 6; i++) expect(await session.step('#W2378156')).toMatchObject({ partial: true });
    expect(lastOf(await session.step('#W2378156'))).toBe('Error: Non-pending order cannot be modified');
  });
});

describe('the oracle', () => {
  it.each([
    ['retail', 'scripted', 114],
    ['airline', 'scripted', 50],
    ['telecom', 'scripted', 2285],
    ['mock', 'scripted', 8], // two tasks ask the user or a judge for something
    ['mock', 'solo', 7],
  ])('of %s, %s, solves %d', async (domain, user, count) => {
    const env = createEnv({ domain, user });
    let solved = 0;
    for (let index = 0; index < env.tasks.count; index++) {
      const session = await env.open({ env: 'tau2', index, seed: 0 });
      const next = createOracle({ domain, user })({ env: 'tau2', index, seed: 0 });
      let step: EnvStep | typeof session.first = session.first;
      for (let action = next(step); action !== undefined; action = next(step)) step = await session.step(action);
      if (step.kind === 'terminated' && step.success) solved++;
    }
    expect(solved).toBe(count);
  });
});

describe('rules that read nothing', () => {
  const airline = [0, 1, 2, 4, 5, 6, 9, 10, 13, 26, 27, 28, 31, 34, 36, 38, 41, 43, 45, 46, 47, 48, 49];
  const retail = [10, 12, 24, 25, 50, 57, 62, 65, 67, 68, 105];
  const transfer = (turn: number) =>
    turn === 0 ? reply('', ['transfer_to_human_agents', '{"summary": "x"}']) : reply('Bye.');
  it('solve the tasks whose target is the untouched database', async () => {
    expect(await solvedBy({ domain: 'retail' }, () => reply('Yes.'))).toEqual(retail);
    expect(await solvedBy({ domain: 'airline' }, () => reply('Yes.'))).toEqual(airline);
    expect(await solvedBy({ domain: 'airline' }, transfer)).toEqual(airline);
  });
});

describe('the scripted user', () => {
  it('speaks of itself', () => {
    expect(toFirstPerson("You are Ann. Your order is late, you'd like yours today. If you can, do it yourself.")).toBe(
      "I am Ann. My order is late, I'd like mine today. If I can, do it myself.",
    );
  });
  it('gives facts, agrees, and ends after its turns', async () => {
    const session = await open({ domain: 'retail', userTurns: 5 });
    const said: string[] = [];
    for (let step = await session.step(reply('Go on.')); ; step = await session.step(reply('Go on.'))) {
      said.push(lastOf(step));
      if (step.kind === 'terminated') break;
    }
    expect(said).toEqual([
      expect.stringMatching(/^I am Yusuf Rossi in zip code 19122\./),
      expect.stringMatching(/^I am detail-oriented/),
      'Yes, please go ahead.',
      'Yes, please go ahead.',
      expect.stringMatching(/^I have no more time\. ###STOP###\n\[user_stop\] reward 0/),
    ]);
  });
});
