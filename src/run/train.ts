/** Training, from a configuration to the figures of its evaluations. */

import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Subject } from 'rxjs';
import type { TrainEnded } from '../../actors/scheduler/protocol.ts';
import { type ClusterOptions, type Run, spawnRun } from '../../actors/tree.ts';
import type { ChaosReport } from '../chaos/chaos-ledger.ts';
import type { ChaosSpec } from '../chaos/spec.ts';
import { LEASE_MS } from '../cluster/broker.ts';
import { ClusterMonitor } from '../cluster/cluster-monitor.ts';
import type { Credentials } from '../cluster/credentials.ts';
import { chooseEngine } from '../compute/engine/open.ts';
import { checkRunConfig } from '../config/load.ts';
import { resolveTeacherPath } from '../config/paths.ts';
import type { AgentConfigInput, RunConfig, RunConfigInput } from '../config/run-config.ts';
import { mapEnvs, requireOneWorld } from '../config/worlds.ts';
import { isUserMistake, LongplayError, messageOf, UserError } from '../core/errors.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import { listEvaluatedTasks } from '../learning/evaluation/tasks.ts';
import { loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import type { RunStatus } from '../metrics/run-status.ts';
import { openSinks } from '../metrics/sinks/open.ts';
import { closeSinks, type MetricSink } from '../metrics/sinks/sink.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import type { LoadedCheckpoint } from '../storage/checkpoint.ts';
import { locateEnv } from '../world/env-id.ts';
import { evaluationPlans } from './evaluate-run.ts';
import { EvaluationProgress, throttle } from './evaluation-progress.ts';
import { runLabel, runUrl } from './find-world.ts';
import { summariseIn } from './read-worlds.ts';
import { createRunFolder, discard, freeRunName, readRunConfig } from './run-folder.ts';
import { acquireRunLock, releaseRunLock } from './run-lock.ts';
import { openOrder, type RunOrder, settleOrder } from './run-order.ts';
import { endStreams, type RunStreams, runStreams, watchEpisodes, watchObservations } from './run-streams.ts';
import { prepareRun } from './start-run.ts';
import { evaluateStart, evaluateTrained, PROGRESS_MS, recordEvaluation } from './train-evaluations.ts';
import { startWarm } from './warm-start.ts';

/** Options of training: the run to train, and the place for it. */
export interface TrainOptions {
  /**
   * Configuration, as a YAML file would hold it; keys left out have their defaults. `env.id` is the id of a world or the
   * path of a module. Without it `resume` takes the run's own.
   */
  readonly config?: RunConfigInput | AgentConfigInput | RunConfig | undefined;
  /** Folder of the run: new, or with `resume` that of the run. Default `runs/<world>`, numbered where it exists. */
  readonly dir?: string | undefined;
  /** Resumes from the newest good checkpoint in `dir`. Default false. */
  readonly resume?: boolean | undefined;
  /** Mode. `serial`: one event loop, bit for bit repeatable. Default `async`. */
  readonly mode?: 'async' | 'serial' | undefined;
  /** Faults to inject. */
  readonly chaos?: ChaosSpec | undefined;
  /**
   * Keeps a journal in the run's folder: a kill then costs the episodes in flight and no update. A run that has one keeps
   * it when it is resumed. Default false.
   */
  readonly journal?: boolean | undefined;
  /** Cluster whose workers play (`longplay worker`). The run keeps a journal. */
  readonly cluster?: TrainCluster | undefined;
  /** File to record the order of messages in. */
  readonly recordOrder?: string | undefined;
  /** File of a recorded run to repeat; `mode` must be `serial`. */
  readonly replayOrder?: string | undefined;
  /** Called with the progress of the run, a few times a second. */
  readonly onProgress?: ((status: RunStatus) => void) | undefined;
  /** Called with notices for a person, one line each. */
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Called with every row of metrics in the middle of the run's work; other users take `metrics$`. */
  readonly onMetrics?: ((row: MetricsRow) => void) | undefined;
  /** Sinks that metrics go to, beside those of the configuration; closed with the run. */
  readonly sinks?: readonly MetricSink[] | undefined;
  /** Called with the actors' handle of the run once it is up. */
  readonly onStarted?: ((run: Run) => void) | undefined;
  /** Ends the run early, as `stop` does. */
  readonly interrupt?: AbortSignal | undefined;
}

/** Cluster of a training run. */
export interface TrainCluster {
  /** NATS server, `nats://host:port`. */
  readonly url: string;
  /** Key and certificate; without them the server is one of this machine's own. */
  readonly credentials?: Credentials | undefined;
  /** Groups played here at once, besides those of workers. Default 0. */
  readonly localGroups?: number | undefined;
  /** Share of workers' results that are played again here, in [0, 1]: else they are trusted with rewards. Default 0. */
  readonly verify?: number | undefined;
}

/** Outcome of a training run: why it ended, and its evaluations; also in the folder's `results.json`. */
export interface TrainOutcome {
  /** The engine that computed it, e.g. `onnxruntime-node/cpu`. */
  readonly engine: string;
  readonly ended: TrainEnded;
  /**
   * Update that the process began with, 0 for a new run. `tokens`, `calls`, `decidedTurns` and `time` of `ended.status`, and
   * `chaos`, count from there; everything else means the whole run.
   */
  readonly startedFrom: number;
  readonly evaluations: readonly EvaluationSummary[];
  /** Faults injected, detected and lost, under chaos. */
  readonly chaos?: ChaosReport | undefined;
  /** Parts of the result that the disk refused, each with the reason; empty where all of it is on the disk. */
  readonly unwritten: readonly string[];
}

/** Handle of a run that trains: its streams, its end, and the way to end it early. */
export interface TrainingRun extends RunStreams {
  /** Folder of the run. */
  readonly dir: string;
  /** Configuration with all defaults. */
  readonly config: RunConfig;
  /** Stops it early: the update under way is finished and a checkpoint written; evaluations are left out. */
  stop(): Promise<TrainOutcome>;
  /** Settles with the run, after its streams. Rejects with what ended it: `UserError` where the caller can mend it. */
  readonly done: Promise<TrainOutcome>;
}

/**
 * Trains: starts a run, and when training ends writes a last checkpoint, evaluates, and leaves `results.json` in the folder.
 * The handle is there at once, so that its streams miss nothing; the run starts in the next turn of the event loop.
 * @throws {UserError} BAD_CONFIG, UNKNOWN_ENV, UNKNOWN_RUN for options that cannot be; what is found later rejects `done`
 */
export function train(options: TrainOptions): TrainingRun {
  const { resume = false, interrupt } = options;
  if (resume && options.dir === undefined) throw new UserError('BAD_ARGUMENT', 'train: resume needs the run: dir');
  if (!resume && options.config === undefined) throw new UserError('BAD_ARGUMENT', 'train: config is missing');
  const checked = options.config === undefined ? readRunConfig(options.dir!) : checkRunConfig(options.config, 'config');
  const learner = resolveTeacherPath(checked.learner, process.cwd());
  const located = { ...mapEnvs(checked, (env) => locateEnv(env, process.cwd())), learner };
  runUrl(located);
  const dir = options.dir ?? join('runs', freeRunName('runs', runLabel(located)));
  const config = resume ? located : createRunFolder(dir, located);
  const streams = runStreams();
  const ending = new AbortController();
  const end = () => ending.abort();
  if (interrupt?.aborted) end();
  interrupt?.addEventListener('abort', end, { once: true });
  const request: TrainRequest = {
    ...options,
    config,
    dir,
    resume,
    mode: options.mode ?? 'async',
    streams,
    interrupt: ending.signal,
    onNotice: (message) => options.onNotice?.(message),
  };
  const done = (async () => {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      return await trainLocked(request);
    } finally {
      interrupt?.removeEventListener('abort', end);
      await endStreams(streams);
    }
  })();
  return {
    ...streams,
    dir,
    config,
    done,
    stop() {
      end();
      return done;
    },
  };
}

