/**
 * Ten tasks, one of them invalid by the option `fault`; the others are guessed in one turn. For runs that must survive
 * one bad task.
 */
import { type Env, type EnvOptions, mid, terminated } from '../../src/core/env.ts';
import { taskTable } from '../../src/core/task.ts';

export const INVALID = 3;

export function createEnv({ fault }: EnvOptions = {}): Env {
  const tasks = taskTable(10, [[8, 9]], {
    labels: ['all'],
    of(index) {
      if (fault === 'label' && index === INVALID) throw new Error('no label for this one');
      return 'all';
    },
  });
  return {
    id: 'invalid',
    description: 'Say left.',
    tasks,
    rewardRange: [0, 1],
    maxObservationChars: 10_000,
    open({ index }) {
      if (!(Number.isInteger(index) && index >= 0 && index < 10)) throw new RangeError(`no task ${index}`);
      const bad = index === INVALID;
      return {
        first: { kind: 'first', observation: bad && fault === 'long' ? 'left or right '.repeat(300) : 'left or right' },
        step(action) {
          if (bad && fault === 'floating') void Promise.reject(new Error('unawaited'));
          if (bad && fault === 'throws') throw Object.create(null);
          if (bad && fault === 'microtask') {
            queueMicrotask(() => {
              throw new Error('from no call');
            });
          }
          if (bad && fault === 'exits') setTimeout(() => process.exit(9), 1);
          if (bad && (fault === 'exits' || fault === 'floating')) return new Promise<never>(() => {});
          return bad && fault === 'microtask' ? mid('again') : terminated('done', action === 'left' ? 1 : 0);
        },
        actions: () => (bad && fault === 'nothing' ? [] : ['left', 'right']),
        close() {},
      };
    },
  };
}
