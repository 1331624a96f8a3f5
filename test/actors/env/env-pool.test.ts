import { afterEach, describe, expect, it, vi } from 'vitest';
import { createEnvPool, type EnvPool, type EnvPoolOptions } from '../../../actors/env/env-pool.ts';
import type { EnvEvent, Failed, Observed } from '../../../actors/env/protocol.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

const faulty = { id: 'faulty', url: new URL('../../support/faulty-env.ts', import.meta.url) };
const STEP_MS = 300;

/** A pool whose events can be awaited one at a time, by episode. */
class Player {
  readonly pool: EnvPool;
  readonly table = new Map<number, string[]>();
  readonly #inbox = new Map<number, EnvEvent[]>();
  readonly #waiting = new Map<number, (event: EnvEvent) => void>();

  constructor(pool: EnvPool) {
    this.pool = pool;
    pool.observations$.subscribe({
      next: (event) => {
        if (event.type === 'observed') {
          const table = event.turn === 0 ? [] : (this.table.get(event.episode) ?? []);
          this.table.set(event.episode, [...table, ...event.newActions]);
        }
        const waiting = this.#waiting.get(event.episode);
        this.#waiting.delete(event.episode);
        if (waiting) waiting(event);
        else this.#inbox.set(event.episode, [...(this.#inbox.get(event.episode) ?? []), event]);
      },
      error: () => {},
    });
  }

  next(episode: number): Promise<EnvEvent> {
    const known = this.#inbox.get(episode)?.shift();
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => this.#waiting.set(episode, resolve));
  }

  unread(episode: number): number {
    return this.#inbox.get(episode)?.length ?? 0;
  }

  open(episode: number, index = episode): Promise<EnvEvent> {
    this.pool.send({ type: 'open', episode, attempt: 1, task: { env: 'faulty', index, seed: 0 } });
    return this.next(episode);
  }

  step(episode: number, turn: number, action: string): Promise<EnvEvent> {
    this.pool.send({ type: 'step', episode, turn, action });
    return this.next(episode);
  }

  /** The texts of an observation's actions, through the table built from what was sent. */
  texts(event: EnvEvent): string[] {
    const { episode, actions } = event as Observed;
    return [...actions].map((i) => this.table.get(episode)![i]!);
  }
}

const open: EnvPool[] = [];
async function player(options: Partial<EnvPoolOptions> = {}): Promise<Player> {
  const pool = await createEnvPool({
    envs: [faulty],
    threads: 1,
    isolation: 'thread',
    stepDeadlineMs: STEP_MS,
    openDeadlineMs: 600,
    resourceLimits: { maxOldGenerationSizeMb: 64 },
    ...options,
  });
  open.push(pool);
  return new Player(pool);
}

const observationOf = (event: EnvEvent) => (event as Observed).step.observation;

afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});

