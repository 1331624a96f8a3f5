/**
 * A run of four worlds, in serial mode: each is played under its own horizon, read by its own view and measured by itself; the run
 * repeats bit for bit, goes on from a checkpoint as if it had never stopped, and its learner repeats from the journal.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { estimate } from '../../src/algo/advantages.ts';
import { estimatorSchema } from '../../src/algo/estimators.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { listWorlds, omitFilled } from '../../src/config/worlds.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { EvaluationSummary } from '../../src/learning/evaluation/summary.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { evaluateRun } from '../../src/run/evaluate-run.ts';
import { runUrl } from '../../src/run/find-world.ts';
import { replayRun } from '../../src/run/replay-learner.ts';
import { startRun } from '../../src/run/start-run.ts';
import { runSources } from '../../src/run/view-runs.ts';
import { loadNewest } from '../../src/storage/checkpoint.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { inFolder } from '../support/toy-run.ts';

const UPDATES = 4;
const HORIZONS: Readonly<Record<string, readonly number[]>> = {
  textcraft: [3, 5],
  rooms: [4],
  sciworld: [2, 6],
  searchqa: [1, 7],
};

const phases = (rounds: readonly number[]) => ({ type: 'scaling_inter_stepwise', rounds, steps_scaling_inter: 2 });
const evaluation = (horizon: number) => ({ tasks: [0, 1], horizons: [horizon], episodesPerTask: 1 });

const config = checkRunConfig(
  {
    worlds: [
      { env: { id: 'textcraft' }, horizon: phases(HORIZONS.textcraft!), gamma: 0.5, evaluation: evaluation(3) },
      {
        name: 'rooms',
        env: { id: 'babyai' },
        weight: 2,
        horizon: { type: 'fixed', rounds: 4 },
        evaluation: evaluation(4),
      },
      { env: { id: 'sciworld' }, horizon: phases(HORIZONS.sciworld!), evaluation: evaluation(2) },
      { env: { id: 'searchqa' }, horizon: phases(HORIZONS.searchqa!), evaluation: evaluation(1) },
    ],
    mixture: 'progress',
    policy: { model: { hiddenSize: 16, layers: 1, maxPositions: 2048 } },
    rollout: { groupSize: 1, concurrentGroups: 10 },
    learner: {
      estimator: { algorithm: 'ppo', gamma: 0.9, lambda: 0.8 },
      ...{ groupsPerUpdate: 10, epochs: 1, valueCoef: 0.5, filterGroups: false, maxLag: 1 },
    },
    stop: { updates: UPDATES },
    checkpoint: { everyUpdates: 1, keep: UPDATES },
    evaluation: { greedy: false },
  },
  'test',
);

interface Finished {
  readonly rows: readonly MetricsRow[];
  readonly episodes: readonly Trajectory[];
  readonly evaluations: readonly EvaluationSummary[];
  /** Labels of the two evaluated tasks of each world. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** Files of the last checkpoint. */
  readonly last: Readonly<Record<string, string>>;
}

async function train(dir: string, resume = false, journal?: string): Promise<Finished> {
  const rows: MetricsRow[] = [];
  const episodes: Trajectory[] = [];
  const run = await startRun({
    ...{ config, dir, mode: 'serial', envModule: runUrl(config), learn: true, journal },
    ...(resume ? { checkpoint: loadNewest(join(dir, 'checkpoints')) } : {}),
    onEpisodes: (trajectories, purpose) => {
      if (purpose === 'train') episodes.push(...trajectories);
    },
  });
  run.metrics$.subscribe((row) => rows.push(row));
  try {
    if (journal !== undefined && !resume) await run.save();
    await run.train();
    await run.save();
    const last = join(dir, 'checkpoints', String(UPDATES));
    return {
      rows,
      episodes,
      evaluations: await evaluateRun(run),
      labels: Object.fromEntries(run.worlds.map(({ env }) => [env.id, [0, 1].map((index) => env.tasks.label(index))])),
      last: Object.fromEntries(readdirSync(last).map((name) => [name, readFileSync(join(last, name), 'latin1')])),
    };
  } finally {
    await run.stop();
  }
}

/** What of an episode is no time. */
const timeless = ({ turns, ...rest }: Trajectory) =>
  JSON.stringify({ ...rest, turns: turns.map(({ actMs: _, envMs: __, stages: ___, ...turn }) => turn) });

/**
 * Checks the advantages that traces hold against each world's own estimate: its discount, whitened over its own episodes of the update.
 * @returns the episodes that were compared
 */
function checkAdvantages(dir: string): number {
  const gammas: Readonly<Record<string, number>> = { textcraft: 0.5, rooms: 0.9, sciworld: 0.9, searchqa: 0.9 };
  const store = TraceStore.open(dir);
  const episodes = store.episodes.map(({ at }) => store.read(at)).filter(({ purpose }) => purpose === 'train');
  const lines = readdirSync(join(dir, 'traces'))
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .flatMap((name) =>
      readFileSync(join(dir, 'traces', name), 'utf8')
        .trim()
        .split('\n'),
    )
    .map((line) => JSON.parse(line) as { kind?: string; groups?: { group: number }[] });
  let compared = 0;
  for (const { groups } of lines.filter(({ kind }) => kind === 'credit')) {
    const numbers = new Set(groups!.map(({ group }) => group));
    for (const [world, gamma] of Object.entries(gammas)) {
      const own = episodes.filter(({ group, task }) => numbers.has(group) && task.env === world);
      const alone = own.map((one) => ({ ...one, trajectories: [one] }));
      const estimator = estimatorSchema.parse({ algorithm: 'ppo', gamma, lambda: 0.8 });
      for (const [i, { advantages, turns }] of estimate(alone, estimator).entries()) {
        const recorded = Array.from(turns, (turn) => own[i]!.turns[turn]!.advantage!);
        expect(recorded, `${world} ${own[i]!.episode}`).toHaveLength(advantages.length);
        for (const [d, value] of recorded.entries()) expect(value).toBeCloseTo(advantages[d]!, 4);
        compared++;
      }
    }
  }
  return compared;
}

