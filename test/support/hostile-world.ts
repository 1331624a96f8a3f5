/**
 * A world of a few honest tasks, and of tasks that misbehave as the option `faults` says: what, when, and how often. Every
 * episode takes three turns; what it tells and pays is a pure function of the task and the actions, so an episode that
 * was not honest shows when it is played again without faults.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import {
  type Env,
  type EnvOptions,
  type EnvStep,
  type MaybePromise,
  mid,
  type Session,
  terminated,
} from '../../src/core/env.ts';
import { type Task, taskTable } from '../../src/core/task.ts';

export const TASKS = 8;
export const TURNS = 3;

/** Ways to misbehave that fail the episode they strike. */
export const FATAL = [
  'throw',
  'throw-nothing',
  'throw-getter',
  'reject',
  'floating',
  'timer',
  'hang',
  'spin',
  'exit',
  'late-exit',
  'nothing',
  'primitive',
  'symbol',
  'huge',
  'kind',
  'reward-null',
  'reward-text',
  'reward-nan',
  'reward-high',
  'reward-object',
  'partial-text',
  'thenable-never',
  'thenable-throws',
] as const;

/** Ways that fail it where it lists its actions. */
export const FATAL_LISTS = [
  'throw',
  'spin',
  'exit',
  'hang-list',
  'list-text',
  'list-numbers',
  'list-many',
  'list-long',
  'list-none',
  'list-sparse',
] as const;

/** Ways that only a process of its own contains. */
export const PROCESS_ONLY = ['heap', 'buffers', 'kill', 'abort', 'send-null', 'send-lies'] as const;

/** Ways that must harm nobody. */
export const HARMLESS = ['noise', 'slow', 'interval', 'listeners', 'port', 'getter', 'extra', 'child'] as const;

/** Seconds that a child of a world would sleep: a number by which it is known. */
export const SLEEP_SECONDS = '86399';

/** Ways to misbehave when the episode is over: it has been told, and stays. */
export const CLOSING = ['throw', 'throw-nothing', 'reject', 'hang', 'floating'] as const;

export type What =
  | (typeof FATAL)[number]
  | (typeof FATAL_LISTS)[number]
  | (typeof PROCESS_ONLY)[number]
  | (typeof HARMLESS)[number];

export interface HostileFault {
  /** Task index that it strikes. */
  readonly task: number;
  readonly what: What;
  readonly when: 'open' | 'step' | 'actions' | 'close';
  /** Turn of a `step` or a list, 0 … TURNS − 1. */
  readonly turn: number;
  readonly often: 'always' | 'once';
}

export interface HostileOptions extends EnvOptions {
  readonly faults: readonly HostileFault[];
  /** Folder in which a fault that strikes once leaves word, whatever becomes of its host. */
  readonly folder: string;
}

const never = new Promise<never>(() => {});
const hoard: unknown[] = [];

/** The honest answer to an action. */
function honest(task: Task, turn: number, action: string): EnvStep {
  const observation = `task ${task.index} turn ${turn} after ${action}`;
  const pays = action === 'left' ? 0.25 : 0;
  return turn === TURNS ? terminated(observation, pays, action === 'left') : mid(observation, pays);
}

export function createEnv(options: EnvOptions = {}): Env {
  const { faults = [], folder } = options as Partial<HostileOptions>;
  const struckBy = (task: number, when: HostileFault['when'], turn: number): What | undefined => {
    const fault = faults.find(
      (one) => one.task === task && one.when === when && (when === 'open' || when === 'close' || one.turn === turn),
    );
    if (!fault) return undefined;
    return fault.often === 'always' || firstTime(folder!, `${task}-${when}-${fault.turn}`) ? fault.what : undefined;
  };
  return {
    id: 'hostile',
    description: 'Say left, three times.',
    tasks: taskTable(TASKS, [], 'all'),
    rewardRange: [0, 1],
    maxObservationChars: 1000,
    open(task) {
      const at = task.index;
      let turn = 0;
      const session: Session = {
        first: { kind: 'first', observation: `task ${at}` },
        step(action) {
          const what = struckBy(at, 'step', turn);
          turn++;
          const answer = honest(task, turn, action);
          return what === undefined ? answer : misbehave(what, answer);
        },
        actions() {
          const what = struckBy(at, 'actions', turn);
          return what === undefined ? ['left', 'right'] : oddList(what);
        },
        close() {
          const what = struckBy(at, 'close', turn);
          if (what !== undefined) return misbehave(what, mid('closed')) as unknown as Promise<void>;
        },
      };
      const what = struckBy(at, 'open', 0);
      return what === undefined ? session : (misbehave(what, session as never) as unknown as Session);
    },
  };
}

