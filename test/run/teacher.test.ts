/** Teachers of a run: what is refused before play begins, in one line, and what is written down of them. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../src/config/load.ts';
import { resolveTeacherPath } from '../../src/config/paths.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { replayRun } from '../../src/run/replay-learner.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';
import { prepareTeacher } from '../../src/run/teacher.ts';
import { train } from '../../src/run/train.ts';
import { withSmallCluster } from '../support/small-cluster.ts';
import { smallConfig, temporaryFolder, textcraftUrl } from '../support/small-run.ts';

const folder = temporaryFolder('teacher');
const path = join(folder, 'teacher');

const runs = (config: Partial<RunConfigInput>, name: string) =>
  train({ config: smallConfig(config), dir: join(folder, name), mode: 'serial' }).done;

const distils = (teacher: object, more: object = {}) => ({
  learner: { groupsPerUpdate: 2, distillation: { teacher, ...more } } as RunConfigInput['learner'] & object,
});

beforeAll(async () => {
  await runs({ stop: { updates: 2 } }, 'teacher');
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

describe('a teacher that cannot teach is refused in one line, and leaves no run behind', () => {
  const mistake = async (config: Partial<RunConfigInput>, message: RegExp) => {
    const thrown = await runs(config, 'student').then(
      () => undefined,
      (error: Error) => error,
    );
    expect(thrown).toMatchObject({ message: expect.stringMatching(message) });
    expect(thrown!.message).not.toContain('\n');
    expect(() => loadNewestOf(join(folder, 'student'))).toThrow();
  };

  it('a folder that is not there, or is no run', async () => {
    const key = /^learner\.distillation\.teacher\.path: .*nowhere is no run/;
    await mistake(distils({ type: 'run', path: join(folder, 'nowhere') }), key);
  });

  it('a run without a checkpoint', async () => {
    createRunFolder(join(folder, 'empty'), smallConfig());
    const key =
      /^learner\.distillation\.teacher\.path: .*there is no checkpoint|^learner\.distillation\.teacher\.path: .*checkpoint/;
    await mistake(distils({ type: 'run', path: join(folder, 'empty') }), key);
  });

  it('another world', async () => {
    await mistake(
      { ...distils({ type: 'run', path }), env: { id: 'babyai' }, tasks: { sampling: { type: 'uniform' } } },
      /expected the world babyai, got textcraft/,
    );
  });

  it('another decoder', async () => {
    await mistake(
      {
        ...distils({ type: 'run', path }),
        policy: { decoder: 'tokens', model: { hiddenSize: 16, layers: 1, heads: 2 } },
      },
      /expected the policy\.decoder tokens, got choice/,
    );
  });

  it('a shorter context', async () => {
    await mistake(
      {
        ...distils({ type: 'run', path }),
        policy: { model: { hiddenSize: 16, layers: 1, heads: 2, maxPositions: 2048 } },
      },
      /reads 1024 tokens, expected at least the 2048 of the student/,
    );
  });

  it('a policy without weights', async () => {
    const random = join(folder, 'random');
    createRunFolder(random, smallConfig({ policy: { kind: 'random' } }));
    await mistake(distils({ type: 'run', path: random }), /learner\.distillation\.teacher\.path: /);
  });
});

it('a key that is not set is missed before its server is asked', async () => {
  const teacher = { type: 'server', url: 'http://127.0.0.1:9', apiKeyEnv: 'LONGPLAY_NO_SUCH_KEY' };
  const config = smallConfig({
    ...distils(teacher),
    policy: { kind: 'checkpoint', path: 'm', decoder: 'tokens', masked: false },
  });
  const student = {} as NonNullable<Parameters<typeof prepareTeacher>[1]>;
  const world = {} as Parameters<typeof prepareTeacher>[2];
  await expect(prepareTeacher(config, student, world)).rejects.toThrow(
    /^learner\.distillation\.teacher\.apiKeyEnv: expected a key in LONGPLAY_NO_SUCH_KEY, which is not set/,
  );
});

describe('keys that do not go together', () => {
  const refused: readonly (readonly [string, Partial<RunConfigInput>, RegExp])[] = [
    [
      'a server for choices',
      distils({ type: 'server', url: 'http://127.0.0.1:9' }),
      /teacher\.type: a server scores tokens/,
    ],
    [
      'a server for masked tokens',
      {
        ...distils({ type: 'server', url: 'http://127.0.0.1:9' }),
        policy: { kind: 'checkpoint', path: 'm', decoder: 'tokens', masked: true },
      },
      /got checkpoint with policy\.masked/,
    ],
    ['an average alone', distils({ type: 'ema' }), /useRewards: the average of its own weights teaches nothing new/],
    [
      'imitation',
      { learner: { estimator: { algorithm: 'agent_evol' }, distillation: { teacher: { type: 'run', path } } } },
      /distillation: agent_evol imitates already/,
    ],
    [
      'a policy loss without rewards',
      { learner: { policyLoss: { type: 'cispo' }, distillation: { teacher: { type: 'run', path } } } },
      /policyLoss: nothing is learnt from rewards/,
    ],
    [
      'a KL in rewards that count for nothing',
      { learner: { kl: { in: 'reward' }, distillation: { teacher: { type: 'run', path } } } },
      /kl\.in: nothing is learnt from rewards/,
    ],
    [
      'what it remembers',
      {
        learner: {
          valueCoef: 0.5,
          selfImitation: { episodes: 1 },
          distillation: { teacher: { type: 'run', path }, useRewards: true },
        },
      },
      /selfImitation: a teacher scores what is played now/,
    ],
    [
      'oversampling',
      { learner: { ...distils({ type: 'run', path }).learner, oversampling: 2 } },
      /oversampling: nothing is left out/,
    ],
    ['a coefficient of 0', distils({ type: 'run', path }, { coef: 0 }), /distillation\.coef/],
    ['a decay of 1', distils({ type: 'ema', decay: 1 }, { useRewards: true }), /distillation\.teacher\.decay/],
    ['a URL with a key', distils({ type: 'server', url: 'http://a:b@host' }), /carries a name, a password or a key/],
    [
      'the world’s tokens for the local policy',
      { learner: { observationCoef: 0.1 } },
      /observationCoef: .*got local with policy\.masked; the local policy reads a view whole/,
    ],
    [
      'the world’s tokens under a mask',
      {
        policy: { kind: 'checkpoint', path: 'm', decoder: 'tokens', masked: true },
        learner: { observationCoef: 0.1 },
      },
      /observationCoef: .*got checkpoint with policy\.masked/,
    ],
  ];
  it.each(refused)('%s', (_, config, message) => {
    expect(() => smallConfig(config)).toThrow(message);
  });

  it('one episode a task is enough where rewards count for nothing', () => {
    const alone = { ...distils({ type: 'run', path }), rollout: { groupSize: 1, maxBatch: 16 } };
    expect(smallConfig(alone).rollout.groupSize).toBe(1);
    expect(() => smallConfig({ ...alone, ...distils({ type: 'run', path }, { useRewards: true }) })).toThrow(
      'groupSize',
    );
  });

  it('a path is kept absolute, so that the run is found from anywhere', () => {
    const config = checkRunConfig({ ...smallConfig(), ...distils({ type: 'run', path: 'runs/a' }) }, 'test');
    const { distillation } = resolveTeacherPath(config.learner, '/home');
    expect(distillation?.teacher).toEqual({ type: 'run', path: '/home/runs/a' });
  });
});

describe('a run that goes on', () => {
  const own = join(folder, 'growing');
  const pupil = (updates: number) => smallConfig({ ...distils({ type: 'run', path: own }), stop: { updates } });
  const goOn = (config: ReturnType<typeof smallConfig>, name: string) => {
    const notices: string[] = [];
    const dir = join(folder, name);
    const onNotice = (line: string) => notices.push(line);
    return train({ config, dir, mode: 'serial', resume: true, onNotice }).done.then(() => notices);
  };

  it('has the teacher that it began with: its checkpoint, by its digest', { timeout: 120_000 }, async () => {
    await runs({ stop: { updates: 2 } }, 'growing');
    await train({ config: pupil(2), dir: join(folder, 'pupil'), mode: 'serial' }).done;
    const state = loadNewestOf(join(folder, 'pupil')).state as unknown as {
      readonly learner: { readonly trainer: { readonly teacher: unknown } };
    };
    const digest = expect.stringMatching(/^[\da-f]{64}$/) as string;
    expect(state.learner.trainer.teacher).toEqual({ type: 'run', update: 2, digest });
    // The teacher learns on, and still teaches by update 2.
    await goOn(smallConfig({ stop: { updates: 4 } }), 'growing');
    expect(loadNewestOf(own).update).toBe(4);
    expect(await goOn(pupil(4), 'pupil')).toContain(`the teacher is ${own}, update 2`);
    // Another one in its place does not.
    rmSync(own, { recursive: true });
    await runs({ seed: 2, stop: { updates: 2 } }, 'growing');
    await expect(goOn(pupil(6), 'pupil')).rejects.toThrow(
      /^learner\.distillation\.teacher: this run began with update 2 of/,
    );
    rmSync(own, { recursive: true });
    await expect(goOn(pupil(6), 'pupil')).rejects.toThrow(/growing is no run/);
  });

  it('makes its updates again from its journal, with its teacher', { timeout: 120_000 }, async () => {
    const config = smallConfig({
      ...distils({ type: 'run', path }),
      stop: { updates: 3 },
      checkpoint: { everyUpdates: 9 },
    });
    const dir = join(folder, 'journalled');
    await train({ config, dir, journal: true }).done;
    rmSync(join(dir, 'checkpoints', '3'), { recursive: true });
    expect(await replayRun(dir)).toEqual({ from: 0, updates: 3 });
  });

  it('is taught at the learner alone, where workers play', { timeout: 120_000 }, async () => {
    const config = smallConfig({ ...distils({ type: 'run', path }), stop: { updates: 3 } });
    const dir = join(folder, 'cluster');
    createRunFolder(dir, config);
    const metrics$ = new Subject<MetricsRow>();
    const rows: MetricsRow[] = [];
    metrics$.subscribe((row) => rows.push(row));
    await withSmallCluster({ config, dir, envModule: textcraftUrl, metrics$ }, async ({ run, join: add }) => {
      const training = run.train();
      // The machine of a worker has not even a folder of the teacher.
      await add(smallConfig({ ...distils({ type: 'run', path: join(folder, 'nowhere') }), stop: { updates: 3 } }));
      expect((await training).status.version).toBe(3);
    });
    expect(rows.every(({ distillationKl }) => distillationKl! > 0)).toBe(true);
  });
});
