/**
 * A world that misbehaves on demand, in every way a host must survive. Otherwise it counts: `+n` adds, `done` ends.
 * Its action texts change with the sum, so that the action table grows.
 */
import { closeSync } from 'node:fs';
import { CHANNEL_FD, ports } from '../../actors/env/process-channel.ts';
import { type Env, type EnvStep, type MaybePromise, mid, type Session, terminated } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import { hollow, postPastHost, writePastHost } from './host-channel.ts';

interface State {
  sum: number;
  /** The fault of the list of actions; none as a rule. */
  lists: string | undefined;
  /** True when closing never ends. */
  stays: boolean;
}

function invalidLists(how: string | undefined): readonly string[] | undefined {
  if (how === 'many') return Array.from({ length: 100_000 }, (_, i) => String(i));
  if (how === 'long') return ['x'.repeat(2_000_000)];
  if (how === 'much') return Array.from({ length: 1000 }, (_, i) => `${i} ${'x'.repeat(1000)}`);
  if (how === 'numbers') return [1, 2] as unknown as string[];
  return how === 'nothing' ? [] : undefined;
}

const never = new Promise<never>(() => {});
const hoard: unknown[] = [];

export function createEnv(options: { readonly id?: string } = {}): Env {
  let steps = 0;
  const step = (task: Task, state: State, action: string): MaybePromise<EnvStep> => {
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
      case 'floating':
        void Promise.reject(new Error('unawaited'));
        return never;
      case 'unprintable': // nothing that could be made a text
        throw Object.create(null);
      case 'unprintable-message':
        throw Object.defineProperty(new Error(), 'message', {
          get() {
            throw new Error('no message');
          },
        });
      case 'unprintable-later':
        return Promise.reject(Object.create(null));
      case 'microtask': // runs outside any call
        queueMicrotask(() => {
          throw new Error('thrown from a microtask');
        });
        return mid('ok');
      case 'slow-microtask': // its answer and the heartbeat requested then have the time to cross
        queueMicrotask(() => {
          for (const until = performance.now() + 200; performance.now() < until; );
          throw new Error('thrown from a microtask');
        });
        return mid('ok');
      case 'late-exit':
        setTimeout(() => process.exit(3), 5);
        return never;
      case 'send-null':
        postPastHost(ports.setUp, null);
        postPastHost(ports.control, null);
        postPastHost(ports.control, { id: {}, type: 'RAW' });
        process.send?.({ cmd: 'NODE_HANDLE_ACK' });
        return mid('sent');
      case 'send-lies':
        postPastHost(ports.data, { heads: 'none' });
        return never;
      case 'send-hollow':
        postPastHost(ports.data, hollow());
        return never;
      case 'send-reward': // in the name of an episode that waits for turn 1
        for (const episode of [1, 2, 3]) postPastHost(ports.data, [1, episode, 1, 1e6, 0, 'forged']);
        return never;
      case 'send-garbage':
        writePastHost(Buffer.alloc(64, 0xff));
        return never;
      case 'close-channel':
        closeSync(CHANNEL_FD);
        return never;
      case 'timer-spins':
        setTimeout(() => {
          for (;;);
        }, 1);
        return mid('ok');
      case 'timer-stops':
        setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 1);
        return mid('ok');
      case 'promises-spin':
        void (async () => {
          for (;;) await undefined;
        })();
        return mid('ok');
      case 'then-spins':
        return new Proxy(mid('ok'), {
          get(step, key) {
            for (; key === 'then'; );
            return Reflect.get(step, key);
          },
        });
      case 'unprintable-prototype':
        throw new Proxy(new Error(), {
          getPrototypeOf() {
            throw new Error('no prototype');
          },
        });
      case 'twice-read': {
        let reads = 0;
        return Object.defineProperty({ ...mid('ok') }, 'reward', {
          enumerable: true,
          get: () => (reads++ === 0 ? 1 : 1e6),
        });
      }
      case 'kind-read': {
        let reads = 0;
        const kinds = ['mid', 'terminated'] as const;
        return Object.defineProperty({ ...mid('ok') }, 'kind', { get: () => kinds[reads++] }) as EnvStep;
      }
      case 'getter-throws': {
        let reads = 0;
        return Object.defineProperty({ ...mid('ok') }, 'observation', {
          get() {
            if (reads++ > 0) throw new Error('read twice');
            return 'once';
          },
        });
      }
      case 'pays-null':
      case 'pays-text':
      case 'pays-list':
      case 'pays-true':
      case 'pays-object': {
        const rewards = { null: null, text: '1', list: [0.5], true: true, object: { valueOf: () => 1 } };
        return mid('ok', rewards[action.slice(5) as keyof typeof rewards] as never);
      }
      case 'partial-text':
        return { ...mid('ok'), partial: 'yes' } as unknown as EnvStep;
      case 'lists-many':
      case 'lists-long':
      case 'lists-much':
      case 'lists-numbers':
      case 'lists-nothing':
        state.lists = action.slice(6);
        return mid('ok');
      case 'unclonable':
        return { ...mid('ok'), extra: () => 1 } as EnvStep;
      case 'symbol':
        return mid(Symbol('observation') as unknown as string);
      case 'stay':
        state.stays = true;
        return mid('stays');
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
      const state: State = { sum: 0, lists: undefined, stays: false };
      const session: Session = {
        first: { kind: 'first', observation: `task ${task.index}` },
        step: (action) => step(task, state, action),
        actions: () => invalidLists(state.lists) ?? ['done', `+${state.sum % 3}`, `-${state.sum % 3}`],
        close: () => (state.stays ? never : undefined),
      };
      return session;
    },
  };
}