interface TrainRequest extends Omit<TrainOptions, 'config'> {
  readonly config: RunConfig;
  readonly dir: string;
  readonly resume: boolean;
  readonly mode: 'async' | 'serial';
  readonly streams: RunStreams;
  readonly interrupt: AbortSignal;
  readonly onNotice: (message: string) => void;
}

/** Trains under the run's lock. A fresh run that a user's mistake kept from starting leaves nothing behind. */
async function trainLocked(request: TrainRequest): Promise<TrainOutcome> {
  const { dir, resume } = request;
  const left = acquireRunLock(dir);
  if (left !== undefined) request.onNotice(left);
  try {
    return await trainUnlocked(request);
  } catch (thrown) {
    const began = existsSync(join(dir, 'metrics.jsonl')) || existsSync(join(dir, 'checkpoints'));
    if (isUserMistake(thrown) && !resume && !began) discard(dir);
    throw thrown;
  } finally {
    releaseRunLock(dir);
  }
}

/** Run whose actors are up, and what belongs to it. */
interface Started {
  readonly run: Run;
  readonly engine: string;
  readonly order: RunOrder;
  /** Update of the checkpoint that it goes on from; 0 for a new run. */
  readonly startedFrom: number;
}

async function start(
  request: TrainRequest,
  progress: EvaluationProgress,
  cluster: ClusterOptions | undefined,
): Promise<Started> {
  const { config, dir, onNotice } = request;
  const sinks = [...(await openSinks(config, dir, onNotice)), ...(request.sinks ?? [])];
  try {
    return await startWith(sinks, request, progress, cluster);
  } catch (thrown) {
    await closeSinks(sinks, 'failed', onNotice);
    throw thrown;
  }
}

