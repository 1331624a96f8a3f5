import { describe, expect, it } from 'vitest';
import { mid, terminated } from '../../src/core/env.ts';
import { withHorizon } from '../../src/core/horizon.ts';
import { episodeReturn, type Trajectory } from '../../src/core/trajectory.ts';
import { inFolder, toyConfig, withToyRun } from '../support/toy-run.ts';

describe('the horizon', () => {
  it('cuts the last turn it allows, and keeps what that turn earned', () => {
    expect(withHorizon(mid('on', 0.5), 2, 3)).toMatchObject({ kind: 'mid', reward: 0.5 });
    expect(withHorizon(mid('on', 0.5), 3, 3)).toMatchObject({ kind: 'truncated', observation: 'on', reward: 0.5 });
  });

  it('leaves an end that the env made on its last turn', () => {
    expect(withHorizon(terminated('over', 1), 3, 3)).toMatchObject({ kind: 'terminated', reward: 1 });
  });

  it('leaves every reward of a cut episode in its trajectory', async () => {
    const seen: Trajectory[] = [];
    await inFolder((dir) =>
      withToyRun(
        toyConfig('wage', { horizon: { type: 'fixed', rounds: 3 }, stop: { updates: 1 } }),
        dir,
        ({ run }) => run.train(),
        { onEpisodes: (trajectories) => seen.push(...trajectories) },
      ),
    );
    expect(seen.length).toBeGreaterThan(0);
    for (const one of seen) {
      expect(one.end).toBe('truncated');
      expect(one.turns.map(({ reward }) => reward)).toEqual(
        one.turns.map(({ action }) => (action === 'on' ? 0.25 : 0)),
      );
      expect(episodeReturn(one)).toBe(0.25 * one.turns.filter(({ action }) => action === 'on').length);
    }
    expect(seen.some(({ turns }) => turns.at(-1)!.action === 'on')).toBe(true);
  });
});
