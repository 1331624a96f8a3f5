/** Agents that know nothing of the policy: uniform random, and the world's own oracle. */
import type { Env, Oracle, TimeStep } from '../../core/env.ts';
import { messageOf } from '../../core/errors.ts';
import { withHorizon } from '../../core/horizon.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import type { Task } from '../../core/task.ts';
import { close, open, quoteText, step } from './script.ts';

export interface AgentResult {
  readonly agent: 'random' | 'oracle';
  readonly horizon: number;
  readonly episodes: number;
  /** Share of episodes that were solved. */
  readonly success: number;
  readonly meanReturn: number;
  /** Mean turns of the solved episodes; NaN where none was. */
  readonly turnsSolved: number;
  /** Labels: episodes solved and played, by sub-task. */
  readonly labels: Readonly<Record<string, { readonly solved: number; readonly played: number }>>;
  /** First error, where the agent or the env threw. */
  readonly broken?: string;
}

/** Agent: picks an action; `undefined` gives up. */
type Agent = (seen: TimeStep, listed: readonly string[]) => string | undefined;

/** Tasks agents are tried on: of the test split, else of the training split, spread evenly. */
export function sampleTasks(env: Env, count: number): Task[] {
  const test = env.tasks.split('test');
  const all = test.length > 0 ? test : env.tasks.split('train');
  const n = Math.min(count, all.length);
  return Array.from({ length: n }, (_, i) => ({
    env: env.id,
    index: all[Math.floor((i * all.length) / n)]!,
    seed: env.tasks.evalSeed,
  }));
}

/** Random agent: a uniform choice among the listed actions; the empty text where none are listed. */
export function randomAgent(env: Env, tasks: readonly Task[], horizon: number, seed: number): Promise<AgentResult> {
  return playAll('random', env, tasks, horizon, (task) => {
    const rng = Rng.fromSeed(seedFrom(seed, task.index));
    return (_, listed) => (listed.length > 0 ? rng.pick(listed) : '');
  });
}

/** Oracle agent, the world's scripted solver. It may give up; it may not throw, or answer anything but a text. */
export function oracleAgent(env: Env, oracle: Oracle, tasks: readonly Task[], horizon: number): Promise<AgentResult> {
  return playAll('oracle', env, tasks, horizon, (task) => oracle(task));
}

async function playAll(
  agent: AgentResult['agent'],
  env: Env,
  tasks: readonly Task[],
  horizon: number,
  start: (task: Task) => Agent,
): Promise<AgentResult> {
  const labels: Record<string, { solved: number; played: number }> = {};
  let solved = 0;
  let returns = 0;
  let turnsSolved = 0;
  let broken: string | undefined;
  for (const task of tasks) {
    const count = (labels[env.tasks.label(task.index)] ??= { solved: 0, played: 0 });
    count.played++;
    try {
      const { success, turns, reward } = await episode(env, task, horizon, start(task));
      returns += reward;
      if (!success) continue;
      count.solved++;
      solved++;
      turnsSolved += turns;
    } catch (thrown) {
      broken ??= `task ${task.index}: ${messageOf(thrown)}`;
    }
  }
  const result = { agent, horizon, episodes: tasks.length, success: solved / tasks.length, labels };
  const means = { meanReturn: returns / tasks.length, turnsSolved: turnsSolved / solved };
  return { ...result, ...means, ...(broken === undefined ? {} : { broken }) };
}

async function episode(env: Env, task: Task, horizon: number, agent: Agent) {
  const session = await open(env, { index: task.index, seed: task.seed, moves: [] });
  let seen: TimeStep = session.first;
  let reward = 0;
  let turns = 0;
  while (seen.kind === 'first' || seen.kind === 'mid') {
    const action = agent(seen, session.actions());
    if (action === undefined) break;
    if (typeof action !== 'string')
      throw new TypeError(`the oracle answered ${quoteText(String(action))}, which is no text`);
    seen = withHorizon(await step(session, action), ++turns, horizon);
    reward += seen.reward;
  }
  await close(session);
  return { success: seen.kind === 'terminated' && seen.success, turns, reward };
}
