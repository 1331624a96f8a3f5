/** SciWorld's oracle reaches 100 on every variation of the tasks it claims, by actions that are listed. */
import { describe, expect, it } from 'vitest';
import { createEnv, createOracle } from '../../../envs/sciworld/index.ts';
import { claims } from '../../../envs/sciworld/oracle.ts';
import { REGISTRY } from '../../../envs/sciworld/tasks/index.ts';
import type { EnvStep, TimeStep } from '../../../src/core/env.ts';

const env = createEnv({ tasks: 'scienceworld' });
const oracle = createOracle({ tasks: 'scienceworld' });
/** All variations, or some of each task. */
const SOME = process.env.LONGPLAY_LONG === '1' ? Infinity : 12;

const byTask = new Map<string, number[]>();
for (let index = 0; index < env.tasks.count; index++) {
  const { name } = env.tasks.at(index).registered.task;
  byTask.set(name, [...(byTask.get(name) ?? []), index]);
}
const claimed = [...REGISTRY.keys()].filter(claims);

/** Indices spread over a task's variations, the first and the last among them. */
function chosen(indices: readonly number[]): readonly number[] {
  const count = Math.min(SOME, indices.length);
  return Array.from(
    { length: count },
    (_, i) => indices[Math.round((i * (indices.length - 1)) / Math.max(1, count - 1))]!,
  );
}

interface Played {
  readonly last: TimeStep;
  readonly score: number;
  readonly unlisted: readonly string[];
}

function play(index: number): Played {
  const task = { env: env.id, index, seed: 0 };
  const session = env.open(task);
  const next = oracle(task);
  const unlisted: string[] = [];
  let last: TimeStep = session.first;
  let score = 0;
  for (let t = 0; t < 400 && last.kind !== 'terminated'; t++) {
    const action = next(last);
    if (action === undefined) break;
    if (!session.actions().includes(action)) unlisted.push(action);
    const step: EnvStep = session.step(action);
    score += step.reward;
    last = step;
  }
  return { last, score, unlisted };
}

describe("SciWorld's oracle", () => {
  it("claims the tasks of the paper's five sub-tasks", () => {
    const { tasks } = createEnv();
    const tested = new Set(tasks.split('test'));
    for (const index of tested) expect(claimed).toContain(tasks.at(index).registered.task.name);
  });

  it.each(claimed)('solves %s with a score of 100', { timeout: 600_000 }, (name) => {
    const failed = chosen(byTask.get(name)!).flatMap((index) => {
      const { last, score } = play(index);
      const solved = last.kind === 'terminated' && last.success && Math.abs(score - 1) < 1e-9;
      return solved ? [] : [{ variation: env.tasks.at(index).variation, score, answer: last.observation }];
    });
    expect(failed).toEqual([]);
  });

  it('takes only listed actions', () => {
    for (const name of claimed) expect([name, ...play(byTask.get(name)![0]!).unlisted]).toEqual([name]);
  });

  it('gives up on other tasks', () => {
    const other = [...REGISTRY.keys()].find((name) => !claims(name))!;
    const [index] = byTask.get(other)!;
    const task = { env: env.id, index: index!, seed: 0 };
    expect(oracle(task)(env.open(task).first)).toBeUndefined();
  });
});
