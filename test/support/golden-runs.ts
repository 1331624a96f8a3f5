/**
 * Six small serial runs whose decisions are kept, and the comparison of a run with what was kept of it.
 *
 * A run becomes records in the order of the policy's life: the episodes that version v began, by group and member, then
 * update v + 1, and the ledger last. Message order shows nowhere. Numbers are compared within a tolerance, since gradients are
 * summed in the order in which groups finish, and other processors round otherwise.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SchedulerState } from '../../actors/scheduler/protocol.ts';
import type { RunOptions } from '../../actors/tree.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import type { Accounting } from '../../src/core/failure.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { startRun } from '../../src/run/start-run.ts';
import { localUrl, packageRoot } from '../../src/runtime/module-url.ts';
import { loadNewest } from '../../src/storage/checkpoint.ts';

/** A configuration whose decisions are kept. */
export interface GoldenRun {
  readonly name: string;
  /**
   * `free`: under `maxLag: 0` every decision follows from seed, task and version alone, so any order of messages must
   * give these decisions (tried under eight other orders of delivery). `matters`: updates fall between the turns of an episode, so a changed order moves them.
   */
  readonly order: 'free' | 'matters';
  readonly config: RunConfigInput;
  readonly options?: Partial<RunOptions>;
  /** The run is saved and left at its first finished group after this update, then taken up from that checkpoint. */
  readonly leaveAfter?: number;
}

type Sections = Partial<Omit<RunConfigInput, 'env'>>;

function golden(name: string, env: string, sections: Sections, rest: Partial<GoldenRun> = {}): GoldenRun {
  const config: RunConfigInput = {
    seed: 11,
    env: { id: env },
    horizon: { type: 'fixed', rounds: 4 },
    stop: { updates: 4 },
    ...sections,
    tasks: { sampling: { type: 'uniform' }, ...sections.tasks },
    policy: { ...sections.policy, model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 3, concurrentGroups: 8, maxBatch: 8, ...sections.rollout },
    learner: { groupsPerUpdate: 3, maxLag: 0, warmupSteps: 2, finalRate: 0.2, ...sections.learner },
    checkpoint: { everyUpdates: 2 },
    trace: { everyGroups: 0 },
    evaluation: { episodesPerTask: 1, horizons: [4], greedy: false, randomBaseline: false },
    metrics: { tensorboard: false },
  };
  return { name, order: 'free', config, ...rest };
}

const easy = { labels: ['depth 1'] };

export const goldenRuns: readonly GoldenRun[] = [
  golden('choices under an append view', 'textcraft', {
    tasks: easy,
    horizon: { type: 'scaling_inter_stepwise', rounds: [3, 5], steps_scaling_inter: 2 },
  }),
  golden('choices under a window view', 'babyai', {
    tasks: { labels: ['GoTo'] },
    learner: {
      estimator: { algorithm: 'ppo', truncation: 'bootstrap', gamma: 0.95 },
      valueCoef: 0.5,
      kl: { in: 'reward', control: { type: 'adaptive', coefficient: 0.01, target: 0.01, window: 10 } },
    },
  }),
  golden('runs of tokens under the trie', 'textcraft', {
    tasks: easy,
    policy: { decoder: 'tokens', maxTokens: 12 },
    learner: {
      estimator: { algorithm: 'gigpo', gamma: 0.9 },
      kl: { in: 'loss', estimator: 'k2', control: { type: 'fixed', coefficient: 0.1 } },
    },
  }),
  golden(
    'pasts computed anew after an update',
    'textcraft',
    {
      tasks: easy,
      horizon: { type: 'fixed', rounds: 6 },
      policy: { cacheOnUpdate: 'recompute' },
      learner: {
        maxLag: 2,
        filterGroups: false,
        estimator: { algorithm: 'reinforce_pp', gamma: 0.9 },
        offPolicy: { type: 'truncated', cap: 1.05 },
      },
    },
    { order: 'matters' },
  ),
  golden(
    'resumed in the middle of its episodes',
    'textcraft',
    {
      tasks: easy,
      rollout: { concurrentGroups: 2 }, // some begin when others end
      learner: { estimator: { algorithm: 'rloo', gamma: 0.9, credit: 'turn' }, groupsPerUpdate: 4 },
    },
    { leaveAfter: 2 },
  ),
  golden(
    'with faults injected',
    'textcraft',
    { tasks: easy, learner: { filterGroups: false, estimator: { algorithm: 'dr_grpo', truncation: 'mask' } } },
    { options: { chaos: { seed: 5, rates: { throw: 0.03, nan: 0.03, duplicate: 0.03 } } } },
  ),
];

