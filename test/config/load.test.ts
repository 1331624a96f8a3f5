/** Configurations that mean harm, or are absurd: one line that names the key, and nothing else happens. */
import { describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { loadRunConfig } from '../../src/config/load.ts';
import { MAX_MS } from '../../src/config/ranges.ts';
import { runConfigSchema } from '../../src/config/run-config.ts';
import { UserError } from '../../src/core/errors.ts';

const plain = 'env: { id: any }\nhorizon: { type: fixed, rounds: 8 }\nstop: { updates: 1 }\n';
const load = (text = '', ...overrides: string[]) => loadRunConfig(plain + text, 'a.yaml', overrides);

/** The message of a refusal. */
function refusal(text: string, ...overrides: string[]): string {
  try {
    load(text, ...overrides);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(UserError);
    return (thrown as Error).message;
  }
  throw new Error('it was accepted');
}

it.each(['grpo', 'rloo', 'gigpo'])('%s needs a group', (algorithm) => {
  const message = refusal('', `learner.estimator={algorithm: ${algorithm}}`, 'rollout.groupSize=1');
  expect(message).toMatch(`rollout.groupSize: ${algorithm} compares episodes of one task; expected at least 2, got 1`);
});

describe('every number of a configuration', () => {
  interface Schema {
    readonly type?: string;
    readonly const?: unknown;
    readonly properties?: Record<string, Schema>;
    readonly items?: Schema;
    readonly anyOf?: readonly Schema[];
    readonly oneOf?: readonly Schema[];
    readonly minimum?: number;
    readonly maximum?: number;
    readonly exclusiveMinimum?: number;
  }
  const numbers = function* (schema: Schema, path: string): Generator<[string, Schema]> {
    if ((schema.type === 'number' || schema.type === 'integer') && schema.const === undefined) yield [path, schema];
    for (const [key, inner] of Object.entries(schema.properties ?? {})) yield* numbers(inner, `${path}.${key}`);
    if (schema.items) yield* numbers(schema.items, `${path}[]`);
    for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) yield* numbers(inner, path);
  };
  const all = [...numbers(z.toJSONSchema(runConfigSchema, { io: 'input', unrepresentable: 'any' }) as Schema, '')];

  it('has a least and a greatest value', () => {
    expect(all.length).toBeGreaterThan(60);
    // zod gives every integer the range in which doubles count: no range of ours.
    const lacks = all.filter(
      ([, { minimum, exclusiveMinimum, maximum }]) =>
        (minimum ?? exclusiveMinimum) === undefined || maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER,
    );
    expect(lacks.map(([path]) => path)).toEqual([]);
  });

  it('of milliseconds fits a timer', () => {
    const timers = all.filter(([path]) => path.endsWith('Ms'));
    expect(timers.length).toBeGreaterThanOrEqual(2);
    for (const [, { maximum }] of timers) expect(maximum).toBe(MAX_MS);
  });

  it.each([
    ['rollout.envThreads=1000000', /rollout.envThreads: .*256.*got 1000000/],
    ['policy.model.hiddenSize=1e9', /policy.model.hiddenSize/],
    ['evaluation.episodesPerTask=1e8', /evaluation.episodesPerTask/],
    ['rollout.stepDeadlineMs=2147483648', /rollout.stepDeadlineMs/],
    ['learner.learningRate=.inf', /learner.learningRate/],
    ['learner.learningRate=.nan', /learner.learningRate/],
    ['policy.model={layers: 200, hiddenSize: 16384}', /layers × hiddenSize² make \d+ weights/],
    ['rollout={groupSize: 4096, concurrentGroups: 100000, maxBatch: 4096}', /make 409600000 episodes; at most 1000000/],
    ['learner={maxLag: 10000, oversampling: 10000}', /groupSize make 6400640000 episodes/],
    ['evaluation={episodesPerTask: 100000}', /episodesPerTask make 1600000 episodes/],
    ['evaluation={episodesPerTask: 10000, horizons: [8, 100000]}', /make 16000000000 turns/],
  ])('is refused out of its range: %s', (override, message) => {
    const text = refusal('', override);
    expect(text).toMatch(message);
    expect(text.split('\n')).toHaveLength(1);
  });
});

