/**
 * Warm start: before reinforcement begins, the policy imitates episodes of the world's own solver. A language model that
 * never finishes an episode has nothing to learn from; a few demonstrations show it the form of an answer and the shortest ways.
 */
import { join } from 'node:path';
import type { RunConfig } from '../config/run-config.ts';
import { LongplayError, UserError } from '../core/errors.ts';
import { largestOf } from '../core/extremes.ts';
import { listEvaluatedTasks, listTrainTasks } from '../learning/evaluation/tasks.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import { findWorld } from './find-world.ts';
import { readDemonstrations } from './offline/demonstrations.ts';
import { superviseRun } from './offline/run.ts';
import { rollout } from './rollout.ts';
import { createRunFolder, discard } from './run-folder.ts';

/** Folder of a run's warm start, within the run's. */
const FOLDER = 'warm-start';

/** Folder of the run that a run's warm start made, whose weights reinforcement starts from. */
export function warmStartFolder(dir: string): string {
  return join(dir, FOLDER, 'imitated');
}

/** Run that begins with a warm start. */
interface WarmStart {
  readonly config: RunConfig;
  /** Folder of the run. */
  readonly dir: string;
  readonly onNotice: (message: string) => void;
  /** Ends it early; nothing of it is kept then. */
  readonly interrupt: AbortSignal;
}

/**
 * Plays demonstrations and imitates them, in `warm-start/` of the run's folder.
 * @returns folder of the run whose weights reinforcement starts from; undefined where the configuration has no warm start
 * @throws {UserError} BAD_CONFIG for a world without a solver, or one that solves none of the tasks
 * @throws {LongplayError} ACTOR_STOPPED where it is interrupted
 */
export async function startWarm({ config, dir, onNotice, interrupt }: WarmStart): Promise<string | undefined> {
  const { warmStart } = config;
  if (warmStart.episodes === 0) return undefined;
  discard(join(dir, FOLDER)); // of a start that was broken off
  const { world, env } = await findWorld(config.env.id, config.env.options);
  if (!world.createOracle) {
    throw new UserError(
      'BAD_CONFIG',
      `warmStart.episodes: ${env.id} has no solver that could be imitated; set it to 0, or imitate recorded episodes first (longplay sft) and set policy.init`,
    );
  }
  listEvaluatedTasks(env, config.evaluation); // a set that is not there is reported before the imitation, not after it
  const played = join(dir, FOLDER, 'demonstrations');
  const { rounds } = config.horizon;
  await rollout({
    config: { env: config.env, policy: { kind: 'oracle' }, rollout: config.rollout, seed: config.seed },
    episodes: warmStart.episodes,
    horizon: typeof rounds === 'number' ? rounds : largestOf(rounds),
    tasks: listTrainTasks(env, config.tasks),
    seed: config.seed,
    dir: played,
  }).done;
  const solved = readDemonstrations(played, onNotice).filter(({ trajectory }) => trajectory?.success);
  if (solved.length === 0) {
    throw new UserError(
      'BAD_CONFIG',
      `warmStart.episodes: the solver of ${env.id} solves none of ${warmStart.episodes} tasks within the horizon; set horizon.rounds higher, or warmStart.episodes to 0`,
    );
  }
  // In the order of their tasks: the order in which they finished is the machine's.
  const demonstrations = solved.toSorted((a, b) => (a.task < b.task ? -1 : 1));
  onNotice(`warm start: imitating ${solved.length} episodes of the solver (of ${warmStart.episodes} played)`);
  const imitated = warmStartFolder(dir);
  const { epochs, batch, learningRate } = warmStart;
  const learner = { ...config.learner, learningRate, warmupSteps: 0 };
  const imitation = createRunFolder(imitated, { ...config, learner });
  let next = 0;
  const onStep = ({ done, total, loss }: { done: number; total: number; loss: number }) => {
    if (interrupt.aborted) {
      throw new LongplayError(
        'ACTOR_STOPPED',
        `stopped during the warm start, which begins anew with: longplay train --resume ${dir}`,
      );
    }
    if (done < total && performance.now() < next) return;
    next = performance.now() + 5000;
    onNotice(`warm start: step ${done} of ${total}, loss ${loss.toFixed(3)}`);
  };
  const prompt = worldPrompt(world, config.env.options, env.description);
  await superviseRun(
    { config: imitation, dir: imitated, view: world.view, prompt, demonstrations, epochs, batch, onStep },
    () => {},
  );
  return imitated;
}
