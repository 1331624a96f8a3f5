/** Blame for the end of a host: an episode is named only where it can be no other. */
import { describe, expect, it } from 'vitest';
import { newEpisode, newSlot, type OpenEpisode, suspects } from '../../actors/env/slot.ts';

describe('suspects for the end of a host', () => {
  const slot = newSlot('/env-hosts/0');
  const episodes = new Map<number, OpenEpisode>();
  for (const episode of [0, 1, 2]) {
    const record = newEpisode(
      { type: 'open', episode, attempt: 1, task: { env: 'toy', index: episode, seed: 0 } },
      slot,
    );
    record.ordinal = episode + 1;
    slot.episodes.add(record);
    episodes.set(episode, record);
  }
  const named = (current: number, began: number) =>
    suspects(slot, { current, began, calls: 9 }, episodes).culprits.map(({ open }) => open.episode);

  it('are the episode whose code ran', () => {
    expect(named(1, 3)).toEqual([1]);
  });

  it('are the one that was begun and not answered, where there is one', () => {
    expect(named(-1, 1)).toEqual([0]);
  });

  it('are none where it may have been any of several: a guess would blame an innocent', () => {
    expect(named(-1, 2)).toEqual([]);
    expect(named(-1, 3)).toEqual([]);
  });

  it('are none where nothing was begun, or nothing is known', () => {
    expect(named(-1, 0)).toEqual([]);
    expect(suspects(slot, undefined, episodes)).toEqual({ culprits: [], shown: false });
  });

  it('are none where the code of an episode ran that is over: nobody else is to be suspected', () => {
    expect(suspects(slot, { current: 7, began: 1, calls: 9 }, episodes)).toEqual({ culprits: [], shown: true });
  });
});
