/** Blame for the end of a host: an episode is named only on evidence of the host, not for being slow because others are. */
import { describe, expect, it } from 'vitest';
import type { BeaconReading } from '../../../actors/env/beacon.ts';
import { Dispatch } from '../../../actors/env/dispatch.ts';
import type { Host } from '../../../actors/env/hosts.ts';
import {
  judge,
  newEpisode,
  newSlot,
  type OpenEpisode,
  startSlot,
  suspects,
  type Verdict,
} from '../../../actors/env/slot.ts';

const EPISODES = [0, 1, 2];
const LOOK_MS = 250;
const DEADLINES = { stepDeadlineMs: 1000, openDeadlineMs: 2000 };

/** A host whose beacon, memory and waits a test sets, in a slot with three episodes that step; looked at by the clock. */
class Watched implements Host {
  readonly facts = [];
  readonly slot = newSlot('/env-hosts/0');
  readonly episodes = new Map<number, OpenEpisode>();
  reading: BeaconReading = { current: -1, began: 3, calls: 5 };
  overweightBytes = 0;
  waited = 0;
  now = 0;

  constructor() {
    for (const episode of EPISODES) {
      const task = { env: 'toy', index: episode, seed: 0 };
      const record = newEpisode({ type: 'open', episode, attempt: 1, task }, this.slot);
      record.pending = 'step';
      record.ordinal = episode + 1;
      this.slot.episodes.add(record);
      this.episodes.set(episode, record);
    }
    startSlot(this.slot, this, 0);
  }

  /** Looks once more, after showing `current`. @param waitedMs how long the machine let others run since the last look */
  look(current = -1, { waitedMs = 0, afterMs = LOOK_MS } = {}): Verdict | undefined {
    this.now += afterMs;
    this.waited += waitedMs;
    this.reading = { ...this.reading, current };
    return judge(this.slot, this, this.episodes, DEADLINES, this.now, 3 * LOOK_MS);
  }

  /** Looks until there is a verdict, for a minute. @returns it, with the names of those to blame and the looks it took */
  looks(current: (look: number) => number, options?: Parameters<Watched['look']>[1]) {
    for (let look = 1; look <= 240; look++) {
      const verdict = this.look(current(look), options);
      if (verdict) return { ...verdict, culprits: names(verdict.culprits), atMs: look * LOOK_MS };
    }
    return undefined;
  }

  send(): void {}
  beacon(): BeaconReading {
    return this.reading;
  }
  overweight(): number {
    return this.overweightBytes;
  }
  measureWaitMs(): number {
    return this.waited;
  }
  kill(): void {}
  async close(): Promise<void> {}
}

const names = (records: readonly OpenEpisode[]) => records.map(({ open }) => open.episode);

describe('suspects for the end of a host', () => {
  const { episodes } = new Watched();
  const shown = (current: number) => suspects({ current, began: 3, calls: 9 }, episodes);

  it('are the episode whose code ran', () => {
    expect(names(shown(1).culprits)).toEqual([1]);
  });

  it('are none where no episode’s code was shown: a guess would blame an innocent', () => {
    expect(shown(-1)).toEqual({ culprits: [], shown: false });
    expect(suspects(undefined, episodes)).toEqual({ culprits: [], shown: false });
  });

  it('are none where the code of an episode ran that is over: no other is suspected', () => {
    expect(shown(7)).toEqual({ culprits: [], shown: true });
  });
});

