/**
 * World whose every text is hostile to a terminal: its id, description, labels, observations, actions and errors. It can
 * be played nevertheless; with the option `throws` the task of index 1 does.
 */
import { type Env, mid, terminated } from '../../src/core/env.ts';

/** Text with escape codes, C1 and bidi controls and line ends. */
export const HOSTILE = 'a\u001b[31mred\u009b2J\u202egnp\u2066\r\nlongplay: forged\u0007\u2028b';

export function createEnv({ throws = false }: { readonly throws?: boolean } = {}): Env {
  return {
    id: HOSTILE,
    description: HOSTILE.repeat(50),
    tasks: {
      count: 4,
      labels: [HOSTILE, `${HOSTILE} 2`],
      label: (index) => (index < 2 ? HOSTILE : `${HOSTILE} 2`),
      split: () => [0, 1, 2, 3],
      evalSeed: 5,
    },
    rewardRange: [0, 1],
    maxObservationChars: 100_000,
    open({ index }) {
      let turn = 0;
      return {
        first: { kind: 'first', observation: HOSTILE.repeat(100) },
        actions: () => [HOSTILE, `${HOSTILE} 2`],
        step(action) {
          if (throws && index === 1) throw new Error(HOSTILE.repeat(500));
          return ++turn < 3 ? mid(`${action}${HOSTILE}`) : terminated(HOSTILE, 1);
        },
        close() {},
      };
    },
  };
}
