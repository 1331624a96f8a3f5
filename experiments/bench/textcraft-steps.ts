/**
 * TextCraft steps per second in one thread, without hosts or messages: every recorded action of the golden episodes
 * again and again, in `fidelity: 'original'`, as the original's own figure was taken. Without golden traces the
 * actions are ours: the oracle's, with as many drawn from the listed ones.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createEnv, createOracle, type Start, type TextCraft } from '../../envs/textcraft/index.ts';
import { readOpening } from '../../envs/textcraft/text.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';
import { readRecords } from '../parity.ts';
import { median } from './median.ts';

/** Steps per second of AgentGym's TextCraft on the same actions, in process (Python). */
export const ORIGINAL_STEPS_PER_SECOND = 142_562;

/** Result: steps per second. */
export interface TextcraftSteps {
  /** Source of the actions. */
  readonly actions: 'golden' | 'own';
  /** Steps of one pass over all episodes. */
  readonly steps: number;
  /** Median over `runs`; effects of actions are remembered between passes, as in a long run. */
  readonly stepsPerSecond: number;
  readonly runs: readonly number[];
  /** Median when every pass has a new env, which remembers nothing yet. */
  readonly coldStepsPerSecond: number;
  /** Median when the listed actions are read before every step, as a choosing policy does. */
  readonly listedStepsPerSecond: number;
  readonly originalStepsPerSecond: number;
}

interface Script {
  readonly start: Start;
  readonly actions: readonly string[];
}

/** Measures TextCraft's steps per second. @param minMs each of the five runs repeats its pass for at least this long */
export function textcraftSteps({ minMs = 300 }: { readonly minMs?: number } = {}): TextcraftSteps {
  const file = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'textcraft', 'episodes.jsonl.gz');
  const actions = existsSync(file) ? 'golden' : 'own';
  const scripts = actions === 'golden' ? readRecorded(file) : own();
  const warm = createEnv({ fidelity: 'original' });
  const fresh = () => createEnv({ fidelity: 'original' });
  measure(scripts, () => warm, false, minMs); // lets the compiler settle
  const runs = five(() => measure(scripts, () => warm, false, minMs));
  return {
    actions,
    steps: scripts.reduce((sum, script) => sum + script.actions.length, 0),
    stepsPerSecond: median(runs),
    runs,
    coldStepsPerSecond: median(five(() => measure(scripts, fresh, false, minMs))),
    listedStepsPerSecond: median(five(() => measure(scripts, () => warm, true, minMs))),
    originalStepsPerSecond: ORIGINAL_STEPS_PER_SECOND,
  };
}

function measure(scripts: readonly Script[], envOfPass: () => TextCraft, listed: boolean, minMs: number): number {
  const began = performance.now();
  let steps = 0;
  let elapsed = 0;
  while (elapsed < minMs) {
    const env = envOfPass();
    for (const { start, actions } of scripts) {
      const session = env.openFrom(start);
      for (const action of actions) {
        if (listed && session.actions().length === 0) break;
        if (session.step(action).observation.length > 0) steps++;
      }
    }
    elapsed = performance.now() - began;
  }
  return Math.round((steps / elapsed) * 1000);
}

function readRecorded(file: string): readonly Script[] {
  interface Episode {
    readonly goal: string;
    readonly commands: readonly string[];
    readonly steps: readonly { readonly action: string }[];
  }
  return (readRecords(file) as Episode[]).map(({ goal, commands, steps }) => ({
    start: { goal: goal.replace('minecraft:', ''), commands },
    actions: steps.map(({ action }) => action),
  }));
}

function own(): readonly Script[] {
  const env = createEnv();
  const rng = Rng.fromSeed(1);
  return env.tasks.split('test').map((index) => {
    const task = { env: env.id, index, seed: env.tasks.evalSeed };
    const session = env.open(task);
    const next = createOracle()(task);
    const actions: string[] = [];
    let step: TimeStep = session.first;
    for (let action = next(step); action !== undefined && step.kind !== 'terminated'; action = next(step)) {
      for (const one of [rng.pick(session.actions()), action]) {
        if (step.kind === 'terminated') break;
        actions.push(one);
        step = session.step(one);
      }
    }
    return { start: readOpening(session.first.observation), actions };
  });
}

function five(run: () => number): readonly number[] {
  return [run(), run(), run(), run(), run()];
}