describe('a host whose thread does not respond', () => {
  it('is blamed on the call that does not return', () => {
    const verdict = new Watched().looks(() => 1);
    expect(verdict).toMatchObject({ culprits: [1], shown: true, cause: 'timeout', atMs: 1500 });
  });

  it('is not blamed on a call that has returned, though it was the last one seen', () => {
    const verdict = new Watched().looks((look) => (look <= 2 ? 1 : -1));
    expect(verdict).toMatchObject({ culprits: [], shown: false, cause: 'timeout', atMs: 3750 });
  });

  it('is blamed on those alone whose timer was shown all the while, after its own time', () => {
    const verdict = new Watched().looks((look) => (look <= 3 ? 1 : 2));
    expect(verdict).toMatchObject({ culprits: [2], shown: true, atMs: 2250 });
  });

  it('is blamed on an endless chain of promises, which is shown now and then', () => {
    const verdict = new Watched().looks((look) => (look % 2 === 0 ? 2 : -1));
    expect(verdict).toMatchObject({ culprits: [2], shown: true, atMs: 1500 });
  });

  it('is not blamed on the slow that wait in it', () => {
    const verdict = new Watched().looks(() => -1);
    expect(verdict).toMatchObject({ culprits: [], shown: false, cause: 'timeout', atMs: 3750 });
  });

  it('is not blamed on a call that each look finds to be another one', () => {
    const host = new Watched();
    for (let look = 0; look < 50; look++) {
      host.reading = { ...host.reading, calls: host.reading.calls + 1 };
      expect(host.look(1)).toBeUndefined();
    }
  });

  it('is judged by the time in which the machine let it run: ten deadlines at most', () => {
    const starved = new Watched().looks(() => 1, { waitedMs: 0.8 * LOOK_MS });
    expect(starved).toMatchObject({ culprits: [1], atMs: 5500 });
    const stopped = new Watched().looks(() => 1, { waitedMs: LOOK_MS });
    expect(stopped).toMatchObject({ culprits: [1], atMs: 10_500 });
  });

  it('is judged as ever once the machine lets it run again', () => {
    const host = new Watched();
    for (let look = 0; look < 5; look++) host.look(1, { afterMs: 10_000, waitedMs: 10_000 });
    expect(host.looks(() => 1)!.atMs).toBeLessThanOrEqual(2000);
  });

  it('is judged in the end, however late each look comes, and by no single one', () => {
    const verdict = new Watched().looks(() => 1, { afterMs: 60_000 });
    expect(verdict).toMatchObject({ culprits: [1], atMs: 3 * LOOK_MS }); // at the third look
    const blocked = new Watched().looks(() => -1, { afterMs: 60_000 });
    expect(blocked).toMatchObject({ culprits: [], shown: false, atMs: 7 * LOOK_MS });
  });
});

describe('episodes that are late by themselves', () => {
  it('fail together once the host’s thread went round after their deadline', () => {
    const host = new Watched();
    const verdict = host.looks(() => {
      host.slot.responses++;
      return -1;
    });
    expect(verdict).toMatchObject({ culprits: EPISODES, shown: true, cause: 'timeout', atMs: 2000 });
  });

  it('are not late while it has responded but once since then: the answer may be on its way', () => {
    const host = new Watched();
    const verdict = host.looks((look) => {
      if (look <= 7) host.slot.responses++;
      return -1;
    });
    expect(verdict).toMatchObject({ culprits: [], shown: false });
  });

  it('have the time in which the machine let their host run', () => {
    const host = new Watched();
    const verdict = host.looks(
      () => {
        host.slot.responses++;
        return -1;
      },
      { waitedMs: 0.8 * LOOK_MS },
    );
    expect(verdict).toMatchObject({ culprits: EPISODES, atMs: 6000 });
  });

  it('are those alone whose command was begun', () => {
    const host = new Watched();
    host.reading = { ...host.reading, began: 2 };
    const verdict = host.looks(() => {
      host.slot.responses++;
      return -1;
    });
    expect(verdict).toMatchObject({ culprits: [0, 1] });
  });
});

describe('a host that holds too much memory', () => {
  it('is blamed on the call that has run since the last look', () => {
    const host = new Watched();
    expect(host.look(1)).toBeUndefined();
    host.overweightBytes = 1;
    expect(names(host.look(1)!.culprits)).toEqual([1]);
  });

  it.each([-1, 2])('is blamed on no episode where another one may have taken it: %s is shown', (current) => {
    const host = new Watched();
    expect(host.look(-1)).toBeUndefined();
    host.overweightBytes = 1;
    expect(host.look(current)).toMatchObject({ culprits: [], shown: false, cause: 'out-of-memory' });
  });
});

describe('a command on trial', () => {
  /** A careful slot with two commands. @param settled how its host answers for its life */
  async function onTrial(settled: () => Promise<void>, overweightBytes = 0): Promise<number | undefined> {
    const host = Object.assign(new Watched(), { awaitSettled: settled, overweightBytes });
    const { slot, episodes } = host;
    slot.careful = 9;
    const dispatch = new Dispatch([slot], episodes, false);
    const [first, second] = [...slot.episodes];
    for (const record of [first!, second!]) dispatch.ask(record, record.open);
    expect(slot.trial?.record).toBe(first);
    dispatch.countAnswer(first!);
    for (let i = 0; i < 10; i++) await undefined;
    return slot.trial?.record.open.episode;
  }

  it('makes room for the next one once its host has outlived it', async () => {
    expect(await onTrial(async () => {})).toBe(1);
  });

  it.each([
    ['does not answer', () => new Promise<void>(() => {})],
    ['is gone', () => Promise.reject(new Error('gone'))],
  ])('stays on trial while its host %s, so that no other is blamed for it', async (_, settled) => {
    expect(await onTrial(settled)).toBe(0);
  });

  it('stays on trial where its host holds too much memory', async () => {
    expect(await onTrial(async () => {}, 1)).toBe(0);
  });
});
