/** A world whose step costs next to nothing and answers with 400 characters, so that only the messages count. */
import { type Env, mid } from '../../src/core/env.ts';

const observation = 'x'.repeat(400);

export function createEnv(): Env {
  return {
    id: 'trivial',
    description: 'Answers every action with the same 400 characters.',
    tasks: { count: 1, labels: ['all'], label: () => 'all', split: () => [0], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 1000,
    open: () => ({
      first: { kind: 'first', observation },
      step: () => mid(observation),
      actions: () => [],
      close() {},
    }),
  };
}
