/** Several worlds in a configuration: one form or the other, what each world gets, and every mistake in one line. */
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { checkRunConfig, loadRunConfig } from '../../src/config/load.ts';
import {
  describeWorlds,
  findEnvOf,
  listWorlds,
  mapEnvs,
  omitFilled,
  requireOneWorld,
  weightAt,
} from '../../src/config/worlds.ts';

const fixed = (rounds: number) => ({ type: 'fixed', rounds }) as const;
const two = {
  worlds: [
    { env: { id: 'textcraft' }, horizon: fixed(8), gamma: 0.5, evaluation: { horizons: [8] } },
    { name: 'rooms', env: { id: 'babyai', options: { a: 1 } }, horizon: fixed(5), lambda: 0.25, weight: 3 },
  ],
  stop: { updates: 1 },
  learner: { estimator: { algorithm: 'ppo', gamma: 0.9, lambda: 0.8 }, valueCoef: 0.5 },
  evaluation: { horizons: [7], episodesPerTask: 3 },
};

/** Configuration with other keys; those that are undefined are absent. */
const changed = (keys: object) => checkRunConfig(JSON.parse(JSON.stringify({ ...two, ...keys })), 'x.yaml');
/** Configuration whose second world has other keys. */
const second = (keys: object) => changed({ worlds: [two.worlds[0], { ...two.worlds[1], ...keys }] });

