/** Turns on live sites: one session at a time has a site, in the order of their requests, and none waits for ever. */
import { describe, expect, it } from 'vitest';
import { Turns } from '../../../envs/webarena/live/turns.ts';

/** Whether a promise has settled, once all that can has. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  for (let i = 0; i < 20; i++) await Promise.resolve();
  return done;
}

describe('turns', () => {
  it('are given at once where the sites are free', async () => {
    const turns = new Turns();
    expect(await settled(turns.take(['shop']))).toBe(true);
    expect(await settled(turns.take(['map']))).toBe(true);
    expect(await settled(turns.take([]))).toBe(true);
  });

  it('on one site come one after the other, in order', async () => {
    const turns = new Turns();
    const release = await turns.take(['shop']);
    const [second, third] = [turns.take(['shop']), turns.take(['shop'])];
    expect([await settled(second), await settled(third)]).toEqual([false, false]);
    release();
    expect([await settled(second), await settled(third)]).toEqual([true, false]);
    (await second)();
    expect(await settled(third)).toBe(true);
  });

  it('on two sites wait for both, and hold up those behind them', async () => {
    const turns = new Turns();
    const [shop, map] = [await turns.take(['shop']), await turns.take(['map'])];
    const both = turns.take(['shop', 'map']);
    const behind = turns.take(['map']);
    shop();
    expect([await settled(both), await settled(behind)]).toEqual([false, false]);
    map();
    expect([await settled(both), await settled(behind)]).toEqual([true, false]);
    (await both)();
    expect(await settled(behind)).toBe(true);
  });

  it('on two sites asked for in either order never lock each other', async () => {
    const turns = new Turns();
    const one = turns.take(['shop', 'map']);
    const other = turns.take(['map', 'shop']);
    (await one)();
    expect(await settled(other)).toBe(true);
  });

  it('given back twice are given back once', async () => {
    const turns = new Turns();
    const release = await turns.take(['shop']);
    const second = turns.take(['shop']);
    release();
    await second;
    release();
    expect(await settled(turns.take(['shop']))).toBe(false);
  });
});
