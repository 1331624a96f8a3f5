/**
 * Published episodes, re-played: the authors' gold sequences as version 1.3.0 answers them, their texts of 2022, and
 * episodes that others played on AgentGym's server. The older texts list what is seen in no fixed order and spell some
 * names otherwise, so of them the parts of a text are compared, in any order.
 */
import { crc32 } from 'node:zlib';
import { UserError } from '../../src/core/errors.ts';
import type { Difference, ParityCounts, ServedWorld, ServeWorld } from '../../src/core/parity.ts';
import { agentgym } from './agentgym.ts';
import { points, SciWorld } from './env.ts';
import { rulesOf } from './options.ts';
import { findRegistered, type Simplification, Simulator } from './simulator.ts';

type Report = (difference: Difference) => void;

interface PublishedEpisode {
  readonly task: string;
  readonly variation: number;
  readonly simplifications: readonly Simplification[];
}
/** Episode as 1.3.0 answers it. */
interface ExactEpisode extends PublishedEpisode {
  readonly description: string;
  /** The checksum `seen` is of what is seen and carried, with a null character between. */
  readonly steps: readonly (readonly [
    action: string,
    observation: string,
    score: number,
    done: boolean,
    moves: number,
    valid: number,
    validSum: number,
    seen: number,
  ])[];
}
/** Episode as it was published in 2022. */
interface OldEpisode extends PublishedEpisode {
  readonly steps: readonly (readonly [action: string, observation: string, score: number])[];
}
/** Episode on AgentGym's server; `score` of a whole one. */
interface ServedEpisode {
  readonly idx: number;
  /** End of the first observation. */
  readonly first_end: string;
  readonly steps: readonly (readonly [action: string, observation: string])[];
  readonly score: number | null;
}

/** Moves after which the original ends an episode. */
const MOVE_LIMIT = 100;

/** True for episodes of one of these kinds. */
export function isPublished(record: object): boolean {
  return 'first_end' in record || ('simplifications' in record && 'steps' in record);
}

/** Plays them again. @throws {UserError} BAD_ARGUMENT without a server for episodes on AgentGym's */
export function replayPublished(
  records: readonly unknown[],
  report: Report,
  serve: ServeWorld | undefined,
): ParityCounts | Promise<ParityCounts> {
  const first = records[0] as object;
  if ('first_end' in first) return replayServed(records as readonly ServedEpisode[], report, serve);
  let steps = 0;
  for (const [n, record] of (records as readonly (ExactEpisode | OldEpisode)[]).entries()) {
    const { task, variation, simplifications } = record;
    const where = `episode ${n} (${task}, variation ${variation})`;
    const registered = findRegistered(task);
    if (!registered) {
      report({ where, what: 'task', expected: task, got: undefined });
      continue;
    }
    const simulator = new Simulator(registered, variation, simplifications);
    if ('description' in record) replayExact(where, record, simulator, report);
    else replayOld(where, record, simulator, report);
    steps += record.steps.length;
  }
  return { episodes: records.length, steps };
}

function replayExact(where: string, episode: ExactEpisode, simulator: Simulator, report: Report): void {
  compare(report, where, 'description', episode.description, simulator.description);
  for (const [i, [action, observation, score, done, moves, valid, validSum, seen]] of episode.steps.entries()) {
    const at = `${where}, step ${i}`;
    const after = `after ${JSON.stringify(action)}`;
    compare(report, at, `observation ${after}`, observation, simulator.step(action));
    const list = simulator.valid();
    const now = points(simulator.goals.score);
    const over = simulator.goals.complete || now < 0 || simulator.moves > MOVE_LIMIT;
    compare(report, at, `score, done and moves ${after}`, [score, done, moves], [now, over, simulator.moves]);
    const sum = crc32(list.join('\n'));
    compare(report, at, `number and checksum of the valid actions ${after}`, [valid, validSum], [list.length, sum]);
    const view = `${simulator.look()}\0${simulator.inventory()}`;
    compare(report, at, `checksum of what is seen and carried ${after}`, seen, crc32(view));
  }
}

function replayOld(where: string, episode: OldEpisode, simulator: Simulator, report: Report): void {
  for (const [i, [action, observation, score]] of episode.steps.entries()) {
    const at = `${where}, step ${i}`;
    const after = `after ${JSON.stringify(action)}`;
    const got = simulator.step(spellNew(action));
    simulator.drawValid();
    compare(report, at, `observation ${after}`, partsOf(spellNew(observation)), partsOf(got));
    compare(report, at, `score ${after}`, score, points(simulator.goals.score));
  }
}

/** Names that were spelled otherwise in 2022. */
const SPELLINGS = [
  ['green house', 'greenhouse'],
  ['bath tub', 'bathtub'],
  ['sandwhich', 'sandwich'],
  ['cachew', 'cashew'],
] as const;

function spellNew(text: string): string {
  return SPELLINGS.reduce((spelled, [old, now]) => spelled.replaceAll(old, now), text);
}

/** Parts of a text, sorted: what stands between its marks, and around what joins the things in a vessel. */
function partsOf(text: string): string[] {
  return text
    .split(/[\n\t,.:()]+|\bcontaining\b|\band\b/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .sort();
}

async function replayServed(
  episodes: readonly ServedEpisode[],
  report: Report,
  serve: ServeWorld | undefined,
): Promise<ParityCounts> {
  if (!serve)
    throw new UserError('BAD_ARGUMENT', 'sciworld: these episodes need AgentGym’s server; use `npm run parity`');
  const server = await serve({ createEnv: (options = {}) => new SciWorld(rulesOf(options)), agentgym });
  let steps = 0;
  try {
    for (const [n, { idx, first_end, steps: recorded, score }] of episodes.entries()) {
      const where = `episode ${n} (data_idx ${idx})`;
      const { id } = await post(server, '/create', {});
      const { observation } = await post(server, '/reset', { id, data_idx: idx });
      compare(report, where, 'end of the first observation', first_end, String(observation).slice(-first_end.length));
      let last: Readonly<Record<string, unknown>> = {};
      for (const [i, [action, expected]] of recorded.entries()) {
        last = await post(server, '/step', { id, action });
        const what = `observation after ${JSON.stringify(action)}`;
        compare(report, `${where}, step ${i}`, what, expected, last.observation);
      }
      if (score !== null) compare(report, where, 'score and done at the end', [score, true], [last.score, last.done]);
      steps += recorded.length;
    }
  } finally {
    await server.close();
  }
  return { episodes: episodes.length, steps };
}

async function post(server: ServedWorld, path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const answer = await server.handle({ method: 'POST', path, body: JSON.stringify(body) });
  return JSON.parse(answer.body) as Readonly<Record<string, unknown>>;
}

function compare(report: Report, where: string, what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
}