describe('several worlds in a configuration', () => {
  it('each has a configuration as if it were alone', () => {
    const [first, other, ...none] = listWorlds(changed({}));
    expect(none).toEqual([]);
    expect([first.name, other!.name]).toEqual(['textcraft', 'rooms']);
    expect(first.config.horizon).toEqual(fixed(8));
    expect(other!.config.horizon).toEqual(fixed(5));
    expect(first.config.learner.estimator).toMatchObject({ gamma: 0.5, lambda: 0.8 });
    expect(other!.config.learner.estimator).toMatchObject({ gamma: 0.9, lambda: 0.25 });
    expect(first.config.evaluation).toMatchObject({ horizons: [8], episodesPerTask: 3 });
    expect(other!.config.evaluation).toMatchObject({ horizons: [7], episodesPerTask: 3 });
    expect(other!.config.env).toEqual({ id: 'babyai', options: { a: 1 } });
    expect(other!.schedule).toEqual([{ from: 0, weight: 3 }]);
    for (const { config } of [first, other!]) expect(config).not.toHaveProperty('worlds');
  });

  it('a run of one world is a list of one, and is what it was', () => {
    const config = checkRunConfig({ env: { id: 'textcraft' }, horizon: fixed(8), stop: { updates: 1 } }, 'x');
    const [only, ...none] = listWorlds(config);
    expect(none).toEqual([]);
    expect(only.config).toBe(config);
    for (const key of ['worlds', 'mixture', 'normalizePerWorld']) expect(config).not.toHaveProperty(key);
    expect(omitFilled(config)).toBe(config);
  });

  it('is the same when it is read from what was written, and when it is checked again', () => {
    const config = changed({ mixture: 'progress', normalizePerWorld: false });
    const written = omitFilled(config);
    for (const key of ['env', 'horizon', 'tasks']) expect(written).not.toHaveProperty(key);
    expect(checkRunConfig(JSON.parse(JSON.stringify(written)), 'x')).toEqual(config);
    expect(checkRunConfig(config, 'x')).toEqual(config);
  });

  it('defaults of a union hold inside a world, and --set reaches it', () => {
    const config = loadRunConfig(JSON.stringify(two), 'x.yaml', [
      'worlds.1.weight=2',
      'worlds.0.tasks.sampling={floor: 0.1}',
    ]);
    expect(listWorlds(config)[1]!.schedule).toEqual([{ from: 0, weight: 2 }]);
    expect(config.worlds![0]!.tasks.sampling).toEqual({ type: 'learnable', floor: 0.1 });
  });

  it('a world behind an MCP server has the deadlines that programs need, among several too', () => {
    const deadlines = ({ rollout }: ReturnType<typeof changed>) => [rollout.stepDeadlineMs, rollout.openDeadlineMs];
    expect(deadlines(changed({}))).toEqual([10_000, 30_000]);
    expect(deadlines(second({ env: { id: 'mcp:./a.yaml' } }))).toEqual([60_000, 60_000]);
  });

  it('a weight holds until the next one', () => {
    const { schedule } = listWorlds(
      second({ weight: undefined, schedule: parse('[{from: 0, weight: 0}, {from: 5, weight: 2}]') }),
    )[1]!;
    expect([0, 4, 5, 6, 1000].map((update) => weightAt(schedule, update))).toEqual([0, 0, 2, 2, 2]);
  });

  it('finds the world that a task names, in a header that nobody has checked', () => {
    const config = changed({});
    expect(findEnvOf(config, 'rooms')).toEqual({ id: 'babyai', options: { a: 1 } });
    expect(findEnvOf(config, 'textcraft')).toMatchObject({ id: 'textcraft' });
    for (const bad of [undefined, 7, { worlds: [7, null, {}] }, { worlds: 'a' }])
      expect(findEnvOf(bad, 'rooms')).toBeUndefined();
    expect(findEnvOf({ env: { id: 'a' } }, 'b')).toEqual({ id: 'a' });
    expect(describeWorlds(config)).toBe('textcraft, rooms');
    expect(describeWorlds({ worlds: [7, null, {}, { name: 'b' }] })).toBe('?, ?, ?, b');
    expect([{ env: { id: 'a' } }, { env: {} }, {}, undefined].map(describeWorlds)).toEqual([
      'a',
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('changes the env of every world', () => {
    const named = mapEnvs(changed({}), (env) => ({ ...env, id: `./${env.id}.mjs` }));
    expect(named.worlds!.map(({ env }) => env.id)).toEqual(['./textcraft.mjs', './babyai.mjs']);
    expect(() => requireOneWorld(changed({}), 'rollout')).toThrow(
      /rollout: it takes a run of one world.*textcraft, rooms/,
    );
  });
});

const mistakes: Readonly<Record<string, readonly [make: () => unknown, message: RegExp]>> = {
  'both forms': [
    () => changed({ env: { id: 'babyai' } }),
    /^x\.yaml: worlds: a run has one world .* got both: env; move it into/,
  ],
  'both forms, all keys': [
    () => changed({ env: { id: 'babyai' }, horizon: fixed(3), tasks: {} }),
    /got both: env, tasks, horizon; move them into/,
  ],
  'a list and a program': [() => changed({ agent: './a.mjs' }), /got both: agent/],
  'neither form': [
    () => checkRunConfig({ stop: { updates: 1 }, horizon: fixed(3) }, 'x.yaml'),
    /env: must be given: .*several worlds are a list \(worlds\)/,
  ],
  'one world in a list': [
    () => changed({ worlds: [two.worlds[0]] }),
    /worlds: expected at least two worlds; one is given by env/,
  ],
  'no list': [() => changed({ worlds: 7 }), /worlds: .*expected array/i],
  'an unknown key': [() => second({ wieght: 1 }), /unknown key 'worlds\.1\.wieght'; did you mean 'weight'/],
  'an unknown key of a horizon': [
    () => second({ horizon: { ...fixed(3), steps: 1 } }),
    /unknown key 'worlds\.1\.horizon\.steps'/,
  ],
  'an unknown type of horizon': [
    () => second({ horizon: { type: 'lineer', rounds: [3] } }),
    /worlds\.1\.horizon\.type: expected one of .*did you mean worlds\.1\.horizon\.type=linear/,
  ],
  'no horizon': [() => second({ horizon: undefined }), /worlds\.1\.horizon/],
  'two of a name': [
    () => changed({ worlds: [two.worlds[0], { env: { id: 'textcraft' }, horizon: fixed(3) }] }),
    /worlds\.1\.name: 'textcraft' is the name of worlds\.0 already; give one of them another, e\.g\. name: textcraft-2/,
  ],
  'a module without a name': [
    () => second({ name: undefined, env: { id: './my/env.mjs' } }),
    /worlds\.1\.name: must be given: '\.\/my\/env\.mjs' is no name/,
  ],
  'a name with blanks': [() => second({ name: 'My World' }), /worlds\.1\.name: expected lower-case letters/],
  'every weight 0': [
    () => changed({ worlds: two.worlds.map((world) => ({ ...world, weight: 0 })) }),
    /worlds: every weight is 0 from update 0 on; expected one above 0/,
  ],
  'every weight 0 later': [
    () =>
      changed({
        worlds: two.worlds.map((world) => ({
          ...world,
          weight: undefined,
          schedule: [
            { from: 0, weight: 1 },
            { from: 9, weight: 0 },
          ],
        })),
      }),
    /every weight is 0 from update 9 on/,
  ],
  'a negative weight': [() => second({ weight: -1 }), /worlds\.1\.weight/],
  'a weight and a schedule': [
    () => second({ schedule: [{ from: 0, weight: 1 }] }),
    /worlds\.1\.schedule: a world has one weight or a schedule of them, got both/,
  ],
  'a schedule that begins later': [
    () => second({ weight: undefined, schedule: [{ from: 3, weight: 1 }] }),
    /the first weight is from update 0, got 3/,
  ],
  'a schedule that falls': [
    () =>
      second({
        weight: undefined,
        schedule: [
          { from: 0, weight: 1 },
          { from: 5, weight: 1 },
          { from: 5, weight: 2 },
        ],
      }),
    /expected ascending updates, got 5, 5/,
  ],
  'λ of an estimator that has none': [
    () => changed({ learner: {}, normalizePerWorld: undefined }),
    /worlds\.1\.lambda: grpo has none; leave it out/,
  ],
  'whitening that no estimator does': [
    () =>
      changed({
        learner: { estimator: { algorithm: 'grpo' } },
        worlds: two.worlds.map(({ ...world }) => ({ ...world, lambda: undefined })),
        normalizePerWorld: true,
      }),
    /normalizePerWorld: grpo normalises no advantages over a batch; leave it out/,
  ],
  'a language model': [
    () => changed({ policy: { kind: 'checkpoint', path: './m' } }),
    /policy\.kind: several worlds are played by 'local' or 'random', got 'checkpoint'/,
  ],
  'a policy behind a server': [() => changed({ policy: { kind: 'openai' } }), /policy\.kind: several worlds/],
  'a program in the list': [
    () => second({ env: { id: 'agent' } }),
    /worlds\.1\.env\.id: a program that calls a model is trained by itself/,
  ],
  'a list in the list': [() => second({ env: { id: 'worlds' } }), /worlds\.1\.env\.id: a world of a list is no list/],
  'a warm start': [
    () => changed({ warmStart: { episodes: 8 } }),
    /warmStart\.episodes: it imitates the solver of one world/,
  ],
  'self-imitation': [
    () => changed({ learner: { ...two.learner, selfImitation: {} } }),
    /learner\.selfImitation: it remembers episodes of one world/,
  ],
  'a server for all': [
    () => changed({ rollout: { envServer: 'http://127.0.0.1:1' } }),
    /rollout\.envServer: one server has one world/,
  ],
  'excess in one world': [
    () =>
      changed({
        worlds: [two.worlds[0], { ...two.worlds[1], horizon: fixed(100_000) }],
        rollout: { concurrentGroups: 1000 },
      }),
    /^x\.yaml: worlds\.1: horizon\.rounds × /,
  ],
  'a mixture of one world': [
    () => checkRunConfig({ env: { id: 'a' }, horizon: fixed(3), stop: { updates: 1 }, mixture: 'progress' }, 'x.yaml'),
    /mixture: it is for a list of worlds/,
  ],
};

describe('a mistake in a list of worlds gets one line that names its key', () => {
  it.each(Object.entries(mistakes))('%s', (_, [make, message]) => {
    let thrown: unknown;
    try {
      make();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code: 'BAD_CONFIG', message: expect.stringMatching(message) });
    expect((thrown as Error).message.split('\n')).toHaveLength(1);
  });
});