describe.each(['process', 'thread', 'inline'] as const)('an env pool (%s)', (isolation) => {
  it('plays episodes and sends each action text once', async () => {
    const play = await player({ isolation, threads: 2 });
    for (const episode of [1, 2, 3]) {
      const first = await play.open(episode);
      expect(first).toMatchObject({
        type: 'observed',
        turn: 0,
        step: { kind: 'first', observation: `task ${episode}` },
      });
      expect(play.texts(first)).toEqual(['done', '+0', '-0']);
    }
    const second = (await play.step(2, 1, '+1')) as Observed;
    expect(second).toMatchObject({ turn: 1, step: { kind: 'mid', observation: 'task 2: sum 1', reward: 0 } });
    expect(second.newActions).toEqual(['+1', '-1']);
    expect(play.texts(second)).toEqual(['done', '+1', '-1']);
    expect(play.texts(await play.step(2, 2, '+2'))).toEqual(['done', '+0', '-0']);
    const last = (await play.step(2, 3, 'done')) as Observed;
    expect(last.step).toEqual({ kind: 'terminated', observation: 'sum 3', reward: 1, success: true });
    expect(last.actions).toHaveLength(0);
    play.pool.send({ type: 'close', episode: 1 });
    expect(play.pool.stats()).toMatchObject({ open: 1, observed: 6, failed: {} });
  });

  it('opens where a replay leads, with the whole action table', async () => {
    const play = await player({ isolation });
    const task = { env: 'faulty', index: 4, seed: 0 };
    play.pool.send({ type: 'open', episode: 1, attempt: 1, task, replay: ['+1', '+1', 'slow'] });
    const event = (await play.next(1)) as Observed;
    expect(event).toMatchObject({ turn: 3, step: { kind: 'mid', observation: 'sum 2 slowly' } });
    expect(event.newActions).toEqual(['done', '+0', '-0', '+1', '-1', '+2', '-2']);
    expect(observationOf(await play.step(1, 4, '+5'))).toBe('task 4: sum 7');
  });

  it('does not let a slow session hold up the others', async () => {
    const play = await player({ isolation });
    await Promise.all([play.open(1), play.open(2)]);
    const slow = play.step(1, 1, 'slow');
    for (let turn = 1; turn <= 5; turn++) await play.step(2, turn, '+1');
    expect(play.unread(1)).toBe(0);
    expect(observationOf(await slow)).toBe('sum 0 slowly');
  });

  it.each([
    ['throw', 'threw', 'the world broke'],
    ['reject', 'threw', 'the world broke later'],
    ['symbol', 'unclonable', 'could not be cloned'],
    ['huge', 'oversized', 'at most 1000'],
    ['nan', 'protocol', 'reward NaN'],
    ['truncate', 'protocol', 'truncated'],
    ['unprintable', 'threw', 'something without a message'],
    ['unprintable-prototype', 'threw', 'something without a message'],
    ['unprintable-message', 'threw', 'something without a message'],
    ['unprintable-later', 'threw', 'something without a message'],
    ['pays-null', 'protocol', 'reward must be a number, got null'],
    ['pays-text', 'protocol', 'reward must be a number, got string'],
    ['pays-list', 'protocol', 'reward must be a number, got object'],
    ['pays-true', 'protocol', 'reward must be a number, got boolean'],
    ['pays-object', 'protocol', 'reward must be a number, got object'],
    ['partial-text', 'protocol', 'partial must be true or absent'],
    ['lists-many', 'oversized', '100000 texts, at most 1024'],
    ['lists-long', 'oversized', '2000000 characters; at most 4096'],
    ['lists-much', 'oversized', 'characters in all; at most 4096 each and 65536'],
    ['lists-numbers', 'protocol', 'action 0 is not a string'],
  ])('reports %s as %s and keeps the other episodes', async (action, cause, message) => {
    const play = await player({ isolation });
    await Promise.all([play.open(1), play.open(2)]);
    const failed = (await play.step(1, 1, action)) as Failed;
    expect(failed).toMatchObject({ type: 'failed', episode: 1, failure: { cause, where: '/env-hosts/0' } });
    expect(failed.failure.message).toContain(message);
    expect(observationOf(await play.step(2, 1, '+1'))).toBe('task 2: sum 1');
    expect(play.pool.stats()).toMatchObject({ open: 1, restored: 0, failed: { [cause]: 1 } });
    expect(play.pool.stats().hosts[0]!.replaced).toBe(0);
    expect((await play.open(1)).type).toBe('observed');
  });

  it.each(['twice-read', 'kind-read', 'getter-throws'])('reads each part of an answer once: %s', async (action) => {
    const play = await player({ isolation });
    await play.open(1);
    const { step } = (await play.step(1, 1, action)) as Observed;
    expect(step).toEqual({
      kind: 'mid',
      observation: action === 'getter-throws' ? 'once' : 'ok',
      reward: action === 'twice-read' ? 1 : 0,
    });
    expect(Object.getOwnPropertyDescriptor(step, 'reward')).toHaveProperty('value');
  });

  it('goes on where nothing is listed for once', async () => {
    const play = await player({ isolation });
    await play.open(1);
    expect(((await play.step(1, 1, 'lists-nothing')) as Observed).actions).toHaveLength(0);
  });

  it('reports a promise that never resolves, once its deadline has passed', async () => {
    const play = await player({ isolation });
    await play.open(1);
    const { failure } = (await play.step(1, 1, 'hang')) as Failed;
    expect(failure.cause).toBe('timeout');
    const [, waitedMs] = /(\d+) ms$/.exec(failure.message)!;
    expect(Number(waitedMs)).toBeGreaterThanOrEqual(STEP_MS);
  });

  it('reports an env that cannot open the task', async () => {
    const play = await player({ isolation });
    expect(await play.open(1, 999)).toMatchObject({
      type: 'failed',
      failure: { cause: 'threw', message: 'no such task' },
    });
    expect(await play.open(2, 998)).toMatchObject({ type: 'failed', failure: { cause: 'timeout' } });
  });

  it('refuses misuse at the caller', async () => {
    const play = await player({ isolation });
    await play.open(1);
    expect(() => play.open(1)).toThrow(expect.objectContaining({ code: 'BAD_ARGUMENT' }));
    play.pool.send({ type: 'step', episode: 1, turn: 1, action: '+1' });
    expect(() => play.pool.send({ type: 'step', episode: 1, turn: 2, action: '+1' })).toThrow(/before the answer/);
    const task = { env: 'nowhere', index: 0, seed: 0 };
    expect(() => play.pool.send({ type: 'open', episode: 9, attempt: 1, task })).toThrow(/no env 'nowhere'/);
  });
});

