/**
 * The real scheduler among stand-ins for rollouts, learner and recorder, under any order of results, failures,
 * duplicates, updates, checkpoints and full disks. Whenever it is killed, its last checkpoint and the journal after it
 * fold into the books that it had.
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GroupFinished } from '../../../actors/learner/protocol.ts';
import type { RecorderCommand } from '../../../actors/recorder/protocol.ts';
import type { RolloutCommand, SavedGroup } from '../../../actors/rollout/protocol.ts';
import type { SchedulerCommand, SchedulerSnapshot, SchedulerState } from '../../../actors/scheduler/protocol.ts';
import { replayJournal } from '../../../actors/scheduler/replay-journal.ts';
import { type SchedulerInit, schedulerActor } from '../../../actors/scheduler/scheduler-actor.ts';
import { countUnaccounted } from '../../../src/core/failure.ts';
import type { GroupTicket } from '../../../src/core/ticket.ts';
import { create } from '../../../src/learning/schedule/horizon-schedule.ts';
import type { RunStatus } from '../../../src/metrics/run-status.ts';
import { NO_TIME } from '../../../src/metrics/slot-time.ts';
import type { ReplyTo } from '../../../src/runtime/actor.ts';
import { createSystem } from '../../../src/runtime/create-system.ts';
import { Journal, type JournalEntry, readJournal } from '../../../src/storage/journal.ts';
import { inFolder } from '../../support/toy-run.ts';
import { trajectory } from '../../support/trajectories.ts';

type Fold = typeof replayJournal;

const SIZE = 2;
const PER_UPDATE = 2;

type Step =
  | { readonly type: 'finish'; readonly which: number; readonly success: number }
  | { readonly type: 'twice' }
  | { readonly type: 'fail' | 'giveUp'; readonly which: number; readonly cause: 'worker' | 'unreachable' }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'disk'; readonly full: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('finish' as const), which: fc.nat(9), success: fc.nat(SIZE) }),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'twice' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom('fail' as const, 'giveUp' as const),
      which: fc.nat(9),
      cause: fc.constantFrom('worker' as const, 'unreachable' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'checkpoint' as const }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('disk' as const), full: fc.boolean() }) },
);

const totals = { envSteps: 0, episodes: 0, runningEpisodes: 0, tokens: 0, calls: 0, decidedTurns: 0, time: NO_TIME };

/** A run of the scheduler, and stand-ins that do what messages order. */
class Run {
  readonly outstanding = new Map<number, GroupTicket>();
  /** Groups that the learner was handed, in order, and how many of them updates have consumed. */
  readonly handed: number[] = [];
  consumed = 0;
  full = false;
  readonly init: SchedulerInit;
  readonly #system = createSystem({ mode: 'serial', seed: 1 });
  readonly #journal: Journal;
  #played: Extract<SchedulerCommand, { type: 'played' }> | undefined;
  #version = 0;
  #givenUp: ReadonlySet<number> = new Set();