describe('a configuration', () => {
  it.each([
    ['an alias without an anchor', 'tasks: *nothing\n'],
    ['an alias inside its own anchor', 'tasks: &a { labels: *a }\n'],
    ...[8, 30].map((depth) => [
      `an alias bomb of 3^${depth}`,
      `x0: &x0 [1, 1]\n${Array.from({ length: depth }, (_, i) => `x${i + 1}: &x${i + 1} [*x${i}, *x${i}, *x${i}]\n`).join('')}`,
    ]),
  ])('is refused with %s', (_, text) => {
    expect(refusal(text).length).toBeLessThan(400);
  });

  it('is refused where a key is a map, with no other message', () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    expect(refusal('? { a: 1 }\n: 2\n', 'stop={? [1, 2] : 3}').length).toBeLessThan(400);
    expect(emit).not.toHaveBeenCalled();
    emit.mockRestore();
  });

  it('is refused in one line, however the lines of what is quoted end', () => {
    for (const end of ['\n', '\r', '\u2028']) {
      expect(refusal('', `learner="\\u00${end} at 0"`)).not.toMatch(/^\s+at /m);
    }
  });

  it.each(['__proto__.x=1', 'env.__proto__.x=1', 'constructor.prototype.x=1'])(
    'is not reached behind by --set %s',
    (override) => {
      expect(refusal('', override)).toMatch(/there is no key/);
      expect(({} as Record<string, unknown>).x).toBeUndefined();
    },
  );

  it.each([
    ['policy.openai.baseUrl=https://me:secret@host/v1', 'policy.openai.baseUrl'],
    ['rollout.envServer=http://token@host:1', 'rollout.envServer'],
    ['env.options={url: "http://a:b@host"}', 'env.options.url'],
    ['policy.openai.baseUrl="https://host/v1?v=1&api_key=secret"', 'policy.openai.baseUrl'],
    ['rollout.envServer="http://host:1/?access-token=secret"', 'rollout.envServer'],
  ])('keeps no credentials of an URL, nor prints them: %s', (override, key) => {
    const text = refusal('', override);
    expect(text).toContain(key);
    expect(text).not.toMatch(/secret|token@|a:b/);
  });

  it('is refused where a key is repeated, by its place', () => {
    expect(refusal('seed: 1\nlearner: { epochs: 1, maxLag: 1, epochs: 2 }\n')).toBe(
      'a.yaml: not valid YAML: Map keys must be unique at line 5, column 34:',
    );
    expect(refusal('"1": 1\n1: 2\n')).toContain('Map keys must be unique');
  });

  it('is read in linear time, and refused where it is endless', () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n');
    expect(refusal(keys).split('\n').length).toBeLessThanOrEqual(21); // comparing all with each other takes a minute
    expect(refusal(`x: [${','.repeat(100_000)}]\n`)).toMatch(
      /^a.yaml: not valid YAML: Unexpected , .* at line 4, column 6:$/,
    );
    expect(refusal(`# ${'x'.repeat(300_000)}\n`)).toMatch(/^a.yaml: expected at most 262144 characters, got 3000/);
  });

  it('sets a key inside a default in that default', () => {
    const { estimator, kl, offPolicy } = load(
      '',
      'learner.estimator.gamma=0.95',
      'learner.kl={in: loss, control: {coefficient: 0.5}}',
    ).learner;
    expect(estimator).toMatchObject({ algorithm: 'grpo', gamma: 0.95, std: true });
    expect(kl!.control).toEqual({ type: 'fixed', coefficient: 0.5 });
    expect(offPolicy).toEqual({ type: 'ratio' });
    expect(load('tasks: { sampling: { floor: 0.1 } }\n').tasks.sampling).toEqual({ type: 'learnable', floor: 0.1 });
    expect(
      load('', 'learner.estimator={algorithm: ppo, lambda: 0.9}', 'learner.valueCoef=1').learner.estimator,
    ).toMatchObject({
      algorithm: 'ppo',
      lambda: 0.9,
    });
    expect(refusal('', 'learner.estimator.lambda=0.9')).toMatch(/unknown key 'learner\.estimator\.lambda'/); // not GRPO's
  });

  it.each<readonly [string, readonly string[], string | RegExp]>([
    [
      'a loss of what imitates',
      ['learner.estimator={algorithm: agent_evol}', 'learner.policyLoss={type: sapo}'],
      /agent_evol imitates and has no policy loss; leave policyLoss out/,
    ],
    [
      'a clip that the loss does not read',
      ['learner.policyLoss={type: sapo}', 'learner.clipLow=0.1'],
      /learner\.clipLow: only policyLoss ppo_clip reads it, and it is sapo; leave it out/,
    ],
    [
      'a clip beside the loss',
      ['learner.policyLoss={type: gspo}', 'learner.clipHigh=0.1'],
      /set learner\.policyLoss\.clipHigh/,
    ],
    [
      'a mean of one ratio',
      ['learner.offPolicy={type: truncated, geometricMean: true}'],
      /learner\.offPolicy\.geometricMean: per decision a weight is of one ratio/,
    ],
    [
      'a group smaller than k',
      ['learner.estimator={algorithm: pass_at_k, k: 9}'],
      /rollout\.groupSize: pass_at_k compares episodes of one task; expected at least 9, got 8/,
    ],
    [
      'a key of another loss',
      ['learner.policyLoss={type: sapo, clipLow: 1}'],
      /unknown key 'learner\.policyLoss\.clipLow'/,
    ],
  ])('refuses %s in one line', (_, overrides, message) => {
    expect(refusal('', ...overrides)).toMatch(message);
    expect(refusal('', ...overrides).trim()).not.toContain('\n');
  });

  it.each([
    'learner.policyLoss={type: ppo_clip}',
    'learner.policyLoss={type: cispo}',
    'learner.offPolicy={type: masked, per: trajectory, geometricMean: true}',
    'learner.offPolicy={type: second_moment}',
    'learner.estimator={algorithm: pass_at_k, k: 8}',
    'learner.estimator={algorithm: hgpo}',
  ])('takes %s', (setting) => {
    expect(() => load('', setting)).not.toThrow();
  });

  it('drops removed keys at their former defaults, as an older run has them', () => {
    const old = {
      tasks: { split: 'train' },
      policy: { openai: { price: { prompt: 0, completion: 0 }, attempts: 6, format: 'world' }, chat: { stop: [] } },
      learner: { breaker: { rollbackAfter: 3, shrink: 0.5 }, weightDecay: 0 },
      watchdog: { stallMs: 300_000, lagMs: 2000 },
    };
    expect(load(stringify(old))).toEqual(load());
  });

  it.each([
    [
      'policy.openai.topP=0.9',
      'policy.openai.topP: this key was removed: set it in policy.openai.body={top_p: …} (got 0.9)',
    ],
    [
      'horizon={type: adaptive, rounds: [4], patience: 3}',
      'horizon.patience: this key was removed: it is always 10 now; leave it out (got 3)',
    ],
    [
      'policy.model.kvHeads=1',
      'policy.model.kvHeads: this key was removed: there are as many as policy.model.heads; leave it out (got 1)',
    ],
    [
      'rollout.isolation=remote',
      "rollout.isolation: 'remote' was removed: play heavy worlds through their server: 'longplay serve-env' there, rollout.envServer here",
    ],
    ['watchdog.lagMs=1', 'watchdog.lagMs: this key was removed: it is always 2000 now; leave it out (got 1)'],
  ])('refuses a removed key that meant something: %s', (override, line) => {
    expect(refusal('', override)).toBe(`a.yaml: ${line}`);
  });

  it('may have an @ elsewhere in an URL', () => {
    expect(load('', 'policy.openai.baseUrl=http://host/v1/@me').policy.openai.baseUrl).toBe('http://host/v1/@me');
  });
});
