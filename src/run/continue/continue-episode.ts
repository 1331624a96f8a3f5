/** Continuations of a saved episode: a policy plays on from its states, a group of episodes from each. */
import { join } from 'node:path';
import type { EvaluationPlan, EvaluationRecord } from '../../../actors/scheduler/protocol.ts';
import type { Run } from '../../../actors/tree.ts';
import type { RunConfig } from '../../config/run-config.ts';
import type { Oracle } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { seedFrom } from '../../core/rng.ts';
import type { EpisodeBeginning } from '../../core/ticket.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { loadNewestOf } from '../../learning/learner/run-checkpoint.ts';
import { openChatModel } from '../../policy/remote/chat-model.ts';
import { explainWrite } from '../../storage/atomic-file.ts';
import { isEvaluation, type TraceLine } from '../../storage/trace.ts';
import { TraceFiles } from '../../storage/trace-files.ts';
import { openWorld } from '../../world/open-world.ts';
import { requireFinished } from '../evaluate-run.ts';
import { findWorld, worldUrl } from '../find-world.ts';
import { samplingOf } from '../rollout-plan.ts';
import { startRun } from '../start-run.ts';
import { relocateEnv } from '../traced-env.ts';
import { replayBeginnings } from './beginnings.ts';
import { estimateValue, type StateValue } from './state-values.ts';

export interface ContinueOptions {
  /** Episode to go on from. */
  readonly episode: TraceLine;
  /** Numbers of recorded turns to keep, ascending, each in [0, turns.length). */
  readonly turns: readonly number[];
  /** World of the episode, and the policy that plays on. */
  readonly config: RunConfig;
  /** Folder of the run whose newest checkpoint plays on; absent for other policies. */
  readonly policyRun?: string | undefined;
  /** Continuations from each state, ≥ 1. */
  readonly group: number;
  /** Temperature; absent: the configuration's, or 1. */
  readonly temperature?: number | undefined;
  /** Seed of sampling, uint32. */
  readonly seed: number;
  readonly onNotice: (line: string) => void;
  readonly onProgress: (done: number, of: number) => void;
  /** Resolves, with the reason, when it is to end early. */
  readonly interrupted: Promise<string>;
}

/** Outcome of continuations. */
export interface Continued {
  /** Values of the states, in order; of an evaluation that was stopped those that are finished. */
  readonly values: readonly StateValue[];
  /** Episodes that were played, by recorded turns kept. */
  readonly continuations: ReadonlyMap<number, readonly Trajectory[]>;
  readonly temperature: number;
}

/**
 * Plays continuations. The world is first held to the recording (`replayBeginnings`); each env host takes the recorded actions
 * again, and an episode whose observation then differs fails.
 * @throws {UserError} for a world, policy or checkpoint that cannot be used
 * @throws {LongplayError} ENV_BROKEN where the world answers otherwise than recorded, or no continuation finishes
 */
export async function continueEpisode(options: ContinueOptions): Promise<Continued> {
  const { episode, turns, config, policyRun, onNotice } = options;
  const beginnings = await checkBeginnings(config, episode, turns);
  const plans = turns.map((turn) => planOf(options, turn, beginnings.get(turn)!));
  const played = new Map<string, readonly Trajectory[]>();
  const checkpoint = policyRun === undefined ? undefined : loadNewestOf(policyRun);
  for (const warning of checkpoint?.warnings ?? []) onNotice(warning);
  const run = await startRun({
    config: { ...config, trace: { ...config.trace, everyGroups: 0 } },
    dir: policyRun ?? '.', // a base model may lie beside it; nothing is written
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
    onNotice,
    checkpoint,
    onEpisodes: (trajectories, purpose) => {
      played.set(purpose, trajectories);
      options.onProgress(played.size, plans.length);
    },
  });
  let finished: ReadonlySet<EvaluationPlan>;
  try {
    finished = await playPlans(run, plans, options);
    await run.flush();
  } finally {
    await run.stop();
  }
  const done = plans.flatMap((plan, i) => (finished.has(plan) ? [{ turn: turns[i]!, plan }] : []));
  const continuations = new Map(done.map(({ turn, plan }) => [turn, played.get(plan.name) ?? []]));
  const values = [...continuations].map(([turn, own]) => estimateValue(episode.turns, turn, own, options.group));
  return { values, continuations, temperature: plans[0]!.temperature };
}