describe.each(['process', 'thread'] as const)('an env %s that must be ended', (isolation) => {
  it.each([
    ['spin', 'timeout'],
    ['exit', 'exited'],
    ['then-spins', 'timeout'],
    ['hang', 'timeout'],
    ['oom', 'out-of-memory'],
    ['late-exit', 'exited'],
  ])('%s: the culprit fails as %s, the innocent are restored and go on', async (action, cause) => {
    // On a busy machine the deadline must come first only where it is what ends the host.
    const waits = cause === 'timeout';
    const play = await player({ isolation, stepDeadlineMs: waits ? STEP_MS : 20_000 });
    for (const episode of [1, 2, 3, 4]) await play.open(episode);
    await play.step(1, 1, '+1');
    await play.step(2, 1, '+2');
    // One message: 2 before the culprit, 3 after it; 1 and 4 are with the policy.
    const two = play.step(2, 2, '+2');
    const culprit = play.step(4, 1, action);
    const three = play.step(3, 1, '+3');
    expect(await culprit).toMatchObject({ type: 'failed', episode: 4, failure: { cause } });
    expect(observationOf(await two)).toBe('task 2: sum 4');
    expect(observationOf(await three)).toBe('task 3: sum 3');
    const one = (await play.step(1, 2, '+1')) as Observed;
    expect(one).toMatchObject({ turn: 2, step: { observation: 'task 1: sum 2' } });
    expect(play.texts(one)).toEqual(['done', '+2', '-2']);
    for (const episode of [1, 2, 3, 4]) expect(play.unread(episode)).toBe(0);
    expect(play.pool.stats()).toMatchObject({ open: 3, restored: 3, failed: { [cause]: 1 } });
    expect(play.pool.stats().hosts).toMatchObject([{ replaced: 1, up: true }]);
  });

  it.each([
    ['late-throw', 'thrown from a timer'],
    ['floating', 'unawaited'],
  ])('%s fails the episode whose call let the error float, and no other; the host goes on', async (action, message) => {
    const play = await player({ isolation });
    for (const episode of [1, 2, 3]) await play.open(episode);
    const slow = play.step(1, 1, 'slow'); // begun before the culprit, still unanswered when it throws
    const failed = (await play.step(2, 1, action)) as Failed;
    expect(failed.failure).toMatchObject({ cause: 'threw', message });
    expect(observationOf(await slow)).toBe('sum 0 slowly');
    expect(observationOf(await play.step(3, 1, '+1'))).toBe('task 3: sum 1');
    expect(play.pool.stats()).toMatchObject({ open: 2, restored: 0, failed: { threw: 1 } });
    expect(play.pool.stats().hosts).toMatchObject([{ replaced: 0 }]);
  });

  it('knows whose timer ended its host, beside others that are as slow', async () => {
    const play = await player({ isolation, stepDeadlineMs: 20_000, openDeadlineMs: 20_000 });
    for (const episode of [1, 2, 3]) await play.open(episode);
    const slow = play.step(1, 1, 'slow');
    expect(await play.step(2, 1, 'late-exit')).toMatchObject({ type: 'failed', failure: { cause: 'exited' } });
    expect(observationOf(await slow)).toBe('sum 0 slowly');
    expect(play.pool.stats()).toMatchObject({ open: 2, failed: { exited: 1 } });
    expect(play.pool.stats().hosts).toMatchObject([{ replaced: 1 }]); // at once, not by trial
  });

  it.each([
    'timer-spins',
    'promises-spin',
    ...(isolation !== 'thread' ? ['timer-stops'] : []), // a stop of the process would stop all threads
  ])('finds who blocks its hosts with what it left behind: %s', async (action) => {
    const play = await player({ isolation, stepDeadlineMs: 1000, openDeadlineMs: 1000 });
    for (const episode of [1, 2, 3]) await play.open(episode);
    expect(observationOf(await play.step(1, 1, '+1'))).toBe('task 1: sum 1');
    const slow = play.step(3, 1, 'slow'); // begun before it is blocked, and late for that
    expect(observationOf(await play.step(2, 1, action))).toBe('ok'); // answered, and then the host is blocked
    const failed = play.next(2);
    let over = false;
    void failed.then(() => {
      over = true;
    });
    let turns = 1; // the others go on, before it is blocked and after
    for (; !over; turns++) expect(observationOf(await play.step(1, turns + 1, '+1'))).toBe(`task 1: sum ${turns + 1}`);
    expect(await failed).toMatchObject({ type: 'failed', episode: 2, failure: { cause: 'timeout' } });
    expect(observationOf(await slow)).toBe('sum 0 slowly');
    expect(play.pool.stats()).toMatchObject({ open: 2, failed: { timeout: 1 } });
  });

  it.each(['microtask', 'slow-microtask'])(
    'finds the episode that ends its hosts outside any call, by restoring episodes one at a time: %s',
    async (action) => {
      const play = await player({ isolation, stepDeadlineMs: 20_000, openDeadlineMs: 20_000 });
      for (const episode of [1, 2, 3, 4]) await play.open(episode);
      await play.step(1, 1, '+1');
      // Answered, and then the host is gone; rarely its last message goes with it, and the failure is the answer.
      const answer = await play.step(2, 1, action);
      if (answer.type !== 'failed') expect(observationOf(answer)).toBe('ok');
      const failed = (answer.type === 'failed' ? answer : await play.next(2)) as Failed; // its replay ended the next host
      expect(failed.failure).toMatchObject({ cause: 'threw', message: 'thrown from a microtask' });
      expect(observationOf(await play.step(1, 2, '+1'))).toBe('task 1: sum 2');
      expect(observationOf(await play.step(3, 1, '+1'))).toBe('task 3: sum 1');
      expect(observationOf(await play.step(4, 1, '+1'))).toBe('task 4: sum 1');
      expect(play.pool.stats()).toMatchObject({ open: 3, failed: { threw: 1 } });
      expect(play.pool.stats().hosts).toMatchObject([
        { replaced: answer.type === 'failed' ? expect.any(Number) : 2, up: true },
      ]);
    },
  );

  it('fails an env that is not a pure function of its actions instead of going on with another episode', async () => {
    const play = await player({ isolation });
    await Promise.all([play.open(1), play.open(2)]);
    await play.step(2, 1, '+1');
    await play.step(1, 1, 'impure');
    await play.step(2, 2, 'spin');
    const failed = (await play.next(1)) as Failed;
    expect(failed.failure).toMatchObject({
      cause: 'protocol',
      message: expect.stringContaining('not a pure function'),
    });
  });

  it('leaves the siblings of other threads alone', async () => {
    const play = await player({ isolation, threads: 2 });
    await Promise.all([play.open(1), play.open(2)]);
    const spinning = play.step(1, 1, 'spin');
    for (let turn = 1; turn <= 20; turn++)
      expect(observationOf(await play.step(2, turn, '+1'))).toBe(`task 2: sum ${turn}`);
    expect(await spinning).toMatchObject({ type: 'failed' });
    expect(play.pool.stats()).toMatchObject({ restored: 0 });
  });
});

