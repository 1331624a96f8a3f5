/** Actions put together in stages: the laws hold of a right world and notice a wrong one; horizon and discount leave stages out. */
import { afterEach, describe, expect, it } from 'vitest';
import { createEnvPool, type EnvPool } from '../../../actors/env/env-pool.ts';
import type { EnvCommand, EnvEvent, Failed, Observed } from '../../../actors/env/protocol.ts';
import { act, observe, openEpisode, openGroup } from '../../../actors/rollout/episode-run.ts';
import { decisionColumns } from '../../../src/algo/returns.ts';
import { type Env, MAX_PARTIAL_STEPS, mid } from '../../../src/core/env.ts';
import { withHorizon } from '../../../src/core/horizon.ts';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { recheck } from '../../../src/storage/recheck.ts';
import { checkLaws } from '../../../src/world/conformance/check.ts';
import type { ActionTexts } from '../../../src/world/conformance/script.ts';
import { createEnv, live } from '../../support/staged-env.ts';

const url = new URL('../../support/staged-env.ts', import.meta.url);
const pools: EnvPool[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

const texts: ActionTexts = (rng) => rng.pick(['paint', 'press', 'paint wall', 'door']);
const brokenOf = async (options: object) => {
  const results = await checkLaws({ createEnv: () => createEnv({ ...options }), texts }, { cases: 60, seed: 2 });
  return results.filter(({ ok }) => !ok).map(({ law }) => law);
};

describe('the laws', () => {
  it('hold of a world with stages', async () => expect(await brokenOf({})).toEqual([]));
  it.each([
    ['pays', 'puts actions together in few stages, each with a list'],
    ['endless', 'puts actions together in few stages, each with a list'],
    ['empty', 'puts actions together in few stages, each with a list'],
    ['moves', 'does not move while an action is put together'],
  ])('notice a stage that %s', async (bug, law) => expect(await brokenOf({ bug })).toContain(law));

  it('that play an episode twice are not run on a world whose actions must not be repeated', async () => {
    let opened = 0;
    const once = () => {
      const env = createEnv({ replay: 'never' });
      const open: Env['open'] = (task) => {
        opened++;
        return env.open(task);
      };
      return { ...env, open };
    };
    const results = await checkLaws({ createEnv: once }, { cases: 5, seed: 2 });
    const skipped = results.filter(({ cases }) => cases === 0).map(({ law }) => law);
    expect(skipped).toContain('replays a task and its actions to the same trace');
    expect(skipped.length).toBeGreaterThanOrEqual(4);
    expect(results.every(({ ok }) => ok)).toBe(true);
    expect(opened).toBeGreaterThan(0);
  });
});

async function started(options: object, isolation: 'thread' | 'process' | 'inline' = 'inline') {
  const pool = await createEnvPool({
    envs: [{ id: 'staged', url, options: { ...options } }],
    threads: 1,
    isolation,
    stepDeadlineMs: 300,
    openDeadlineMs: 600,
  });
  pools.push(pool);
  const received = new Map<number, EnvEvent[]>();
  const waiting: (() => void)[] = [];
  pool.observations$.subscribe((event) => {
    received.set(event.episode, [...(received.get(event.episode) ?? []), event]);
    for (const wake of waiting.splice(0)) wake();
  });
  const next = async (episode: number): Promise<EnvEvent> => {
    for (;;) {
      const event = received.get(episode)?.shift();
      if (event) return event;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  const ask = (command: EnvCommand) => {
    pool.send(command);
    return next(command.episode);
  };
  const task = { env: 'staged', index: 0, seed: 0 };
  const open = (episode: number, replay?: string[]) =>
    ask({ type: 'open', episode, attempt: 1, task, ...(replay ? { replay } : {}) });
  const step = (episode: number, turn: number, action: string) => ask({ type: 'step', episode, turn, action });
  return { pool, open, step, next };
}

describe.each(['inline', 'thread', 'process'] as const)('a host (%s)', (isolation) => {
  it('passes stages on, and starts and releases its world once', async () => {
    const { pool, open, step } = await started({}, isolation);
    expect(((await open(1)) as Observed).step.observation).toBe('painted: nothing, by /env-hosts/0');
    expect(((await open(2)) as Observed).step.observation).toBe('painted: nothing, by /env-hosts/0');
    if (isolation === 'inline') expect(live.size).toBe(1);
    const partial = (await step(1, 1, 'paint')) as Observed;
    expect(partial).toMatchObject({
      turn: 1,
      step: { kind: 'mid', observation: 'paint what?', reward: 0, partial: true },
    });
    const whole = (await step(1, 2, 'wall')) as Observed;
    expect(whole.step).toEqual({ kind: 'mid', observation: 'painted: wall, by /env-hosts/0', reward: 0 });
    await pool.close();
    expect(live.size).toBe(0);
  });

  it('reports why a world cannot be started', async () => {
    await expect(started({ start: 'throws' }, isolation)).rejects.toThrow('no paint left');
  });
});

it('one stage too many, or a stage that pays, fails the episode', async () => {
  const endless = await started({ bug: 'endless' });
  await endless.open(1);
  for (let turn = 1; turn <= MAX_PARTIAL_STEPS; turn++) await endless.step(1, turn, 'paint');
  expect(((await endless.step(1, MAX_PARTIAL_STEPS + 1, 'paint')) as Failed).failure).toMatchObject({
    cause: 'protocol',
    message: /in a row/,
  });
  const paying = await started({ bug: 'pays' });
  await paying.open(1);
  expect(((await paying.step(1, 1, 'paint')) as Failed).failure.message).toMatch(/must pay 0/);
});

describe('a world whose actions must not be repeated', () => {
  it('loses the innocent that have acted when a host is ended, and only them', async () => {
    const { open, step, next, pool } = await started({ replay: 'never' }, 'thread');
    await Promise.all([open(1), open(2), open(3)]);
    await step(1, 1, 'paint wall');
    const culprit = step(2, 1, 'spin');
    expect(((await culprit) as Failed).failure.cause).toBe('timeout');
    const lost = (await next(1)) as Failed;
    expect(lost.failure).toMatchObject({ cause: 'lost', where: '/env-hosts/0' });
    expect(((await step(3, 1, 'paint door')) as Observed).step.observation).toMatch(/^painted: door,/);
    expect(pool.stats()).toMatchObject({ restored: 1, failed: { timeout: 1, lost: 1 } });
  });

  it('is not brought back by its actions either', async () => {
    const { open } = await started({ replay: 'never' });
    expect(((await open(1, ['paint wall'])) as Failed).failure.cause).toBe('lost');
    expect((await open(2, [])).type).toBe('observed');
  });
});

describe('a rollout', () => {
  const step = (partial: boolean) => (partial ? { ...mid('o'), partial: true as const } : mid('o'));

  it('uses a turn of the horizon for each whole action only', () => {
    const purpose = { name: 'train', temperature: 1, seed: 1 };
    const task = { env: 'staged', index: 0, seed: 0 };
    const run = openEpisode(openGroup({ group: 0, task, horizon: 2, size: 1, purpose, version: 0 }), 0, 0, 1, 0);
    const rest = { actions: new Int32Array(0), newActions: [], envMs: 0 };
    let next = observe(run, { turn: 0, step: { kind: 'first', observation: 'o' }, ...rest }, undefined, 0);
    const partials = [true, false, true, true, false];
    for (const [i, partial] of partials.entries()) {
      expect('request' in next, `before action ${i}`).toBe(true);
      act(run, { episode: 0, turn: i, action: `a${i}` }, 0);
      next = observe(run, { turn: i + 1, step: step(partial), ...rest }, undefined, 0);
    }
    expect('trajectory' in next && next.trajectory).toMatchObject({ end: 'truncated' });
    const { turns } = (next as { trajectory: Trajectory }).trajectory;
    expect(turns.map(({ partial }) => partial === true)).toEqual(partials);
  });

  it('never ends on a stage', () => expect(withHorizon(step(true), 9, 2).kind).toBe('mid'));

  it('is played again turn by turn, stages left out of the horizon', async () => {
    const env = createEnv();
    const task = { env: 'staged', index: 0, seed: 0 };
    const turns = [];
    const session = await env.open(task);
    let { observation } = session.first as { observation: string };
    for (const action of ['paint', 'wall', 'paint', 'door']) {
      const answer = await session.step(action);
      const partial = answer.kind === 'mid' && answer.partial ? { partial: true as const } : {};
      turns.push({
        observation,
        action,
        actions: new Int32Array(0),
        reward: answer.reward,
        actMs: 0,
        envMs: 0,
        ...partial,
      });
      observation = answer.observation;
    }
    const facts = { episode: 0, group: 0, task, horizon: 2, attempt: 1, actionTable: [], end: 'truncated' } as const;
    expect(await recheck(env, { ...facts, turns, finalObservation: observation, success: false })).toBeUndefined();
  });

  it('discounts whole turns only', () => {
    const decision = {
      kind: 'choice',
      choice: 0,
      logprob: 0,
      value: 0,
      version: 0,
      context: new Int32Array(0),
    } as const;
    const turn = (partial: boolean, reward: number) => ({
      observation: '',
      actions: new Int32Array(0),
      action: '',
      reward,
      actMs: 0,
      envMs: 0,
      decision,
      ...(partial ? { partial: true as const } : {}),
    });
    const turns = [turn(true, 0), turn(false, 0), turn(true, 0), turn(false, 1)];
    const trajectory = { turns } as unknown as Trajectory;
    expect([...decisionColumns(trajectory, 0.5).discounts]).toEqual([1, 0.5, 1, 0.5]);
  });
});
