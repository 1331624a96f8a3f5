/** Verdicts of preflight, over plays of planted worlds: one that is sound, and one for each thing to look at or to stop for. */
import { describe, expect, it } from 'vitest';
import { printAgentOutcome } from '../../../src/core/agent-call.ts';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { explainReturn, measureMixedShare, type Play, summarisePlay } from '../../../src/run/preflight/episodes.ts';
import { type EstimateInput, estimateRun, secondsOn } from '../../../src/run/preflight/estimate.ts';
import { countOperations, HARDWARE } from '../../../src/run/preflight/hardware.ts';
import {
  exitCodeOf,
  judgeAnswers,
  judgeEstimate,
  judgeHorizon,
  judgeMemory,
  judgeParts,
  judgePlay,
  judgeRules,
  judgeTokens,
  judgeToy,
} from '../../../src/run/preflight/verdicts.ts';
import { trajectoryOf } from '../../support/traces.ts';

interface Planted {
  readonly reward: number;
  readonly turns?: number;
  readonly group?: number;
  readonly metrics?: Readonly<Record<string, number>>;
}

function episodeOf({ reward, turns = 2, group = 0, metrics }: Planted): Trajectory {
  const base = trajectoryOf({ group, success: reward > 0.5, actions: Array.from({ length: turns }, () => 'go') });
  return {
    ...base,
    turns: base.turns.map((turn, t) => ({ ...turn, reward: t === turns - 1 ? reward : 0 })),
    finalObservation: metrics ? printAgentOutcome({ reward, success: reward > 0.5, metrics }) : 'over',
  };
}

const playOf = (planted: readonly Planted[], rest: Partial<Play> = {}): Play => ({
  ...{ episodes: planted.map(episodeOf), failed: {}, seconds: 1, tokens: 100 },
  ...rest,
});
/** Episodes of which each n-th earns 1. */
const every = (n: number, count = 60, turns = 2) =>
  Array.from({ length: count }, (_, i) => ({ reward: i % n === 0 ? 1 : 0, turns }));
const verdictsOf = (rows: readonly { readonly name: string; readonly verdict: string }[]) =>
  Object.fromEntries(rows.map(({ name, verdict }) => [name, verdict]));

describe('play at random', () => {
  it('is sound, too easy, failing, or not there', () => {
    expect(verdictsOf(judgePlay(playOf(every(4)), 'toy'))).toEqual({ failures: 'ok', random: 'ok' });
    expect(verdictsOf(judgePlay(playOf(every(1)), 'toy'))).toEqual({ failures: 'ok', random: 'look' });
    const some = judgePlay(playOf(every(4), { failed: { threw: 6 }, failure: 'boom\nat x' }), 'toy');
    expect(some[0]).toMatchObject({ verdict: 'look', found: '6 of 66 attempts failed (threw 6); the last: boom' });
    const half = judgePlay(playOf(every(4), { failed: { timeout: 40, threw: 30 } }), 'agent');
    expect(half[0]).toMatchObject({ verdict: 'stop', advice: expect.stringMatching(/stepDeadlineMs/) });
    const none = judgePlay(playOf([], { failed: { threw: 9 }, failure: 'boom' }), 'toy');
    expect(verdictsOf(none)).toEqual({ failures: 'stop' });
    expect(judgePlay(playOf([]), 'toy')[0]!.verdict).toBe('stop');
  });
  it('is for a language model alone where nothing is listed', () => {
    const [row] = judgePlay(playOf([], { failed: { policy: 64 }, failure: 'nothing is listed' }), 'toy');
    expect(row).toMatchObject({ verdict: 'look', advice: expect.stringMatching(/only a language model/) });
  });
  it('is summed up by turns, solved turns and seconds', () => {
    const facts = summarisePlay(
      playOf(
        [
          { reward: 1, turns: 2 },
          { reward: 0, turns: 4 },
        ],
        { failed: { lost: 3 } },
      ),
    );
    expect(facts).toMatchObject({ episodes: 2, failed: 3, success: 0.5, meanReturn: 0.5, turns: 3, turnsSolved: 2 });
    expect(facts.truncated).toBe(0.5);
    expect(facts.secondsPerStep).toBeCloseTo(0.001, 9);
  });
});

describe('the horizon beside the oracle', () => {
  const oracle = (...turns: number[]) => playOf(turns.map((one) => ({ reward: 1, turns: one })));
  it('is long enough, short for some, below it', () => {
    expect(judgeHorizon(oracle(3, 5, 8), 8).verdict).toBe('ok');
    expect(judgeHorizon(oracle(3, 5, 9), 8).verdict).toBe('look');
    const below = judgeHorizon(oracle(9, 12, 3), 8);
    expect(below).toMatchObject({ verdict: 'stop', advice: expect.stringMatching(/to 12 for all/) });
    expect(judgeHorizon(playOf(every(100, 3, 2).map((one) => ({ ...one, reward: 0 }))), 8).verdict).toBe('look');
  });
});

