/** Trivial rules: each decides by its rule alone, whatever the task. */
import { describe, expect, it } from 'vitest';
import type { ActRequest } from '../../src/policy/policy.ts';
import { isEndAction, RULES, type Rule, RulePolicy } from '../../src/policy/rule-policy.ts';

/** Plays turns of one episode, each with its list. @returns the actions, or the message of a turn that is refused */
function playTurns(rule: Rule, lists: readonly (readonly string[])[], samplingSeed = 1): readonly string[] {
  const policy = new RulePolicy(4, rule);
  const table: string[] = [];
  let lastAction: string | undefined;
  return lists.map((list, turn) => {
    const newActions = list.filter((text) => !table.includes(text));
    table.push(...newActions);
    const actions = Int32Array.from(list, (text) => table.indexOf(text));
    const request = { episode: 1, group: 1, member: 0, groupSize: 1, turn, observation: 'x', temperature: 1 };
    const before = lastAction === undefined ? {} : { lastAction };
    const refused = policy.submit([{ ...request, ...before, actions, newActions, samplingSeed } as ActRequest]);
    if (refused.length > 0) return refused[0]!.message;
    lastAction = policy.step()[0]!.action;
    return lastAction;
  });
}

describe('a trivial rule', () => {
  it('decides by its rule alone', () => {
    const lists = [
      ['go', 'look', 'stop now'],
      ['look', 'sing'],
    ];
    const played = Object.fromEntries(RULES.map((rule) => [rule, playTurns(rule, lists)]));
    const { same, ...fixed } = played;
    expect(fixed).toEqual({
      first: ['go', 'look'],
      last: ['stop now', 'sing'],
      empty: ['', ''],
      word: ['ok', 'ok'],
      end: ['stop now', 'look'],
    });
    expect(lists[0]).toContain(same![0]);
  });
  it('repeats the same action while it is listed, and draws the first of each episode', () => {
    const list = ['a', 'b', 'c', 'd'];
    const firsts = Array.from({ length: 30 }, (_, seed) => {
      const played = playTurns('same', [list, [...list].reverse(), list], seed);
      expect(new Set(played).size).toBe(1);
      return played[0];
    });
    expect(new Set(firsts)).toEqual(new Set(list));
    const [first, second] = playTurns('same', [['a'], ['b']]);
    expect([first, second]).toEqual(['a', 'b']);
  });
  it('refuses a turn without a list, but for a reply in words', () => {
    expect(playTurns('first', [[]])[0]).toMatch(/list/);
    expect(playTurns('empty', [[]])).toEqual(['']);
  });
  it('knows actions that end an episode by their names', () => {
    const ends = ['stop', 'Submit answer', 'finish[42]', 'give up', 'done'];
    expect(ends.filter(isEndAction)).toEqual(ends);
    expect(['stopwatch', 'go to exit', 'endless', 'donete'].filter(isEndAction)).toEqual([]);
  });
});
