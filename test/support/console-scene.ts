/** A scripted run for the console: the same events, on a virtual clock, in fixtures and in a real terminal. */
import type { ActorLine, ConsoleConfig, ConsoleEvent, Progress } from '../../src/console/state.ts';
import { Rng } from '../../src/core/rng.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';

export const sceneConfig: ConsoleConfig = {
  env: { id: 'textcraft' },
  horizon: { type: 'scaling_inter_stepwise', rounds: [8, 16, 24], steps_scaling_inter: 100 },
  rollout: { groupSize: 8, concurrentGroups: 16, envThreads: 1, maxBatch: 64 },
  learner: { maxLag: 2, epochs: 2, groupsPerUpdate: 8 },
  engine: { inferenceThreads: 1, learnerThreads: 1, learnerReplicas: 1 },
};

export type Mood = 'learning' | 'collapsed';

/** The events of `updates` updates; two seconds each. */
export function* scene(updates = 160, mood: Mood = 'learning'): Generator<ConsoleEvent> {
  const rng = Rng.fromSeed(5);
  const noise = (size: number) => size * (rng.float() - 0.5);
  for (let update = 1; update <= updates; update++) {
    const skill = mood === 'learning' ? 1 - Math.exp(-update / 60) : 0;
    const atMs = update * 2000;
    const horizon = [8, 16, 24][Math.min(2, Math.floor(update / 100))]!;
    yield { type: 'row', row: row(update, skill, horizon, atMs, mood, noise) };
    yield { type: 'progress', progress: progress(update, horizon, atMs, updates) };
    yield { type: 'actors', actors: actors(atMs), at: atMs };
  }
  yield { type: 'notice', text: 'resuming from update 40' };
}

function row(
  update: number,
  skill: number,
  horizon: number,
  atMs: number,
  mood: Mood,
  noise: (size: number) => number,
): MetricsRow {
  const share = (value: number) => Math.min(1, Math.max(0, value + noise(0.1)));
  const labels = { 'depth 1': share(skill), 'depth 2': share(0.8 * skill), 'depth 3': share(0.5 * skill) };
  const success = (labels['depth 1'] + labels['depth 2'] + labels['depth 3']) / 3;
  const each = <T>(value: T) => ({ 'depth 1': value, 'depth 2': value, 'depth 3': value });
  return {
    update,
    elapsed: atMs / 1000,
    progress: update / 240,
    horizon,
    success,
    return: success,
    turns: 7 - 2 * skill,
    truncated: 1 - success,
    episodesByLabel: each(20),
    successByLabel: labels,
    turnsByLabel: each(7 - 2 * skill),
    topAction: mood === 'collapsed' ? 0.97 : 0.1,
    repeatedTurns: mood === 'collapsed' ? 0.7 : 0.05,
    zeroVarianceGroups: mood === 'collapsed' ? 1 : 0.4,
    trainedGroups: 5,
    filteredGroups: 3,
    staleGroups: 0,
    loss: 0.2 - 0.1 * skill + noise(0.02),
    entropy: mood === 'collapsed' ? 1.7 * Math.exp(-update / 8) : 1.7 - 0.8 * skill,
    klOld: 0.007,
    clipFraction: 0.03,
    gradNorm: 0.4 + noise(0.1),
    lagMin: 0,
    lagMean: 1.25,
    lagMax: 2,
    learnerTokensPerSecond: 8120,
    skippedSteps: 0,
    launched: update * 64,
    failed: 0,
  };
}

function progress(update: number, horizon: number, elapsedMs: number, updates: number): Progress {
  const slotMs = 128 * elapsedMs;
  return {
    version: update,
    horizon,
    envSteps: update * 2400,
    episodes: update * 64,
    elapsedMs,
    progress: update / (1.5 * updates),
    runningEpisodes: 100,
    accounting: {
      launched: update * 64 + 192,
      trained: update * 40,
      stale: 0,
      filtered: update * 24,
      failed: {},
      inFlight: 192,
    },
    tokens: update * 48_000,
    calls: update * 50,
    decidedTurns: update * 2400,
    time: {
      runningMs: 0.7 * slotMs,
      groupMs: 0.05 * slotMs,
      learnerMs: 0.25 * slotMs,
      envMs: 0.02 * slotMs,
      hostMs: 0.1 * elapsedMs,
      waitMs: 0.1 * slotMs,
      prefillMs: 0.08 * slotMs,
      decodeMs: 0.4 * slotMs,
      actRestMs: 0.05 * slotMs,
      stepRestMs: 0.05 * slotMs,
    },
  };
}

/** The actors' reports at an instant. */
export function actors(at: number): ActorLine[] {
  const one = (path: string, busy: number, rest: Partial<ActorLine> = {}): ActorLine => ({
    path,
    state: 'running',
    depth: 0,
    busyMs: busy * at,
    restarts: 0,
    message: undefined,
    oldestMs: 0,
    waitingFor: [],
    ...rest,
  });
  return [
    one('/recorder', 0.01),
    one('/horizon', 0),
    one('/rollout', 0.05),
    one('/inference', 0.8, { depth: 2, message: 'act', oldestMs: 12 }),
    one('/learner', 0.95, { depth: 5, message: 'group', oldestMs: 640, waitingFor: ['/rollout'] }),
    one('env hosts', 0.1, { note: '100 episodes open', restarts: 1 }),
  ];
}
