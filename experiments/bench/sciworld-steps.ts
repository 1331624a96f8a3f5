/**
 * Rates of SciWorld, replaying the golden actions in one thread: by default without the list, `original` with the whole
 * list of valid actions as strings at every step, and choosing as a policy does, with the stages listed; resets; and the
 * memory of live environments. Without golden traces the oracle's actions are played.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createEnv, createOracle, type SciWorld, type SciWorldSession } from '../../envs/sciworld/index.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';
import { readRecords } from '../parity.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

/** The original's rates: AgentGym's server, and the simulator alone. */
const AGENTGYM = { name: "AgentGym's server", value: 12 };
const SIMULATOR = { name: "ScienceWorld's simulator alone", value: 312 };
const LIVE = 1000;

interface Script {
  readonly index: number;
  readonly actions: readonly string[];
}

/**
 * Measures the rates of SciWorld. @param runs of one measurement, after one to warm up; each takes `seconds` or as
 * long as one pass over all episodes
 */
export function sciworldSteps({ runs = 3, seconds = 1 } = {}): Figure[] {
  const scripts = load();
  const measure = (
    name: string,
    unit: string,
    round: (script: Script) => readonly [count: number, ms: number],
    reference?: Figure['reference'],
  ): Figure => {
    const rates: number[] = [];
    let next = 0;
    for (let run = -1; run < runs; run++) {
      let count = 0;
      let ms = 0;
      // Thousands of steps pass before the compiler settles.
      const least = (run < 0 ? 4 : 1) * seconds * 1000;
      for (let played = 0; ms < least || played < scripts.length / 4; played++) {
        const [more, took] = round(scripts[next++ % scripts.length]!);
        count += more;
        ms += took;
      }
      if (run >= 0) rates.push((count * 1000) / ms);
    }
    return { name: `SciWorld ${name}`, value: median(rates), unit, ...(reference ? { reference } : {}) };
  };
  const corrected = createEnv({ tasks: 'scienceworld' });
  const original = createEnv({ tasks: 'scienceworld', fidelity: 'original' });
  const rng = Rng.fromSeed(7);
  const reset = ({ index }: Script) => {
    openSession(corrected, index);
    return 1;
  };
  const resets = measure('resets', 'resets/s', (one) => measureMs(() => reset(one)));
  return [
    measure('steps, recorded actions', 'steps/s', (one) => replay(corrected, one, () => {}), AGENTGYM),
    measure(
      'steps, original rules, the whole list every step',
      'steps/s',
      (one) => replay(original, one, (session) => session.valid()),
      SIMULATOR,
    ),
    measure('choices, stages listed, random', 'choices/s', ({ index }) => choose(corrected, index, rng)),
    resets,
    { name: 'SciWorld time of a reset', value: 1000 / resets.value, unit: 'ms' },
    ...memory(corrected, scripts),
  ];
}

function openSession(env: SciWorld, index: number): SciWorldSession {
  return env.open({ env: env.id, index, seed: 0 });
}

/** Recorded episodes of the gold policy, or the oracle's. */
function load(): Script[] {
  const file = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'sciworld', 'v1.3.0.jsonl.gz');
  const env = createEnv({ tasks: 'scienceworld' });
  if (!existsSync(file)) return own(env);
  interface Episode {
    readonly task: string;
    readonly variation: number;
    readonly policy: string;
    readonly steps: readonly { readonly action: string }[];
  }
  const first = new Map<string, number>();
  for (let index = env.tasks.count - 1; index >= 0; index--) {
    first.set(env.tasks.at(index).registered.task.name, index);
  }
  return (readRecords(file) as Episode[])
    .filter(({ policy }) => policy === 'gold')
    .map(({ task, variation, steps }) => ({
      index: first.get(task)! + variation,
      actions: steps.map(({ action }) => action),
    }));
}

function own(env: SciWorld): Script[] {
  return Array.from(
    env.tasks.split('test').filter((_, i) => i % 40 === 0),
    (index) => {
      const next = createOracle({ tasks: 'scienceworld' })({ env: env.id, index, seed: 0 });
      const session = openSession(env, index);
      const actions: string[] = [];
      let step: TimeStep = session.first;
      for (let action = next(step); action !== undefined && step.kind !== 'terminated'; action = next(step)) {
        actions.push(action);
        step = session.step(action);
      }
      return { index, actions };
    },
  );
}

function measureMs(work: () => number): [count: number, ms: number] {
  const start = performance.now();
  const count = work();
  return [count, performance.now() - start];
}

/** Steps alone: the session is opened before the clock runs. */
function replay(
  env: SciWorld,
  { index, actions }: Script,
  observe: (session: SciWorldSession) => unknown,
): [number, number] {
  const session = openSession(env, index);
  return measureMs(() => {
    let count = 0;
    for (const action of actions) {
      count++;
      if (session.step(action).kind === 'terminated') break;
      observe(session);
    }
    return count;
  });
}

function choose(env: SciWorld, index: number, rng: Rng): [number, number] {
  const session = openSession(env, index);
  return measureMs(() => {
    for (let t = 1; t <= 100; t++) if (session.step(rng.pick(session.actions())).kind === 'terminated') return t;
    return 100;
  });
}

/** Heap of live sessions after twenty recorded steps. */
function memory(env: SciWorld, scripts: readonly Script[]): Figure[] {
  const before = bytesInUse();
  const sessions = Array.from({ length: LIVE }, (_, n) => {
    const { index, actions } = scripts[n % scripts.length]!;
    const session = openSession(env, index);
    for (const action of actions.slice(0, 20)) session.step(action);
    return session;
  });
  const bytes = bytesInUse() - before;
  const live = sessions.length; // and so they are alive until here
  return [
    { name: 'SciWorld memory per live environment', value: bytes / live / 1024, unit: 'kB' },
    { name: `SciWorld memory of ${live.toLocaleString('en')} live environments`, value: bytes / 2 ** 20, unit: 'MB' },
  ];
}
