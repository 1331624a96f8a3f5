/** Sessions of worlds of tools, over an episode that adds numbers up. */
import { describe, expect, it } from 'vitest';
import { type AgentReply, printAgentReply, readAgentCall, readReport } from '../../src/core/agent-call.ts';
import { openToolSession, type ToolAnswer, type ToolEpisode } from '../../src/core/tool-world.ts';

const ADD = {
  name: 'add',
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
};
const STOP = { name: 'stop', parameters: { type: 'object', properties: {} } };

function counter(target: number, change: Partial<ToolEpisode> = {}): ToolEpisode {
  let sum = 0;
  const run = ({ name, arguments: args }: AgentReply['calls'][number]) => {
    if (name !== 'add') return { text: `no tool ${name}`, isError: true as const };
    sum += (JSON.parse(args) as { n: number }).n;
    return { text: String(sum) };
  };
  return {
    opening: [{ role: 'user', content: `Add 2 and 3 to ${target}.` }],
    tools: [ADD, STOP],
    toolChoice: 'required',
    take(reply): ToolAnswer {
      const isStop = reply.calls.some(({ name }) => name === 'stop');
      const results = reply.calls.map(isStop ? () => ({ text: 'stopped' }) : run);
      const user = reply.calls.length === 0 ? 'Call a tool.' : undefined;
      return {
        results,
        user,
        reward: isStop && sum === target ? 1 : 0,
        ...(isStop ? { end: { success: sum === target } } : {}),
      };
    },
    ...change,
  };
}

const usage = { promptTokens: 0, completionTokens: 0 };
const reply = (calls: AgentReply['calls'], content = '') =>
  printAgentReply({ content, calls, finish: calls.length > 0 ? 'calls' : 'stop', usage });
const add = (n: number) => ({ name: 'add', arguments: JSON.stringify({ n }) });

describe('a session of tools', () => {
  it('begins with its messages and tools, and answers several calls in order', async () => {
    const session = openToolSession(counter(5));
    const first = readAgentCall(session.first.observation);
    expect([first.parent, first.tools?.map(({ name }) => name), first.toolChoice]).toEqual([
      null,
      ['add', 'stop'],
      'required',
    ]);
    const step = await session.step(reply([add(2), add(3)]));
    expect(readAgentCall(step.observation)).toMatchObject({
      call: 1,
      parent: 0,
      messages: [
        { role: 'tool', callId: 'call_0_0', content: '2' },
        { role: 'tool', callId: 'call_0_1', content: '5' },
      ],
    });
    expect(await session.step(reply([{ name: 'stop', arguments: '{}' }]))).toMatchObject({
      kind: 'terminated',
      reward: 1,
      success: true,
    });
    expect(session.actions()).toEqual([]);
  });
  it('answers words by the user, and a call of no tool by an error', async () => {
    const session = openToolSession(counter(5));
    const asked = readAgentCall((await session.step('what?')).observation);
    expect(asked.messages).toEqual([{ role: 'user', content: 'Call a tool.' }]);
    const failed = readAgentCall((await session.step(reply([{ name: 'sub', arguments: '{}' }]))).observation);
    expect(failed.messages).toEqual([{ role: 'tool', callId: 'call_1_0', content: 'no tool sub', isError: true }]);
  });
  it('is played by choices: a tool, then its arguments, from what was shown', async () => {
    const session = openToolSession(counter(2, { values: ['7'] }));
    expect(session.actions()).toEqual(['add', 'stop']);
    expect(await session.step('add')).toMatchObject({ kind: 'mid', partial: true, observation: '' });
    expect([...session.actions()].sort()).toEqual(['2', '3', '7']);
    expect(readAgentCall((await session.step('2')).observation).messages).toMatchObject([{ content: '2' }]);
    expect(await session.step('stop')).toMatchObject({ kind: 'terminated', success: true });
  });
  it('takes a whole action in the midst of another, as if nothing had been chosen', async () => {
    const staged = openToolSession(counter(5));
    expect(await staged.step('add')).toMatchObject({ kind: 'mid', partial: true });
    expect(await staged.step('stop')).toEqual(await openToolSession(counter(5)).step('stop'));
    const stubborn = openToolSession(counter(5));
    await stubborn.step('add');
    expect(await stubborn.step('add')).not.toHaveProperty('partial'); // a stage is no whole action: words
  });
  it('passes over the choice of the only tool', () => {
    const session = openToolSession(counter(2, { tools: [ADD] }));
    expect(session.actions()).toContain('2');
  });
  it('demands a result for each call', async () => {
    const broken = counter(2, { take: () => ({ results: [], reward: 0 }) });
    expect(() => openToolSession(broken).step(reply([add(1)]))).toThrow('1 calls got 0 results');
  });
  it('counts valid and invalid calls, also of an episode that goes on, and reports what the world measured', async () => {
    const { take } = counter(5);
    const answer: ToolEpisode['take'] = async (one) => ({ ...(await take(one)), metrics: { sum: 2 } });
    const session = openToolSession(counter(5, { take: answer }));
    await session.step(reply([add(2), { name: 'sub', arguments: '{}' }]));
    await session.step('what?');
    const step = await session.step(reply([{ name: 'add', arguments: '{"n": "3"}' }]));
    expect(step.kind).toBe('mid');
    expect(readReport(step.observation)).toEqual({
      metrics: { sum: 2 },
      tools: {
        replies: 3,
        calls: 3,
        valid: 1,
        unknownTools: 1,
        invalidArguments: 1,
        malformedArguments: 0,
        errors: 1,
      },
    });
    expect(readAgentCall(step.observation)).not.toHaveProperty('report');
    expect(readReport(session.first.observation)).toEqual({ metrics: {} });
  });
  it('takes answers that come later', async () => {
    const { take } = counter(2);
    const session = openToolSession(counter(2, { take: async (one) => take(one) }));
    expect(await session.step(reply([add(1)]))).toMatchObject({ kind: 'mid', reward: 0 });
  });
});