async function startWith(
  sinks: readonly MetricSink[],
  request: TrainRequest,
  progress: EvaluationProgress,
  cluster: ClusterOptions | undefined,
): Promise<Started> {
  const { config, dir, mode, onNotice, streams } = request;
  const resume = goesOn(request);
  const checkpoint = resume ? loadNewestOf(dir) : undefined;
  const init = resume ? undefined : ((await startWarm(request)) ?? config.policy.init);
  const initial = init === undefined ? undefined : initialWeights(init, onNotice);
  for (const warning of checkpoint?.warnings ?? []) onNotice(warning);
  if (checkpoint) onNotice(`resuming from update ${checkpoint.update}`);
  const order = openOrder(request, config);
  const metrics$ = new Subject<MetricsRow>();
  metrics$.subscribe((row) => {
    request.onMetrics?.(row);
    streams.metrics$.push(row);
  });
  const prepared = await prepareRun({
    config,
    dir,
    mode,
    envModule: runUrl(config),
    learn: true,
    journal: journalOf(request),
    cluster,
    metrics$,
    onEpisodes: (trajectories, purpose) => {
      progress.recordFinished(trajectories, purpose);
      watchEpisodes(streams, trajectories, purpose);
    },
    record: order.record,
    replay: order.replay,
    onNotice,
    evaluation: {
      plans: (worlds) => evaluationPlans(worlds),
      onRecord: (version, record, worlds) => recordEvaluation(request, version, summariseIn(worlds, record)),
    },
    checkpoint,
    initial,
    sinks,
    onProgress: request.onProgress,
    chaos: request.chaos,
  });
  // A set that is not there is reported before training, not after it.
  for (const { env, config: own } of prepared.worlds) listEvaluatedTasks(env, own.evaluation);
  const { engine, notice } = await chooseEngine(config.engine);
  onNotice(notice);
  return { run: await spawnRun(prepared), engine, order, startedFrom: checkpoint?.update ?? 0 };
}

/** True for a run that goes on from a checkpoint. One that was broken off in its warm start has none, and begins anew. */
function goesOn({ config, dir, resume }: TrainRequest): boolean {
  return resume && (config.warmStart.episodes === 0 || existsSync(join(dir, 'checkpoints')));
}

