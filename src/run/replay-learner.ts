/** Replay of a run's learner: its updates made again from its journal, and compared with the recorded weights. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { replayLearner } from '../../actors/tree.ts';
import { LongplayError, UserError } from '../core/errors.ts';
import { loadCheckpointOf } from '../learning/learner/run-checkpoint.ts';
import { listCheckpoints } from '../storage/checkpoint.ts';
import { runUrl } from './find-world.ts';
import { readingOf, readWorlds } from './read-worlds.ts';
import { readRunConfig } from './run-folder.ts';
import { prepareTeacher } from './teacher.ts';

/** Result of a replay. */
export interface ReplayedLearner {
  /** Update of the checkpoint that it began with, the oldest that is kept. */
  readonly from: number;
  /** Updates made again, all with the recorded weights. */
  readonly updates: number;
}

/**
 * Replays a run from its oldest checkpoint on.
 * @throws {UserError} UNKNOWN_RUN for what is no run with a journal; {LongplayError} BAD_TRACE where an update has other weights
 */
export async function replayRun(dir: string): Promise<ReplayedLearner> {
  const config = readRunConfig(dir);
  if (config.learner.ranking) {
    throw new UserError(
      'BAD_CONFIG',
      `${dir}: its rewards are those of a judge (learner.ranking), which may answer otherwise; its updates cannot be made again`,
    );
  }
  const journal = join(dir, 'journal');
  if (!existsSync(journal)) {
    throw new UserError('UNKNOWN_RUN', `${dir} has no journal; runs keep one with --journal or --cluster`);
  }
  const checkpoints = join(dir, 'checkpoints');
  const from = listCheckpoints(checkpoints).at(-1);
  if (from === undefined) throw new UserError('BAD_CHECKPOINT', `${checkpoints}: there is no checkpoint to begin with`);
  const checkpoint = loadCheckpointOf(dir, from);
  const envModule = runUrl(config);
  const read = await readWorlds(config, envModule);
  const [first, ...others] = read.map(({ world: _, ...one }) => ({ ...one, shared: undefined }));
  const reading = readingOf(config, read);
  const worlds = [first!, ...others] as const;
  const updates = await replayLearner({
    config,
    dir,
    journal,
    checkpoint,
    envModule,
    worlds,
    reading,
    prepareTeacher: (policy) => prepareTeacher(config, policy, reading),
  });
  const different = updates.find(({ recorded, made }) => recorded !== made);
  if (different) {
    throw new LongplayError(
      'BAD_TRACE',
      `update ${different.version}: expected the recorded weights ${different.recorded.slice(0, 16)}…, made ${different.made?.slice(0, 16) ?? 'none'}…; on another machine or with other engine threads the last bits differ`,
    );
  }
  return { from, updates: updates.length };
}
