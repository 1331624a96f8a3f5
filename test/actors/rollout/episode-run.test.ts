/** An episode takes the answer of its own turn, and nothing else. */
import { describe, expect, it } from 'vitest';
import { act, observe, openEpisode, openGroup, reopenEpisode } from '../../../actors/rollout/episode-run.ts';
import { mid } from '../../../src/core/env.ts';

const ticket = {
  group: 0,
  task: { env: 'toy', index: 0, seed: 1 },
  horizon: 4,
  size: 1,
  firstEpisode: 0,
  purpose: { name: 'train', temperature: 1, seed: 1 },
} as never;
const answer = (turn: number, step: Parameters<typeof observe>[1]['step']) =>
  ({ turn, step, actions: Int32Array.of(0), newActions: turn === 0 ? ['go'] : [], envMs: 0 }) as const;
const begun = () => {
  const run = openEpisode(openGroup(ticket), 0, 0, 1, 0);
  expect(observe(run, answer(0, { kind: 'first', observation: 'at 0' }), undefined, 0)).toHaveProperty('request');
  expect(act(run, { episode: 0, turn: 0, action: 'go' }, 0)).toBe('go');
  return run;
};

describe('an episode', () => {
  it('goes on with the answer of its turn', () => {
    const run = begun();
    expect(observe(run, answer(1, mid('at 1', 0.5)), undefined, 0)).toHaveProperty('request');
    expect(run.turns.map(({ reward }) => reward)).toEqual([0.5]);
  });

  it('times the decision from its request to its answer, and takes the env time from the env', () => {
    const run = openEpisode(openGroup(ticket), 0, 0, 1, 0);
    observe(run, answer(0, { kind: 'first', observation: 'at 0' }), undefined, 100);
    act(run, { episode: 0, turn: 0, action: 'go' }, 142);
    observe(run, { ...answer(1, mid('at 1')), envMs: 7 }, undefined, 160);
    expect(run.turns).toMatchObject([{ actMs: 42, envMs: 7 }]);
  });

  it.each([0, 2, 7])('fails by protocol at the answer of turn %i in the place of turn 1', (turn) => {
    const { broken } = observe(begun(), answer(turn, mid('elsewhere', 1)), undefined, 0) as never as {
      broken: { cause: string; message: string };
    };
    expect(broken.cause).toBe('protocol');
    expect(broken.message).toContain(`expected the answer of turn 1, got 'mid' of turn ${turn}`);
  });

  it('takes no action twice, and none of another turn', () => {
    const run = begun();
    expect(act(run, { episode: 0, turn: 0, action: 'go' }, 0)).toBeUndefined();
    observe(run, answer(1, mid('at 1')), undefined, 0);
    expect(act(run, { episode: 0, turn: 0, action: 'go' }, 0)).toBeUndefined();
    expect(act(run, { episode: 0, turn: 1, action: 'go' }, 0)).toBe('go');
  });

  it.each([
    [0, undefined],
    [1, 'turn 1 as saved lists other actions than the env lists'],
  ])('is taken up again only with actions that the env lists: index %i of one', (index, trouble) => {
    const turns = [{ observation: 'at 0', action: 'go', actions: [index], reward: 0 }];
    const run = reopenEpisode(openGroup(ticket), { episode: 0, member: 0, attempt: 1, turns } as never, 0);
    const seen = observe(run, { ...answer(1, mid('at 1')), newActions: ['go'] }, undefined, 0);
    if (trouble === undefined) expect(seen).toHaveProperty('request');
    else expect(seen).toMatchObject({ broken: { cause: 'protocol', message: expect.stringContaining(trouble) } });
  });

  it.each([
    [[], { kind: 'first', observation: 'elsewhere' }],
    [['go'], mid('elsewhere')],
  ] as const)(
    'that begins behind %j is no episode where the env shows another observation than recorded',
    (actions, step) => {
      const turns = actions.map((action) => ({ observation: 'at 0', action, actions: [0], reward: 0 }));
      const beginning = { turns, observation: 'here' };
      const start = () => {
        const group = openGroup({ ...(ticket as object), beginning } as never);
        if (turns.length === 0) return openEpisode(group, 0, 0, 1, 0);
        return reopenEpisode(group, { episode: 0, member: 0, attempt: 1, turns } as never, 0);
      };
      const see = (observation: string) => ({ ...answer(turns.length, { ...step, observation }), newActions: ['go'] });
      expect(observe(start(), see('here'), undefined, 0)).toHaveProperty('request');
      const message = expect.stringContaining('shows another observation than recorded');
      expect(observe(start(), see('elsewhere'), undefined, 0)).toMatchObject({
        broken: { cause: 'protocol', message },
      });
    },
  );
});