describe('trivial rules', () => {
  const random = playOf(every(3));
  const judge = (reward: (i: number) => number, others: readonly Play[] = []) => {
    const planted = Array.from({ length: 60 }, (_, i) => ({ reward: reward(i) }));
    return judgeRules(random, [{ rule: 'first', play: playOf(planted) }], others)[0]!.verdict;
  };
  it('are looked at where the first action always wins', () => {
    expect(judge(() => 1)).toBe('look');
  });
  it('are looked at from half of the way to the best on', () => {
    const best = playOf(every(1));
    expect(judge((i) => (i % 4 === 0 ? 0 : 1), [best])).toBe('look'); // 0.75 of 1, random 0.33
    expect(judge((i) => (i % 2 === 0 ? 1 : 0), [best])).toBe('ok'); // 0.5
  });
  it('are fine where they are like chance, worse, or nothing is better than chance', () => {
    expect(judge((i) => (i % 3 === 0 ? 1 : 0))).toBe('ok');
    expect(judge(() => 0, [playOf(every(1))])).toBe('ok');
    expect(judge((i) => (i === 0 || i % 3 === 0 ? 1.01 : 0))).toBe('ok'); // within the noise
  });
  it('say nothing where no episode finished', () => {
    expect(judgeRules(random, [{ rule: 'word', play: playOf([], { failed: { threw: 2 } }) }], [])[0]).toMatchObject({
      verdict: 'ok',
      found: 'a reply of one word: no episode finished, 2 failed',
    });
  });
});

describe('the toy', () => {
  /** Groups of four, whose share of successes goes from one value to another. */
  const train = (from: number, to: number, groups = 100, turns = (_: number) => 2) =>
    playOf(
      Array.from({ length: 4 * groups }, (_, i) => {
        const group = Math.floor(i / 4);
        const chance = from + ((to - from) * group) / groups;
        return { reward: ((i * 7919) % 100) / 100 < chance ? 1 : 0, group, turns: turns(group) };
      }),
    );
  it('learns', () => {
    expect(verdictsOf(judgeToy(train(0.1, 0.9), []))).toEqual({ signal: 'ok', learning: 'ok', length: 'ok' });
  });
  it('does not, or gets worse', () => {
    expect(verdictsOf(judgeToy(train(0.4, 0.4), []))).toMatchObject({ learning: 'look' });
    expect(judgeToy(train(0.9, 0.1), [])[1]).toMatchObject({ verdict: 'look', advice: expect.stringMatching(/worse/) });
    expect(verdictsOf(judgeToy(train(0.4, 0.4, 5), []))).toEqual({ signal: 'ok', learning: 'look' });
  });
  it('is stopped for where the world never rewards, and looked at where the oracle alone earns', () => {
    expect(judgeToy(train(0, 0), [playOf(every(100, 20).map(() => ({ reward: 0 })))])[0]).toMatchObject({
      name: 'signal',
      verdict: 'stop',
    });
    expect(judgeToy(train(0, 0), [playOf([{ reward: 1 }])])[0]!.verdict).toBe('look');
  });
  it('has a signal where it has learnt all of it, and none where it never had one', () => {
    const learnt = playOf(
      Array.from({ length: 4000 }, (_, i) => ({ reward: i < 80 ? i % 2 : 1, group: Math.floor(i / 4) })),
    );
    expect(judgeToy(learnt, [])[0]!.verdict).toBe('ok');
    expect(measureMixedShare([[]])).toBeNaN();
  });
  it('drifts in its length', () => {
    const drifting = train(0.4, 0.4, 100, (group) => (group > 80 ? 5 : 2));
    expect(verdictsOf(judgeToy(drifting, []))).toMatchObject({ length: 'look' });
    expect(
      verdictsOf(
        judgeToy(
          train(0.1, 0.9, 100, (group) => (group > 80 ? 5 : 2)),
          [],
        ),
      ),
    ).toMatchObject({ length: 'ok' });
  });
  it('finished nothing', () => {
    const [row, ...others] = judgeToy(playOf([], { failure: 'broken' }), []);
    expect(row).toMatchObject({ verdict: 'look', found: 'the toy finished no group: broken' });
    expect(others).toEqual([]);
  });
});

