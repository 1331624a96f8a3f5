/**
 * Parity with ScienceWorld 1.3.0: every recorded step, with what can be seen, carried and done after it, and the whole
 * tree of things at the start; and with AgentGym's recorded exchanges as far as they are not physics, because those are
 * of version 1.2.3, which does not even repeat itself.
 */
import { crc32 } from 'node:zlib';
import { UserError } from '../../src/core/errors.ts';
import type { Difference, Parity, ParityCounts } from '../../src/core/parity.ts';
import { points } from './env.ts';
import { STATE_NAMES } from './materials.ts';
import { isPublished, replayPublished } from './parity-published.ts';
import { findRegistered, Simulator } from './simulator.ts';
import { TABLES } from './tasks.ts';
import type { Thing } from './thing.ts';

type Report = (difference: Difference) => void;

interface RecordedStep {
  readonly action: string;
  readonly observation: string;
  readonly reward: number;
  readonly score: number;
  readonly done: boolean;
  readonly moves: number;
  readonly n_valid: number;
  readonly valid_crc: number;
  readonly look?: string;
  readonly inv?: string;
}
interface RecordedThing {
  readonly uuid: string;
  readonly name: string;
  readonly propMaterial: {
    readonly temperatureC: number;
    readonly substanceName: string;
    readonly stateOfMatter: string;
  } | null;
  readonly propContainer: { readonly isOpen: boolean } | null;
  readonly propDevice: { readonly isActivated: boolean; readonly isBroken: boolean } | null;
  readonly contents: Readonly<Record<string, RecordedThing>>;
}
interface RecordedEpisode {
  readonly task: string;
  readonly variation: number;
  readonly data_idx: number | null;
  readonly policy: string;
  readonly task_description: string;
  readonly state: RecordedThing;
  readonly initial: RecordedStep;
  readonly initial_valid: readonly string[];
  readonly steps: readonly RecordedStep[];
}
interface Exchange {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly status: number;
  readonly response: Readonly<Record<string, unknown>> | null;
}

const MOVE_LIMIT = 100;

export const parity: Parity = (records, report, _file, serve) => {
  const [first] = records as readonly Record<string, unknown>[];
  if (first && isPublished(first)) return replayPublished(records, report, serve);
  if (first && 'initial_valid' in first) return replayEpisodes(records as readonly RecordedEpisode[], report);
  if (first && 'method' in first) return replayHttp(records as readonly Exchange[], report);
  throw new UserError('BAD_TRACE', 'sciworld: expected episodes of ScienceWorld or HTTP exchanges');
};

function replayEpisodes(episodes: readonly RecordedEpisode[], report: Report): ParityCounts {
  let steps = 0;
  for (const [n, episode] of episodes.entries()) {
    const where = `episode ${n} (${episode.task}, variation ${episode.variation}, ${episode.policy})`;
    const task = findRegistered(episode.task);
    if (!task) {
      report({ where, what: 'task', expected: episode.task, got: undefined });
      continue;
    }
    const simulator = new Simulator(task, episode.variation);
    compare(report, where, 'description', episode.task_description, simulator.description);
    compare(report, where, 'things at the start', flat(episode.state), listAll(simulator.world.universe));
    const inTable = episode.data_idx === null ? null : TABLES.agentgym.at(episode.data_idx);
    compare(
      report,
      where,
      'AgentGym index',
      inTable ? [episode.task, episode.variation] : null,
      inTable ? [inTable.registered.task.name, inTable.variation] : null,
    );
    steps += replaySteps(where, episode, simulator, report);
  }
  return { episodes: episodes.length, steps };
}

function replaySteps(where: string, episode: RecordedEpisode, simulator: Simulator, report: Report): number {
  let { look, inv } = episode.initial;
  let score = 0;
  const steps = [episode.initial, ...episode.steps];
  for (const [i, step] of steps.entries()) {
    const at = `${where}, step ${i - 1}`;
    const after = `after ${JSON.stringify(step.action)}`;
    look = step.look ?? look;
    inv = step.inv ?? inv;
    const observation = simulator.step(step.action);
    const valid = simulator.valid();
    const now = points(simulator.goals.score);
    const { complete } = simulator.goals;
    compare(report, at, `observation ${after}`, step.observation, observation);
    compare(report, at, `reward ${after}`, step.reward, now - score);
    compare(report, at, `score ${after}`, step.score, now);
    compare(report, at, `done ${after}`, step.done, complete || now < 0 || simulator.moves > MOVE_LIMIT);
    compare(report, at, `moves ${after}`, step.moves, simulator.moves);
    compare(report, at, `look ${after}`, look, simulator.look());
    compare(report, at, `inventory ${after}`, inv, simulator.inventory());
    if (i === 0) compare(report, at, 'valid actions', episode.initial_valid.toSorted(), valid);
    const [count, sum] = [valid.length, crc32(valid.join('\n'))];
    compare(
      report,
      at,
      `number and checksum of the valid actions ${after}`,
      [step.n_valid, step.valid_crc],
      [count, sum],
    );
    score = now;
  }
  return steps.length;
}

/** Task, description and kind of every answer; the physics' texts are another version's. */
function replayHttp(exchanges: readonly Exchange[], report: Report): ParityCounts {
  let episodes = 0;
  for (const [n, { path, body, status, response }] of exchanges.entries()) {
    if (path !== '/reset' || status !== 200 || !response || 'error' in response) continue;
    episodes++;
    // A list in Python counts negative indices from its end.
    const index = Number(body?.data_idx);
    const { registered, variation } = TABLES.agentgym.at(index < 0 ? index + TABLES.agentgym.count : index);
    const ours = {
      task_name: registered.task.name,
      var_num: variation,
      task_description: new Simulator(registered, variation).description,
    };
    const { task_name, var_num, task_description } = response;
    compare(report, `exchange ${n} (${path})`, 'task', { task_name, var_num, task_description }, ours);
  }
  return { episodes, steps: 0 };
}

/** One line a thing, in the order of a walk by id. */
function flat(thing: RecordedThing, path = ''): string[] {
  const { propMaterial: m, propContainer: c, propDevice: d } = thing;
  const inside = Object.values(thing.contents).sort((a, b) => Number(a.uuid) - Number(b.uuid));
  const at = `${path}/${thing.name}`;
  const line = describe(Number(thing.uuid), at, m && [m.substanceName, m.stateOfMatter, m.temperatureC], c?.isOpen, d);
  return [line, ...inside.flatMap((held) => flat(held, at))];
}

/** All things, one line each, as they are compared: number, path, matter, whether open and on. */
export function listAll(thing: Thing, path = ''): string[] {
  const { matter: m, container: c, device: d } = thing;
  const at = `${path}/${thing.name}`;
  const state = d && { isActivated: d.on, isBroken: d.broken };
  const line = describe(thing.id, at, m && [m.name, STATE_NAMES[m.state], m.temperature], c?.open, state);
  return [line, ...thing.contents.flatMap((held) => listAll(held, at))];
}

function describe(
  id: number,
  path: string,
  matter: readonly unknown[] | null,
  open: boolean | undefined,
  device: RecordedThing['propDevice'],
): string {
  return [id, path, ...(matter ?? []), open ?? '', device ? `${device.isActivated} ${device.isBroken}` : ''].join(' ');
}

function compare(report: Report, where: string, what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
}