/** A turn in full where it is short, else hashed: version, what was decided, log π, V, reward, context, action. */
export type TurnRecord = readonly [
  version: number,
  decided: number | readonly number[],
  logprob: number | readonly number[],
  value: number,
  reward: number,
  /** Hash of the token ids read. */
  context: string,
  action: string,
];

export type GoldenRecord = { readonly run: string } & (
  | {
      readonly group: number;
      readonly member: number;
      readonly task: string;
      readonly horizon: number;
      readonly attempt: number;
      readonly end: string;
      readonly success: boolean;
      readonly turns: readonly TurnRecord[];
    }
  | { readonly update: number; readonly facts: Readonly<Record<string, number>> }
  | { readonly ledger: Accounting }
);

/** Facts of an update: enough to distinguish a changed estimate from a changed step. */
const FACTS = [
  'horizon',
  'success',
  'truncated',
  'trained',
  'filtered',
  'stale',
  'failed',
  'loss',
  'entropy',
  'gradNorm',
] as const;
const MORE = ['learningRate', 'klCoefficient', 'klReference', 'lagMax', 'importanceMean', 'clipFraction'] as const;

/** Plays a run of `goldenRuns`. @returns its records, and the trajectories themselves */
export async function play(
  run: GoldenRun,
): Promise<{ readonly records: readonly GoldenRecord[]; readonly trajectories: readonly Trajectory[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-golden-'));
  const trajectories = new Map<string, Trajectory>();
  const rows = new Map<number, MetricsRow>();
  try {
    let leave = run.leaveAfter;
    const onEpisodes = (group: readonly Trajectory[], purpose: string, left: () => void) => {
      if (purpose !== 'train') return;
      group.forEach((one, member) => {
        trajectories.set(`${one.group}.${member}`, one);
      });
      if (leave !== undefined && Math.max(0, ...rows.keys()) >= leave) left();
    };
    if (leave !== undefined) await part(run, dir, false, rows, onEpisodes);
    leave = undefined;
    const ledger = await part(run, dir, run.leaveAfter !== undefined, rows, onEpisodes);
    return { records: recordsOf(run.name, trajectories, rows, ledger!), trajectories: [...trajectories.values()] };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** From start, or from the newest checkpoint, to the end, or until it is left. @returns the ledger at the end */
async function part(
  { config, options }: GoldenRun,
  dir: string,
  resume: boolean,
  rows: Map<number, MetricsRow>,
  onEpisodes: (group: readonly Trajectory[], purpose: string, leave: () => void) => void,
): Promise<Accounting | undefined> {
  let leave = () => {};
  const left = new Promise<'left'>((resolve) => {
    leave = () => resolve('left');
  });
  const run = await startRun({
    config: checkRunConfig(config, 'golden'),
    dir,
    mode: 'serial',
    envModule: localUrl(new URL(`envs/${config.env.id}/index.js`, packageRoot)),
    learn: true,
    ...(resume ? { checkpoint: loadNewest(join(dir, 'checkpoints')) } : {}),
    onEpisodes: (group, purpose) => onEpisodes(group, purpose, leave),
    ...options,
  });
  try {
    run.metrics$.subscribe((row) => rows.set(row.update!, row));
    const training = run.train();
    training.catch(() => {});
    const ended = await Promise.race([training, left]);
    if (ended !== 'left') return ended.status.accounting;
    const saved = await run.save();
    if (!saved.ok) throw new Error(saved.message);
    const { rollout } = loadNewest(join(dir, 'checkpoints')).state as unknown as { rollout: SchedulerState };
    const underWay = rollout.running.flatMap(({ running }) => running.filter(({ turns }) => turns.length > 0));
    if (underWay.length === 0) throw new Error('no episode was under way when the run was left');
    return undefined;
  } finally {
    await run.stop();
  }
}

function recordsOf(
  run: string,
  trajectories: ReadonlyMap<string, Trajectory>,
  rows: ReadonlyMap<number, MetricsRow>,
  ledger: Accounting,
): GoldenRecord[] {
  const dated: { readonly at: number; readonly record: GoldenRecord }[] = [];
  const places = [...trajectories.keys()].map((key) => key.split('.').map(Number) as [number, number]);
  for (const [group, member] of places.sort(([g, m], [h, n]) => g - h || m - n)) {
    const one = trajectories.get(`${group}.${member}`)!;
    const { task, horizon, attempt, end, success } = one;
    const turns = one.turns.map(turnRecord);
    const name = `${task.env} ${task.index} seed ${task.seed}`;
    dated.push({
      at: turns[0]?.[0] ?? 0,
      record: { run, group, member, task: name, horizon, attempt, end, success, turns },
    });
  }
  for (const [update, row] of rows) {
    const facts: Record<string, number> = {};
    for (const name of [...FACTS, ...MORE]) {
      const value = (row as unknown as Record<string, unknown>)[name];
      if (typeof value === 'number') facts[name] = short(value);
    }
    dated.push({ at: update - 0.5, record: { run, update, facts } });
  }
  dated.sort((a, b) => a.at - b.at);
  return [...dated.map(({ record }) => record), { run, ledger }];
}

function turnRecord({ decision, reward, action }: Turn): TurnRecord {
  const { version, context, value } = decision!;
  const [decided, logprob] =
    decision!.kind === 'choice'
      ? [decision!.choice, short(decision!.logprob)]
      : [Array.from(decision!.tokens), Array.from(decision!.logprobs, short)];
  const read = createHash('sha256').update(Array.from(context).join(' ')).digest('hex').slice(0, 8);
  return [version, decided, logprob, short(value), short(reward), read, action];
}

/** Five significant digits, at most six decimals. */
function short(value: number): number {
  return Number(Number(value.toPrecision(5)).toFixed(6));
}

/** Distance at which two numbers still agree: absolute, plus a share of their size. */
const TOLERANCE = 1e-3;

/**
 * The first difference in the policy's life between what was kept and what came.
 * @returns one line that names run, episode or update, turn and field; undefined where there is none
 */
export function firstDifference(
  kept: readonly GoldenRecord[],
  came: readonly GoldenRecord[],
  tolerance = TOLERANCE,
): string | undefined {
  for (let i = 0; i < Math.max(kept.length, came.length); i++) {
    const [a, b] = [kept[i], came[i]];
    if (a === undefined) return `${nameOf(b!)}: came, but was not kept`;
    if (b === undefined) return `${nameOf(a)}: was kept, but did not come`;
    if (nameOf(a) !== nameOf(b)) return `${nameOf(a)}: was kept; ${nameOf(b)} came in its place`;
    const at = difference(a, b, '', tolerance);
    if (at) return `${nameOf(a)}${at}`;
  }
  return undefined;
}

function nameOf(record: GoldenRecord): string {
  if ('group' in record) return `run '${record.run}', group ${record.group}, member ${record.member}`;
  return 'update' in record ? `run '${record.run}', update ${record.update}` : `run '${record.run}'`;
}

const COLUMNS = ['version', 'decided', 'logprob', 'value', 'reward', 'context', 'action'];

function difference(kept: unknown, came: unknown, path: string, tolerance: number): string | undefined {
  if (typeof kept === 'number' && typeof came === 'number') {
    const close = Math.abs(kept - came) <= tolerance * (1 + Math.abs(kept));
    return close ? undefined : `${path}: kept ${kept}, came ${came}`;
  }
  if (typeof kept !== 'object' || kept === null || typeof came !== 'object' || came === null) {
    return kept === came ? undefined : `${path}: kept ${JSON.stringify(kept)}, came ${JSON.stringify(came)}`;
  }
  const [a, b] = [kept as Record<string, unknown>, came as Record<string, unknown>];
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const at = difference(a[key], b[key], path + step(path, key), tolerance);
    if (at) return at;
  }
  return undefined;
}

/** A key as a person reads it: turns by number, their columns by name. */
function step(path: string, key: string): string {
  if (path.endsWith(', turns')) return ` ${key}`;
  return /, turns \d+$/.test(path) ? `, ${COLUMNS[Number(key)]}` : `, ${key}`;
}
