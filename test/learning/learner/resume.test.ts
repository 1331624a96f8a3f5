/**
 * Stopping a serial run at any update and resuming it gives the run that was never stopped: the same horizons, the
 * same data in the same order, the same checkpoint to the last byte.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SchedulerState } from '../../../actors/scheduler/protocol.ts';
import { isInformative } from '../../../src/algo/dynamic-sampling.ts';
import type { MetricsRow } from '../../../src/metrics/metric-table.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { loadNewest } from '../../../src/storage/checkpoint.ts';
import { readTrace, traceHeader, traceLine } from '../../../src/storage/trace.ts';
import { TraceStore } from '../../../src/storage/trace-store.ts';
import { inFolder, type ToyConfig, toyConfig, withToyRun } from '../../support/toy-run.ts';
import { trajectoryOf } from '../../support/traces.ts';

const long = process.env.LONGPLAY_LONG === '1';
const UPDATES = 8;
/** Run that teaches. */
const TEACHER = join(mkdtempSync(join(tmpdir(), 'longplay-resume-')), 'teacher');

interface Finished {
  readonly rows: readonly MetricsRow[];
  /** Groups in the order in which they were finished, with all their episodes did. */
  readonly groups: readonly string[];
  /** Of the last checkpoint, by file. */
  readonly last: Readonly<Record<string, string>>;
}

/** Two phases; the first update of the second is number 4. */
function config(toy: ToyConfig) {
  return toyConfig('chain', {
    ...toy,
    horizon: { type: 'scaling_inter_stepwise', rounds: [3, 8], steps_scaling_inter: 3 },
    stop: { updates: UPDATES },
    checkpoint: { everyUpdates: 1, keep: UPDATES },
    rollout: { groupSize: 3, concurrentGroups: 6, ...toy.rollout },
    learner: { groupsPerUpdate: 2, filterGroups: false, ...toy.learner },
    trace: { everyGroups: 1 },
  });
}

async function train(toy: ToyConfig, dir: string, resume: boolean): Promise<Finished> {
  const checkpoint = resume ? { checkpoint: loadNewest(join(dir, 'checkpoints')) } : {};
  return withToyRun(
    config(toy),
    dir,
    async ({ run, rows }) => {
      await run.train();
      await run.save();
      // Measures since an earlier row (rates, shares of time) are not part of what a run is.
      const facts = [
        'update',
        'horizon',
        'success',
        'truncated',
        'loss',
        'entropy',
        'gradNorm',
        'learningRate',
        'lagMin',
      ];
      const more = [
        'lagMean',
        'lagMax',
        'klCoefficient',
        'distillationKl',
        'importanceMean',
        'trained',
        'filtered',
        'stale',
        'inFlight',
      ];
      const timeless = rows.map((row) =>
        Object.fromEntries([...facts, ...more].map((name) => [name, row[name as keyof MetricsRow]])),
      ) as MetricsRow[];
      return { rows: timeless, groups: groupsIn(dir), last: filesOf(join(dir, 'checkpoints', String(UPDATES))) };
    },
    {
      ...checkpoint,
      evaluation: {
        plans: ([{ env }]) => [
          {
            name: 'held out',
            tasks: [{ env: env.id, index: 0, seed: 1 }],
            episodes: 2,
            horizon: 4,
            temperature: 1,
            seed: 2,
          },
        ],
        onRecord() {},
      },
    },
  );
}

function groupsIn(dir: string): string[] {
  const traces = join(dir, 'traces');
  if (!existsSync(traces)) return []; // everything had been finished when the checkpoint was written
  const episodes = readdirSync(traces)
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .sort()
    .flatMap((name) => readTrace(join(traces, name)).episodes)
    .filter(({ purpose }) => purpose === 'train');
  const groups = new Map<number, string[]>();
  for (const { group, task, horizon, turns, episode } of episodes) {
    const did = turns.map(({ action, decision }) => `${action}@${decision!.version}`).join(' ');
    groups.set(group, [...(groups.get(group) ?? []), `${group}/${episode} ${task.seed} h${horizon}: ${did}`]);
  }
  return [...groups.values()].map((lines) => lines.join('\n'));
}

/** Episodes that a run's traces hold, with their advantages, in the order of their numbers. */
function tracedIn(dir: string): string[] {
  const store = TraceStore.open(dir);
  const episodes = store.episodes.map(({ at }) => store.read(at));
  const timeless = episodes.map(({ turns, ...rest }) => ({
    ...rest,
    turns: turns.map(({ actMs: _, envMs: __, stages: ___, ...turn }) => turn),
  }));
  return timeless.map((one) => JSON.stringify(one)).sort();
}

