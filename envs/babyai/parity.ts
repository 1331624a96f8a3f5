/**
 * Parity of BabyAI: replays recorded episodes and compares everything they recorded, `npm run parity -- babyai
 * <file>...`. Four kinds of file are distinguished by their lines: raw Minigrid episodes, AgentGym text episodes,
 * layouts and HTTP exchanges.
 */
import { crc32 } from 'node:zlib';
import type { Difference, Parity } from '../../src/core/parity.ts';
import { COLOR_NAMES, IMAGE_BYTES, STATE_NAMES, TYPE_NAMES } from './grid.ts';
import { generate } from './levels.ts';
import { OriginalText } from './original.ts';
import { type Description, type Instruction, isSequence, PutNext } from './verifier.ts';
import { FIRST_OBJECT, type World } from './world.ts';

type Json = Record<string, unknown>;

/** Comparison: compares, counts and reports. */
class Comparison {
  episodes = 0;
  steps = 0;
  readonly #report: (difference: Difference) => void;

  constructor(report: (difference: Difference) => void) {
    this.#report = report;
  }

  /** @param where what is compared, e.g. `raw level 3 seed 1 step 7` */
  check(where: string, what: string, ours: unknown, theirs: unknown): void {
    if (!deepEqual(ours, theirs)) this.#report({ where, what, expected: theirs, got: ours });
  }
}

