/** Run checkpoints: the newest of a run that is whole and makes sense. */
import { join } from 'node:path';
import { type Disk, nodeDisk } from '../../storage/atomic-file.ts';
import { type LoadedCheckpoint, loadNewest } from '../../storage/checkpoint.ts';
import { checkRunContent } from './run-state-schema.ts';

/**
 * Loads the newest checkpoint of a run that is whole and holds the state of a run.
 * @param run the run's folder
 * @throws {UserError} BAD_CHECKPOINT when there is none, with the reason for each that was tried
 */
export function loadNewestOf(run: string, disk: Disk = nodeDisk): LoadedCheckpoint {
  return loadNewest(join(run, 'checkpoints'), disk, checkRunContent);
}
