/** Rows of metrics, by hand. */
import { describe, expect, it } from 'vitest';
import type { ConsumedFacts, EpisodeSums } from '../../src/metrics/group-facts.ts';
import { NO_TIME } from '../../src/metrics/slot-time.ts';
import { earlierRows, type RolloutFacts, type RowBefore, rolloutRow, updateRow } from '../../src/metrics/update-row.ts';

const sums = (episodes: number, successes: number, truncated: number, returns: number, turns: number): EpisodeSums => ({
  episodes,
  successes,
  truncated,
  returns,
  turns,
});

const consumed: ConsumedFacts = {
  all: sums(10, 4, 5, 6, 50),
  byLabel: { easy: sums(4, 3, 1, 4, 10), hard: sums(6, 1, 4, 2, 40) },
  byHorizon: { 8: sums(8, 4, 3, 5, 34), 16: sums(2, 0, 2, 1, 16) },
  byWorld: {},
  groups: 3,
  comparedGroups: 2,
  flatGroups: 1,
  repeats: 5,
  answers: 50,
  formatErrors: 30,
  reported: new Map([['calls', { sum: 9, count: 6 }]]),
  tools: { replies: 20, calls: 10, valid: 4, unknownTools: 3, invalidArguments: 2, malformedArguments: 1, errors: 5 },
  top: { action: 'look', count: 20 },
};

const update = {
  version: 7,
  stats: { loss: 0.5 },
  trained: [1, 2],
  filtered: [3],
  stale: [],
  lag: { min: 0, mean: 0.5, max: 1 },
  tokens: 3000,
  skipped: 1,
  busyMs: 1500,
  idleMs: 500,
};

function rolloutAt(elapsedMs: number, change: Partial<RolloutFacts> = {}): RolloutFacts {
  return {
    elapsedMs,
    progress: 0.25,
    horizon: 8,
    envSteps: 0,
    episodes: 0,
    tokens: 0,
    calls: 0,
    decidedTurns: 0,
    time: NO_TIME,
    accounting: { launched: 12, trained: 8, stale: 1, filtered: 1, failed: { worker: 2, threw: 1 }, inFlight: 0 },
    ...change,
  } as RolloutFacts;
}
const actors = (busyMs: number) => ({
  actors: [{ path: '/inference', busyMs, depth: 3, restarts: 1 }],
  hostsReplaced: 2,
});
const before: RowBefore = {
  rollout: rolloutAt(2000, { envSteps: 100, episodes: 10, tokens: 500, calls: 4, decidedTurns: 40 }),
  actors: actors(100),
};
const now = rolloutAt(4000, { envSteps: 300, episodes: 20, tokens: 2500, calls: 9, decidedTurns: 140 });

describe('the row of an update', () => {
  const row = updateRow(update, consumed, now, actors(1100), before);

  it('has outcomes by episode, label and horizon', () => {
    expect(row).toMatchObject({
      success: 0.4,
      return: 0.6,
      turns: 5,
      truncated: 0.5,
      episodesByLabel: { easy: 4, hard: 6 },
      successByLabel: { easy: 0.75, hard: 1 / 6 },
      returnByLabel: { easy: 1, hard: 1 / 3 },
      turnsByLabel: { easy: 2.5, hard: 40 / 6 },
      truncatedByLabel: { easy: 0.25, hard: 4 / 6 },
      episodesByHorizon: { 8: 8, 16: 2 },
      successByHorizon: { 8: 0.5, 16: 0 },
      truncatedByHorizon: { 8: 3 / 8, 16: 1 },
      zeroVarianceGroups: 0.5,
      topAction: 0.4,
      repeatedTurns: 0.1,
      formatErrors: 0.6,
      agentMetrics: { calls: 1.5 },
      callsPerTurn: 0.5,
      validCalls: 0.4,
      unknownTools: 0.3,
      invalidArguments: 0.2,
      malformedArguments: 0.1,
      toolErrors: 0.5,
    });
  });

  it('has what the learner did', () => {
    expect(row).toMatchObject({
      update: 7,
      trainedGroups: 2,
      filteredGroups: 1,
      staleGroups: 0,
      lagMin: 0,
      lagMean: 0.5,
      lagMax: 1,
      skippedSteps: 1,
      learnerTokensPerSecond: 2000,
      learnerIdle: 0.25,
      loss: 0.5,
    });
    expect(updateRow({ ...update, busyMs: 0 }, consumed, now, actors(0), before).learnerIdle).toBeUndefined();
  });

  it('has counters, and rates over the time since the row before', () => {
    expect(row).toMatchObject({
      elapsed: 4,
      progress: 0.25,
      remaining: 12,
      envSteps: 300,
      failed: 3,
      launched: 12,
      hostsReplaced: 2,
      stepsPerSecond: 100,
      episodesPerSecond: 5,
      tokensPerSecond: 1000,
      batchSize: 20,
      actorBusy: { inference: 0.5 },
      actorDepth: { inference: 3 },
      actorRestarts: { inference: 1 },
    });
    const first = updateRow(update, consumed, now, actors(1100), undefined);
    expect(first).not.toHaveProperty('stepsPerSecond');
    expect(first).not.toHaveProperty('actorBusy');
  });

  it('leaves out what nothing was measured of', () => {
    const nothing = { ...consumed, all: sums(0, 0, 0, 0, 0) };
    expect(updateRow(update, nothing, now, actors(0), before)).not.toHaveProperty('success');
    const turnless = { ...consumed, all: sums(1, 0, 0, 0, 0) };
    expect(updateRow(update, turnless, now, actors(0), before)).not.toHaveProperty('topAction');
    expect(updateRow(update, { ...consumed, comparedGroups: 0 }, now, actors(0), before)).not.toHaveProperty(
      'zeroVarianceGroups',
    );
    expect(updateRow(update, consumed, { ...now, progress: 0 }, actors(0), before)).not.toHaveProperty('remaining');
    expect(updateRow(update, consumed, { ...now, calls: 4 }, actors(0), before)).not.toHaveProperty('batchSize');
  });
});

it('a rollout compares no groups', () => {
  const row = rolloutRow(consumed, now, actors(0), before);
  expect(row).toMatchObject({ success: 0.4, stepsPerSecond: 100 });
  expect(row).not.toHaveProperty('zeroVarianceGroups');
  expect(row).not.toHaveProperty('update');
});

it('rates are taken over a second at least, where the run is old enough', () => {
  const at = (elapsedMs: number): RowBefore => ({ rollout: rolloutAt(elapsedMs), actors: actors(0) });
  const kept = (elapsedMs: number, ...rows: number[]) =>
    earlierRows(rows.map(at), elapsedMs).map(({ rollout }) => rollout.elapsedMs);
  expect(kept(3000, 0, 1000, 2000, 2500)).toEqual([2000, 2500]);
  expect(kept(2999, 0, 1000, 2000, 2500)).toEqual([1000, 2000, 2500]);
  expect(kept(500, 0, 400)).toEqual([0, 400]);
});
