/** Learner of a recorded run, alone: it is handed the groups of the journal again, and makes its updates again. */
import type { RunConfig } from '../src/config/run-config.ts';
import { LongplayError, UserError } from '../src/core/errors.ts';
import type { TeacherSpec } from '../src/learning/learner/teacher.ts';
import type { HorizonState } from '../src/learning/schedule/horizon-schedule.ts';
import { fetchModel } from '../src/policy/pretrained/hub.ts';
import { setUpPolicy } from '../src/policy/setup.ts';
import { createSystem } from '../src/runtime/create-system.ts';
import type { LoadedCheckpoint } from '../src/storage/checkpoint.ts';
import { digestsOf, readJournal } from '../src/storage/journal.ts';
import { reviveTrajectory } from '../src/storage/trace.ts';
import type { InferenceCommand } from './inference/protocol.ts';
import { learnerInit } from './learner/init.ts';
import type { GroupFinished, Weights } from './learner/protocol.ts';
import { spawnLearner } from './learner/spawn.ts';
import { capacities } from './mailbox-capacities.ts';
import type { Policy, PreparedRun, RunOptions } from './options.ts';
import { schedulerInit } from './scheduler/init.ts';
import type { SchedulerCommand, SchedulerState } from './scheduler/protocol.ts';
import { replayJournal } from './scheduler/replay-journal.ts';

/** Recorded run to replay. */
export interface ReplayOptions {
  readonly config: RunConfig;
  /** Folder of the run. */
  readonly dir: string;
  readonly journal: string;
  /** Checkpoint to begin with. */
  readonly checkpoint: LoadedCheckpoint;
  readonly envModule: URL;
  readonly worlds: PreparedRun['worlds'];
  /** Reading of the worlds by the policy. */
  readonly reading: Parameters<typeof setUpPolicy>[1];
  /** Prepares the teacher of a run that distils. */
  readonly prepareTeacher: (policy: Policy) => Promise<TeacherSpec | undefined>;
}

/** Update of a replay: the digest that was recorded, and that of the weights made again. */
export interface ReplayedUpdate {
  readonly version: number;
  readonly recorded: string;
  readonly made: string | undefined;
}

/** Milliseconds that one group, and the update it may bring about, can take. */
const GROUP_MS = 600_000;

/**
 * Makes the updates after a checkpoint again.
 * @throws {UserError} BAD_CHECKPOINT where the journal is damaged or of another configuration
 */
export async function replayLearner(options: ReplayOptions): Promise<readonly ReplayedUpdate[]> {
  const { config, dir, journal, checkpoint, envModule, worlds, reading } = options;
  await fetchModel(config.policy.path);
  const policy = setUpPolicy<SchedulerState, HorizonState>(config, reading, dir, checkpoint);
  if (!policy?.saved?.rollout)
    throw new UserError('BAD_CHECKPOINT', `${checkpoint.path}: it is not of a run that learns`);
  const { params, rollout } = policy.saved;
  const { entries, position } = readJournal(journal, rollout.journal ?? 0);
  const as: RunOptions = { config, dir, mode: 'async', envModule, learn: true, journal };
  const state = replayJournal(schedulerInit(as, worlds, policy.saved), params.version, rollout, entries, position);
  const recorded = [...digestsOf(entries)].filter(([version]) => version > params.version).sort(([a], [b]) => a - b);
  const made = new Map<number, string | undefined>();
  const system = createSystem({ mode: 'async', seed: config.seed });
  try {
    // Stand-ins for the actors that a learner reports its updates to.
    await system.spawn<SchedulerCommand>('scheduler', () => ({ handlers: createListener(made) }));
    await system.spawn<InferenceCommand>('inference', () => ({ handlers: SILENT }));
    const init = learnerInit(as, policy, undefined, await options.prepareTeacher(policy));
    const never = { ...init.checkpoint, everyUpdates: Number.MAX_SAFE_INTEGER };
    const maxUpdates = recorded.at(-1)?.[0] ?? params.version;
    const learner = await spawnLearner(system, { ...init, maxUpdates, checkpoint: never }, capacities(config).learner);
    for (const { group, progress } of state.delivered) {
      const revived = { ...group, trajectories: group.trajectories.map(reviveTrajectory) };
      const finished: GroupFinished = { type: 'group', group: revived, progress, barrier: 0 };
      await learner.tell(finished);
      // One at a time: a journal may hold more than a mailbox.
      await system.ask(learner, (replyTo: Weights['replyTo']): Weights => ({ type: 'weights', replyTo }), {
        deadlineMs: GROUP_MS,
      });
    }
  } finally {
    await system.stop();
  }
  return recorded.map(([version, digest]) => ({ version, recorded: digest, made: made.get(version) }));
}

const quiet = () => {};
const SILENT = { act: quiet, release: quiet, forget: quiet, loadWeights: quiet, useAdapter: quiet, report: quiet };

/** Handlers of a scheduler that only listens. */
function createListener(made: Map<number, string | undefined>) {
  return {
    ...{ train: quiet, halt: quiet, evaluate: quiet, status: quiet, dropped: quiet, saved: quiet, played: quiet },
    ...{ progressed: quiet, captured: quiet },
    snapshot() {
      throw new LongplayError('STALLED', 'a replay writes no checkpoint');
    },
    updated({ report }: Extract<SchedulerCommand, { readonly type: 'updated' }>) {
      made.set(report.version, report.digest);
    },
  };
}