describe('a run of four worlds', () => {
  it('plays each by its own rules, repeats, and goes on from any checkpoint as if it had never stopped', async () => {
    await inFolder(async (root) => {
      const whole = await train(join(root, 'whole'));
      const { rows, episodes, evaluations } = whole;

      // Groups of each world, under its own horizons, in the order of its own phases.
      const names = listWorlds(config).map(({ name }) => name!);
      for (const name of names) {
        const own = episodes.filter(({ task }) => task.env === name);
        expect(own.length, name).toBeGreaterThan(2);
        expect(HORIZONS[name]).toEqual(expect.arrayContaining([...new Set(own.map(({ horizon }) => horizon))]));
        for (const { horizon, turns, view } of own) {
          expect(turns.filter(({ partial }) => !partial).length).toBeLessThanOrEqual(horizon);
          expect(view).toMatch(/^textcraft=\S+ rooms=\S+ sciworld=\S+ searchqa=\S+$/);
        }
      }
      expect(new Set(episodes.map(({ task }) => task.env))).toEqual(new Set(names));

      // Metrics by world, and none but those of the worlds.
      const last = rows.at(-1)!;
      for (const column of ['horizonByWorld', 'shareByWorld', 'downByWorld'] as const) {
        expect(Object.keys(last[column]!)).toEqual(names);
      }
      expect(last.horizonByWorld).toEqual({ textcraft: 5, rooms: 4, sciworld: 6, searchqa: 7 });
      expect(rows[0]!.horizonByWorld).toEqual({ textcraft: 3, rooms: 4, sciworld: 2, searchqa: 1 });
      expect(last.horizon).toBe(7);
      expect(last.shareByWorld).toEqual({ textcraft: 0.2, rooms: 0.4, sciworld: 0.2, searchqa: 0.2 });
      const played = rows.reduce((sum, row) => sum + Object.values(row.episodesByWorld!).reduce((a, b) => a + b, 0), 0);
      expect(played).toBe(10 * UPDATES);
      for (const label of Object.keys(last.episodesByLabel!))
        expect(label).toMatch(/^(textcraft|rooms|sciworld|searchqa): /);

      // An evaluation each.
      expect(evaluations.map(({ name, world, horizon }) => [name, world, horizon])).toEqual([
        ['textcraft h3 sampled', 'textcraft', 3],
        ['rooms h4 sampled', 'rooms', 4],
        ['sciworld h2 sampled', 'sciworld', 2],
        ['searchqa h1 sampled', 'searchqa', 1],
      ]);
      expect(evaluations.every(({ all }) => all.episodes === 2)).toBe(true);
      for (const { world, labels } of evaluations)
        expect(new Set(labels.map(({ label }) => label))).toEqual(new Set(whole.labels[world!]));

      const again = await train(join(root, 'again'));
      expect(again.episodes.map(timeless)).toEqual(episodes.map(timeless));
      expect(again.last).toEqual(whole.last);

      for (const update of [1, 3]) {
        const dir = join(root, `from-${update}`);
        mkdirSync(join(dir, 'checkpoints'), { recursive: true });
        for (let n = 1; n <= update; n++) {
          cpSync(join(root, 'whole', 'checkpoints', String(n)), join(dir, 'checkpoints', String(n)), {
            recursive: true,
          });
        }
        const resumed = await train(dir, true);
        expect(resumed.last, `from ${update}`).toEqual(whole.last);
        const known = new Set(resumed.episodes.map(timeless));
        expect(known.size).toBeGreaterThan(0);
        for (const one of known) expect(episodes.map(timeless)).toContain(one);
        expect(resumed.evaluations).toEqual(evaluations);
      }
    });
  });

  it('its learner repeats from the journal, and its traces are read in the vocabulary of all', async () => {
    await inFolder(async (root) => {
      const dir = join(root, 'run');
      mkdirSync(dir);
      writeFileSync(join(dir, 'config.yaml'), stringify(omitFilled(config)));
      await train(dir, false, join(dir, 'journal'));
      expect(await replayRun(dir)).toEqual({ from: 1, updates: UPDATES - 1 }); // the first checkpoint is kept no more
      expect(checkAdvantages(dir)).toBe(10 * UPDATES);

      const [source] = runSources([dir]);
      expect(source!.info.env).toBe('textcraft, rooms, sciworld, searchqa');
      const at = source!.rows.findIndex(({ label }) => label.startsWith('rooms: '));
      const { episode, spelling } = await source!.episode(at);
      expect(episode.task.env).toBe('rooms');
      expect(Object.values(spelling).some((text) => /[a-z]{3}/.test(text))).toBe(true);
    });
  });
});