function filesOf(dir: string): Record<string, string> {
  return Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'latin1')]));
}

/** A run folder as it was right after checkpoint `update` was written: what a kill leaves. */
function folderAt(from: string, update: number, to: string): void {
  mkdirSync(join(to, 'checkpoints'), { recursive: true });
  for (const name of readdirSync(join(from, 'checkpoints'))) {
    if (Number(name) <= update)
      cpSync(join(from, 'checkpoints', name), join(to, 'checkpoints', name), { recursive: true });
  }
}

const cases: Readonly<Record<string, ToyConfig>> = {
  'maxLag 0': { learner: { maxLag: 0 } },
  'maxLag 2': { learner: { maxLag: 2 } },
  'maxLag 2, evaluating, with a critic, a reference and two minibatches': {
    learner: {
      maxLag: 2,
      estimator: { algorithm: 'ppo', truncation: 'bootstrap' },
      valueCoef: 0.5,
      minibatches: 2,
      kl: { in: 'reward', control: { type: 'adaptive', coefficient: 0.01, target: 0.02, window: 20 } },
    },
    evaluation: { everyUpdates: 3 },
  },
  'maxLag 2, imitating what it remembers': {
    learner: {
      maxLag: 2,
      estimator: { algorithm: 'ppo' },
      valueCoef: 0.5,
      selfImitation: { episodes: 2 },
    },
  },
  'maxLag 2, taught by the average of its own weights': {
    learner: { maxLag: 2, distillation: { teacher: { type: 'ema', decay: 0.5 }, useRewards: true } },
  },
  'maxLag 2, taught by another run': {
    learner: { maxLag: 2, distillation: { teacher: { type: 'run', path: TEACHER } } },
  },
  'maxLag 2, refilling batches': { learner: { maxLag: 2, filterGroups: true, oversampling: 3 } },
  'maxLag 2, runs of tokens': { learner: { maxLag: 2 }, policy: { decoder: 'tokens' } },
};

beforeAll(async () => {
  const config = toyConfig('chain', { stop: { updates: 2 } });
  createRunFolder(TEACHER, config);
  await withToyRun(config, TEACHER, async ({ run }) => {
    await run.train();
    await run.save();
  });
}, 60_000);
afterAll(() => rmSync(dirname(TEACHER), { recursive: true }));

