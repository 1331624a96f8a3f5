/** Outcomes of plans: whatever finished, in whatever order and how often, what is left is what is missing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Evaluations } from '../../actors/scheduler/evaluations.ts';
import { taskTable } from '../../src/core/task.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { summarise } from '../../src/learning/evaluation/summary.ts';
import { PlanOutcomes } from '../../src/run/plan-outcomes.ts';

const task = (index: number) => ({ env: 'toy', index, seed: 7 });
const plan = (indices: readonly number[], episodes: number) => ({
  ...{ name: 'h2 sampled', horizon: 2, temperature: 1, seed: 1 },
  tasks: indices.map(task),
  episodes,
});
const group = (index: number, size: number) =>
  Array.from(
    { length: size },
    () => ({ task: task(index), success: true, turns: [{ reward: 1 }] }) as never as Trajectory,
  );

describe('the outcomes of a plan', () => {
  it('count whole groups of its tasks, each as often as the plan lists it', () => {
    const index = fc.nat(4);
    fc.assert(
      fc.property(
        fc.array(index, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.tuple(index, fc.integer({ min: 1, max: 3 })), { maxLength: 12 }),
        (indices, episodes, groups) => {
          const outcomes = new PlanOutcomes(plan(indices, episodes));
          for (const [one, size] of groups) outcomes.add(group(one, size));
          const asked = (i: number) => indices.filter((one) => one === i).length;
          const played = (i: number) => groups.filter(([one, size]) => one === i && size === episodes).length;
          const { left } = outcomes;
          for (let i = 0; i <= 4; i++) {
            const missing = Math.max(0, asked(i) - played(i));
            expect(left.filter((one) => one.index === i)).toHaveLength(missing);
          }
          expect(outcomes.finished + left.length * episodes).toBe(outcomes.asked);
          const { all, failed, byTask } = summarise(outcomes.facts, taskTable(5, [], 'toy'));
          expect([all.asked, all.episodes, failed]).toEqual([
            outcomes.asked,
            outcomes.finished,
            left.length * episodes,
          ]);
          expect(byTask.map((one) => one.index)).toEqual([...new Set(indices)]);
          // What is left, played, is the whole.
          for (const one of left) outcomes.add(group(one.index, episodes));
          expect([outcomes.left, outcomes.finished]).toEqual([[], outcomes.asked]);
        },
      ),
    );
  });
});

it('a task that a plan lists several times is played under as many seeds, the first as if it were listed once', () => {
  const seeds = (indices: readonly number[]) => {
    const evaluations = new Evaluations();
    let record: { results: readonly { asked: number; successes: readonly boolean[] }[] } | undefined;
    evaluations.open(plan(indices, 1), (done) => {
      record = done;
    });
    const drawn: number[] = [];
    for (let next = evaluations.next(); next; next = evaluations.next()) {
      drawn.push(next.purpose.seed);
      evaluations.recordFinished(next.plan.name, group(next.task.index, 1));
    }
    evaluations.settle();
    return { drawn, results: record!.results.map(({ asked, successes }) => [asked, successes.length]) };
  };
  const { drawn, results } = seeds([3, 3, 5, 3]);
  expect(new Set(drawn).size).toBe(4);
  expect([drawn[0], drawn[2]]).toEqual(seeds([3, 5]).drawn);
  expect(results).toEqual([
    [3, 3],
    [1, 1],
  ]);
});
