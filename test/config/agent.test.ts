/** The key `agent`, which stands for a world. */
import { describe, expect, it } from 'vitest';
import { loadRunConfig } from '../../src/config/load.ts';

const rest = 'horizon: { type: fixed, rounds: 4 }\nstop: { updates: 1 }\n';
const load = (agent: string, more = '', overrides: readonly string[] = []) =>
  loadRunConfig(`agent: ${agent}\n${rest}${more}`, 'test', overrides);

describe('an agent in a configuration', () => {
  it('is a world, and may take longer than one', () => {
    const { env, agent, rollout } = load('./my-agent.mjs');
    expect([env, agent]).toEqual([{ id: 'agent', options: { module: './my-agent.mjs' } }, undefined]);
    expect(rollout.stepDeadlineMs).toBe(60_000);
    expect(load('./a.mjs', 'rollout: { stepDeadlineMs: 5000 }\n').rollout.stepDeadlineMs).toBe(5000);
  });
  it('may be a command, with options and overrides', () => {
    const { env } = load('{ command: [python, agent.py], tasks: 20 }', '', ['agent.reuse=true']);
    expect(env.options).toEqual({ command: ['python', 'agent.py'], tasks: 20, reuse: true });
  });
  it('lets a language model be held to tools and formats', () => {
    const masked = (kind: string) => load('./a.mjs', `policy: { kind: ${kind}, path: /models/x }\n`).policy.masked;
    expect(masked('checkpoint')).toBe(true);
    expect(loadRunConfig(`env: { id: x }\n${rest}policy: { kind: checkpoint, path: /m }`, 'test').policy.masked).toBe(
      false,
    );
  });
  it.each([
    ['{ comand: [python] }', "unknown key 'agent.comand'"],
    ['{ command: python agent.py }', 'agent: expected'],
    ['./a.mjs\nenv: { id: textcraft }', "agent: expected either 'agent' or 'env', got both"],
  ])('is refused by name where it is wrong: %s', (agent, message) => {
    expect(() => load(agent)).toThrow(message);
  });
});
