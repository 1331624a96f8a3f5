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
import { runConfigSchema } from '../../src/config/run-config.ts';
import { countUnaccounted, type Failure } from '../../src/core/failure.ts';
import type { Rng } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { startRun } from '../../src/run/start-run.ts';
import { readJournal } from '../../src/storage/journal.ts';
import { recheck } from '../../src/storage/recheck.ts';
import {
  createEnv,
  type HostileFault,
  type Isolation,
  SLEEP_SECONDS,
  TASKS,
  TURNS,
  WAYS,
  type Way,
  type What,
} from '../support/hostile-world.ts';
import { amount, LONG, printFigure, rngOf, SEED } from './campaign.ts';

const COUNT = amount(300, 4);
const folder = mkdtempSync(join(tmpdir(), 'longplay-attack-worlds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface World {
  readonly isolation: Isolation;
  readonly hosts: number;
  readonly faults: readonly HostileFault[];
}

const ISOLATIONS: readonly Isolation[] = ['process', 'thread', 'process', 'inline'];
/** Tasks of a world that misbehave, by what that costs; the others are honest. */
const CHEAP = 16;
const COSTLY = LONG ? 3 : 5;

/**
 * Deals ways to misbehave, so that even a few worlds meet each of them: none comes again before all others that this
 * isolation contains, and those that few isolations contain come first.
 */
class Deck {
  readonly #ways: readonly What[];
  #left: What[] = [];

  constructor(costly: boolean) {
    this.#ways = dealt().filter((what) => (way(what).costly ?? false) === costly);
  }

  deal(count: number, isolation: Isolation, rng: Rng): What[] {
    const hand: What[] = [];
    while (hand.length < count) {
      const fits = this.#left.filter((what) => homes(what).includes(isolation));
      const [next] = fits.sort((a, b) => homes(a).length - homes(b).length);
      if (next === undefined) this.#left.push(...rng.shuffle(this.#ways));
      else hand.push(...this.#left.splice(this.#left.indexOf(next), 1));
    }
    return hand;
  }
}

/** Ways that this run has. */
function dealt(): What[] {
  return (Object.keys(WAYS) as What[]).filter((what) => LONG || !way(what).long);
}

function homes(what: What): readonly Isolation[] {
  return way(what).within ?? ISOLATIONS;
}

function way(what: What): Way {
  return WAYS[what];
}

/** What always strikes must be given up, which shows more than what is over at once. */
const ALWAYS_AND_ONCE = ['always', 'always', 'always', 'once'] as const;

/** The grammar: of the dealt ways, when and how often each strikes which task. */
function worldOf(isolation: Isolation, dealt: readonly What[]): fc.Arbitrary<World> {
  const fault = (what: What) =>
    fc.record({
      what: fc.constant(what),
      when: fc.constantFrom(...way(what).when),
      turn: fc.nat(TURNS - 1),
      often: fc.constantFrom(...ALWAYS_AND_ONCE),
    });
  const tasks = Array.from({ length: TASKS }, (_, task) => task);
  return fc.record({
    isolation: fc.constant(isolation),
    hosts: fc.constantFrom(1, 1, 2),
    faults: fc
      .tuple(fc.shuffledSubarray(tasks, { minLength: dealt.length }), fc.tuple(...dealt.map(fault)))
      .map(([struck, faults]) => faults.map((one, i) => ({ ...one, task: struck[i]! }))),
  });
}

/** The worlds of this campaign. */
function* worlds(): Generator<World> {
  const rng = rngOf('worlds', 0);
  const [cheap, costly] = [new Deck(false), new Deck(true)];
  for (let n = 0; n < COUNT; n++) {
    const isolation = ISOLATIONS[n % ISOLATIONS.length]!;
    const dealt = [...cheap.deal(CHEAP, isolation, rng), ...costly.deal(COSTLY, isolation, rng)];
    yield fc.sample(worldOf(isolation, dealt), { numRuns: 1, seed: rng.int(2 ** 31) })[0]!;
  }
}

/** Tasks that no attempt can finish, each with the fault that is to be named. */
function culprits({ faults }: World): HostileFault[] {
  return faults.filter(({ what, often }) => often === 'always' && way(what).causes).sort((a, b) => a.task - b.task);
}

/** Characters of the longest line about a task given up. */
const MAX_LINE = 20_000;
/** Updates after which every task was tried to its end. */
const UPDATES = TASKS / 4 + 1;
/** Worlds at a time: a world mostly waits for deadlines. */
const LANES = 4;
/**
 * Deadlines, milliseconds of the host's own time: what is honest takes 30 at most. A fault that spins takes a processor for
 * so long, so that these decide what a campaign costs.
 */
const [STEP_MS, OPEN_MS] = [500, 1000];
/** Episodes of a task at a time: each is struck, and ends a host where there is one, so that the short form has one there. */
function groupSize(isolation: Isolation): number {
  return LONG || isolation === 'inline' ? 2 : 1;
}
/** World that `LONGPLAY_ATTACK_WORLD` names: it alone is played. */
const ONLY = process.env.LONGPLAY_ATTACK_WORLD;

async function trainOn(hostile: World, n: number) {
  const dir = join(folder, String(n));
  mkdirSync(join(dir, 'once'), { recursive: true });
  const config = runConfigSchema.parse({
    seed: n,
    env: { id: 'hostile', options: { faults: hostile.faults, folder: join(dir, 'once') } },
    tasks: { sampling: { type: 'epoch' } },
    horizon: { type: 'fixed', rounds: TURNS },
    policy: { model: { hiddenSize: 8, layers: 1, heads: 1, maxPositions: 256 } },
    // Without lag an update waits for all groups of its round: at the end of the run every task was tried to its end.
    rollout: {
      groupSize: groupSize(hostile.isolation),
      concurrentGroups: 4,
      maxBatch: 8,
      envThreads: hostile.hosts,
      isolation: hostile.isolation,
      stepDeadlineMs: STEP_MS,
      openDeadlineMs: OPEN_MS,
      heapMb: 64,
    },
    learner: {
      groupsPerUpdate: 4,
      maxLag: 0,
      epochs: 1,
      filterGroups: false,
      estimator: { algorithm: groupSize(hostile.isolation) === 1 ? 'reinforce_pp' : 'grpo' }, // one alone is compared with none
    },
    stop: { updates: UPDATES },
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
    journal: join(dir, 'journal'),
    limits: { retry: { maxAttempts: 2 }, maxRestarts: 100 },
    onEpisodes: (trajectories) => trained.push(...trajectories),
  });
  try {
    const ended = await run.train();
    await run.flush();
    const file = join(dir, 'quarantine', 'tasks.jsonl');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    for (const line of lines) expect(line.length).toBeLessThan(MAX_LINE);
    const givenUp = lines.map((line) => JSON.parse(line) as { task: Task; failure: Failure });
    return { ended, trained, givenUp: givenUp.sort((a, b) => a.task.index - b.task.index) };
  } finally {
    await run.stop();
  }
}

/** Failures of a run as its journal lists them, a line each. */
function failures(n: number): string {
  const tasks = new Map<number, number>();
  const lines: string[] = [];
  for (const entry of readJournal(join(folder, String(n), 'journal'), 0).entries) {
    if (entry.type === 'launched') for (const { group, task } of entry.tickets) tasks.set(group, task.index);
    if (entry.type !== 'played') continue;
    for (const { group, failure } of [...entry.failed, ...entry.gaveUp]) {
      lines.push(`task ${tasks.get(group)} at ${failure.where}: ${failure.cause}, ${failure.message.slice(0, 200)}`);
    }
  }
  return lines.join('\n');
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

/** Holds a run's quarantine to name the culprits and no others, each for a cause that its way can have. */
function expectCulprits(hostile: World, givenUp: readonly { readonly task: Task; readonly failure: Failure }[]): void {
  const expected = culprits(hostile);
  expect(givenUp.map(({ task }) => task.index)).toEqual(expected.map(({ task }) => task));
  for (const [i, { failure }] of givenUp.entries()) {
    const { what } = expected[i]!;
    expect(way(what).causes, `${what}: ${failure.message}`).toContain(failure.cause);
  }
}

/** Holds what was trained on to be what the honest world answers, and only those to have failed that were struck. */
async function expectHonest({ faults, isolation }: World, trained: readonly Trajectory[]): Promise<void> {
  const env = createEnv();
  const strikes = new Map(faults.filter(({ what }) => way(what).causes).map((one) => [one.task, 1]));
  for (const trajectory of trained) {
    const { task, attempt } = trajectory;
    const which = `task ${task.index}, attempt ${attempt}`;
    expect(await recheck(env, trajectory), which).toBeUndefined();
    const left = (strikes.get(task.index) ?? 0) - (attempt - 1);
    expect(left, `${which}: an episode failed that nothing had struck`).toBeGreaterThanOrEqual(0);
    strikes.set(task.index, left);
  }
  if (isolation !== 'inline') return; // elsewhere a strike may be lost with a host that another one ended
  const known = new Set(trained.map(({ task }) => task.index));
  for (const { task, what, often } of faults) {
    if (often === 'once' && known.has(task)) expect(strikes.get(task) ?? 0, `${what} passed for honest`).toBe(0);
  }
}

it(`${COUNT} generated worlds: every run ends by its rule, and knows whose fault it was`, {
  timeout: 3_600_000,
}, async () => {
  const sleeping = sleepers();
  const met = new Set<string>();
  let faults = 0;
  let failed = 0;
  let given = 0;
  const left = worlds();
  let begun = 0;
  let broken = false;
  const lane = async () => {
    for (const hostile of left) {
      if (broken) return;
      const n = begun++;
      if (ONLY !== undefined && n !== Number(ONLY)) continue;
      try {
        const { ended, trained, givenUp } = await trainOn(hostile, n);
        expect(ended.why).toBe('updates');
        expect(ended.status.version).toBe(UPDATES);
        const { accounting } = ended.status;
        expect(countUnaccounted(accounting)).toBe(0);
        expect(accounting.trained + accounting.stale + accounting.filtered).toBeGreaterThanOrEqual(
          4 * groupSize(hostile.isolation) * UPDATES,
        );
        await expectHonest(hostile, trained);
        expectCulprits(hostile, givenUp);
        for (const { what } of hostile.faults) met.add(what);
        faults += hostile.faults.length;
        given += givenUp.length;
        failed += Object.values(accounting.failed).reduce((sum, one) => sum + (one ?? 0), 0);
      } catch (thrown) {
        broken = true;
        const why = thrown instanceof Error ? thrown.stack : thrown;
        throw new Error(`hostile world ${n} of seed ${SEED}: ${why}\n${failures(n)}\n${JSON.stringify(hostile)}`);
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
  expect(begun).toBe(COUNT);
  printFigure(
    `hostile worlds: ${COUNT} runs, ${faults} faults of ${met.size} kinds, ${failed} failed attempts, ${given} tasks given up, all of them culprits`,
  );
  if (ONLY === undefined) expect(met.size).toBe(dealt().length);
  for (let i = 0; i < 100 && sleepers() > sleeping; i++) await sleep(50);
  expect(sleepers()).toBe(sleeping);
});
