/** A host shows whose code runs: every piece of a world that may never return runs under its episode in the beacon. */
import { expect, it } from 'vitest';
import { HostCore } from '../../../actors/env/host-core.ts';
import type { EnvEvent } from '../../../actors/env/protocol.ts';
import type { Env } from '../../../src/core/env.ts';

/**
 * Plays one episode of a world whose every part records which episode was shown when it ran. @param slow answers by
 * promises
 */
async function piecesOf(slow: boolean, replay: readonly string[] = []) {
  let shown = -1;
  let tracked = -1;
  const ran: Record<string, readonly [shown: number, tracked: number]> = {};
  /** Object that records reads of its properties, `then` included. */
  const watched = (what: string, of: object): never =>
    new Proxy(of, {
      get(target, key) {
        ran[`${what}.${String(key)}`] = [shown, tracked];
        return Reflect.get(target, key);
      },
    }) as never;
  const given = (what: string, of: object): never =>
    (slow ? Promise.resolve({ value: watched(what, of) }).then(({ value }) => value) : watched(what, of)) as never;
  const called = (what: string) => {
    ran[what] = [shown, tracked];
  };
  const env: Env = {
    id: 'watched',
    description: 'Shows.',
    tasks: { count: 1, labels: ['all'], label: () => 'all', split: () => [], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 100,
    open() {
      called('open');
      return given('session', {
        first: watched('first', { kind: 'first', observation: 'x' }),
        step(action: string) {
          called(`step ${action}`);
          if (action === 'throw') throw watched('error', new Error('broke'));
          return given(action, { kind: 'mid', observation: action, reward: 0 });
        },
        actions() {
          called('actions');
          return watched('list', ['go', 'throw']);
        },
        close() {
          called('close');
          return watched('closing', {});
        },
      });
    },
  };
  const events: EnvEvent[] = [];
  const core = new HostCore({
    envs: new Map([['watched', env]]),
    listActions: true,
    where: '/host',
    now: () => 0,
    emit: (some) => events.push(...some),
    beacon: {
      enter: (episode) => void (shown = episode),
      show() {},
      leave: () => void (shown = -1),
      countBegun() {},
    },
    track(episode, call) {
      tracked = episode;
      try {
        return call();
      } finally {
        tracked = -1;
      }
    },
  });
  const answered = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return events.splice(0);
  };
  core.handle([{ type: 'open', episode: 7, attempt: 1, task: { env: 'watched', index: 0, seed: 0 }, replay }]);
  expect(await answered()).toMatchObject([{ type: 'observed', turn: replay.length }]);
  core.handle([{ type: 'step', episode: 7, turn: replay.length + 1, action: 'go' }]);
  expect(await answered()).toMatchObject([{ type: 'observed', step: { observation: 'go' } }]);
  core.handle([{ type: 'step', episode: 7, turn: replay.length + 2, action: 'throw' }]);
  expect(await answered()).toMatchObject([{ type: 'failed', failure: { cause: 'threw', message: 'broke' } }]);
  return ran;
}

const PIECES = ['open', 'session.then', 'first.observation', 'step go', 'go.then', 'go.reward', 'actions', 'list.0'];

it.each([
  ['at once', false, []],
  ['later', true, []],
  ['after a replay', false, ['again']],
])('whatever of a world runs does so in the name of its episode: %s', async (_, slow, replay) => {
  const ran = await piecesOf(slow, replay);

  expect(Object.keys(ran)).toEqual(expect.arrayContaining([...PIECES, 'error.message', 'close', 'closing.then']));
  // What the language itself does with a promise's value is not called by the host: it runs as a callback of the episode.
  const byLanguage = slow ? ['session.then', 'go.then'] : [];
  const unseen = Object.entries(ran).filter(([what, who]) => !byLanguage.includes(what) && who.join() !== '7,7');
  expect(unseen).toEqual([]);
});
