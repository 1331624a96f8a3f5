/** Start of a run with a journal: what it holds after the checkpoint is folded into the checkpoint's state. */
import { join } from 'node:path';
import { listCheckpoints } from '../../src/storage/checkpoint.ts';
import { digestsOf, Journal, readJournal } from '../../src/storage/journal.ts';
import type { Policy, PreparedRun } from '../options.ts';
import { schedulerInit } from './init.ts';
import type { SchedulerJournal } from './journaling.ts';
import { replayJournal } from './replay-journal.ts';

/** Journal of a run, opened at its end, and the policy whose saved state is that of the journal's end. */
export interface JournaledPolicy {
  readonly policy: Policy;
  readonly journal: SchedulerJournal;
}

/**
 * Opens the journal.
 * @returns undefined for a run without one
 * @throws {UserError} BAD_CHECKPOINT where it is damaged, or belongs to another configuration
 */
export function openJournal({ options, worlds, policy }: PreparedRun): JournaledPolicy | undefined {
  const { journal: dir } = options;
  if (dir === undefined || !policy) return undefined;
  const { saved } = policy;
  const state = saved?.rollout;
  const version = saved?.params.version ?? 0;
  const { entries, position } = readJournal(dir, state?.journal ?? 0);
  if (entries.length > 0) options.onNotice?.(`the journal holds ${entries.length} entries after update ${version}`);
  const journal = {
    journal: new Journal(dir, position),
    digests: digestsOf(entries),
    oldestCheckpoint: () => listCheckpoints(join(options.dir, 'checkpoints')).at(-1),
  };
  if (!saved || !state) return { policy, journal };
  const rollout = replayJournal(schedulerInit(options, worlds, saved), version, state, entries, position);
  return { policy: { ...policy, saved: { ...saved, rollout } }, journal };
}
