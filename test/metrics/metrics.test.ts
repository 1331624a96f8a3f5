/** The metrics table against what is emitted, METRICS.md, and the arithmetic of a row. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { WorkerRow } from '../../src/cluster/worker-report.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { NO_TOOL_COUNTS } from '../../src/core/tool-counts.ts';
import { groupFacts, summarizeConsumed } from '../../src/metrics/group-facts.ts';
import { type Metric, type MetricsRow, metricTable } from '../../src/metrics/metric-table.ts';
import { metricsPage, points } from '../../src/metrics/metrics.ts';
import { type SlotTime, timeShares } from '../../src/metrics/slot-time.ts';
import { earlierRows, type RolloutFacts, updateRow } from '../../src/metrics/update-row.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { trajectoryOf } from '../support/traces.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-metrics-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const config = checkRunConfig(
  {
    env: { id: 'textcraft' },
    tasks: { labels: ['depth 1', 'depth 2'] },
    horizon: { type: 'scaling_inter_stepwise', rounds: [3, 5], steps_scaling_inter: 2 },
    policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 4, concurrentGroups: 4, maxBatch: 16 },
    learner: {
      groupsPerUpdate: 2,
      epochs: 1,
      estimator: { algorithm: 'ppo' },
      valueCoef: 0.5,
      kl: { in: 'loss' },
      offPolicy: { type: 'truncated' },
      selfImitation: {},
    },
    stop: { updates: 4 },
  },
  'test',
);

describe('the table of metrics', () => {
  it('names what a run emits, and nothing else', { timeout: 60_000 }, async () => {
    const run = await startRun({ config, dir, mode: 'async', envModule: worldUrl('textcraft'), learn: true });
    await run.train();
    await run.stop();
    const rows = readFileSync(join(dir, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows.length).toBe(4);
    const emitted = new Set(rows.flatMap((row) => Object.keys(row)));
    expect([...emitted].filter((name) => !metricTable.some((metric) => metric.name === name))).toEqual([]);
    // Rates need a second of training, which so short a run may not have; the pure test below covers them.
    const rates = ['stepsPerSecond', 'episodesPerSecond', 'tokensPerSecond', 'batchSize', 'time', 'actorBusy'];
    const absent = [
      ...rates,
      'behaviourGap', // of a policy behind a generation server
      'distillationKl', // of a policy with a teacher
      'observationNll', // of one that predicts its world
      'formatErrors', // of a language model
      'agentMetrics', // of an agent
      'judgeScore', // of a judge of groups
      // of a world of tools
      'validCalls',
      'unknownTools',
      'invalidArguments',
      'malformedArguments',
      'toolErrors',
      'callsPerTurn',
      ...metricTable.map(({ name }) => name).filter(ofCluster),
      ...metricTable.map(({ name }) => name).filter((name) => name.endsWith('ByWorld')), // of several worlds
    ];
    const silent = metricTable.map(({ name }) => name).filter((name) => !emitted.has(name) && !absent.includes(name));
    expect(silent).toEqual([]);
  });

  it('has every name in a row with all facts', () => {
    const row = fullRow({
      ...fourEpisodes(),
      answers: 10,
      formatErrors: 1,
      reported: new Map([['calls', { sum: 1, count: 1 }]]),
      tools: { ...NO_TOOL_COUNTS, replies: 1, calls: 1, valid: 1 },
    });
    expect(Object.keys(row).sort()).toEqual(metricTable.map(({ name }) => name).sort());
  });

  it('is the source of METRICS.md', () => {
    expect(readFileSync(new URL('../../METRICS.md', import.meta.url), 'utf8')).toBe(metricsPage());
  });

  it('yields the finite numbers of a row, split ones by key', () => {
    const found = [...points({ update: 3, loss: Number.NaN, successByLabel: { a: 1, b: 0.5 } })];
    expect(found.map(({ metric, key, value }) => [metric.name, key, value])).toEqual([
      ['update', undefined, 3],
      ['successByLabel', 'a', 1],
      ['successByLabel', 'b', 0.5],
    ]);
  });
});

describe('a row', () => {
  it('splits outcomes by sub-task and horizon', () => {
    const row = fullRow();
    expect(row.success).toBe(0.25);
    expect(row.successByLabel).toEqual({ 'depth 1': 0.5, 'depth 2': 0 });
    expect(row.turnsByLabel).toEqual({ 'depth 1': 2, 'depth 2': 3 });
    expect(row.episodesByHorizon).toEqual({ 8: 2, 16: 2 });
    expect(row.zeroVarianceGroups).toBe(0.5);
    // 'wait' is taken in 6 of 10 turns; twice an episode takes it again in the same situation
    expect(row.topAction).toBeCloseTo(0.6);
    expect(row.repeatedTurns).toBeCloseTo(0.2);
  });

  it('has the outcomes of each world where a run has several, and none of one that was not played', () => {
    const row = fullRow();
    expect(row.horizonByWorld).toEqual({ toy: 16, far: 4 });
    expect(row.shareByWorld).toEqual({ toy: 0.75, far: 0.25 });
    expect(row.downByWorld).toEqual({ toy: 0, far: 1 });
    expect(row.episodesByWorld).toEqual({ toy: 4 });
    expect(row.successByWorld).toEqual({ toy: 0.25 });
    expect(row.turnsByWorld).toEqual({ toy: 2.5 });
    expect(row.truncatedByWorld).toEqual({ toy: 0.75 });
    expect(row.returnByWorld).toEqual({ toy: 0.25 });
  });

  it('counts no group of one among those that score the same: it compares nothing', () => {
    const one = groupFacts([trajectoryOf()], 'depth 1');
    const pair = groupFacts([trajectoryOf(), trajectoryOf({ success: true })], 'depth 1');
    expect(summarizeConsumed([one, one])).toMatchObject({ groups: 2, comparedGroups: 0, flatGroups: 0 });
    expect(summarizeConsumed([one, pair])).toMatchObject({ groups: 2, comparedGroups: 1, flatGroups: 0 });
    expect(fullRow(summarizeConsumed([one, one])).zeroVarianceGroups).toBeUndefined();
    expect(fullRow(summarizeConsumed([one, pair])).zeroVarianceGroups).toBe(0);
  });

  it('takes rates over at least a second', () => {
    const at = (elapsedMs: number) => ({ rollout: rollout({ elapsedMs }), actors: { actors: [], hostsReplaced: 0 } });
    const rows = [at(0), at(400), at(1300), at(1900)];
    expect(earlierRows(rows, 2000)).toEqual(rows.slice(1));
    expect(earlierRows(rows, 2400)).toEqual(rows.slice(2));
    expect(earlierRows(rows.slice(3), 2000)).toEqual(rows.slice(3));
  });
});

describe('a cluster', () => {
  it('is reported by those of its workers that are there', () => {
    const row = fullRow();
    expect(row).toMatchObject({ clusterWorkers: 1, clusterSlots: 4, clusterOutstanding: 7, clusterRoundTrip: 0.02 });
    expect(row.workerLag).toEqual({ a: 1 });
    expect(row.workerHeld).toEqual({ a: 2 });
  });
});

describe('where the time went', () => {
  const zero: SlotTime = {
    runningMs: 0,
    groupMs: 0,
    learnerMs: 0,
    envMs: 0,
    hostMs: 0,
    waitMs: 0,
    prefillMs: 0,
    decodeMs: 0,
    actRestMs: 0,
    stepRestMs: 0,
  };
  const sum = (shares: object | undefined) =>
    Object.values(shares ?? {}).reduce((a: number, b) => a + (b as number), 0);

  it('adds up to one, with the rest of running episodes as messages', () => {
    const shares = timeShares(zero, { ...zero, runningMs: 60, groupMs: 20, learnerMs: 20, envMs: 10, decodeMs: 30 })!;
    expect(shares).toMatchObject({ env: 0.1, decode: 0.3, learner: 0.2, group: 0.2 });
    expect(shares.messages).toBeCloseTo(0.2);
    expect(sum(shares)).toBeCloseTo(1);
  });

  it('scales turns that began before the interval down to what there was', () => {
    const shares = timeShares(zero, { ...zero, runningMs: 10, envMs: 30, decodeMs: 10 })!;
    expect(shares).toMatchObject({ env: 0.75, decode: 0.25, messages: 0 });
  });

  it('counts what a turn waited in the policy’s mailbox beyond a hop as waiting for the batch', () => {
    const shares = timeShares(zero, { ...zero, runningMs: 100, actRestMs: 50, stepRestMs: 10, decodeMs: 40 })!;
    expect(shares.batchWait).toBeCloseTo(0.4);
    expect(shares.messages).toBeCloseTo(0.2);
  });

  it('has no value for an interval without slots', () => {
    expect(timeShares(zero, zero)).toBeUndefined();
  });
});

function ofCluster(name: string): boolean {
  return /^(cluster|worker)/.test(name);
}

function workerRow(name: string, over: Partial<WorkerRow>): WorkerRow {
  const rates = { groupsPerSecond: 1.5, tokensPerSecond: 700 };
  const counts = { slots: 4, held: 2, waiting: 0, finished: 9, version: 1 };
  return { format: 1, name, state: 'here', silentMs: 100, refused: 0, ...counts, ...rates, ...over };
}

function fourEpisodes() {
  const good = trajectoryOf({ group: 1, horizon: 8, actions: ['wait', 'go'], success: true });
  const bad = trajectoryOf({ group: 1, horizon: 8, actions: ['wait', 'look'] });
  const loop = trajectoryOf({ group: 2, horizon: 16, actions: ['wait', 'wait', 'wait'], observation: 'same' });
  const other = trajectoryOf({ group: 2, horizon: 16, actions: ['a', 'wait', 'b'], observation: 'same' });
  return summarizeConsumed([groupFacts([good, bad], 'depth 1'), groupFacts([loop, other], 'depth 2')]);
}

function fullRow(consumed = fourEpisodes()): MetricsRow {
  const worlds = [
    { name: 'toy', horizon: 16, share: 0.75, isUp: true },
    { name: 'far', horizon: 4, share: 0.25, isUp: false },
  ];
  const actors = (busyMs: number) => ({
    actors: [{ path: '/inference', busyMs, depth: 2, restarts: 0 }],
    hostsReplaced: 0,
  });
  const stats = Object.fromEntries(
    metricTable.filter((metric: Metric) => metric.isLearnerStat).map(({ name }) => [name, 0.5]),
  );
  return updateRow(
    {
      version: 2,
      stats,
      trained: [1],
      filtered: [2],
      stale: [],
      lag: { min: 0, mean: 1, max: 2 },
      tokens: 100,
      skipped: 0,
      busyMs: 10,
      idleMs: 10,
    },
    consumed,
    rollout({
      elapsedMs: 3000,
      envSteps: 20,
      episodes: 5,
      tokens: 100,
      calls: 4,
      decidedTurns: 20,
      runningMs: 50,
      worlds,
    }),
    actors(1500),
    { rollout: rollout({ elapsedMs: 1000 }), actors: actors(500) },
    {
      workers: [workerRow('a', {}), workerRow('gone', { state: 'gone' })],
      counts: { outstanding: 7, results: 9, duplicates: 2, reissued: 1, refused: 3, verified: 4 },
      load: { queued: 3, held: 4, results: 5, resultBytes: 50, roundTripMs: 20 },
    },
  );
}

function rollout(over: Partial<RolloutFacts> & { readonly runningMs?: number }): RolloutFacts {
  const { runningMs = 0, ...rest } = over;
  const none = {
    hostMs: 0,
    groupMs: 0,
    learnerMs: 0,
    envMs: 0,
    waitMs: 0,
    prefillMs: 0,
    decodeMs: 0,
    actRestMs: 0,
    stepRestMs: 0,
  };
  return {
    horizon: 8,
    envSteps: 0,
    episodes: 0,
    elapsedMs: 0,
    progress: 0.5,
    accounting: { launched: 4, trained: 2, stale: 0, filtered: 2, failed: {}, inFlight: 0 },
    tokens: 0,
    calls: 0,
    decidedTurns: 0,
    time: { runningMs, ...none },
    ...rest,
  };
}
