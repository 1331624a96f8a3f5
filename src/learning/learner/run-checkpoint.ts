/** Run checkpoints: those of a run that are whole, make sense, and are its own. */
import { join } from 'node:path';
import { LongplayError } from '../../core/errors.ts';
import { type Disk, nodeDisk } from '../../storage/atomic-file.ts';
import { type CheckpointContent, type LoadedCheckpoint, loadCheckpoint, loadNewest } from '../../storage/checkpoint.ts';
import { readIdentity } from '../../storage/run-identity.ts';
import { checkRunContent } from './run-state-schema.ts';

/**
 * Loads the newest checkpoint of a run that is whole and holds the state of this run.
 * @param run the run's folder
 * @throws {UserError} BAD_CHECKPOINT when there is none, with the reason for each that was tried
 */
export function loadNewestOf(run: string, disk: Disk = nodeDisk): LoadedCheckpoint {
  return loadNewest(join(run, 'checkpoints'), disk, createCheck(run));
}

/**
 * Loads the checkpoint of one update of a run.
 * @throws {UserError} BAD_CHECKPOINT when it is not there, is damaged, or is of another run
 */
export function loadCheckpointOf(run: string, update: number): LoadedCheckpoint {
  return loadCheckpoint(join(run, 'checkpoints'), update, nodeDisk, createCheck(run));
}

/** Check of a checkpoint's content: the state of a run, and of this one where its folder names it. */
function createCheck(run: string): (content: CheckpointContent, update: number) => void {
  const own = readIdentity(run);
  return (content, update) => {
    checkRunContent(content, update);
    const { run: found } = content.state as { readonly run?: string };
    if (own === undefined || found === own) return;
    const other = found === undefined ? 'no run' : `run ${found}`;
    throw new LongplayError('BAD_CHECKPOINT', `it belongs to ${other}, the folder is of run ${own}`);
  };
}
