/** Command `longplay train`. */
import { basename } from 'node:path';
import type { Command } from 'commander';
import { Subject } from 'rxjs';
import { chaosTable } from '../../chaos/chaos-ledger.ts';
import { type ChaosSpec, parseChaos } from '../../chaos/spec.ts';
import { findCredentials } from '../../cluster/credentials.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { openConsole } from '../../console/console.ts';
import { err, out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { evaluationTable } from '../../learning/evaluation/table.ts';
import type { MetricsRow } from '../../metrics/metric-table.ts';
import type { RunStatus } from '../../metrics/run-status.ts';
import { actorLines } from '../../run/actor-lines.ts';
import { moduleChanges, runUrl } from '../../run/find-world.ts';
import { freeRunName, readRunConfig, runDir } from '../../run/run-folder.ts';
import { type TrainCluster, type TrainOutcome, train } from '../../run/train.ts';
import { readConfigFile } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, MOST, refuseFlags, share, wholeNumber } from '../flags.ts';
import { onInterrupt } from '../interrupt.ts';

interface TrainFlags {
  readonly set: readonly string[];
  readonly resume?: string;
  readonly name?: string;
  readonly runs: string;
  readonly serial?: boolean;
  readonly json?: boolean;
  readonly chaos?: string;
  readonly journal?: boolean;
  readonly cluster?: string;
  readonly localRollouts?: number;
  readonly creds?: string;
  readonly verify?: number;
  readonly recordOrder?: string;
  readonly replayOrder?: string;
  /** Names of earlier versions. */
  readonly recordSchedule?: string;
  readonly replaySchedule?: string;
}

/** Adds the command. */
export function trainCommand(program: Command): void {
  program
    .command('train')
    .description('train a policy; the run lives in runs/<name>/')
    .argument('[config]', 'configuration, YAML')
    .option('--set <key=value>', 'override a key of the configuration; give it once for each', collectFlag, [])
    .option('--resume <run>', 'go on with a run where its newest good checkpoint left off')
    .option('--name <name>', "the run's name; by default the configuration's")
    .option('--runs <folder>', 'where runs live', 'runs')
    .option('--serial', 'one event loop, bit for bit repeatable')
    .option(
      '--chaos <spec>',
      'inject faults: kind=rate,… of kill hang slow oom throw drop duplicate nan disk-full; seed=n',
    )
    .option('--journal', 'keep every result on disk as it comes: a kill costs no update')
    .option('--cluster <url>', 'have workers play: NATS server, nats://127.0.0.1:4222; see longplay worker')
    .option('--local-rollouts <n>', 'with --cluster: groups played here at once besides (0)', wholeNumber(0, MOST.held))
    .option('--verify <share>', "with --cluster: share of workers' groups played again here (0)", share)
    .option('--creds <file>', 'with --cluster: learner.creds of longplay cluster init')
    .option('--record-order <file>', 'keep the order of all messages, to repeat the run bit for bit')
    .option('--replay-order <file>', 'repeat a recorded run of the same configuration')
    .option('--json', 'one JSON object per line')
    .action((config: string | undefined, flags: TrainFlags, command: Command) =>
      runCommand(async () => {
        if (flags.resume !== undefined) refuseFlags(command, ['name', 'runs'], 'a run that goes on stays where it is');
        await trainFrom(config, flags);
      }),
    );
}

async function trainFrom(path: string | undefined, flags: TrainFlags): Promise<void> {
  if ((path === undefined) === (flags.resume === undefined)) {
    throw new UserError('BAD_ARGUMENT', 'train: give either a configuration file, or --resume <run>');
  }
  const chaos = flags.chaos === undefined ? undefined : parseChaos(flags.chaos);
  const prepared = flags.resume !== undefined ? resumeTraining(flags.resume, flags) : fresh(path!, flags);
  const { recordOrder, replayOrder } = flags;
  if (recordOrder !== undefined || replayOrder !== undefined) checkOrderFlags(flags, prepared.config);
  if (flags.serial && prepared.config.stop.minutes !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      "stop.minutes: a serial run has no wall clock; end it by updates or steps: --set 'stop={updates: 100}'",
    );
  }
  await trainAndReport({
    ...prepared,
    mode: flags.serial || replayOrder !== undefined ? 'serial' : 'async',
    json: flags.json === true,
    journal: flags.journal,
    cluster: clusterOf(flags),
    recordOrder,
    replayOrder,
    chaos,
  });
}