  /** @param names of its worlds */
  constructor(dir: string, names: readonly string[] = ['toy']) {
    this.#journal = new Journal(dir, 0, ((file: number, bytes: Uint8Array, at: number, length: number) => {
      if (!this.full) return writeSync(file, bytes, at, length);
      if (at > 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
      return writeSync(file, bytes, at, Math.min(5, length)); // some bytes arrive before the disk is full
    }) as typeof writeSync);
    this.init = {
      seed: 3,
      stop: { updates: 1000 },
      worlds: names.map((name, i) => ({
        name,
        schedule: [{ from: 0, weight: 1 + i }],
        tasks: [0, 1, 2, 3],
        sampling: { type: 'learnable', balanced: 'learnable' },
        labelOf: (index) => `label ${index % 3}`,
        horizon: create({ type: 'fixed', rounds: 4 }),
      })),
      mixture: 'progress',
      rollout: { groupSize: SIZE, concurrentGroups: 5 },
      learner: {
        groupsPerUpdate: PER_UPDATE,
        oversampling: 1,
        maxLag: 1,
        estimator: {
          algorithm: 'ppo',
          gamma: 1,
          truncation: 'terminal',
          aggregation: { type: 'token-mean' },
          lambda: 1,
        },
        filterGroups: false,
      },
      start: { version: 0, state: undefined, group: 0 },
      barrier: false,
      evaluation: {
        everyUpdates: 2,
        plans: [
          {
            name: 'held',
            tasks: [{ env: names[0]!, index: 1, seed: 9 }],
            episodes: SIZE,
            horizon: 4,
            temperature: 1,
            seed: 5,
          },
        ],
      },
      journal: { journal: this.#journal, digests: new Map(), oldestCheckpoint: () => undefined },
      paths: { rollout: '/rollout', learner: '/learner', recorder: '/recorder' },
    };
  }

  async start(): Promise<SchedulerState> {
    const rollouts = this.#system.spawn<RolloutCommand>('rollout', (ctx) => ({
      handlers: {
        play: ({ groups }) => {
          for (const ticket of groups) this.outstanding.set(ticket.group, ticket);
        },
        capture: ({ id }) => {
          const training = [...this.outstanding.values()].filter(({ purpose }) => purpose.name === 'train');
          const running = training.map(savedGroup);
          void ctx
            .resolve<SchedulerCommand>('/scheduler')
            .tell({ type: 'captured', id, state: { running, nextEpisode: 10_000, totals } });
        },
        abandon() {},
        restore() {},
        pause() {},
        resume() {},
        acted() {},
        observed() {},
        truncated() {},
      },
    }));
    const learner = this.#system.spawn<GroupFinished>('learner', () => ({
      handlers: { group: ({ group }) => void this.handed.push(group.group) },
    }));
    const quiet = () => {};
    const recorder = this.#system.spawn<RecorderCommand>('recorder', () => ({
      handlers: {
        episodes: quiet,
        updated: quiet,
        metrics: quiet,
        evaluated: quiet,
        saved: quiet,
        failed: quiet,
        quarantined: quiet,
        progressed: quiet,
        noticed: quiet,
        flush: quiet,
      },
    }));
    await Promise.all([rollouts, learner, recorder]);
    await this.#system.spawn('scheduler', schedulerActor(this.init));
    const first = await this.snapshot();
    await this.#send({ type: 'train', replyTo: { path: '/test', id: 1 } }); // it does not end here
    return first;
  }

  async take(one: Step): Promise<SchedulerState | undefined> {
    // An evaluation under way at a checkpoint counts as filtered in it: failures of it after that are in no fold.
    const all = [...this.outstanding.values()];
    const groups = one.type === 'finish' ? all : all.filter(({ purpose }) => purpose.name === 'train');
    const ticket = 'which' in one ? groups[one.which % Math.max(1, groups.length)] : undefined;
    const failure = { cause: 'cause' in one ? one.cause : 'worker', where: '/test', message: 'gone' } as const;
    const none = { type: 'played', groups: [], gaveUp: [], failed: [], totals } as const;
    if (one.type === 'checkpoint') return this.snapshot();
    if (one.type === 'disk') {
      this.full = one.full;
      await this.#system.run(new Promise<void>((resolve) => this.#system.clock.setTimer(1500, resolve)));
    } else if (one.type === 'twice' && this.#played) await this.#send(this.#played);
    else if (one.type === 'fail' && ticket) await this.#send({ ...none, failed: [{ group: ticket.group, failure }] });
    else if (one.type === 'giveUp' && ticket && this.outstanding.size > 3 && this.#mayGiveUp(ticket)) {
      this.outstanding.delete(ticket.group);
      await this.#send({ ...none, gaveUp: [{ group: ticket.group, failure, attempts: 3 }] });
    } else if (one.type === 'finish' && ticket) {
      this.outstanding.delete(ticket.group);
      const trajectories = Array.from({ length: SIZE }, (_, member) => ({
        ...trajectory({ turns: [{}], horizon: ticket.horizon }, 2 * ticket.group + member),
        group: ticket.group,
        task: ticket.task,
        success: member < one.success,
      }));
      this.#played = { ...none, groups: [{ group: ticket.group, trajectories, envSteps: 1 }] };
      await this.#send(this.#played);
    }
    await this.#update();
    return undefined;
  }

  /** True where a task is left besides those given up, this one among them: a run without any ends by itself. */
  #mayGiveUp({ task }: GroupTicket): boolean {
    const given = new Set([...this.#givenUp, task.index]);
    if (given.size === this.init.worlds[0]!.tasks.length) return false;
    this.#givenUp = given;
    return true;
  }

  /** What the journal and the books at this instant must agree on. */
  async books() {
    const status = await this.#ask<RunStatus>((replyTo) => ({ type: 'status', replyTo }));
    expect(countUnaccounted(status.accounting)).toBe(0);
    const training = [...this.outstanding.values()].filter(({ purpose }) => purpose.name === 'train');
    return { status, training: training.map(({ group }) => group).sort((a, b) => a - b) };
  }

  async snapshot(): Promise<SchedulerState> {
    return (await this.#ask<SchedulerSnapshot>((replyTo) => ({ type: 'snapshot', replyTo }))).run;
  }

  async stop(): Promise<void> {
    await this.#system.stop();
    this.#journal.close();
  }

  /** The learner's update, as soon as it has what one takes. */
  async #update(): Promise<void> {
    if (this.handed.length - this.consumed < PER_UPDATE) return;
    const trained = this.handed.slice(this.consumed, this.consumed + PER_UPDATE);
    this.consumed += PER_UPDATE;
    const version = ++this.#version;
    const none = {
      stats: {},
      consumed: { byHorizon: [] },
      filtered: [],
      stale: [],
      decisions: 0,
      tokens: 0,
      skipped: 0,
    };
    const lag = { min: 0, mean: 0, max: 0 };
    await this.#send({
      type: 'updated',
      report: { ...none, version, trained, lag, credit: [], busyMs: 0, idleMs: 0, digest: `w${version}` },
    });
  }

  #scheduler() {
    return this.#system.resolve<SchedulerCommand>('/scheduler');
  }

  async #send(command: SchedulerCommand): Promise<void> {
    await this.#scheduler().tell(command);
    // Time moves once everything is delivered, and less than until a disk that refuses is tried again.
    await this.#system.run(new Promise<void>((resolve) => this.#system.clock.setTimer(1, resolve)));
  }

  #ask<R>(make: (replyTo: ReplyTo<R>) => SchedulerCommand): Promise<R> {
    return this.#system.ask<R, SchedulerCommand>(this.#scheduler(), make, { deadlineMs: 1e9 });
  }
}

