/**
 * A world of a few honest tasks, and of tasks that misbehave by the option `faults`: what, when, and how often. Every
 * episode takes three turns; what it observes and pays is a pure function of the task and the actions, so an episode
 * that was not honest shows when it is played again without faults.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { CHANNEL_FD, ports } from '../../actors/env/process-channel.ts';
import {
  type Env,
  type EnvOptions,
  type EnvStep,
  type MaybePromise,
  mid,
  type Session,
  terminated,
} from '../../src/core/env.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { type Task, taskTable } from '../../src/core/task.ts';
import { hollow, postPastHost, writePastHost } from './host-channel.ts';

export const TASKS = 24;
export const TURNS = 3;

export type When = 'open' | 'step' | 'actions' | 'close';
export type Isolation = 'thread' | 'process' | 'inline';

/** One way to misbehave. */
export interface Way {
  readonly when: readonly When[];
  /** Causes that its failure may have; none for ways that must do no harm. */
  readonly causes?: readonly FailureCause[];
  /** Hosts that are meant to contain it. Default all. */
  readonly within?: readonly Isolation[];
  /** True where it ends a host or waits for a deadline. */
  readonly costly?: true;
  /** True where that takes so long that only the whole campaign has it. */
  readonly long?: true;
}

const ANSWER: readonly When[] = ['step'];
const CALL: readonly When[] = ['step', 'open'];
const LIST: readonly When[] = ['actions'];
/** Hosts of their own: ways that end or outlive the thread they run in, which inline hosts share with everything. */
const APART: readonly Isolation[] = ['thread', 'process'];
/** Ways that only a process of its own contains. */
const ALONE: readonly Isolation[] = ['process'];

const threw: Way = { when: CALL, causes: ['threw'] };
const broken: Way = { when: ANSWER, causes: ['protocol'] };
const badList: Way = { when: LIST, causes: ['protocol'] };
const longList: Way = { when: LIST, causes: ['oversized'] };
const late: Way = { when: CALL, causes: ['timeout'], costly: true };
const harmless: Way = { when: CALL };
const closing: Way = { when: ['close'] };

/** Every way to misbehave that is known. */
export const WAYS = {
  throw: threw,
  'throw-nothing': threw,
  'throw-getter': threw,
  'throw-long': threw,
  reject: threw,
  floating: { ...threw, within: APART },
  timer: { ...threw, within: APART },
  'thenable-throws': threw,
  'then-throws': threw,
  proxy: threw,
  hang: late,
  'thenable-never': late,
  spin: { ...late, within: APART },
  exit: { when: CALL, causes: ['exited'], within: APART, costly: true },
  'timer-spins': { ...late, within: APART, long: true },
  'promises-spin': { ...late, within: APART, long: true },
  'late-exit': { when: CALL, causes: ['exited'], within: APART, costly: true },
  nothing: { ...broken, when: CALL, causes: ['protocol', 'threw'] },
  primitive: { ...broken, when: CALL, causes: ['protocol', 'threw'] },
  symbol: { when: ANSWER, causes: ['unclonable'] },
  huge: { when: ANSWER, causes: ['oversized'] },
  kind: broken,
  'kind-first': broken,
  'reward-null': broken,
  'reward-none': broken,
  'reward-text': broken,
  'reward-true': broken,
  'reward-list': broken,
  'reward-object': broken,
  'reward-nan': broken,
  'reward-high': broken,
  'reward-low': broken,
  'reward-infinite': broken,
  'success-text': broken,
  'success-none': broken,
  'partial-text': broken,
  'partial-pays': broken,
  'partial-ends': broken,
  'partial-endless': broken,
  'list-text': badList,
  'list-numbers': badList,
  'list-promise': badList,
  'list-sparse': badList,
  'list-object': badList,
  'list-none': { when: LIST, causes: ['policy', 'protocol'] },
  'list-many': longList,
  'list-long': longList,
  'list-wide': longList,
  'list-throws': { when: LIST, causes: ['threw'] },
  'list-spins': { when: LIST, causes: ['timeout'], within: APART, costly: true },
  'list-exits': { when: LIST, causes: ['exited'], within: APART, costly: true },
  // A slow machine reaches the deadline before the memory.
  heap: { when: CALL, causes: ['out-of-memory', 'timeout'], within: ALONE, costly: true },
  buffers: { when: CALL, causes: ['out-of-memory', 'timeout'], within: ALONE, costly: true },
  kill: { when: CALL, causes: ['exited'], within: ALONE, costly: true },
  abort: { when: CALL, causes: ['exited'], within: ALONE, costly: true },
  stops: { ...late, within: ALONE, long: true },
  'timer-stops': { ...late, within: ALONE, long: true },
  'close-channel': { when: CALL, causes: ['exited'], within: ALONE, costly: true, long: true },
  'send-garbage': { when: CALL, causes: ['protocol'], within: ALONE, costly: true, long: true },
  'send-hollow': { when: CALL, causes: ['protocol'], within: ALONE, costly: true },
  'send-cause': { when: CALL, causes: ['protocol'], within: ALONE, costly: true, long: true },
  'send-null': { when: CALL, causes: ['protocol'], within: ALONE, costly: true },
  'send-lies': { when: CALL, causes: ['protocol'], within: ALONE, costly: true },
  'send-columns': { when: CALL, causes: ['protocol'], within: ALONE, costly: true, long: true },
  'send-reward': { when: CALL, causes: ['protocol'], within: ALONE, costly: true },
  'send-forged': { when: CALL, causes: ['protocol', 'timeout'], within: ALONE, costly: true },
  'send-ports': { when: CALL, causes: ['timeout'], within: ALONE, costly: true },
  noise: harmless,
  slow: harmless,
  interval: { ...harmless, within: APART },
  listeners: { ...harmless, within: APART },
  port: { ...harmless, within: APART },
  extra: { when: ANSWER },
  'extra-function': { when: ANSWER },
  'extra-throws': { when: ANSWER },
  child: { ...harmless, within: APART }, // those of an inline host are our own
  'getter-reward': { when: ANSWER },
  'getter-kind': { when: ANSWER },
  'getter-success': { when: ANSWER },
  'getter-observation': { when: ANSWER },
  'list-getter': { when: LIST },
  'list-proxy': { when: LIST },
  'close-throws': closing,
  'close-throws-nothing': closing,
  'close-rejects': closing,
  'close-hangs': closing,
  'close-floats': { ...closing, within: APART },
} as const satisfies Readonly<Record<string, Way>>;