/** True for the first of all hosts and episodes that asks. */
function firstTime(folder: string, name: string): boolean {
  try {
    closeSync(openSync(join(folder, name), 'wx'));
    return true;
  } catch {
    return false;
  }
}

function throwing(property: string, base: object): never {
  throw Object.defineProperty(base, property, {
    get() {
      throw new Error('not to be read');
    },
  });
}

/** @param good what an honest world would have given */
function misbehave(what: What, good: EnvStep): MaybePromise<EnvStep> {
  const odd = (more: object) => ({ ...mid('odd'), ...more }) as unknown as EnvStep;
  switch (what) {
    case 'throw':
      throw new Error('the world broke \u001b[2J');
    case 'throw-nothing':
      throw Object.create(null);
    case 'throw-getter':
      throwing('message', new Error());
      break;
    case 'reject':
      return Promise.reject(new Error('the world broke later'));
    case 'floating':
      void Promise.reject(new Error('nobody awaits this'));
      return never;
    case 'timer':
      setTimeout(() => {
        throw new Error('thrown from a timer');
      }, 1);
      return never;
    case 'hang':
      return never;
    case 'spin':
      for (;;);
    case 'exit':
      process.exit(3);
      break;
    case 'late-exit':
      setTimeout(() => process.exit(3), 1);
      return never;
    case 'nothing':
      return undefined as never;
    case 'primitive':
      return 7 as never;
    case 'symbol':
      return odd({ observation: Symbol('observation') });
    case 'huge':
      return odd({ observation: 'x'.repeat(100_000) });
    case 'kind':
      return odd({ kind: 'truncated' });
    case 'reward-null':
      return odd({ reward: null });
    case 'reward-text':
      return odd({ reward: '1' });
    case 'reward-nan':
      return odd({ reward: Number.NaN });
    case 'reward-high':
      return odd({ reward: 1e6 });
    case 'reward-object':
      return odd({ reward: { valueOf: () => 1 } });
    case 'partial-text':
      return odd({ partial: 'yes' });
    case 'thenable-never':
      // biome-ignore lint/suspicious/noThenProperty: it is what is tried
      return { then() {} } as never;
    case 'thenable-throws':
      return {
        // biome-ignore lint/suspicious/noThenProperty: it is what is tried
        then() {
          throw new Error('no promise');
        },
      } as never;
    default:
      return strain(what, good);
  }
  throw new Error('unreachable');
}

/** What only processes contain, and what harms nobody. */
function strain(what: What, good: EnvStep): MaybePromise<EnvStep> {
  switch (what) {
    case 'heap':
      for (;;) hoard.push(new Array(10_000).fill(hoard.length));
    case 'buffers':
      for (;;) hoard.push(new Uint8Array(4_000_000).fill(1));
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return never;
    case 'abort':
      process.abort();
      break;
    case 'send-null':
      process.send?.(null);
      process.send?.([1, { heads: 'none' }]);
      return never;
    case 'send-lies':
      process.send?.([1, null]);
      return never;
    case 'noise':
      console.log(`\u001b[2J${'noise '.repeat(100)}`);
      console.error('noise');
      return good;
    case 'slow':
      return new Promise((resolve) => setTimeout(() => resolve(good), 30));
    case 'interval':
      setInterval(() => {}, 10);
      return good;
    case 'listeners':
      for (let i = 0; i < 20; i++) process.on('exit', () => {});
      return good;
    case 'child':
      spawn('sleep', [SLEEP_SECONDS], { stdio: 'ignore' }).unref();
      spawn('sleep', [SLEEP_SECONDS], { stdio: 'inherit', detached: true }).unref();
      return good;
    case 'port':
      parentPort?.postMessage(null);
      return good;
    case 'getter': {
      let reads = 0;
      const { reward = 0 } = good as { reward?: number };
      return Object.defineProperty({ ...good }, 'reward', {
        enumerable: true,
        get: () => (reads++ === 0 ? reward : 1e6),
      }) as EnvStep;
    }
    case 'extra':
      return { ...good, ...{ extra: { deep: [1, 2, 3] } } };
    default:
      throw new Error(`no way to misbehave called ${what}`);
  }
}

function oddList(what: What): readonly string[] {
  switch (what) {
    case 'list-text':
      return 'left' as never;
    case 'list-numbers':
      return [1, 2] as never;
    case 'list-many':
      return Array.from({ length: 100_000 }, (_, i) => String(i));
    case 'list-long':
      return ['x'.repeat(2_000_000)];
    case 'list-none':
      return [];
    case 'list-sparse':
      return new Array(3);
    case 'hang-list':
      return never as never;
    default:
      return misbehave(what, mid('list')) as never;
  }
}
