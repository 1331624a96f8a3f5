/**
 * TextCraft behind a latency with a heavy tail, as web sites and remote simulators have: most steps answer within a few
 * milliseconds, one in a thousand takes a hundred times as long.
 *
 * The latency of a step is a pure function of the task, the turn and the action, so runs under different schedules meet
 * the same world. (Chaos' `slow` delays a share of the steps uniformly up to near the deadline: a fault, no latency.)
 */
import { setTimeout } from 'node:timers/promises';
import { createEnv as createTextCraft } from '../../envs/textcraft/index.ts';
import type { Env, EnvOptions, Session } from '../../src/core/env.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';

export { view } from '../../envs/textcraft/index.ts';

/** Milliseconds of the fastest step, and of the slowest. */
const MIN_MS = 2;
const MAX_MS = 1000;
/** Pareto: P(latency > x) = (MIN_MS / x)^TAIL; the mean is MIN_MS · TAIL / (TAIL − 1) = 6 ms, the variance infinite. */
const TAIL = 1.5;

/** @returns milliseconds */
function latencyOf({ index, seed }: Task, turn: number, action: string): number {
  const u = Rng.fromSeed(seedFrom('latency', index, seed, turn, action)).float();
  return Math.min(MAX_MS, MIN_MS * (1 - u) ** (-1 / TAIL));
}

export function createEnv(options: EnvOptions = {}): Env {
  const world = createTextCraft(options);
  return {
    id: world.id,
    description: world.description,
    tasks: world.tasks,
    rewardRange: world.rewardRange,
    maxObservationChars: world.maxObservationChars,
    open(task): Session {
      const session = world.open(task);
      let turn = 0;
      return {
        first: session.first,
        actions: () => session.actions(),
        close: () => session.close(),
        async step(action) {
          await setTimeout(latencyOf(task, turn++, action));
          return session.step(action);
        },
      };
    },
  };
}