export type What = keyof typeof WAYS;

/** Seconds that a child of a world would sleep: a number by which it is known. */
export const SLEEP_SECONDS = '86399';

export interface HostileFault {
  /** Task index that it strikes. */
  readonly task: number;
  readonly what: What;
  readonly when: When;
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
      let stuck = false;
      const session: Session = {
        first: { kind: 'first', observation: `task ${at}` },
        step(action) {
          const what = struckBy(at, 'step', turn);
          stuck ||= what === 'partial-endless';
          if (stuck) return { ...mid('a stage'), partial: true };
          turn++;
          const answer = honest(task, turn, action);
          return what === undefined ? answer : misbehave(what, answer);
        },
        actions() {
          const what = struckBy(at, 'actions', turn);
          return what === undefined ? ['left', 'right'] : invalidList(what);
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
  throw unreadable(property, base);
}

function unreadable(property: string, base: object): object {
  return Object.defineProperty(base, property, {
    enumerable: true,
    get() {
      throw new Error('not to be read');
    },
  });
}

/** @param good what an honest world would have given */
function misbehave(what: What, good: EnvStep): MaybePromise<EnvStep> {
  switch (what) {
    case 'throw':
    case 'list-throws':
    case 'close-throws':
      throw new Error('the world broke \u001b[2J');
    case 'throw-nothing':
    case 'close-throws-nothing':
      throw Object.create(null);
    case 'throw-getter':
      throwing('message', new Error());
      break;
    case 'throw-long':
      throw new Error('long '.repeat(1_000_000));
    case 'reject':
    case 'close-rejects':
      return Promise.reject(new Error('the world broke later'));
    case 'floating':
    case 'close-floats':
      void Promise.reject(new Error('unawaited'));
      return never;
    case 'timer':
      setTimeout(() => {
        throw new Error('thrown from a timer');
      }, 1);
      return never;
    case 'hang':
    case 'close-hangs':
      return never;
    case 'spin':
    case 'list-spins':
      for (;;);
    case 'exit':
    case 'list-exits':
      process.exit(3);
      break;
    case 'late-exit':
      setTimeout(() => process.exit(3), 1);
      return never;
    case 'timer-spins':
      setTimeout(() => {
        for (;;);
      }, 1);
      return never;
    case 'promises-spin':
      void (async () => {
        for (;;) await undefined;
      })();
      return never;
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
    case 'then-throws':
      return unreadable('then', { ...good }) as EnvStep;
    case 'proxy':
      return new Proxy(good, {
        get() {
          throw new Error('not to be read');
        },
      });
    default:
      return invalidAnswer(what, good) ?? strain(what, good);
  }
  throw new Error('unreachable');
}

/** Fields of an invalid answer to an action, by its way; `undefined` takes a field away. */
const INVALID_FIELDS: Readonly<Partial<Record<What, object>>> = {
  symbol: { observation: Symbol('observation') },
  huge: { observation: 'x'.repeat(100_000) },
  kind: { kind: 'truncated' },
  'kind-first': { kind: 'first' },
  'reward-null': { reward: null },
  'reward-none': { reward: undefined },
  'reward-text': { reward: '1' },
  'reward-true': { reward: true },
  'reward-list': { reward: [0.5] },
  'reward-object': { reward: { valueOf: () => 1 } },
  'reward-nan': { reward: Number.NaN },
  'reward-high': { reward: 1e6 },
  'reward-low': { reward: -0.5 },
  'reward-infinite': { reward: Number.POSITIVE_INFINITY },
  'success-text': { kind: 'terminated', success: 'yes' },
  'success-none': { kind: 'terminated', success: undefined },
  'partial-text': { partial: 'yes' },
  'partial-pays': { reward: 0.25, partial: true },
  'partial-ends': { kind: 'terminated', success: true, partial: true },
};

function invalidAnswer(what: What, good: EnvStep): EnvStep | undefined {
  if (what === 'nothing') return undefined as never;
  if (what === 'primitive') return 7 as never;
  const property = /^getter-(.*)/.exec(what)?.[1];
  if (property) return twofaced(good, property);
  const fields = INVALID_FIELDS[what];
  return fields && ({ ...mid('invalid'), ...fields } as unknown as EnvStep);
}

/** False values that a property has when it is read again. */
const LIES: Readonly<Record<string, unknown>> = {
  reward: 1e6,
  kind: 'terminated',
  success: true,
  observation: 'a lie',
};

/** An honest answer when it is read once, and a lie in one property ever after. */
function twofaced(good: EnvStep, property: string): EnvStep {
  const honestly = (good as unknown as Readonly<Record<string, unknown>>)[property];
  let reads = 0;
  return Object.defineProperty({ ...good }, property, {
    enumerable: true,
    get: () => (reads++ === 0 ? honestly : LIES[property]),
  }) as EnvStep;
}

/** Faults that only processes contain, and harmless ones. */
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
      postPastHost(ports.data, null);
      return never;
    case 'send-lies':
      postPastHost(ports.data, { heads: 'none' });
      return never;
    case 'send-columns':
      postPastHost(ports.data, { heads: new Int32Array(50_000), numbers: [], observations: [], actions: [] });
      return never;
    case 'send-reward': // as a batch of one observation that pays what is no number
      postPastHost(ports.data, [1, 0, 1, Number.NaN, 0, 'forged']);
      return never;
    case 'send-forged': // in the name of every other episode
      for (let episode = 0; episode < 200; episode++) postPastHost(ports.data, [1, episode, 99, 0.25, 0, 'forged']);
      return never;
    case 'send-ports': // no call waits for any of these
      for (const value of [null, 7, { id: 'x', type: 'RAW', value: [] }, { id: {}, type: 'HANDLER' }]) {
        postPastHost(ports.control, value);
        postPastHost(ports.setUp, value);
      }
      return never;
    case 'send-garbage':
      writePastHost(Buffer.alloc(64, 0xff));
      return never;
    case 'send-hollow':
      postPastHost(ports.data, hollow());
      return never;
    case 'send-cause': {
      const failure = { cause: '__proto__', where: 'x', message: 'forged' };
      postPastHost(ports.data, {
        heads: Int32Array.of(4, 0, 0, 0, 0),
        numbers: new Float64Array(2),
        observations: [],
        actions: new Int32Array(0),
        newActions: [],
        failures: [{ type: 'failed', episode: 0, failure }],
      });
      return never;
    }
    case 'close-channel':
      closeSync(CHANNEL_FD);
      return never;
    case 'stops':
      process.kill(process.pid, 'SIGSTOP');
      return never;
    case 'timer-stops':
      setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 1);
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
    case 'extra-function':
      return { ...good, ...{ extra: () => 1 } };
    case 'extra-throws':
      return unreadable('extra', { ...good }) as EnvStep;
    case 'extra':
      return { ...good, ...{ extra: { deep: [1, 2, 3] } } };
    default:
      throw new Error(`no way to misbehave called ${what}`);
  }
}

function invalidList(what: What): readonly string[] {
  switch (what) {
    case 'list-text':
      return 'left' as never;
    case 'list-numbers':
      return [1, 2] as never;
    case 'list-object':
      return { 0: 'left', length: 1 } as never;
    case 'list-many':
      return Array.from({ length: 100_000 }, (_, i) => String(i));
    case 'list-long':
      return ['x'.repeat(2_000_000)];
    case 'list-wide':
      return Array.from({ length: 1000 }, (_, i) => `${i} ${'x'.repeat(4000)}`);
    case 'list-none':
      return [];
    case 'list-sparse':
      return new Array(3);
    case 'list-promise':
      return never as never;
    case 'list-getter': {
      let reads = 0;
      return Object.defineProperty(['', 'right'], 0, { get: () => (reads++ === 0 ? 'left' : 7) });
    }
    case 'list-proxy': {
      let reads = 0;
      const get = (list: string[], key: string | symbol) =>
        key === 'length' && reads++ > 0 ? 1e9 : Reflect.get(list, key);
      return new Proxy(['left', 'right'], { get });
    }
    default:
      return misbehave(what, mid('list')) as never;
  }
}
