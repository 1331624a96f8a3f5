/**
 * Worlds that misbehave in generated ways: what, when, how often, under which isolation. Every run ends by its own rule,
 * each episode is accounted for, no episode that a fault struck is trained on, and exactly the tasks that always fail are
 * given up.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { startRun } from '../../actors/tree.ts';
import { runConfigSchema } from '../../src/config/run-config.ts';
import { unaccounted } from '../../src/core/failure.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { recheck } from '../../src/record/recheck.ts';
import {
  CLOSING,
  createEnv,
  FATAL,
  FATAL_LISTS,
  HARMLESS,
  type HostileFault,
  PROCESS_ONLY,
  SLEEP_SECONDS,
  TASKS,
  TURNS,
  type What,
} from '../support/hostile-world.ts';
import { amount, SEED, tell } from './campaign.ts';

const COUNT = amount(300, 4);
const folder = mkdtempSync(join(tmpdir(), 'longplay-attack-worlds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Isolation = 'thread' | 'process' | 'inline';

interface World {
  readonly isolation: Isolation;
  readonly hosts: number;
  readonly faults: readonly HostileFault[];
}

/** Ways to end or outlive the thread they run in, which inline hosts share with everything. */
const UNCONTAINED: readonly What[] = [
  'spin',
  'exit',
  'late-exit',
  'floating',
  'timer',
  'port',
  'interval',
  'listeners',
];

/** The grammar: one or two tasks that misbehave, each in one way. */
const world: fc.Arbitrary<World> = fc
  .constantFrom<Isolation>('thread', 'thread', 'process', 'process', 'inline')
  .chain((isolation) => {
    const able = <W extends What>(whats: readonly W[]) =>
      fc.constantFrom(...whats.filter((what) => contains(isolation, what)));
    const beyond = isolation === 'process' ? PROCESS_ONLY : [];
    const way = fc.oneof(
      { weight: 4, arbitrary: fc.record({ when: fc.constant('step' as const), what: able([...FATAL, ...beyond]) }) },
      {
        weight: 2,
        arbitrary: fc.record({ when: fc.constant('open' as const), what: able([...FATAL, ...beyond].filter(opens)) }),
      },
      { weight: 2, arbitrary: fc.record({ when: fc.constant('actions' as const), what: able(FATAL_LISTS) }) },
      {
        weight: 2,
        arbitrary: fc.record({ when: fc.constantFrom('step' as const, 'open' as const), what: able(HARMLESS) }),
      },
      { weight: 1, arbitrary: fc.record({ when: fc.constant('close' as const), what: able(CLOSING) }) },
    );
    const fault = fc
      .tuple(way, fc.nat(TASKS - 1), fc.nat(TURNS - 1), fc.constantFrom('always' as const, 'once' as const))
      .map(([one, task, turn, often]): HostileFault => ({ ...one, task, turn, often }));
    return fc.record({
      isolation: fc.constant(isolation),
      hosts: fc.constantFrom(1, 1, 2),
      faults: fc.uniqueArray(fault, { minLength: 1, maxLength: 2, selector: ({ task }) => task }),
    });
  });

/** True where hosts of a kind are meant to contain a way to misbehave. */
function contains(isolation: Isolation, what: What): boolean {
  if (what === 'child') return isolation === 'process'; // a thread's children are those of the whole process
  return isolation !== 'inline' || !UNCONTAINED.includes(what);
}

/** Odd answers to a step are none to `open`, whose session has no such parts. */
function opens(what: What): boolean {
  return !/^(reward|partial|kind|huge|symbol)/.test(what);
}

/** Tasks that no attempt can finish. */
function culprits({ faults }: World): number[] {
  const harmless: readonly string[] = HARMLESS;
  return faults
    .filter(({ what, when, often }) => often === 'always' && when !== 'close' && !harmless.includes(what))
    .map(({ task }) => task)
    .sort((a, b) => a - b);
}

let runs = 0;

async function trainOn(hostile: World) {
  const dir = join(folder, String(runs++));
  mkdirSync(join(dir, 'once'), { recursive: true });
  const config = runConfigSchema.parse({
    seed: runs,
    env: { id: 'hostile', options: { faults: hostile.faults, folder: join(dir, 'once') } },
    tasks: { sampling: { type: 'epoch' } },
    horizon: { type: 'fixed', rounds: TURNS },
    policy: { model: { hiddenSize: 8, layers: 1, heads: 1, maxPositions: 256 } },
    // Without lag an update waits for all groups of its round: at the end of the run every task was tried to its end.
    rollout: {
      groupSize: 2,
      concurrentGroups: 4,
      maxBatch: 8,
      envThreads: hostile.hosts,
      isolation: hostile.isolation,
      maxAttempts: 2,
      maxRestarts: 100,
      stepDeadlineMs: 800,
      openDeadlineMs: 1600,
      heapMb: 64,
    },
    learner: { groupsPerUpdate: 4, maxLag: 0, epochs: 1, filterGroups: false },
    stop: { updates: 3 },
    checkpoint: { everyUpdates: 1000 },
    trace: { everyGroups: 0 },
    metrics: { tensorboard: false },
  });
  const trained: Trajectory[] = [];
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: new URL('../support/hostile-world.ts', import.meta.url),
    learn: true,
    onEpisodes: (trajectories) => trained.push(...trajectories),
  });
  try {
    const ended = await run.train();
    await run.flush();
    const file = join(dir, 'quarantine', 'tasks.jsonl');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    const givenUp = lines.map((line) => (JSON.parse(line) as { task: { index: number } }).task.index);
    return { ended, trained, givenUp: givenUp.sort((a, b) => a - b) };
  } finally {
    await run.stop();
  }
}

/** Processes that a world started and that still sleep. */
function sleepers(): number {
  if (!existsSync('/proc')) return 0;
  const named = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${SLEEP_SECONDS}\0`;
    } catch {
      return false;
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && named(name)).length;
}

it(`${COUNT} generated worlds: every run ends by its rule, and knows whose fault it was`, {
  timeout: 3_600_000,
}, async () => {
  const sleeping = sleepers();
  let faults = 0;
  let failed = 0;
  let given = 0;
  await fc.assert(
    fc.asyncProperty(world, async (hostile) => {
      const { ended, trained, givenUp } = await trainOn(hostile);
      expect(ended.why).toBe('updates');
      expect(ended.status.version).toBe(3);
      const { accounting } = ended.status;
      expect(unaccounted(accounting)).toBe(0);
      expect(accounting.trained + accounting.stale + accounting.filtered).toBeGreaterThanOrEqual(24);
      const env = createEnv();
      for (const trajectory of trained) expect(await recheck(env, trajectory)).toBeUndefined();
      expect(givenUp).toEqual(culprits(hostile));
      faults += hostile.faults.length;
      given += givenUp.length;
      failed += Object.values(accounting.failed).reduce((sum, one) => sum + (one ?? 0), 0);
    }),
    { numRuns: COUNT, seed: SEED | 0, endOnFailure: true },
  );
  tell(
    `hostile worlds: ${COUNT} runs, ${faults} faults, ${failed} failed attempts, ${given} tasks given up, all of them culprits`,
  );
  for (let i = 0; i < 100 && sleepers() > sleeping; i++) await sleep(50);
  expect(sleepers()).toBe(sleeping);
});
