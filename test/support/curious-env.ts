/** A world that looks around where it runs: its environment's variables, its process; and that starts processes. */
import { type SpawnOptions, spawn } from 'node:child_process';
import { type Env, mid } from '../../src/core/env.ts';
import { taskTable } from '../../src/core/task.ts';

function sleeper(options: SpawnOptions): string {
  const child = spawn('sleep', ['86398'], options);
  child.unref();
  return String(child.pid);
}

export function createEnv(): Env {
  return {
    id: 'curious',
    description: 'Looks around.',
    tasks: taskTable(1, [], 'all'),
    rewardRange: [0, 1],
    maxObservationChars: 100_000,
    open: () => ({
      first: { kind: 'first', observation: 'ready' },
      step(action) {
        switch (action) {
          case 'variables':
            return mid(JSON.stringify(Object.keys(process.env)));
          case 'pid':
            return mid(String(process.pid));
          case 'sleep':
            return mid(sleeper({ stdio: 'ignore' }));
          case 'sleep-detached':
            return mid(sleeper({ stdio: 'ignore', detached: true }));
          case 'sleep-inherits': // holds the host's stderr open
            return mid(sleeper({ stdio: 'inherit', detached: true }));
          case 'sleep-escapes': // also without the host's mark
            return mid(sleeper({ stdio: 'inherit', detached: true, env: {} }));
          case 'spin':
            for (;;);
          default:
            return mid('?');
        }
      },
      actions: () => [],
      close() {},
    }),
  };
}