function savedGroup({ group, task, horizon, size }: GroupTicket): SavedGroup {
  const running = Array.from({ length: size }, (_, member) => ({
    episode: 2 * group + member,
    member,
    attempt: 1,
    turns: [],
  }));
  return { group, task, horizon, finished: [], running };
}

/** Plays steps and kills the run; throws where checkpoint and journal do not fold into its books. */
async function holds(steps: readonly Step[], fold: Fold, names?: readonly string[]): Promise<number> {
  return inFolder(async (root) => {
    const dir = join(root, 'journal');
    const run = new Run(dir, names);
    let checkpoint = await run.start();
    let before = { handed: 0, version: 0 };
    for (const one of steps) {
      const state = await run.take(one);
      if (!state) continue;
      checkpoint = state;
      before = { handed: run.consumed, version: run.consumed / PER_UPDATE };
    }
    await run.take({ type: 'disk', full: false }); // what waits is written: a kill before it had no effect outside
    const { status, training } = await run.books();
    const live = names && (await run.snapshot());
    await run.stop();
    const { entries, position } = readJournal(dir, checkpoint.journal ?? 0);
    const state = fold(run.init, before.version, checkpoint, entries, position);
    expect(countUnaccounted(state.accounting)).toBe(0);
    if (live) {
      const worldsOf = ({ sampler, quarantined, mixture }: SchedulerState) => ({ sampler, quarantined, mixture });
      expect(worldsOf(state)).toEqual(worldsOf(live));
    }
    const outstanding = [...state.running, ...(state.tickets ?? [])].map(({ group }) => group);
    expect(outstanding.sort((a, b) => a - b)).toEqual(training);
    expect(state.delivered.map(({ group }) => group.group)).toEqual(run.handed.slice(before.handed));
    expect(state.accounting.failed).toEqual(status.accounting.failed);
    const evaluating = [...run.outstanding.values()].filter(({ purpose }) => purpose.name !== 'train').length;
    const trained = SIZE * (run.consumed - before.handed); // the learner makes these updates again
    expect(state.accounting).toEqual({
      ...status.accounting,
      trained: status.accounting.trained - trained,
      inFlight: status.accounting.inFlight + trained - SIZE * evaluating,
      filtered: status.accounting.filtered + SIZE * evaluating,
    });
    return entries.length;
  });
}

