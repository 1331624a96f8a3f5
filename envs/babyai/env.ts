/**
 * BabyAI as an environment: a grid world in words.
 *
 * Observation  The goal, what is in sight with its place, what is carried, and the actions that can be taken.
 * Action       `turn left` | `turn right` | `move forward` | `go to red ball 1` | `pickup red ball 1` | `drop` |
 *              `toggle` | `go through red open door 1` | `toggle and go through red closed door 1`; else a wasted turn.
 * Reward       1 − 0.9·(low-level steps / step limit of the level) when the mission is fulfilled, else 0.
 * Terminates   when the mission is fulfilled, or a strict one is failed. Truncation belongs to the horizon.
 * Randomness   none but the level's: task index n is level n % 40 + 1 under seed ⌊n / 40⌋. A task's own seed is not used.
 * Source       Chevalier-Boisvert et al. 2019, https://arxiv.org/abs/1810.08272; Minigrid 2.3.1; AgentGym.
 * Differs      see the README's table; `fidelity: 'original'` differs in nothing that was recorded.
 */

import { describeValue } from '../../src/core/describe-value.ts';
import {
  type Env,
  type EnvOptions,
  type EnvStep,
  type First,
  mid,
  type Session,
  terminated,
} from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { CorrectedText } from './corrected.ts';
import { OriginalText } from './original.ts';
import { requireIndex, tasks } from './tasks.ts';

export type Fidelity = 'original' | 'corrected';

/** Fidelity of the options. @throws {UserError} for options that BabyAI does not have */
export function fidelityOf(options: EnvOptions = {}): Fidelity {
  for (const [key, value] of Object.entries(options)) {
    if (key !== 'fidelity')
      throw new UserError('BAD_CONFIG', `babyai: unknown option '${key}'; it has only 'fidelity'`);
    if (value !== undefined && value !== 'original' && value !== 'corrected') {
      throw new UserError(
        'BAD_CONFIG',
        `babyai: fidelity must be 'original' or 'corrected', got ${describeValue(value)}`,
      );
    }
  }
  return (options.fidelity as Fidelity | undefined) ?? 'corrected';
}

/** Creates the env. @throws {UserError} for options that BabyAI does not have */
export function createEnv(options: EnvOptions = {}): Env {
  const fidelity = fidelityOf(options);
  return {
    id: 'babyai',
    description: 'Instructions in a grid of rooms: go to, pick up, open and put next to what the words mean.',
    tasks,
    // The original's formula pays a late success less than zero long after the step limit: −1000 would take 17,000
    // low-level steps in the smallest level.
    rewardRange: fidelity === 'original' ? [-1000, 1] : [0, 1],
    maxObservationChars: 16_384,
    open({ index }) {
      requireIndex(index);
      return fidelity === 'original' ? new OriginalSession(index) : new CorrectedSession(index);
    },
  };
}

/** Session under the corrected rules. */
export class CorrectedSession implements Session {
  readonly first: First;
  readonly text: CorrectedText;

  constructor(index: number) {
    this.text = new CorrectedText(index);
    this.first = { kind: 'first', observation: this.text.answer.observation };
  }

  step(action: string): EnvStep {
    const { observation, reward, terminated: ended, success } = this.text.step(action);
    return ended ? terminated(observation, reward, success) : mid(observation, reward);
  }

  actions(): readonly string[] {
    return this.text.available();
  }

  close(): void {}
}

/** Session as AgentGym's server would have it: only a reward above ½ ends it. */
export class OriginalSession implements Session {
  readonly first: First;
  readonly text: OriginalText;

  constructor(index: number) {
    this.text = new OriginalText(index);
    this.first = { kind: 'first', observation: this.text.payload.observation };
  }

  step(action: string): EnvStep {
    if (this.text.payload.done) return terminated(this.text.payload.observation, 0, true);
    const { observation, reward, done } = this.text.step(action);
    return done ? terminated(observation, reward, true) : mid(observation, reward);
  }

  actions(): readonly string[] {
    return this.text.available();
  }

  close(): void {}
}