describe('resume', () => {
  for (const [name, toy] of Object.entries(cases)) {
    it(`equals a run that was never stopped: ${name}`, async () => {
      await inFolder(async (root) => {
        const whole = await train(toy, join(root, 'whole'), false);
        expect(whole.rows.map(({ horizon }) => horizon)).toEqual([3, 3, 8, 8, 8, 8, 8, 8]);
        const { maxLag } = config(toy).learner;
        expect(Math.max(...whole.rows.map(({ lagMax }) => lagMax!))).toBe(maxLag);

        const every = long || name === 'maxLag 2' || name === 'maxLag 2, refilling batches';
        for (let update = every ? 1 : 3; update < UPDATES; update += every ? 1 : 4) {
          const dir = join(root, `from-${update}`);
          folderAt(join(root, 'whole'), update, dir);
          const resumed = await train(toy, dir, true);
          const after = whole.rows.slice(update);
          expect(resumed.rows, `from ${update}`).toEqual(after);
          expect(resumed.groups, `data from ${update}`).toEqual(
            resumed.groups.length === 0 ? [] : whole.groups.slice(-resumed.groups.length),
          );
          expect(resumed.last, `checkpoint from ${update}`).toEqual(whole.last);
        }
      });
    }, 60_000);
  }

  it('leaves in the traces what a run that was never stopped has there: each episode once, with its advantages', async () => {
    const name = 'maxLag 2, evaluating, with a critic, a reference and two minibatches';
    await inFolder(async (root) => {
      const whole = join(root, 'whole');
      await train(cases[name]!, whole, false);
      const expected = tracedIn(whole);
      expect(expected.filter((line) => line.includes('"train"')).length).toBeGreaterThan(2 * UPDATES * 3);
      expect(expected.filter((line) => line.includes('held out'))).not.toHaveLength(0);
      for (let update = 1; update < UPDATES; update += long ? 1 : 2) {
        const dir = join(root, `from-${update}`);
        cpSync(whole, dir, { recursive: true });
        const { checkpoints, traces } = { checkpoints: join(dir, 'checkpoints'), traces: join(dir, 'traces') };
        for (const later of readdirSync(checkpoints)) {
          if (Number(later) > update) rmSync(join(checkpoints, later), { recursive: true });
        }
        appendFileSync(join(traces, '00001.jsonl'), '{"purpose":"train","epis'); // as a kill leaves it
        writeFileSync(join(traces, 'eval-00001.jsonl'), traceHeader({}) + traceLine(trajectoryOf(), 'h4 sampled', ''));
        const rows = Array.from({ length: UPDATES }, (_, i) => `{"format":1,"update":${i + 1}}\n`);
        writeFileSync(join(dir, 'evaluations.jsonl'), rows.join(''));
        await train(cases[name]!, dir, true);
        expect(readFileSync(join(dir, 'evaluations.jsonl'), 'utf8')).toBe(rows.slice(0, update).join(''));
        const evaluated = join(traces, 'eval-00001.jsonl');
        expect(readTrace(evaluated).episodes).toHaveLength(1); // of `longplay eval`, which is another's
        rmSync(evaluated);
        expect(tracedIn(dir), `from ${update}`).toEqual(expected);
        expect(TraceStore.open(dir).losses).toEqual([]);
      }
    });
  }, 60_000);

  it('a checkpoint under way holds episodes in flight and finished groups that no update consumed', async () => {
    await inFolder(async (dir) => {
      await train(cases['maxLag 2']!, dir, false);
      let [running, finished, delivered] = [0, 0, 0];
      for (let update = 1; update < UPDATES; update++) {
        const state = JSON.parse(readFileSync(join(dir, 'checkpoints', String(update), 'state.json'), 'utf8'));
        const rollout = state.rollout as SchedulerState;
        for (const group of rollout.running) {
          finished += group.finished.length;
          for (const { turns } of group.running) if (turns.length > 0) running++;
        }
        delivered += rollout.delivered.length;
      }
      expect(
        [running, finished, delivered].every((count) => count > 0),
        `${[running, finished, delivered]}`,
      ).toBe(true);
    });
  }, 60_000);

  it('a checkpoint under way holds groups without a signal that others already take the place of', async () => {
    await inFolder(async (dir) => {
      const toy = cases['maxLag 2, refilling batches']!;
      await train(toy, dir, false);
      let putAside = 0;
      for (let update = 1; update < UPDATES; update++) {
        const state = JSON.parse(readFileSync(join(dir, 'checkpoints', String(update), 'state.json'), 'utf8'));
        const { delivered } = state.rollout as SchedulerState;
        putAside += delivered.filter(({ group }) => !isInformative(group, config(toy).learner)).length;
      }
      expect(putAside).toBeGreaterThan(0);
    });
  }, 60_000);

  it('ending a run keeps what is in flight, and goes on from there', async () => {
    await inFolder(async (dir) => {
      const toy = cases['maxLag 2']!;
      const ended = await withToyRun({ ...config(toy), stop: { updates: 4 } }, dir, async ({ run }) => {
        await run.train();
        const saved = await run.save();
        const record = await run.evaluate({
          name: 'x',
          tasks: [{ env: 'toy', index: 0, seed: 1 }],
          episodes: 2,
          horizon: 3,
          temperature: 1,
          seed: 1,
        });
        return { saved, record };
      });
      expect(ended.saved).toMatchObject({ ok: true, update: 4 });
      expect(ended.record.results[0]!.successes).toHaveLength(2);
      const { rollout } = loadNewest(join(dir, 'checkpoints')).state as unknown as { rollout: SchedulerState };
      expect(rollout.running.length + rollout.delivered.length).toBeGreaterThan(0);
      const resumed = await train(toy, dir, true);
      expect(resumed.rows.map(({ update }) => update)).toEqual([5, 6, 7, 8]);
      expect(resumed.rows.at(-1)!.trained).toBeGreaterThan(0);
    });
  }, 60_000);

  it('a disk that refuses is reported, the run goes on, and the next update tries again', async () => {
    await inFolder(async (dir) => {
      writeFileSync(join(dir, 'checkpoints'), 'a file where the folder should be');
      const notices = await withToyRun(config(cases['maxLag 0']!), dir, async ({ run, notices }) => {
        await run.train();
        await run.save(); // comes after the one of the last update
        return notices;
      });
      const failed = notices.flatMap((line) => /checkpoint at update (\d+) failed: E[A-Z]+/.exec(line)?.[1] ?? []);
      expect(new Set(failed)).toEqual(new Set(Array.from({ length: UPDATES }, (_, i) => String(i + 1))));
      expect(existsSync(join(dir, 'metrics.jsonl'))).toBe(true);
    });
  }, 60_000);
});