const planted: Readonly<Record<string, Fold>> = {
  'results in another order': (init, version, state, entries, position) => {
    const of = (type: JournalEntry['type']) => entries.filter((entry) => entry.type === type);
    return replayJournal(init, version, state, [...of('launched'), ...of('played').reverse()], position);
  },
  'one result left out': (init, version, state, entries, position) => {
    const at = entries.findIndex((entry) => entry.type === 'played' && entry.groups.length > 0);
    return replayJournal(init, version, state, entries.toSpliced(at, at < 0 ? 0 : 1), position);
  },
  'a checkpoint taken for the one before it': (init, version, state, entries, position) =>
    replayJournal(init, version, { ...state, delivered: state.delivered.slice(1) }, entries, position),
};

describe('the fold of a journal', () => {
  const cases = fc.array(step, { minLength: 1, maxLength: 25 });

  it('gives the books that the scheduler had when it was killed', async () => {
    let entries = 0;
    await fc.assert(
      fc.asyncProperty(cases, async (steps) => {
        entries += await holds(steps, replayJournal);
      }),
      { numRuns: process.env.LONGPLAY_LONG === '1' ? 1000 : 60 },
    );
    expect(entries).toBeGreaterThan(100);
  }, 120_000);

  it('of several worlds it draws what was drawn, under outages too', async () => {
    let entries = 0;
    await fc.assert(
      fc.asyncProperty(cases, async (steps) => {
        entries += await holds(steps, replayJournal, ['toy', 'far', 'near']);
      }),
      { numRuns: process.env.LONGPLAY_LONG === '1' ? 1000 : 60 },
    );
    expect(entries).toBeGreaterThan(100);
  }, 120_000);

  for (const [name, fold] of Object.entries(planted)) {
    it(`would be noticed with ${name}`, async () => {
      const found = await fc.check(
        fc.asyncProperty(cases, async (steps) => void (await holds(steps, fold))),
        { numRuns: 60, endOnFailure: true },
      );
      expect(found.failed).toBe(true);
    }, 120_000);
  }

  it('refuses entries of another configuration', async () => {
    await inFolder(async (root) => {
      const run = new Run(join(root, 'journal'));
      const checkpoint = await run.start();
      await run.stop();
      const { entries, position } = readJournal(join(root, 'journal'), 0);
      const fold = (seed: number) =>
        replayJournal(
          { ...run.init, seed },
          0,
          { ...checkpoint, sampler: { ...checkpoint.sampler } },
          entries,
          position,
        );
      expect(fold(run.init.seed).tickets).toHaveLength(4);
      const worlds = run.init.worlds.map((world) => ({ ...world, tasks: [2, 3] }));
      expect(() => replayJournal({ ...run.init, worlds }, 0, checkpoint, entries, position)).toThrow(
        /another seed, env, task list/,
      );
      const drawn = { ...checkpoint, sampler: { ...checkpoint.sampler, draws: 5 } };
      expect(() => replayJournal(run.init, 0, drawn, entries, position)).toThrow(/another task than the sampler draws/);
    });
  });
});
