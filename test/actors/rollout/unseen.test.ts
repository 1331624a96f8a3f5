import { describe, expect, it } from 'vitest';
import { unseen } from '../../../actors/inference/inference-actor.ts';
import type { ActRequest } from '../../../src/policy/policy.ts';

const turn = (episode: number, at: number, history?: ActRequest['history']) =>
  ({ episode, turn: at, ...(history ? { history } : {}) }) as ActRequest;
const past: ActRequest['history'] = [{ observation: 'o', action: 'a' }];

describe('requests around a restart of the policy', () => {
  it('that come twice are served once', () => {
    const seen = new Map<number, number>();
    expect(unseen(seen, [turn(1, 0), turn(2, 0), turn(1, 0)]).fresh).toEqual([turn(1, 0), turn(2, 0)]);
    expect(unseen(seen, [turn(1, 1)]).fresh).toHaveLength(1);
    expect(unseen(seen, [turn(1, 1, past)]).fresh).toEqual([]);
  });

  it('wait for their history where the beginning was not seen', () => {
    const seen = new Map<number, number>();
    expect(unseen(seen, [turn(1, 3)]).fresh).toEqual([]);
    expect(unseen(seen, [turn(1, 3, past)])).toEqual({ fresh: [turn(1, 3, past)], forget: [] });
    expect(unseen(seen, [turn(1, 4)]).fresh).toHaveLength(1);
  });

  it('replace what is known where they bring their whole history', () => {
    const seen = new Map([[1, 2]]);
    expect(unseen(seen, [turn(1, 3, past)])).toEqual({ fresh: [turn(1, 3, past)], forget: [1] });
  });
});
