/**
 * Learner of a chaos test, in a process of its own: the real actors between a run and its broker, the real journal, and books that learn
 * nothing. Argument: JSON of `ChaosLearner`. It may kill itself at places where a kill from outside hardly ever strikes.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnTickets, spawnWeights } from '../../actors/cluster/spawn.ts';
import type { Played } from '../../actors/scheduler/protocol.ts';
import type { Broker } from '../../src/cluster/broker.ts';
import { ClusterMonitor } from '../../src/cluster/cluster-monitor.ts';
import { readCredentials } from '../../src/cluster/credentials.ts';
import { connectNats } from '../../src/cluster/nats/connect.ts';
import { digestOf } from '../../src/learning/learner/weights-file.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { digestsOf, Journal, type JournalEntry, readJournal } from '../../src/storage/journal.ts';
import { encodeSafetensors } from '../../src/storage/safetensors.ts';
import { CHAOS_LEASE_MS, chaosIdentity } from './chaos-identity.ts';
import { Books, hashOf, SIZE, VOCABULARY } from './cluster-books.ts';
import { smallConfig } from './small-run.ts';

export interface ChaosLearner {
  readonly url: string;
  readonly run: string;
  readonly dir: string;
  readonly updates: number;
  readonly maxLag: number;
  readonly creds?: string;
  readonly maxStreamBytes?: number;
  /** Probability that it kills itself at each place between two effects. */
  readonly suicide?: number;
}

const options = JSON.parse(process.argv[2]!) as ChaosLearner;
const { url, run, dir, updates, maxLag, suicide = 0, maxStreamBytes } = options;

/** Weights of a version as a file of tensors. */
function weightsOf(books: Books, version: number): Uint8Array {
  const data = Float32Array.from(Buffer.from(books.digests[version]!, 'hex'));
  // As large as those of a small policy, so that storing them takes its time.
  return encodeSafetensors({ chain: { shape: [32], data }, rest: { shape: [50_000], data: new Float32Array(50_000) } });
}

function perhaps(_place: string): void {
  if (Math.random() < suicide) process.kill(process.pid, 'SIGKILL');
}

mkdirSync(dir, { recursive: true });
perhaps('before anything');
const journalDir = join(dir, 'journal');
const { entries, position } = readJournal(journalDir, 0);
const journal = new Journal(journalDir, position);
const append = (entry: JournalEntry) => {
  perhaps('before the journal');
  for (;;) {
    try {
      journal.append(entry);
      break;
    } catch (thrown) {
      process.stderr.write(`journal: ${(thrown as Error).message}\n`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500); // nothing else may happen before it is written
    }
  }
  perhaps('after the journal');
};
const books = new Books(maxLag);
for (const entry of entries) {
  if (entry.type === 'launched') books.launch();
  else if (entry.type === 'played') apply(entry);
}
if (entries.length === 0) append({ type: 'launched', tickets: books.launch() });

function apply({ groups, failed }: Pick<Played, 'groups' | 'failed'>): void {
  const lost = new Map<number, number>();
  for (const { group } of failed) lost.set(group, (lost.get(group) ?? 0) + 1);
  for (const { group, trajectories } of groups) {
    if (!books.outstanding.has(group)) continue;
    books.take(group, trajectories, lost.get(group) ?? 0);
    lost.delete(group);
  }
  for (const [group, attempts] of lost) if (books.outstanding.has(group)) books.failed(attempts);
}

const credentials = options.creds === undefined ? undefined : readCredentials(options.creds);
const broker = await connected();

async function connected(): Promise<Broker> {
  for (;;) {
    try {
      return await connectNats({ url, run, leaseMs: CHAOS_LEASE_MS, credentials, maxStreamBytes });
    } catch {
      await sleep(200); // it was killed, too
    }
  }
}
const system = createSystem({ mode: 'async' });
const digests = digestsOf(entries);
const own = new Map(books.digests.map((_, version) => [version, digestOf(weightsOf(books, version))]));
for (const [version, digest] of digests) {
  if (own.get(version) !== digest) throw new Error(`update ${version} has other weights than in the journal`);
}
const monitor = new ClusterMonitor();
const bytes = weightsOf(books, books.version);
const first = { version: books.version, digest: digestOf(bytes), bytes };
system.terminated.catch((thrown) => end(1, String(thrown)));
system.inspect$.subscribe((event) => {
  if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed')
    void end(1, event.reason.error.message);
});
system.spawn<Played | { type: 'progressed' } | { type: 'captured' }>('scheduler', () => ({
  handlers: { played, progressed() {}, captured() {} },
}));
system.spawn<{ type: string }>('rollout', () => ({ handlers: { play() {}, pause() {}, abandon() {} } as never }));
const announced = (version: number) => appendFileSync(join(dir, 'announced'), `${version} ${own.get(version)}\n`);
perhaps('before the announcement');
announced(first.version);
await spawnWeights(system, {
  broker,
  run,
  identity: chaosIdentity,
  config: smallConfig(),
  first,
  digests: own,
  sync: () => journal.sync(),
  isServed: false,
  onNotice: (text) => process.stderr.write(`${text}\n`),
});
const tickets = await spawnTickets(
  system,
  {
    broker,
    localGroups: 0,
    vocabSize: VOCABULARY,
    digestOf: (version) => own.get(version),
    check: () => undefined,
    monitor,
    onNotice: (text) => process.stderr.write(`${text}\n`),
    start: { nextEpisode: 0, envSteps: 0, episodes: 0 },
    paths: { scheduler: '/scheduler', rollout: '/rollout', weights: '/weights' },
  },
  10_000,
);
perhaps('before the tickets');
void tickets.tell({ type: 'play', groups: [...books.outstanding.values()] });

async function played(of: Played): Promise<void> {
  const before = books.version;
  if (before >= updates) return;
  const { groups, gaveUp, failed } = of;
  append({ type: 'played', groups: groups.map((one) => ({ ...one, progress: 0 })), gaveUp, failed, elapsedMs: 0 });
  apply(of);
  if (gaveUp.length > 0) throw new Error('given up');
  const { version } = books;
  if (version > before) {
    const made = weightsOf(books, version);
    own.set(version, digestOf(made));
    append({ type: 'updated', version, digest: own.get(version)! });
    announced(version);
    perhaps('before the announcement');
    await system.resolve<{ type: 'publish'; version: number; digest: string; bytes: Uint8Array }>('/weights').tell({
      type: 'publish',
      version,
      digest: own.get(version)!,
      bytes: made,
    });
    perhaps('after the announcement');
  }
  if (version >= updates) {
    await end(0, 'done');
    return;
  }
  const launched = books.launch();
  if (launched.length === 0) return;
  append({ type: 'launched', tickets: launched });
  perhaps('before the tickets');
  await tickets.tell({ type: 'play', groups: launched });
}

async function end(code: number, why: string): Promise<void> {
  const { trained, maxSeen, decisions, account, version } = books;
  const counts = monitor.counts();
  const rss = Math.round(process.memoryUsage().rss / 2 ** 20);
  const outcome = { why, version, trained, maxSeen, decisions, account, counts, rss, digest: hashOf(...books.digests) };
  if (code === 0) writeFileSync(join(dir, 'outcome.json'), JSON.stringify(outcome));
  else process.stderr.write(`${why}\n`);
  await new Promise((resolve) => setTimeout(resolve, 300)); // the last announcement is on its way
  if (code === 0) await system.stop();
  process.exit(code);
}

process.on('SIGUSR2', () =>
  process.stderr.write(`rss ${Math.round(process.memoryUsage().rss / 2 ** 20)} groups of ${SIZE}\n`),
);