/** Folder of the run's journal; undefined where it keeps none. */
function journalOf({ dir, resume, journal, cluster }: TrainRequest): string | undefined {
  const folder = join(dir, 'journal');
  return journal || cluster || (resume && existsSync(folder)) ? folder : undefined;
}

async function trainUnlocked(request: TrainRequest): Promise<TrainOutcome> {
  const { dir, onNotice, streams } = request;
  const resume = goesOn(request);
  const progress = new EvaluationProgress(throttle(PROGRESS_MS, onNotice));
  if (request.cluster) requireOneWorld(request.config, '--cluster'); // before anybody is called
  const cluster = request.cluster && (await joinCluster(request.cluster, dir));
  const { run, engine, order, startedFrom } = await start(request, progress, cluster).catch(async (thrown) => {
    await cluster?.broker.close();
    throw thrown;
  });
  try {
    watchObservations(streams, run);
    request.onStarted?.(run);
    const { interrupt } = request;
    interrupt.addEventListener('abort', () => run.halt(), { once: true });
    if (!resume && journalOf(request) !== undefined) await saveFirst(run);
    if (!resume && request.config.warmStart.episodes > 0) await evaluateStart(run, request, progress);
    const training = run.train();
    if (interrupt.aborted) run.halt(); // the signal came while the run was starting
    const ended = await training;
    const isSaved = await saveLast(run, order, request);
    const trainedSoFar = `trained ${ended.status.version} updates, ${ended.status.envSteps} env steps`;
    onNotice(ended.why === 'halted' ? trainedSoFar : `${trainedSoFar}; evaluating`);
    const evaluations = ended.why === 'halted' ? [] : await evaluateTrained(run, request, progress);
    const unwritten: string[] = [];
    // Somebody may have made room meanwhile.
    if (!isSaved && !(await saveLast(run, order, request))) {
      unwritten.push(`the checkpoint of update ${ended.status.version} is not on the disk`);
    }
    const outcome: TrainOutcome = { engine, ended, startedFrom, evaluations, chaos: run.chaos(), unwritten };
    try {
      writeFileAtomic(join(dir, 'results.json'), `${JSON.stringify({ format: 1, ...outcome }, null, 2)}\n`);
    } catch (thrown) {
      unwritten.push(`results.json: ${messageOf(thrown)}`); // the outcome goes to the caller all the same
    }
    return outcome;
  } finally {
    await run.stop();
    await cluster?.broker.close();
  }
}

/** Writes the last checkpoint. @returns false where the disk refused, after a notice */
async function saveLast(run: Run, order: RunOrder, { dir, onNotice }: TrainRequest): Promise<boolean> {
  const { ok, update, message } = await run.save();
  if (ok) settleOrder(order, join(dir, 'checkpoints', String(update)), onNotice);
  else onNotice(`the last checkpoint could not be written: ${message}`);
  return ok;
}

/** Joins a cluster as its learner. What it needs is loaded here: a run on one machine does without. */
async function joinCluster(
  { url, credentials, localGroups = 0, verify = 0 }: TrainCluster,
  dir: string,
): Promise<ClusterOptions> {
  const { connectNats } = await import('../cluster/nats/connect.ts');
  const run = basename(resolve(dir));
  const broker = await connectNats({ url, run, credentials, leaseMs: LEASE_MS });
  return { broker, run, localGroups, verify, monitor: new ClusterMonitor() };
}

/** Saves update 0, which the journal of a new run begins with. @throws {LongplayError} NO_PERMISSION */
async function saveFirst(run: Run): Promise<void> {
  const { ok, message } = await run.save();
  if (!ok)
    throw new LongplayError('NO_PERMISSION', `a journal begins with a checkpoint, which cannot be written: ${message}`);
}

/** Initial weights: the newest good ones of another run. */
function initialWeights(run: string, onNotice: (message: string) => void): LoadedCheckpoint {
  const checkpoint = loadNewestOf(run);
  for (const warning of checkpoint.warnings) onNotice(warning);
  onNotice(`starting from the weights of ${run}, update ${checkpoint.update}`);
  return checkpoint;
}