/** Opens the world here, and brings the episode back turn by turn. */
async function checkBeginnings(
  { env: { id, options }, policy }: RunConfig,
  episode: TraceLine,
  turns: readonly number[],
): Promise<ReadonlyMap<number, EpisodeBeginning>> {
  const { world, env: facts } = await findWorld(id, options);
  if (facts.id !== episode.task.env) {
    throw new UserError('BAD_ARGUMENT', `replay: the episode is of ${episode.task.env}, and the world is ${facts.id}`);
  }
  if (policy.kind === 'oracle' && world.createOracle) {
    checkOracle(world.createOracle(options), episode, turns.at(-1)!);
  }
  const opened = await openWorld(world, id, options, 'replay', { openChatModel });
  try {
    return await replayBeginnings(opened.env, episode, turns);
  } finally {
    await opened.dispose();
  }
}

/**
 * Holds the recorded actions to those of the oracle. It plans from the beginning and is shown observations alone, so it cannot go
 * on from actions that are not its own.
 * @throws {UserError} BAD_ARGUMENT naming the first other action
 */
function checkOracle(oracle: Oracle, { episode, task, turns }: TraceLine, last: number): void {
  const solve = oracle(task);
  for (const [t, { observation, action }] of turns.slice(0, last).entries()) {
    const own = solve(t === 0 ? { kind: 'first', observation } : { kind: 'mid', observation, reward: 0 });
    if (own === action) continue;
    const why = `its own action of turn ${t + 1} is another one than that of episode ${episode}`;
    throw new UserError('BAD_ARGUMENT', `replay: the oracle goes on from its own actions alone, and ${why}`);
  }
}

function planOf(
  { episode, config, group, temperature, seed }: ContinueOptions,
  turn: number,
  beginning: EpisodeBeginning,
): EvaluationPlan {
  return {
    name: `turn ${turn}`,
    tasks: [episode.task],
    episodes: group,
    horizon: episode.horizon,
    ...samplingOf(config, temperature),
    seed: seedFrom(seed, 'continuations', episode.episode, turn),
    beginning,
  };
}

/**
 * Plays all plans side by side. A group that fails for good is left out, with a notice.
 * @returns those that are finished
 * @throws {LongplayError} where all have failed
 */
async function playPlans(
  run: Run,
  plans: readonly EvaluationPlan[],
  { interrupted, onNotice }: ContinueOptions,
): Promise<ReadonlySet<EvaluationPlan>> {
  const finished = new Set<EvaluationPlan>();
  const failed: EvaluationRecord[] = [];
  const playing = Promise.all(
    plans.map(async (plan) => {
      const record = await run.evaluate(plan);
      if (record.failed === 0) finished.add(plan);
      else failed.push(record);
    }),
  );
  const signal = await Promise.race([playing.then(() => undefined), interrupted]);
  if (signal !== undefined) {
    playing.catch(() => {}); // given up: it fails when the run stops
    return new Set(finished);
  }
  if (finished.size === 0) requireFinished(failed[0]!);
  for (const { plan, failure } of failed) onNotice(`${plan.name}: ${failure!.cause}: ${failure!.message}`);
  return finished;
}

/**
 * Writes continuations as a trace, each with the mark of its parent. Those of an evaluation's episode stay of that evaluation:
 * its task may be held out.
 * @param path of the parent's trace
 * @param out new folder
 * @throws {UserError} NO_PERMISSION with the system's words
 */
export function writeContinuations(
  { continuations }: Continued,
  { episode, config }: ContinueOptions,
  path: string,
  out: string,
): number {
  const purpose = isEvaluation(episode.purpose) ? episode.purpose : 'rollout';
  let written = 0;
  const files = new TraceFiles({ dir: join(out, 'traces'), config: relocateEnv(config, path, out) });
  try {
    for (const [turn, own] of continuations) {
      const parent = { episode: episode.episode, turn };
      const marked = own.map((one) => ({ ...one, parent }));
      explainWrite(out, () => files.episodes(marked, purpose, episode.label));
      written += own.length;
    }
  } finally {
    files.close();
  }
  return written;
}
