/** Ends of sampled runs: what limits a reply of an agent, and what leaves the spelling of a listed action alone. */
import { expect, it } from 'vitest';
import { type RunLimits, sample } from '../../src/policy/decide.ts';
import type { MemberState } from '../../src/policy/episode-state.ts';
import type { ActRequest } from '../../src/policy/policy.ts';

const anything = { allowed: () => [0, 1], advance: () => {} };
const codec = {
  end: 9,
  sampled: { from: 0, to: 2 },
  ends: () => false,
  decode: (ids: Iterable<number>) => [...ids].join(''),
  spell: () => Int32Array.from([0, 1, 0, 1, 0, 1]),
  answer: () => ({ action: 'done', text: 'done' }),
};
const limits = { codec, masked: true, maxTokens: 3, config: { maxPositions: 50 } } as unknown as RunLimits;
const scored = { scores: Float32Array.from([0, 0]), value: 0, version: 0 };

/** Tokens after which a run ends. @param own limits of the transcript: an agent's has some */
function tokensOf(own: object | undefined, more: Partial<ActRequest> = {}): number {
  const tokens: number[] = [];
  const transcript = {
    table: ['press', 'reply'],
    prompt: { tokens: [] },
    tokens,
    limits: own,
    takeContext: () => [],
    write: (ids: readonly number[]) => tokens.push(...ids),
  };
  const member = { episode: 1, transcript } as unknown as MemberState;
  const request = { episode: 1, turn: 0, samplingSeed: 1, temperature: 1, actions: [0, 1], ...more } as never;
  for (let i = 0; i < 60; i++) if (sample(limits, member, request, scored)) return tokens.length;
  return -1;
}

it('a reply that a grammar holds ends at its limit, whatever stages its world lists', () => {
  expect(tokensOf({ mask: () => anything })).toBe(3);
  expect(tokensOf({ mask: () => anything, maxTokens: 2 })).toBe(2);
  expect(tokensOf({})).toBe(3);
});

it('the spelling of a listed action is not cut in two', () => {
  expect(tokensOf(undefined)).toBeGreaterThan(3);
});
