/**
 * A sample of a language model's play, as a run would have it play: a few episodes answered freely, and the same with answers masked
 * to the listed actions. It shows what a run with this model has to expect before hours are spent on it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkRunConfig } from '../config/load.ts';
import { messageOf } from '../core/errors.ts';
import { firstLineOf } from '../core/first-line.ts';
import type { Trajectory } from '../core/trajectory.ts';
import type { Quantize } from '../policy/pretrained/quantize.ts';
import type { Check } from './check-model.ts';
import { evaluationPlan } from './evaluate-run.ts';
import { worldUrl } from './find-world.ts';
import { startRun } from './start-run.ts';

/** Episodes of each way to answer, and the turns that each may take. */
const EPISODES = 4;
const TURNS = 4;

/** Facts of some episodes. */
interface Sample {
  readonly episodes: number;
  readonly solved: number;
  readonly turns: number;
  /** Answers in which an action could be read, and those of them that were listed. */
  readonly read: number;
  readonly listed: number;
  /** Tokens of all answers. */
  readonly tokens: number;
}

/**
 * Plays a few episodes of a world with a model.
 * @returns a line for each way to answer, with what to change where the model does not answer in form
 */
export async function playSample(folder: string, quantize: Quantize, world: string): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const masked of [false, true]) {
    const what = masked ? `${world}, listed actions only` : `${world}, free answers`;
    const start = performance.now();
    try {
      const sample = await play(folder, quantize, world, masked);
      const seconds = (performance.now() - start) / 1000;
      checks.push({ what, ok: true, found: `${describeSample(sample, masked)} (${seconds.toFixed(1)} s)` });
    } catch (thrown) {
      checks.push({ what, ok: false, found: firstLineOf(messageOf(thrown)) });
      return checks;
    }
  }
  return checks;
}

async function play(folder: string, quantize: Quantize, world: string, masked: boolean): Promise<Sample> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-sample-'));
  const config = checkRunConfig(
    {
      env: { id: world },
      horizon: { type: 'fixed', rounds: TURNS },
      policy: {
        kind: 'checkpoint',
        path: folder,
        quantize,
        masked,
        maxTokens: 32,
        chat: { format: 'action', instructions: 'short', contextTokens: 2048 },
      },
      rollout: { groupSize: 2, concurrentGroups: EPISODES, maxBatch: EPISODES, envThreads: 1 },
      evaluation: { split: 'train', horizons: [TURNS], episodesPerTask: 1, greedy: false, randomBaseline: false },
      stop: { updates: 1 },
      trace: { everyGroups: 0 },
    },
    'sample',
  );
  const played: Trajectory[] = [];
  try {
    const run = await startRun({
      config,
      dir,
      mode: 'async',
      envModule: worldUrl(world),
      learn: false,
      onEpisodes: (trajectories) => played.push(...trajectories),
    });
    try {
      const plan = evaluationPlan(run.env, config, TURNS, 'sampled');
      const every = Math.max(1, Math.floor(plan.tasks.length / EPISODES));
      const tasks = plan.tasks.filter((_, i) => i % every === 0).slice(0, EPISODES);
      const { failure } = await run.evaluate({ ...plan, tasks });
      await run.flush();
      if (played.length === 0) throw new Error(`no episode was finished: ${failure?.message ?? 'unknown'}`);
    } finally {
      await run.stop();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return summariseSample(played);
}

/** Sums up episodes. */
export function summariseSample(played: readonly Trajectory[]): Sample {
  const turns = played.flatMap(({ turns, actionTable }) =>
    turns.map(({ action, actions, decision, response }) => ({
      read: response?.formatError === undefined,
      listed: actions.some((index) => actionTable[index] === action),
      tokens: decision?.kind === 'tokens' ? decision.tokens.length : 0,
    })),
  );
  return {
    episodes: played.length,
    solved: played.filter(({ success }) => success).length,
    turns: turns.length,
    read: turns.filter(({ read }) => read).length,
    listed: turns.filter(({ read, listed }) => read && listed).length,
    tokens: turns.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** Describes a sample, and what to change where a model does not answer in form. */
export function describeSample({ episodes, solved, turns, read, listed, tokens }: Sample, masked: boolean): string {
  const share = (n: number) => `${Math.round((100 * n) / Math.max(1, turns))} %`;
  const perTurn = `${(tokens / Math.max(1, turns)).toFixed(1)} tokens a turn; ${solved} of ${episodes} solved in ${TURNS} turns`;
  if (masked) return perTurn;
  const facts = `${share(read)} of answers name an action, ${share(listed)} a listed one; ${perTurn}`;
  return listed < turns / 2
    ? `${facts}; keep policy.masked, or imitate first (warmStart.episodes, or longplay sft)`
    : facts;
}
