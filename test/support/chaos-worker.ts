/** Worker of a chaos test, in a process of its own: the real worker actor; its rollouts sleep. Argument: JSON of `ChaosWorker`. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface ChaosWorker {
  readonly url: string;
  readonly run: string;
  readonly name: string;
  readonly slots: number;
  /** Milliseconds of a group, in the mean. */
  readonly groupMs: number;
  readonly creds?: string;
  /** Milliseconds that its clock is ahead of this machine's. */
  readonly clockMs?: number;
  /** Times that each result is stored again, at any time later. */
  readonly echo?: number;
}

const options = JSON.parse(process.argv[2]!) as ChaosWorker;
const { url, run, name, slots, groupMs, clockMs = 0, echo = 0 } = options;
// Before anything reads it.
const now = Date.now;
Date.now = () => now() + clockMs;
const origin = performance.now.bind(performance);
performance.now = () => origin() + clockMs;

const { spawnWorker } = await import('../../actors/cluster/spawn.ts');
const { readCredentials } = await import('../../src/cluster/credentials.ts');
const { decodeAnnouncement } = await import('../../src/cluster/identity.ts');
const { connectNats } = await import('../../src/cluster/nats/connect.ts');
const { decodeWeights } = await import('../../src/learning/learner/weights-file.ts');
const { createSystem } = await import('../../src/runtime/create-system.ts');
const { NO_TIME } = await import('../../src/metrics/slot-time.ts');
const { CHAOS_LEASE_MS, chaosIdentity } = await import('./chaos-identity.ts');
const { playedBy } = await import('./cluster-books.ts');
type Broker = import('../../src/cluster/broker.ts').Broker;
type ResultLog = import('../../src/cluster/broker.ts').ResultLog;
type Play = import('../../actors/rollout/protocol.ts').Play;
type WorkerCommand = import('../../actors/cluster/protocol.ts').WorkerCommand;
type ParamSet = import('../../src/compute/model/parameters.ts').ParamSet;

const credentials = options.creds === undefined ? undefined : readCredentials(options.creds);
const plain = await connected();
const broker: Broker = echo === 0 ? plain : repeatResults(plain);

async function connected(): Promise<Broker> {
  for (;;) {
    try {
      return await connectNats({ url, run, leaseMs: CHAOS_LEASE_MS, credentials });
    } catch {
      await sleep(200);
    }
  }
}

/** Broker that stores each result again and again, whatever has become of it. */
function repeatResults(real: Broker): Broker {
  const old: { readonly result: string; readonly bytes: Uint8Array }[] = [];
  const timer = setInterval(
    () => {
      const one = old[Math.floor(Math.random() * old.length)];
      if (one) real.results.put(one.result, one.bytes).catch(() => {});
    },
    groupMs / (echo * slots),
  );
  timer.unref();
  const { maxResultBytes } = real.results;
  const results: ResultLog = {
    maxResultBytes,
    put: async (result, bytes) => {
      await real.results.put(result, bytes);
      old.push({ result, bytes: bytes.slice() });
    },
    read: (waitMs) => real.results.read(waitMs),
    removeUpTo: (position) => real.results.removeUpTo(position),
    count: () => real.results.count(),
  };
  return { ...real, results };
}

let first: { announcement: ReturnType<typeof decodeAnnouncement>; params: ParamSet } | undefined;
while (!first) {
  try {
    const found = await broker.weights.readAnnouncement();
    const announcement = found && decodeAnnouncement(found.bytes);
    if (announcement?.ended) process.exit(0);
    const bytes = announcement && (await broker.weights.get(announcement.digest, announcement.bytes));
    if (announcement && bytes) {
      first = { announcement, params: decodeWeights(bytes, announcement.version, 'weights') };
    } else await sleep(100);
  } catch {
    await sleep(200);
  }
}
let { version } = first.params;
const system = createSystem({ mode: 'async' });
system.spawn<{ type: 'loadWeights'; params: ParamSet }>('inference', () => ({
  handlers: {
    loadWeights: ({ params }) => {
      version = params.version;
    },
  },
}));
let finished = 0;
system.spawn<Play>('rollout', () => ({
  handlers: {
    play: ({ groups }) => {
      for (const ticket of groups) void played(ticket);
    },
  },
}));

async function played(ticket: Play['groups'][number]): Promise<void> {
  const by = version;
  await sleep(groupMs * (0.3 + 1.4 * Math.random()));
  finished++;
  const totals = {
    envSteps: finished,
    episodes: finished,
    runningEpisodes: 0,
    tokens: finished,
    calls: 0,
    decidedTurns: 0,
    time: NO_TIME,
  };
  const groups = [{ group: ticket.group, trajectories: playedBy(ticket, by), envSteps: 0 }];
  void system.resolve<WorkerCommand>('/worker').tell({ type: 'played', groups, gaveUp: [], failed: [], totals });
}

system.inspect$.subscribe((event) => {
  if (event.type !== 'stopped' || !event.final || event.reason.kind !== 'crashed') return;
  process.stderr.write(`${event.reason.error.message}\n`);
  process.exit(1);
});
await spawnWorker(
  system,
  {
    ...{ broker, run, name, identity: chaosIdentity, slots, leaseMs: CHAOS_LEASE_MS, first },
    onNotice: (text) => process.stderr.write(`${text}\n`),
    onEnd: () => process.exit(0),
    paths: { rollout: '/rollout', inference: '/inference' },
  },
  1000,
);
