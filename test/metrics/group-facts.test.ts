/** Facts of groups, by hand. */
import { expect, it } from 'vitest';
import { printAgentCall, printAgentOutcome } from '../../src/core/agent-call.ts';
import { NO_TOOL_COUNTS } from '../../src/core/tool-counts.ts';
import { groupFacts, summarizeConsumed } from '../../src/metrics/group-facts.ts';
import { trajectory } from '../support/trajectories.ts';

const named = (text: string, observation = '') => ({ observation, action: text });

/** An episode of these actions; its rewards stand beside them. */
function episode(
  turns: readonly { readonly action: string; readonly observation?: string; readonly reward?: number }[],
  end: 'terminated' | 'truncated',
  horizon = 8,
) {
  const made = trajectory({
    turns: turns.map(({ observation, reward }) => ({ ...(observation ? { observation } : {}), reward: reward ?? 0 })),
    end,
    horizon,
  });
  return { ...made, turns: made.turns.map((turn, i) => ({ ...turn, action: turns[i]!.action })) };
}

const won = episode([named('look', 'a'), { ...named('go', 'b'), reward: 1 }], 'terminated');
const cut = episode([named('look', 'a'), named('look', 'a'), { ...named('look', 'b'), reward: 0.25 }], 'truncated');
const lone = episode([{ ...named('go', 'a'), reward: 0.5 }], 'truncated', 16);

it('sums up a group: returns, turns, ends, actions and repeats', () => {
  const { actions, ...facts } = groupFacts([won, cut], 'easy');
  expect(facts).toEqual({
    world: 'toy',
    label: 'easy',
    horizon: 8,
    sums: { episodes: 2, successes: 1, truncated: 1, returns: 1.25, turns: 5 },
    flat: false,
    answers: 0,
    formatErrors: 0,
    reported: new Map(),
    tools: NO_TOOL_COUNTS,
    repeats: 1, // look at a, twice; at b it is another situation
  });
  expect([...actions]).toEqual([
    ['look', 4],
    ['go', 1],
  ]);
});

it('counts answers of a language model, and those that were not understood', () => {
  const [turn] = won.turns;
  const answered = (formatError?: string) => ({
    ...turn!,
    response: {
      text: 'hm',
      promptTokens: 1,
      completionTokens: 1,
      ...(formatError === undefined ? {} : { formatError }),
    },
  });
  const spoken = { ...won, turns: [answered(), answered('no action'), answered('no action'), turn!] };
  expect(groupFacts([spoken, won], 'easy')).toMatchObject({ answers: 3, formatErrors: 2 });
});

it('averages the numbers that agents report at their end, over the episodes that report them', () => {
  const ended = (metrics: Readonly<Record<string, number>>) => ({
    ...won,
    finalObservation: printAgentOutcome({ reward: 1, success: true, metrics }),
  });
  const { reported } = groupFacts([ended({ calls: 2 }), ended({ calls: 4, words: 1 }), won], 'easy');
  expect([...reported]).toEqual([
    ['calls', { sum: 6, count: 2 }],
    ['words', { sum: 1, count: 1 }],
  ]);
});

it('sums up the calls of tools, also of an episode that the horizon cut', () => {
  const tools = { ...NO_TOOL_COUNTS, replies: 2, calls: 2, valid: 1, unknownTools: 1 };
  const report = { metrics: { DB: 1 }, tools };
  const message = { role: 'user' as const, content: '' };
  const observed = printAgentCall({ call: 1, parent: 0, messages: [message], report });
  const facts = groupFacts(
    [{ ...cut, finalObservation: observed }, { ...won, finalObservation: observed }, won],
    'easy',
  );
  expect(facts.tools).toEqual({ ...NO_TOOL_COUNTS, replies: 4, calls: 4, valid: 2, unknownTools: 2 });
  expect([...facts.reported]).toEqual([['DB', { sum: 2, count: 2 }]]);
  expect(summarizeConsumed([facts, facts]).tools).toMatchObject({ replies: 8, valid: 4 });
});

it('calls a group flat where all returns are the same', () => {
  expect(groupFacts([cut, cut], 'easy').flat).toBe(true);
  expect(groupFacts([cut, won], 'easy').flat).toBe(false);
});

it('adds groups up, by label and by horizon', () => {
  const groups = [groupFacts([won, cut], 'easy'), groupFacts([cut, cut], 'easy'), groupFacts([lone], 'hard')];
  const all = summarizeConsumed(groups);
  expect(all.all).toEqual({ episodes: 5, successes: 1, truncated: 4, returns: 2.25, turns: 12 });
  expect(all.byLabel).toEqual({
    easy: { episodes: 4, successes: 1, truncated: 3, returns: 1.75, turns: 11 },
    hard: { episodes: 1, successes: 0, truncated: 1, returns: 0.5, turns: 1 },
  });
  expect(all.byHorizon).toEqual({ 8: all.byLabel.easy, 16: all.byLabel.hard });
  expect(all.byWorld).toEqual({ toy: all.all });
  // A group of one compares nothing.
  expect([all.groups, all.comparedGroups, all.flatGroups, all.repeats]).toEqual([3, 2, 1, 3]);
  expect(all.top).toEqual({ action: 'look', count: 10 });
  expect(summarizeConsumed([]).top).toBeUndefined();
});
