/**
 * Five worlds with known answers, as one env module: the option `world` chooses.
 *
 * - `bandit`: one turn, three arms that pay 1 with probability 0.2, 0.5, 0.8 (drawn from the task seed). Best: 0.8.
 * - `chain`: `right` four times in a row pays 1; `left` goes back to the start; `stop` ends it for 0.1. Best: 1.
 * - `memory`: the first observation shows a colour, the second asks for it. Best: 1; without memory 0.5.
 * - `long`: six steps `on` among idle ones pay 1, nothing else pays anything. Impossible in fewer than six turns.
 * - `wage`: `on` pays 0.25 and `idle` nothing, for ever: only the horizon ends it.
 *
 * With the option `apart` every answer comes in a turn of the event loop of its own, so that no two arrive together.
 */
import { setImmediate } from 'node:timers/promises';
import { type Env, type EnvStep, mid, type Session, terminated } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import type { AppendView } from '../../src/core/view.ts';

export type ToyWorld = 'bandit' | 'chain' | 'memory' | 'long' | 'wage';

export const view: AppendView = {
  id: 'toy@1',
  mode: 'append',
  lexicon: [],
  words: ['left', 'middle', 'right', 'stop', 'red', 'blue', 'go', 'on', 'idle', 'pull', 'at', 'which', 'over'],
  prompt: ({ observation }) => ({ segments: [observation], focus: '', mentions: () => [] }),
  turn: ({ observation }) => ` ${observation}`,
};

export function createEnv(options: { readonly world?: ToyWorld; readonly apart?: boolean } = {}): Env {
  const world = options.world ?? 'bandit';
  const open = options.apart ? (task: Task) => answeringApart(sessions[world](task)) : sessions[world];
  return {
    id: 'toy',
    description: 'Small worlds with known answers.',
    tasks: { count: 4, labels: ['all'], label: () => 'all', split: () => [0, 1, 2, 3], evalSeed: 5 },
    rewardRange: [0, 1],
    maxObservationChars: 100,
    open,
  };
}

/** [action → what follows] of a world whose state is a number. */
function session(first: string, actions: () => readonly string[], step: (action: string) => EnvStep): Session {
  return { first: { kind: 'first', observation: first }, step, actions, close() {} };
}

let lastAnswer: Promise<unknown> = Promise.resolve();

/** Makes each answer wait for the one before it, and for the event loop. */
function answeringApart(one: Session): Session {
  return {
    ...one,
    step(action) {
      const answer = lastAnswer.then(() => setImmediate()).then(() => one.step(action));
      lastAnswer = answer;
      return answer;
    },
  };
}

const sessions: Readonly<Record<ToyWorld, (task: Task) => Session>> = {
  bandit({ seed }) {
    const arms = ['left', 'middle', 'right'];
    const luck = Rng.fromSeed(seed).float();
    return session(
      'pull',
      () => arms,
      (action) => terminated('over', luck < [0.2, 0.5, 0.8][arms.indexOf(action)]! ? 1 : 0),
    );
  },
  chain() {
    let at = 0;
    return session(
      'at 0',
      () => ['left', 'right', 'stop'],
      (action) => {
        if (action === 'stop') return terminated('over', 0.1, false);
        at = action === 'right' ? at + 1 : 0;
        return at === 4 ? terminated('over', 1) : mid(`at ${at}`);
      },
    );
  },
  memory({ index, seed }) {
    const colour = (index + seed) % 2 === 0 ? 'red' : 'blue';
    let hasQuestion = false;
    return session(
      colour,
      () => (hasQuestion ? ['red', 'blue'] : ['go']),
      (action) => {
        if (hasQuestion) return terminated('over', action === colour ? 1 : 0);
        hasQuestion = true;
        return mid('which');
      },
    );
  },
  long() {
    let at = 0;
    return session(
      'at 0',
      () => ['idle', 'on'],
      (action) => {
        if (action === 'on') at++;
        return at === 6 ? terminated('over', 1) : mid(`at ${at}`);
      },
    );
  },
  wage() {
    let at = 0;
    return session(
      'at 0',
      () => ['idle', 'on'],
      (action) => mid(`at ${++at}`, action === 'on' ? 0.25 : 0),
    );
  },
};