/** True for deeply equal JSON values; key order counts, because the order of available actions does. */
function deepEqual(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Replays a golden file of any of the four kinds; a layout counts as an episode of no steps. */
export const parity: Parity = (records, report) => {
  const comparison = new Comparison(report);
  const lines = records as readonly Json[];
  if (lines[0] && 'method' in lines[0]) replayHttp([...lines], comparison);
  else for (const record of lines) replayRecord(record, comparison);
  return { episodes: comparison.episodes, steps: comparison.steps };
};

function replayRecord(record: Json, report: Comparison): void {
  report.episodes++;
  const { level, seed } = record as { level: number; seed: number };
  if (record.env === 'babyai-raw') replayRaw(record, generate(level, seed), report);
  else if (record.env === 'babyai-text') replayText(record, report);
  else {
    const where = `layout level ${level} seed ${seed}`;
    const { second_reset: second, level: _l, id: _i, seed: _s, data_idx: index, ...state } = record;
    report.check(where, 'data_idx', level - 1 + 40 * seed, index);
    compareState(where, generate(level, seed), state, report);
    compareState(`${where} after a second reset`, generate(level, seed, 2), (second ?? state) as Json, report);
  }
}

function replayRaw(record: Json, world: World, report: Comparison): void {
  const name = `raw level ${record.level} seed ${record.seed} ${record.policy}`;
  const image = new Uint8Array(IMAGE_BYTES);
  const initial = record.initial as Json;
  compareState(`${name} start`, world, record.state as Json, report);
  world.observe(image);
  report.check(`${name} start`, 'image', base64(world.staleImage ?? image), initial.image);
  report.check(`${name} start`, 'direction', world.agentDir, initial.direction);
  report.check(`${name} start`, 'mission', world.mission, initial.mission);
  for (const [t, step] of (record.steps as Json[]).entries()) {
    report.steps++;
    const where = `${name} step ${t} action ${step.a}`;
    world.step(step.a as number);
    world.observe(image);
    report.check(where, 'image', base64(image), step.image);
    report.check(where, 'dir', world.agentDir, step.dir);
    report.check(where, 'reward', world.reward, step.reward);
    report.check(where, 'terminated', world.terminated, step.terminated);
    report.check(where, 'truncated', world.truncated, step.truncated);
    comparePlace(where, world, step, report);
  }
  compareState(`${name} end`, world, record.final as Json, report);
}

function replayText(record: Json, report: Comparison): void {
  const name = `text level ${record.level} seed ${record.seed} ${record.policy}`;
  const session = new OriginalText(record.data_idx as number);
  const { world } = session;
  const initial = record.initial as Json;
  compareState(`${name} start`, world, record.state as Json, report);
  comparePlace(`${name} start`, world, { ...(record.start as Json) }, report);
  report.check(`${name} start`, 'goal', session.goal, record.goal);
  report.check(`${name} start`, 'mission', world.mission, record.mission);
  report.check(`${name} start`, 'max_steps', world.maxSteps, record.max_steps);
  report.check(`${name} start`, 'observation', session.payload.observation, initial.observation);
  report.check(`${name} start`, 'reward', session.payload.reward, initial.reward);
  report.check(`${name} start`, 'score', session.payload.score, initial.score);
  report.check(`${name} start`, 'done', session.payload.done, initial.done);
  report.check(`${name} start`, 'macros', macros(session), record.initial_macro);
  for (const [t, step] of (record.steps as Json[]).entries()) {
    report.steps++;
    const action = step.action as string;
    const where = `${name} step ${t} ${JSON.stringify(action)}`;
    report.check(where, 'low-level actions', session.expand(action), step.low);
    if (session.payload.done) {
      report.check(where, 'error', `The task with environment`, String(step.error).slice(0, 25));
    } else {
      const payload = session.step(action);
      report.check(where, 'observation', payload.observation, step.observation);
      report.check(where, 'reward', payload.reward, step.reward);
      report.check(where, 'score', payload.score, step.score);
      report.check(where, 'done', payload.done, step.done);
      report.check(where, 'error', undefined, step.error);
    }
    comparePlace(where, world, step, report);
    report.check(where, 'env_steps', world.stepCount, step.env_steps);
  }
}

/** Replays the env's share of recorded exchanges: the answers of `/reset`, `/step` and `/observation`. */
function replayHttp(records: readonly Json[], report: Comparison): void {
  report.episodes++;
  let session: OriginalText | undefined;
  for (const [n, record] of records.entries()) {
    const where = `http exchange ${n} ${record.method} ${record.path}`;
    const body = (record.body ?? {}) as Json;
    const response = record.response as Json;
    // Other ids, broken bodies and a closed environment are the server's business.
    if (record.status !== 200) continue;
    const isOurs = Number.isFinite(Number(body.id)) && Math.trunc(Number(body.id)) === 0;
    if (record.path === '/close') session = undefined;
    if (typeof response !== 'object') continue;
    if (record.path === '/reset' && isOurs) {
      if ('error' in response) {
        report.check(where, 'refused', isRefused(Number(body.data_idx)), true);
        continue;
      }
      session = new OriginalText(Number(body.data_idx));
      report.check(where, 'reset', { ...session.payload, deleted: false }, reorder(response));
    } else if (session && record.path === '/step' && isOurs) {
      report.steps++;
      if (session.payload.done) report.check(where, 'finished', 'error' in response, true);
      else report.check(where, 'step', session.step(String(body.action)), response);
    } else if (session && record.path === '/observation?id=0') {
      const { reward, score, done } = session.payload;
      const observation = session.observe();
      report.check(where, 'observation', { observation, reward, score, done, deleted: false }, reorder(response));
    }
  }
}

function isRefused(index: number): boolean {
  try {
    new OriginalText(index);
    return false;
  } catch (thrown) {
    return thrown instanceof RangeError;
  }
}

/** Reorders keys as ours are ordered. */
function reorder({ observation, reward, score, done, deleted }: Json): Json {
  return { observation, reward, score, done, deleted };
}

function macros(session: OriginalText): Record<string, number[]> {
  return Object.fromEntries(session.available().map((action) => [action, session.expand(action)]));
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function comparePlace(where: string, world: World, recorded: Json, report: Comparison): void {
  const carried = world.codes[world.carrying]!;
  report.check(where, 'pos', [world.agentX, world.agentY], recorded.pos);
  report.check(where, 'dir', world.agentDir, recorded.dir);
  report.check(
    where,
    'carrying',
    world.carrying === 0 ? null : [TYPE_NAMES[carried & 0xff], COLOR_NAMES[(carried >>> 8) & 0xff]],
    recorded.carrying,
  );
  report.check(where, 'grid_crc', crc32(world.encode()), recorded.grid_crc);
}

function compareState(where: string, world: World, recorded: Json, report: Comparison): void {
  const ours: Json = {
    width: world.width,
    height: world.height,
    grid: base64(world.encode()),
    objects: objectsOf(world),
    agent_pos: [world.agentX, world.agentY],
    agent_dir: world.agentDir,
    carrying: world.carrying === 0 ? null : objectOf(world, world.carrying),
    mission: world.mission,
    instrs: instructionOf(world, world.instruction),
    max_steps: world.maxSteps,
    step_count: world.stepCount,
    room_size: world.roomSize,
    num_rows: world.numRows,
    num_cols: world.numCols,
    agent_view_size: 7,
    see_through_walls: false,
  };
  for (const key of new Set([...Object.keys(ours), ...Object.keys(recorded)])) {
    report.check(where, key, ours[key], recorded[key]);
  }
}

function objectOf(world: World, id: number): Json {
  const code = world.codes[id]!;
  const type = TYPE_NAMES[code & 0xff]!;
  const out: Json = { type, color: COLOR_NAMES[(code >>> 8) & 0xff]! };
  const state = STATE_NAMES[code >>> 16];
  if (type === 'door') Object.assign(out, { is_open: state === 'open', is_locked: state === 'locked' });
  if (world.contents[id]! > 0) out.contains = objectOf(world, world.contents[id]!);
  return out;
}

function objectsOf(world: World): Json[] {
  const out: Json[] = [];
  for (let y = 0; y < world.height; y++) {
    for (let x = 0; x < world.width; x++) {
      const id = world.cells[world.at(x, y)]!;
      if (id >= FIRST_OBJECT) out.push({ x, y, ...objectOf(world, id) });
    }
  }
  return out;
}

function descriptionOf(world: World, description: Description): Json {
  return {
    type: description.type === null ? null : TYPE_NAMES[description.type]!,
    color: description.color === null ? null : COLOR_NAMES[description.color]!,
    loc: description.location,
    positions: description.cells.map((cell) => [world.xOf(cell), world.yOf(cell)]),
  };
}

function instructionOf(world: World, instruction: Instruction): Json {
  const { kind } = instruction;
  if (isSequence(instruction)) {
    const { a, b } = instruction;
    return { kind, strict: false, instr_a: instructionOf(world, a), instr_b: instructionOf(world, b) };
  }
  const strict = 'strict' in instruction ? { strict: instruction.strict } : {};
  if (instruction instanceof PutNext) {
    const { moving, fixed } = instruction;
    return { kind, ...strict, desc_move: descriptionOf(world, moving), desc_fixed: descriptionOf(world, fixed) };
  }
  const { target } = instruction as unknown as { target: Description };
  return { kind, ...strict, desc: descriptionOf(world, target) };
}
