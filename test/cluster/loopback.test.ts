/** A learner, workers and a NATS server as processes of their own on this machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { Role } from '../../src/cluster/roles.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { ClusterStatus } from '../../src/run/cluster-status.ts';
import type { TrainOutcome } from '../../src/run/train.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { digestsOf, readJournal } from '../../src/storage/journal.ts';
import { longplay } from '../support/longplay-command.ts';
import { freePort, type NatsServer, noServer, startNats } from '../support/nats-server.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

interface Command {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  /** Exit code; null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

function start(...args: string[]): Command {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  return { child, stderr: () => stderr, ended: new Promise((resolve) => child.once('close', resolve)) };
}

/** Waits for something that the commands of `by` bring about; fails at once when one of them has ended before. */
async function until(what: string, by: readonly Command[], holds: () => boolean): Promise<void> {
  for (let n = 0; !holds(); n++) {
    for (const { child, stderr } of by) {
      const { exitCode, signalCode, spawnargs } = child;
      if ((exitCode ?? signalCode) === null || holds()) continue;
      throw new Error(`${spawnargs[2]} ended (${exitCode ?? signalCode}) before ${what}: ${stderr()}`);
    }
    if (n > 15_000) throw new Error(`it never came: ${what}`);
    await sleep(20);
  }
}

/** Command that is typed again where no server answered it: on a busy machine a connection may take longer than it waits for one. */
function patient(...args: string[]): ReturnType<typeof longplay> {
  for (let n = 0; ; n++) {
    const done = longplay(...args);
    if (n === 20 || done.status !== 1 || !/no NATS server answers/.test(done.stderr)) return done;
  }
}

