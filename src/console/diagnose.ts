/** Diagnosis of a run: warnings, and the one setting that would help most. Pure. */
import { cureOf } from '../core/failure.ts';
import type { MetricsRow, PlainName } from '../metrics/metric-table.ts';
import type { TimePart, TimeShares } from '../metrics/slot-time.ts';
import { mean, percent } from './numbers.ts';
import type { ConsoleConfig } from './state.ts';

/** Updates that a warning looks back on: one bad update is no trend. */
const WINDOW = 10;

/**
 * Warning about answers that name no action, from the first groups on: a model that misses the form earns nothing, and its groups
 * teach nothing.
 */
export function warnOfAnswers(rows: readonly MetricsRow[]): string | undefined {
  const share = mean(values(rows.slice(-WINDOW), 'formatErrors'));
  if (!(share > 0.5)) return undefined;
  return `${percent(share)} of answers name no action: let only listed ones be answered (policy.masked=true; behind a server policy.openai.guided), set policy.chat.format=action, or imitate demonstrations first (longplay sft)`;
}

/**
 * Warnings about a run.
 * @param rows metrics rows, oldest first
 * @param env id of the world
 */
export function warnings(rows: readonly MetricsRow[], env: string): string[] {
  const recent = rows.slice(-WINDOW);
  const found: string[] = [];
  const averageRecent = (name: PlainName) => mean(values(recent, name));
  const misread = warnOfAnswers(rows);
  if (misread !== undefined) found.push(misread);
  if (recent.length < 3) return found;
  const success = averageRecent('success');
  if (averageRecent('topAction') > 0.8) {
    found.push(`one action is ${percent(averageRecent('topAction'))} of all turns: the policy has collapsed onto it`);
  }
  if (averageRecent('repeatedTurns') > 0.4) {
    found.push(
      `${percent(averageRecent('repeatedTurns'))} of turns repeat an action in the same situation: episodes loop`,
    );
  }
  const highest = values(rows, 'entropy').reduce((most, one) => Math.max(most, one), Number.NEGATIVE_INFINITY);
  if (averageRecent('entropy') < 0.05 * highest && !(success > 0.95)) {
    found.push(`entropy is gone (${averageRecent('entropy').toPrecision(2)} nats): raise learner.entropyCoef`);
  }
  if (averageRecent('zeroVarianceGroups') > 0.8) {
    const why =
      success > 0.9
        ? 'nearly all are solved: add harder tasks'
        : success < 0.1
          ? 'nearly none is solved: add easier tasks or raise rollout.groupSize'
          : 'raise rollout.groupSize, or sample tasks with type: learnable';
    found.push(
      `${percent(averageRecent('zeroVarianceGroups'))} of groups score all the same and teach nothing; ${why}`,
    );
  }
  const stale = sum(recent, 'staleGroups');
  const used = sum(recent, 'trainedGroups') + sum(recent, 'filteredGroups');
  if (stale > 0.2 * (stale + used)) {
    found.push(`${percent(stale / (stale + used))} of groups come too late: raise learner.maxLag`);
  }
  const [first, last] = [recent[0]!, recent.at(-1)!];
  const launched = (last.launched ?? 0) - (first.launched ?? 0);
  const failed = (last.failed ?? 0) - (first.failed ?? 0);
  if (launched > 0 && failed > 0.05 * launched) {
    found.push(`${percent(failed / launched)} of episodes fail: ${cureOf('threw', env)}`);
  }
  if (sum(recent, 'skippedSteps') > 0) {
    found.push(`${sum(recent, 'skippedSteps')} optimiser steps were not finite: lower learner.learningRate`);
  }
  return found;
}

export interface Advice {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly why: string;
}

