/**
 * Parity with the original's recordings: calls with their texts, error flags and hashes, databases at the start and the end,
 * rewards; and whole episodes of its orchestrator with scripted sides.
 */
import { existsSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { MAX_DATA_BYTES, readBounded } from '../../src/core/bounded-file.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Difference, Parity, ParityCounts } from '../../src/core/parity.ts';
import { changesOf, fingerprintOf, toJson } from './digest.ts';
import { type Domain, openEnvironment } from './domain.ts';
import { DOMAINS } from './domains.ts';
import { type Environment, formatResult, type Side } from './environment.ts';
import type { Message } from './orchestrator.ts';
import { compare, replayEpisodes } from './parity-episodes.ts';
import type { Arguments } from './python/calls.ts';
import { PyError } from './python/errors.ts';
import { parsePython } from './python/json.ts';
import type { PyValue } from './python/values.ts';
import { playGold, type RewardInfo, rewardOf } from './reward.ts';
import type { TauTask } from './tasks.ts';

type Report = (difference: Difference) => void;
/** Dictionary of a recording. */
type Row = ReadonlyMap<string, PyValue>;

const SIDES = [
  ['assistant', 'agent'],
  ['user', 'user'],
] as const;

export const parity: Parity = (records, report, file) => {
  const rows = existsSync(file) ? readRows(file) : records.map((record) => parsePython(JSON.stringify(record)));
  const first = rows[0];
  if (first instanceof Map && first.has('runs')) return replayTasks(rows as readonly Row[], report);
  if (Array.isArray(first) && first[0] instanceof Map && first[0].has('termination_reason')) {
    return replayEpisodes(first as unknown as readonly Row[], report);
  }
  throw new UserError('BAD_TRACE', 'tau2: expected tasks with runs, or episodes');
};

/** Reads a recording again as Python does: `2.0` is no `2` there. */
function readRows(file: string): readonly PyValue[] {
  const bytes = readBounded(file, MAX_DATA_BYTES);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const text = (isGzip ? gunzipSync(bytes, { maxOutputLength: MAX_DATA_BYTES }) : bytes).toString('utf8');
  const values = /\.jsonl(\.gz)?$/.test(file) ? text.split('\n').filter((line) => line.trim() !== '') : [text];
  return values.map(parsePython);
}

function replayTasks(rows: readonly Row[], report: Report): ParityCounts {
  let [episodes, steps] = [0, 0];
  for (const row of rows) {
    const domain = DOMAINS[String(row.get('domain'))];
    if (!domain) throw new UserError('BAD_TRACE', `tau2: no domain '${row.get('domain')}'`);
    const index = Number(row.get('index'));
    const task = domain.tasks()[index]!;
    const where = `${domain.id} ${index} (${task.id})`;
    const hashes = new Hashes();
    compare(report, where, 'id of the task', row.get('task_id'), task.id);
    replayStart(domain, task, row, where, report, hashes);
    const gold = playGold(domain, task);
    for (const run of row.get('runs') as unknown as readonly Row[]) {
      episodes++;
      steps += replayRun(domain, task, gold, run, `${where}, ${run.get('run')}`, report, hashes);
    }
  }
  return { episodes, steps };
}

/** Replays the initial actions of a task; the start that a recording tells of is the state behind them. */
function replayStart(domain: Domain, task: TauTask, row: Row, where: string, report: Report, hashes: Hashes): void {
  const environment = openEnvironment(domain, { ...task, initialActions: [] }, false);
  let before = hashes.all(environment);
  for (const [i, action] of ((row.get('init') ?? []) as unknown as readonly Row[]).entries()) {
    const { side, name, args } = task.initialActions[i]!;
    const at = `${where}, initial action ${i} (${name})`;
    compare(report, at, 'returned', action.get('returns'), formatResult(environment.run(side, name, args)));
    before = hashes.compare(report, at, action, before, environment);
  }
  const start = row.get('start') as unknown as Row;
  for (const [side, name] of SIDES) {
    compare(report, where, `${name} hash at the start`, start.get(`${name}_hash`), hashes.of(environment, side));
    compare(report, where, `${name} digest at the start`, start.get(`${name}_digest`), environment.digest(side));
  }
}

function replayRun(
  domain: Domain,
  task: TauTask,
  gold: Environment,
  run: Row,
  where: string,
  report: Report,
  hashes: Hashes,
): number {
  const isSolo = run.get('run') === 'gold_solo';
  const environment = openEnvironment(domain, task, isSolo);
  const start = openEnvironment(domain, task, isSolo);
  const messages: Message[] = [];
  const calls = run.get('calls') as unknown as readonly Row[];
  let before = hashes.all(environment);
  for (const [i, call] of calls.entries()) {
    const [side, name, args] = [
      call.get('by') as Side,
      String(call.get('name')),
      call.get('args') as Arguments & Map<string, PyValue>,
    ];
    const at = `${where}, call ${i} (${name})`;
    const { text, error } = environment.call(side, name, args);
    compare(report, at, 'text', call.get('text'), text);
    compare(report, at, 'error', call.get('error'), error);
    before = hashes.compare(report, at, call, before, environment);
    messages.push({ role: side, content: '', calls: [{ id: '', name, args }] });
  }
  const end = run.get('end') as unknown as Row;
  for (const [side, name] of SIDES) {
    compare(report, where, `${name} hash at the end`, end.get(`${name}_hash`), hashes.of(environment, side));
    compare(report, where, `${name} digest at the end`, end.get(`${name}_digest`), environment.digest(side));
    const [was, is] = [start.databaseOf(side), environment.databaseOf(side)];
    const changes = was === undefined || is === undefined ? [] : changesOf(was, is);
    compare(report, where, `${name} changes`, toJson(end.get(`${name}_diff`)!), changes.map(toPlainChange));
  }
  messages.push({ role: 'assistant', content: String(run.get('say') ?? ''), calls: [] });
  compareReward(report, where, run.get('reward') as unknown as Row, () => rewardOf(task, messages, environment, gold));
  return calls.length;
}

function toPlainChange(change: readonly unknown[]): unknown[] {
  return change.length === 3 ? [change[0], change[1], toJson(change[2] as PyValue)] : [...change];
}

/** Hashes of a domain's states, each computed once: most calls change nothing. */
class Hashes {
  readonly #known = new Map<string, string | null>();

  of(environment: Environment, side: Side): string | null {
    const database = environment.databaseOf(side);
    const key = `${side} ${database === undefined ? '' : fingerprintOf(database)}`;
    let hash = this.#known.get(key);
    if (hash === undefined) {
      hash = environment.hash(side);
      this.#known.set(key, hash);
    }
    return hash;
  }

  /** Hashes of both sides. */
  all(environment: Environment): readonly (string | null)[] {
    return SIDES.map(([side]) => this.of(environment, side));
  }

  /** Compares hashes after a call: a recording has those that the call changed. @returns ours */
  compare(report: Report, where: string, row: Row, before: readonly (string | null)[], environment: Environment) {
    const after = this.all(environment);
    for (const [i, [, name]] of SIDES.entries()) {
      compare(report, where, `${name} hash`, row.get(`${name}_hash`) ?? before[i], after[i]);
    }
    return after;
  }
}

/** Compares a reward; what no judge has seen counts as met in the recordings. */
function compareReward(report: Report, where: string, recorded: Row, compute: () => RewardInfo): void {
  let ours: RewardInfo;
  try {
    ours = compute();
  } catch (thrown) {
    if (!(thrown instanceof PyError)) throw thrown;
    compare(report, where, 'evaluator raised', recorded.get('evaluator_raised'), thrown.message);
    return;
  }
  const breakdown = { ...ours.breakdown, ...(ours.notJudged > 0 ? { NL_ASSERTION: 1 } : {}) };
  const rows: readonly (readonly [string, unknown])[] = [
    ['reward', ours.reward],
    ['breakdown', sortKeys(breakdown)],
    ['db_match', ours.isTarget],
    ['env_assertions', ours.assertions],
    ['action_checks', ours.actions],
    ['communicate', ours.communicated],
    ['nl_not_judged', ours.notJudged],
  ];
  for (const [name, got] of rows) {
    const value = recorded.get(name);
    const expected = value === undefined ? undefined : toJson(value);
    compare(report, where, `reward: ${name}`, name === 'breakdown' ? sortKeys(expected as object) : expected, got);
  }
}

function sortKeys(record: object): object {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
