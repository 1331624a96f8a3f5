/**
 * A world that misbehaves on demand, in every way a host must survive. Otherwise it counts: `+n` adds, `done` ends.
 * Its action texts change with the sum, so that the action table grows.
 */
import { type Env, type EnvStep, type MaybePromise, mid, type Session, terminated } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';

const never = new Promise<never>(() => {});
const hoard: unknown[] = [];

export function createEnv(options: { readonly id?: string } = {}): Env {
  let steps = 0;
  const step = (task: Task, state: { sum: number }, action: string): MaybePromise<EnvStep> => {
    steps++;
    switch (action) {
      case 'throw':
        throw new Error('the world broke');
      case 'reject':
        return Promise.reject(new Error('the world broke later'));
      case 'hang':
        return never;
      case 'spin':
        for (;;);
      case 'oom':
        for (;;) hoard.push(new Array(10_000).fill(steps++));
      case 'buffers': // outside the JavaScript heap and its limit
        for (;;) hoard.push(new Uint8Array(4_000_000).fill(1));
      case 'exit':
        process.exit(3);
        break;
      case 'late-throw':
        setTimeout(() => {
          throw new Error('thrown from a timer');
        }, 5);
        return never;
      case 'unclonable':
        return { ...mid('ok'), extra: () => 1 } as EnvStep;
      case 'symbol':
        return mid(Symbol('observation') as unknown as string);
      case 'huge':
        return mid('x'.repeat(2000));
      case 'nan':
        return mid('ok', Number.NaN);
      case 'truncate':
        return { kind: 'truncated', observation: 'ok', reward: 0 } as unknown as EnvStep;
      case 'impure':
        return mid(`calls so far ${steps}`);
      case 'done':
        return terminated(`sum ${state.sum}`, 1);
      case 'slow':
        return new Promise((resolve) => setTimeout(() => resolve(mid(`sum ${state.sum} slowly`)), 150));
      default:
        state.sum += Number(action) || 0;
        return mid(`task ${task.index}: sum ${state.sum}`);
    }
    throw new Error('unreachable');
  };
  return {
    id: options.id ?? 'faulty',
    description: 'Counts, and misbehaves on demand.',
    tasks: { count: 1000, labels: ['all'], label: () => 'all', split: () => [], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 1000,
    open(task) {
      if (task.index === 999) throw new RangeError('no such task');
      if (task.index === 998) return never;
      const state = { sum: 0 };
      const session: Session = {
        first: { kind: 'first', observation: `task ${task.index}` },
        step: (action) => step(task, state, action),
        actions: () => ['done', `+${state.sum % 3}`, `-${state.sum % 3}`],
        close() {},
      };
      return session;
    },
  };
}
