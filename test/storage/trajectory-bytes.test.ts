/** The estimate of what trajectories hold, against what copies of them hold by V8's count. */
import { expect, it } from 'vitest';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { trajectoryBytes } from '../../src/storage/trajectory-bytes.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';
import { trajectoryOf } from '../support/traces.ts';

/** Bytes that one of many copies holds. */
function held(one: Trajectory, copies: number): number {
  const kept: Trajectory[] = [];
  const before = bytesInUse();
  for (let n = 0; n < copies; n++) kept.push(structuredClone(one));
  const bytes = bytesInUse() - before;
  expect(kept).toHaveLength(copies); // and so they live until here
  return bytes / copies;
}

const actions = Array.from({ length: 24 }, (_, i) => `take the thing ${i % 6} from the place ${i % 4}`);
const speaks = (one: Trajectory): Trajectory => ({
  ...one,
  turns: one.turns.map((turn, t) => ({
    ...turn,
    response: {
      text: `Thought: this is turn ${t}.\nAction: ${turn.action}`,
      promptTokens: 30,
      completionTokens: 9,
      ...(t === 0
        ? { opening: { system: 'be brief', instructions: 'play the game well. '.repeat(50), listed: true } }
        : {}),
    },
  })),
});

it.each([
  ['choices', trajectoryOf({ actions })],
  ['runs of tokens', trajectoryOf({ actions, kind: 'tokens' })],
  ['one turn', trajectoryOf({ actions: ['go'] })],
  ['a language model’s answers', speaks(trajectoryOf({ actions, kind: 'tokens' }))],
  ['long observations', trajectoryOf({ actions, observation: 'a long room. '.repeat(500) })],
])('the estimated bytes of %s are no fewer than those held, and at most four times as many', (_, one) => {
  const estimate = trajectoryBytes([one]);
  const real = held(one, Math.ceil(1e7 / estimate));
  expect(real).toBeGreaterThan(0);
  expect(estimate).toBeGreaterThanOrEqual(real);
  expect(estimate).toBeLessThan(4 * real);
});