/** Settings that could still be changed when a part of the time is the largest, best first. */
const KNOBS: Readonly<Record<TimePart, (config: ConsoleConfig, cores: number) => Advice | undefined>> = {
  env: ({ rollout: { envThreads } }, cores) =>
    envThreads < cores
      ? { key: 'rollout.envThreads', from: envThreads, to: envThreads + 1, why: 'episodes wait for their envs' }
      : undefined,
  batchWait: (config, cores) => batchWait(config, cores),
  prefill: (config, cores) => adviseInference(config, cores, 'prompts are read slowly'),
  decode: (config, cores) => adviseInference(config, cores, 'calls are slow'),
  learner: fasterLearner,
  group: ({ rollout: { concurrentGroups } }) => ({
    key: 'rollout.concurrentGroups',
    from: concurrentGroups,
    to: Math.ceil(concurrentGroups * 1.5),
    why: 'finished episodes wait for the slowest of their group',
  }),
  messages: ({ rollout: { concurrentGroups } }) => ({
    key: 'rollout.concurrentGroups',
    from: concurrentGroups,
    to: concurrentGroups * 2,
    why: 'more episodes share each message',
  }),
};

function fasterLearner({ learner: { maxLag, epochs, maxTokens }, engine }: ConsoleConfig, cores: number): Advice {
  const { learnerReplicas, learnerThreads, inferenceThreads } = engine;
  const why = 'slots are empty until the learner is through';
  if (maxTokens !== undefined && learnerReplicas < cores) {
    return { key: 'engine.learnerReplicas', from: learnerReplicas, to: learnerReplicas + 1, why };
  }
  if (learnerThreads < cores - inferenceThreads) {
    return { key: 'engine.learnerThreads', from: learnerThreads, to: learnerThreads + 1, why };
  }
  return epochs > 1
    ? { key: 'learner.epochs', from: epochs, to: epochs - 1, why }
    : { key: 'learner.maxLag', from: maxLag, to: maxLag + 1, why };
}

function batchWait({ rollout, engine }: ConsoleConfig, cores: number): Advice | undefined {
  const { maxBatch, concurrentGroups, groupSize } = rollout;
  const slots = concurrentGroups * groupSize;
  const why = 'turns wait for their batch';
  if (maxBatch < slots) return { key: 'rollout.maxBatch', from: maxBatch, to: Math.min(slots, maxBatch * 2), why };
  return engine.inferenceThreads < cores - engine.learnerThreads ? adviseInference({ engine }, cores, why) : undefined;
}

function adviseInference({ engine }: Pick<ConsoleConfig, 'engine'>, cores: number, why: string): Advice | undefined {
  const { inferenceThreads, learnerThreads } = engine;
  return inferenceThreads < Math.max(2, cores - learnerThreads)
    ? { key: 'engine.inferenceThreads', from: inferenceThreads, to: inferenceThreads + 1, why }
    : undefined;
}

/**
 * Advice: the setting that would help most, of the largest part of the time that has one left to change.
 * @returns `undefined` when no part with a setting takes a tenth of the time
 */
export function advise(time: TimeShares | undefined, config: ConsoleConfig, cores: number): Advice | undefined {
  if (!time) return undefined;
  if (config.policy?.kind === 'openai') return adviseInFlight(time, config);
  const parts = (Object.entries(time) as [TimePart, number][]).sort((a, b) => b[1] - a[1]);
  for (const [part, share] of parts) {
    if (share < 0.1) return undefined;
    const advice = KNOBS[part](config, cores);
    if (advice) return advice;
  }
  return undefined;
}

/**
 * Advice for a policy behind a server, which batches by itself: only the number of requests at once can be changed
 * here.
 */
function adviseInFlight(time: TimeShares, { rollout, policy }: ConsoleConfig): Advice | undefined {
  const { concurrency } = policy!.openai;
  const slots = rollout.concurrentGroups * rollout.groupSize;
  if (time.batchWait + time.prefill + time.decode < 0.5) return undefined;
  const why = 'the server may take more at once';
  return concurrency < slots
    ? { key: 'policy.openai.concurrency', from: concurrency, to: Math.min(slots, 2 * concurrency), why }
    : { key: '--concurrency', from: concurrency, to: 2 * concurrency, why };
}

function values(rows: readonly MetricsRow[], name: PlainName): number[] {
  return rows.flatMap((row) => row[name] ?? []);
}

function sum(rows: readonly MetricsRow[], name: PlainName): number {
  return values(rows, name).reduce((total, value) => total + value, 0);
}