it.skipIf(process.platform !== 'linux')(
  'a process that hoards memory beside its heap is ended for it',
  async () => {
    const play = await player({ isolation: 'process', stepDeadlineMs: 10_000 });
    await Promise.all([play.open(1), play.open(2)]);
    await play.step(2, 1, '+1');
    const failed = await play.step(1, 1, 'buffers');
    expect(failed).toMatchObject({ type: 'failed', episode: 1, failure: { cause: 'out-of-memory' } });
    expect(observationOf(await play.step(2, 2, '+1'))).toBe('task 2: sum 2');
  },
  20_000,
);

describe('an env that writes to the channel of its process', () => {
  const isolation = 'process';
  it('is ignored where that is no message', async () => {
    const play = await player({ isolation });
    await play.open(1);
    expect(observationOf(await play.step(1, 1, 'send-null'))).toBe('sent');
    expect(observationOf(await play.step(1, 2, '+1'))).toBe('task 1: sum 1');
  });

  it.each([
    ['send-lies', 'protocol', 'the host sent something that is no answer'],
    ['send-hollow', 'protocol', 'the host sent something that is no answer'],
    ['send-garbage', 'protocol', 'the host sent something that is no message'],
    ['send-reward', 'protocol', 'an answer of turn 1 that episode'],
    ['close-channel', 'exited', 'process'],
  ])('fails where it passes for the host or garbles it: %s', async (action, cause, message) => {
    const play = await player({ isolation, stepDeadlineMs: 20_000, openDeadlineMs: 20_000 });
    for (const episode of [1, 2, 3]) await play.open(episode);
    const honest = play.step(2, 1, 'slow');
    const failed = (await play.step(1, 1, action)) as Failed;
    expect(failed).toMatchObject({ type: 'failed', episode: 1, failure: { cause } });
    expect(failed.failure.message).toContain(message);
    expect(observationOf(await honest)).toBe('sum 0 slowly');
    expect(observationOf(await play.step(3, 1, '+1'))).toBe('task 3: sum 1');
    expect(play.pool.stats()).toMatchObject({ open: 2, failed: { [cause]: 1 } });
  });
});

it.each(['process', 'thread', 'inline'] as const)('an env whose close never ends is left (%s)', async (isolation) => {
  const play = await player({ isolation });
  await play.open(1);
  expect(observationOf(await play.step(1, 1, 'stay'))).toBe('stays');
  await play.pool.close();
});

it('an env that cannot be loaded fails the pool, naming the reason', async () => {
  const url = new URL('../support/no-such-env.ts', import.meta.url);
  await expect(player({ envs: [{ id: 'faulty', url }] })).rejects.toMatchObject({ code: 'ENV_BROKEN' });
});