describe('parts of the reward', () => {
  /** Two independent parts, weighed. */
  const parts = (a: number, b: number) =>
    playOf(
      Array.from({ length: 100 }, (_, i) => {
        const metrics = { correct: i % 2, style: Math.floor(i / 2) % 2 };
        return { reward: a * metrics.correct + b * metrics.style, metrics };
      }),
    );
  it('are level, or one of them dominates', () => {
    expect(judgeParts([parts(0.5, 0.5)])[0]!.verdict).toBe('ok');
    expect(judgeParts([parts(0.05, 0.95)])[0]).toMatchObject({
      verdict: 'look',
      found: "of the return's variance style 100 %, correct 0 %",
    });
  });
  it('explain r² each; one that is the return is left out, and fewer than two are no parts', () => {
    const explained = explainReturn(parts(0.5, 0.5).episodes);
    expect(explained.map(({ explains }) => Number(explains.toFixed(3)))).toEqual([0.5, 0.5]);
    const total = playOf(every(2).map((one) => ({ ...one, metrics: { total: one.reward, other: 1 } })));
    expect(explainReturn(total.episodes)).toEqual([{ name: 'other', mean: 1, explains: 0 }]);
    expect(judgeParts([total])).toEqual([]);
    expect(judgeParts([playOf(every(2))])).toEqual([]);
  });
});

describe('the configured model', () => {
  const tokens = {
    from: 'read',
    episodes: 4,
    perTurn: 50,
    perEpisode: 400,
    longest: 900,
    contextTokens: 1024,
  } as const;
  it('fits its context', () => {
    expect(judgeTokens({ ...tokens, refused: 0 }).verdict).toBe('ok');
    expect(judgeTokens({ ...tokens, refused: 0.1 }).verdict).toBe('look');
    expect(judgeTokens({ ...tokens, longest: 2000, refused: 0 }).verdict).toBe('look');
    expect(judgeTokens({ ...tokens, refused: 0.9 }).verdict).toBe('stop');
  });
  it('answers in form', () => {
    const answers = { episodes: 2, turns: 10, read: 9, listed: 2, solved: 0 };
    expect(judgeAnswers(answers, true).verdict).toBe('look');
    expect(judgeAnswers(answers, false).verdict).toBe('ok');
  });
  it('fits the memory', () => {
    expect([5, 8, 11].map((bytes) => judgeMemory(bytes, 10, 'x').verdict)).toEqual(['ok', 'look', 'stop']);
  });
});

describe('the estimate', () => {
  const input: EstimateInput = {
    ...{ stop: { updates: 100 }, groupsPerUpdate: 2, groupSize: 4, epochs: 2, turns: 5, tokens: 1000 },
    ...{ parameters: 1e9, update: { from: 'updates', seconds: 3 } },
  };
  it('counts updates, tokens and seconds, by whichever limit is first', () => {
    expect(estimateRun(input)).toEqual({
      ...{ updates: 100, endedBy: 'updates', episodes: 800, tokens: 800_000 },
      ...{ secondsPerUpdate: 3, seconds: 300 },
    });
    expect(estimateRun({ ...input, stop: { updates: 100, envSteps: 400 } })).toMatchObject({
      ...{ updates: 10, endedBy: 'envSteps', seconds: 30 },
    });
    expect(estimateRun({ ...input, stop: { minutes: 1 } })).toMatchObject({
      updates: 20,
      endedBy: 'minutes',
      seconds: 60,
    });
  });
  it('computes an update from tokens a second where none was made', () => {
    // 2 · 4 · 1000 tokens, read once (2·N) and trained twice (6·N each), at 100 tokens a second of 2·N.
    const tokens = estimateRun({ ...input, update: { from: 'tokens', tokensPerSecond: 100 } });
    expect(tokens.secondsPerUpdate).toBe((8000 * (2 + 6 * 2)) / (2 * 100));
  });
  it('leaves out what nothing leads to', () => {
    const nothing = estimateRun({ ...input, tokens: Number.NaN, update: undefined });
    expect(nothing).toMatchObject({ updates: 100, tokens: undefined, seconds: undefined });
    expect(judgeEstimate(nothing, input).verdict).toBe('look');
    expect(secondsOn(nothing, input, HARDWARE.h100!, 0.2)).toBeUndefined();
    expect(estimateRun({ ...input, stop: { minutes: 1 }, update: undefined })).toMatchObject({
      ...{ updates: undefined, endedBy: 'minutes', seconds: 60 },
    });
  });
  it('computes hardware by (2 + 6 · epochs) · N · T over peak · utilisation', () => {
    expect(countOperations(1e9, 8e5, 2)).toBe(14 * 1e9 * 8e5);
    expect(secondsOn(estimateRun(input), input, { peak: 1e12, source: '' }, 0.5)).toBe((14 * 1e9 * 8e5) / 5e11);
  });
  it('looks at a run of days', () => {
    const long = { ...input, stop: { updates: 100_000 } };
    expect(judgeEstimate(estimateRun(long), long).verdict).toBe('look');
    expect(judgeEstimate(estimateRun(input), input).verdict).toBe('ok');
  });
});

it('exits with 1 for a stop alone', () => {
  const row = { part: 'toy', name: 'x', found: '', advice: '' } as const;
  expect(exitCodeOf([{ ...row, verdict: 'look' }])).toBe(0);
  expect(
    exitCodeOf([
      { ...row, verdict: 'look' },
      { ...row, verdict: 'stop' },
    ]),
  ).toBe(1);
});
