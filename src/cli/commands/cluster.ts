/** Command `longplay cluster`: the files of a cluster's server, and how its runs are. */
import type { Command } from 'commander';
import { findCredentials } from '../../cluster/credentials.ts';
import { type InitialisedCluster, initCluster } from '../../cluster/init.ts';
import { err, out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { printable, shorten } from '../../core/printable.ts';
import { columns } from '../../learning/evaluation/table.ts';
import { type ClusterStatus, readClusterStatus } from '../../run/cluster-status.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, MAX_PORT, oneOf, wholeNumber } from '../flags.ts';

interface ClusterFlags {
  readonly dir: string;
  readonly host: readonly string[];
  readonly port: number;
  readonly run: readonly string[];
  readonly creds?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function cluster(program: Command): void {
  program
    .command('cluster')
    .description('set up the server of a cluster (init), or see how its runs are (status)')
    .argument('<action>', 'init or status', oneOf(['init', 'status'] as const))
    .argument('[url]', 'with status: NATS server, nats://host:4222')
    .option('--dir <folder>', 'with init: folder for the files', '.longplay/cluster')
    .option(
      '--host <name>',
      'with init: name or address that other machines reach this one by; give it once for each; none: loopback alone',
      collectFlag,
      [],
    )
    .option('--port <n>', 'with init: port of the server', wholeNumber(1, MAX_PORT), 4222)
    .option(
      '--run <name>',
      'init: a run that the keys are for, instead of all; status: the run, instead of all',
      collectFlag,
      [],
    )
    .option('--creds <file>', 'with status: credentials of the cluster (observer.creds)')
    .option('--json', 'one JSON object')
    .action((action: 'init' | 'status', url: string | undefined, flags: ClusterFlags) =>
      runCommand(() => (action === 'init' ? init(url, flags) : status(url, flags))),
    );
}

async function init(url: string | undefined, { dir, host, port, run, creds, json }: ClusterFlags): Promise<void> {
  if (url !== undefined || creds !== undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      `cluster init takes no ${url === undefined ? '--creds' : 'address'}: it writes the files of a server (--host, --port)`,
    );
  }
  const { createUserKey } = await import('../../cluster/nats/connect.ts');
  const made = await initCluster({ dir, hosts: host, port, runs: run }, createUserKey);
  if (json) out.json(made);
  else out.line(listInitLines(made, host.length > 0).join('\n'));
}

function listInitLines({ config, credentials, url }: InitialisedCluster, others: boolean): string[] {
  return [
    `server   nats-server -c ${config}`,
    `learner  longplay train <config.yaml> --cluster ${url} --creds ${credentials.learner}`,
    `worker   longplay worker ${url} --run <name> --creds ${credentials.worker}`,
    `look     longplay cluster status ${url} --creds ${credentials.observer}`,
    others
      ? 'Copy worker.creds to every machine that plays; it is a key, keep it as such.'
      : 'The server listens on loopback alone: for other machines, cluster init --host <name> --dir <another folder>.',
  ];
}

async function status(url: string | undefined, { run, creds, json }: ClusterFlags): Promise<void> {
  if (url === undefined || run.length > 1) {
    throw new UserError(
      'BAD_ARGUMENT',
      'cluster status: give the address of the server (nats://127.0.0.1:4222), and one --run or none',
    );
  }
  const runs = await readClusterStatus({ url, run: run[0], credentials: findCredentials(creds) });
  if (json) out.json({ url, runs });
  else if (runs.length === 0) err.line(`no run is announced at ${url}`);
  else out.line(runs.map((one) => listStatusLines(one).join('\n')).join('\n\n'));
}

/** Characters of a name that are shown. */
const NAME_CHARS = 60;

function showName(name: string): string {
  return printable(shorten(name, NAME_CHARS));
}

/** Lists the lines about a run. Its name, its world's and its workers' names come from other machines. */
export function listStatusLines({ run, world, version, ended, life, load, workers, maxLag }: ClusterStatus): string[] {
  const { queued, held, results, resultBytes, roundTripMs } = load;
  const head = `run ${showName(run)} (${showName(world)})  update ${version}${ended ? ', ended' : ''}  learner's process ${life}`;
  const queue = `tickets ${queued} queued, ${held} held; results ${results} waiting (${(resultBytes / 1e6).toFixed(1)} MB); server ${roundTripMs.toFixed(1)} ms away`;
  if (ended) return [head, queue];
  if (workers.length === 0) return [head, queue, 'no worker: longplay worker <url> --run <name>'];
  const rows = workers.map((row) => [
    row.name,
    row.state === 'here' ? 'here' : `${row.state} for ${Math.round(row.silentMs / 1000)} s`,
    `${row.held}/${row.slots}`,
    row.groupsPerSecond.toFixed(1),
    row.tokensPerSecond.toFixed(0),
    String(row.version),
    row.lag > maxLag ? `${row.lag} > maxLag ${maxLag}` : String(row.lag),
    String(row.finished),
  ]);
  return [
    head,
    queue,
    ...columns([['worker', 'state', 'slots', 'groups/s', 'tokens/s', 'weights', 'lag', 'groups'], ...rows]),
  ];
}
