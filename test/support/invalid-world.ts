/**
 * Ten tasks, one of them odd in the way that `odd` says; the others are guessed in one turn. For runs that must outlive
 * one bad task.
 */
import { type Env, type EnvOptions, mid, terminated } from '../../src/core/env.ts';
import { taskTable } from '../../src/core/task.ts';

export const ODD = 3;

export function createEnv({ odd }: EnvOptions = {}): Env {
  const tasks = taskTable(10, [[8, 9]], {
    labels: ['all'],
    of(index) {
      if (odd === 'label' && index === ODD) throw new Error('no label for this one');
      return 'all';
    },
  });
  return {
    id: 'odd',
    description: 'Say left.',
    tasks,
    rewardRange: [0, 1],
    maxObservationChars: 10_000,
    open({ index }) {
      if (!(Number.isInteger(index) && index >= 0 && index < 10)) throw new RangeError(`no task ${index}`);
      const bad = index === ODD;
      return {
        first: { kind: 'first', observation: bad && odd === 'long' ? 'left or right '.repeat(300) : 'left or right' },
        step(action) {
          if (bad && odd === 'floating') void Promise.reject(new Error('nobody awaits this'));
          if (bad && odd === 'throws') throw Object.create(null);
          if (bad && odd === 'microtask') {
            queueMicrotask(() => {
              throw new Error('in nobody’s name');
            });
          }
          if (bad && odd === 'exits') setTimeout(() => process.exit(9), 1);
          if (bad && (odd === 'exits' || odd === 'floating')) return new Promise<never>(() => {});
          return bad && odd === 'microtask' ? mid('again') : terminated('done', action === 'left' ? 1 : 0);
        },
        actions: () => (bad && odd === 'nothing' ? [] : ['left', 'right']),
        close() {},
      };
    },
  };
}