/** Updates that a run has made. */
function updatesOf(run: string): number {
  const path = join(run, 'metrics.jsonl');
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

function configOf(more: Partial<RunConfigInput>) {
  return smallConfig({
    evaluation: { split: 'train', tasks: [0], episodesPerTask: 1, horizons: [4], greedy: false, randomBaseline: false },
    ...more,
  });
}

/** Holds the books of a run that has ended to be exact. */
function exact(run: string): TrainOutcome {
  const outcome = JSON.parse(readFileSync(join(run, 'results.json'), 'utf8')) as TrainOutcome;
  expect(countUnaccounted(outcome.ended.status.accounting)).toBe(0);
  const { entries } = readJournal(join(run, 'journal'), 0);
  const groups = entries.flatMap((entry) => (entry.type === 'played' ? entry.groups.map(({ group }) => group) : []));
  expect(groups.length).toBeGreaterThan(0);
  expect(new Set(groups).size).toBe(groups.length); // none counts twice
  const updates = entries.filter((entry) => entry.type === 'updated');
  const digests = digestsOf(entries);
  for (const { version, digest } of updates) expect(digests.get(version)).toBe(digest);
  return outcome;
}

/** What a test has of a cluster; all of it ends with the test. */
interface Cluster {
  readonly folder: string;
  readonly server: NatsServer;
  /** Flags with a role's credentials, where the server asks for them. */
  readonly creds: (role: Role) => readonly string[];
  /** Starts a command of longplay. */
  readonly begin: (...args: string[]) => Command;
}

/** @param secured true for a server that `cluster init` has set up */
async function inCluster(secured: boolean, body: (cluster: Cluster) => Promise<void>): Promise<void> {
  const folder = temporaryFolder('cluster');
  const port = await freePort();
  const dir = join(folder, 'cluster');
  if (secured) expect(longplay('cluster', 'init', '--dir', dir, '--port', String(port)).status).toBe(0);
  const server = await startNats(
    join(folder, 'store'),
    secured ? { config: join(dir, 'server.conf'), port } : undefined,
  );
  const creds = (role: Role) => (secured ? ['--creds', join(dir, `${role}.creds`)] : []);
  const started: Command[] = [];
  const begin = (...args: string[]) => {
    const command = start(...args);
    started.push(command);
    return command;
  };
  try {
    await body({ folder, server, creds, begin });
  } finally {
    for (const { child } of started) child.kill('SIGKILL');
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.skipIf(noServer)('a learner and workers', () => {
  it(
    'train together; a worker that is killed in the middle is replaced, and every episode is accounted for',
    () =>
      inCluster(true, async ({ folder, server, creds, begin }) => {
        const run = join(folder, 'runs', 'pair');
        writeFileSync(
          join(folder, 'pair.yaml'),
          stringify(configOf({ stop: { updates: 4 }, checkpoint: { everyUpdates: 1000 } })),
        );
        const learner = begin(
          'train',
          join(folder, 'pair.yaml'),
          '--runs',
          join(folder, 'runs'),
          '--cluster',
          server.url,
          ...creds('learner'),
        );
        await until('checkpoint 0', [learner], () => existsSync(join(run, 'journal')));
        await sleep(1000);
        const first = begin('worker', server.url, '--run', 'pair', '--slots', '4', ...creds('worker'));
        const look = () => patient('cluster', 'status', server.url, '--json', ...creds('observer'));
        await until('two updates', [learner, first], () => updatesOf(run) >= 2);
        learner.child.kill('SIGSTOP'); // or it would be through before it was looked at
        const seen = look();
        expect(seen.status, seen.stderr).toBe(0);
        const { runs } = JSON.parse(seen.stdout) as { runs: readonly ClusterStatus[] };
        expect(runs).toMatchObject([{ run: 'pair', world: 'textcraft', ended: false, maxLag: 1 }]);
        expect(runs[0]!.workers).toMatchObject([{ state: 'here', slots: 4 }]);
        expect(runs[0]!.workers[0]!.finished).toBeGreaterThan(0);
        learner.child.kill('SIGCONT');
        first.child.kill('SIGKILL');
        await first.ended;
        const second = begin('worker', server.url, '--run', 'pair', '--slots', '4', ...creds('worker'));
        expect(await learner.ended, learner.stderr()).toBe(0);
        expect(await second.ended, second.stderr()).toBe(0);
        const { ended, evaluations } = exact(run);
        expect(ended.status.version).toBe(4);
        expect(evaluations[0]!.all.episodes).toBe(1);
        expect(second.stderr()).toMatch(/plays up to 4 groups of run 'pair' \(update \d+\)/);
        const replayed = longplay('replay-learner', run);
        expect(replayed.stdout, replayed.stderr).toMatch(/^4 updates made again .*: each has the recorded weights\n$/);
        // The run has ended, and a worker that comes too late is refused.
        const late = patient('worker', server.url, '--run', 'pair', ...creds('worker'));
        expect(late.status).toBe(2);
        expect(late.stderr).toMatch(/run 'pair' at nats:.* has ended \(update 4\)/);
        const other = patient('worker', server.url, '--run', 'other', ...creds('worker'));
        expect(other.status).toBe(2);
        expect(other.stderr).toMatch(/no run 'other' is announced at/);
      }),
    600_000,
  );

  it(
    'train beside rollouts of the learner; both are killed, and so is the server: each update has one digest',
    () =>
      inCluster(false, async ({ folder, server, begin }) => {
        const run = join(folder, 'runs', 'both');
        const config = configOf({ stop: { updates: 5 }, checkpoint: { everyUpdates: 1000 } });
        writeFileSync(join(folder, 'both.yaml'), stringify(config));
        const cluster = ['--cluster', server.url, '--local-rollouts', '1', '--verify', '0.5'];
        const first = begin('train', join(folder, 'both.yaml'), '--runs', join(folder, 'runs'), ...cluster);
        await until('checkpoint 0', [first], () => existsSync(join(run, 'journal')));
        await sleep(1000);
        const worker = begin('worker', server.url, '--run', 'both', '--slots', '2');
        await until('an update', [first, worker], () => updatesOf(run) >= 1);
        await until('three updates', [first, worker], () => updatesOf(run) >= 3);
        first.child.kill('SIGKILL');
        await first.ended;
        const made = digestsOf(readJournal(join(run, 'journal'), 0).entries);
        expect(made.size).toBeGreaterThanOrEqual(2);
        await server.kill();
        await server.start();
        const second = begin('train', '--resume', run, ...cluster);
        expect(await second.ended, second.stderr()).toBe(0);
        expect(second.stderr()).not.toContain('other weights');
        const { status } = exact(run).ended;
        expect([status.version, status.accounting.failed]).toEqual([5, {}]);
        const after = digestsOf(readJournal(join(run, 'journal'), 0).entries);
        for (const [version, digest] of made) expect(after.get(version), `update ${version}`).toBe(digest);
      }),
    600_000,
  );
});