/**
 * Checks the flags of recording and replay.
 * @throws {UserError} for a run that an order of messages alone does not determine
 */
function checkOrderFlags(flags: TrainFlags, config: RunConfig): void {
  const refuse = (why: string) => new UserError('BAD_ARGUMENT', `--record-order and --replay-order: ${why}`);
  if (flags.recordOrder !== undefined && flags.replayOrder !== undefined) throw refuse('give one of them');
  if (flags.resume !== undefined) throw refuse('a run is recorded from its start; leave --resume out');
  if (flags.cluster !== undefined) throw refuse('what workers do is not in the record; leave --cluster out');
  if (flags.journal) throw refuse('what is recorded repeats from its start; leave --journal out');
  if (flags.serial) throw refuse('a serial run repeats by its seed; leave --serial out');
  if (flags.replayOrder !== undefined && flags.chaos !== undefined) {
    throw refuse('what chaos broke is in the record; leave --chaos out');
  }
  if (config.stop.minutes !== undefined) {
    throw refuse(
      "a run that ends by the clock does not repeat; end it by updates or steps: --set 'stop={updates: 100}'",
    );
  }
}

function clusterOf(flags: TrainFlags): TrainCluster | undefined {
  const { cluster: url, localRollouts: localGroups, creds, verify } = flags;
  if (url !== undefined) return { url, localGroups, verify, credentials: findCredentials(creds) };
  if (verify !== undefined)
    throw new UserError('BAD_ARGUMENT', '--verify needs --cluster: what is played here is true');
  if (creds !== undefined) throw new UserError('BAD_ARGUMENT', '--creds needs --cluster: nothing else asks for a key');
  if (localGroups === undefined) return undefined;
  throw new UserError('BAD_ARGUMENT', '--local-rollouts needs --cluster: without it every group is played here');
}

function fresh(path: string, flags: TrainFlags) {
  const config = readConfigFile(path, flags.set);
  runUrl(config);
  const name = flags.name ?? freeRunName(flags.runs, basename(path).replace(/\.ya?ml$/, ''));
  const dir = runDir(flags.runs, name);
  return { config, dir, resume: false };
}

function resumeTraining(dir: string, flags: TrainFlags) {
  const config = readRunConfig(dir, flags.set);
  for (const changed of moduleChanges(config)) err.line(changed);
  return { config, dir, resume: true };
}

/** Trains with progress on the console and prints the table at the end. The quickstart calls it too. */
export async function trainAndReport(request: {
  readonly config: RunConfig;
  readonly dir: string;
  readonly resume: boolean;
  readonly mode: 'async' | 'serial';
  readonly json: boolean;
  readonly chaos?: ChaosSpec | undefined;
  readonly journal?: boolean | undefined;
  readonly cluster?: TrainCluster | undefined;
  readonly recordOrder?: string | undefined;
  readonly replayOrder?: string | undefined;
}): Promise<TrainOutcome> {
  const metrics$ = new Subject<MetricsRow>();
  const display = openConsole(metrics$, {
    out,
    notices: err,
    json: request.json,
    config: request.config,
    name: basename(request.dir),
  });
  const notify = (line: string) => display.notice(line);
  const interrupt = onInterrupt(notify);
  let status: RunStatus | undefined;
  try {
    const run = train({
      ...request,
      onMetrics: (row) => metrics$.next(row),
      onNotice: notify,
      interrupt: interrupt.signal,
      onProgress: (latest) => {
        status = latest;
        display.progress(latest);
      },
      onStarted: (started) => {
        display.watch(() => actorLines(started, status, request.config.rollout.envThreads));
        if (request.cluster) display.watchCluster(() => started.cluster());
      },
    });
    const outcome = await run.done;
    display.close();
    if (request.json) out.json(outcome);
    else {
      if (outcome.evaluations.length > 0) out.line(evaluationTable(outcome.evaluations).join('\n'));
      if (outcome.chaos) out.line(chaosTable(outcome.chaos).join('\n'));
      out.line(`run ${request.dir} (engine ${outcome.engine}): longplay view ${request.dir}`);
    }
    for (const what of outcome.unwritten) err.line(`longplay: ${what}`);
    if (outcome.unwritten.length > 0) process.exitCode = 1;
    return outcome;
  } finally {
    display.close();
    interrupt.close();
  }
}
