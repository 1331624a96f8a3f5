/** Saved episodes scored again by the user's function, and written with their new rewards where that is asked for. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AgentOutcome } from '../../core/agent-call.ts';
import { MAX_SETTINGS_BYTES, readBounded } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { explainWrite, writeFileAtomic } from '../../storage/atomic-file.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { TraceFiles } from '../../storage/trace-files.ts';
import type { StoredEpisode, TraceStore } from '../../storage/trace-store.ts';
import type { ConfiguredEnv } from '../../world/env-id.ts';
import { relocateEnv } from '../traced-env.ts';
import { EpisodeScorer } from './episode-scorer.ts';
import { type EpisodeScore, type RescoreReport, reportRescored } from './rescore-report.ts';

/** File beside the new traces that says where they come from. */
const RESCORED_FILE = 'rescored.json';

export interface RescoreOptions {
  /** Trace to score, and its path. */
  readonly store: TraceStore;
  readonly path: string;
  /** World of the trace. */
  readonly env: ConfiguredEnv;
  /** Path of the module that exports `verify`. */
  readonly verify: string;
  /** Milliseconds that one episode may take. */
  readonly limitMs: number;
  /** Episodes scored at once, each in a thread of its own. */
  readonly threads: number;
  /** Only episodes of this purpose. */
  readonly purpose?: string | undefined;
  /** True for a row a task instead of a row a sub-task. */
  readonly byTask?: boolean | undefined;
  /** New folder for a trace with the new rewards. */
  readonly out?: string | undefined;
  readonly onNotice: (line: string) => void;
  readonly onProgress: (done: number, of: number) => void;
  /** Resolves, with the reason, when it is to end early. */
  readonly interrupted: Promise<string>;
}

/** Outcome of scoring again. */
export interface Rescored extends RescoreReport {
  /** Episodes that were asked for. */
  readonly asked: number;
  /** Hash of the module, by which its rewards are told from another one's. */
  readonly sha256: string;
}

/**
 * Gives every saved episode a new reward. An episode without one is listed, and left out of the new trace: it is never 0.
 * @throws {UserError} BAD_ARGUMENT for a module without the function, or a purpose that the trace has not; RUN_EXISTS,
 *   NO_PERMISSION for `out`
 */
export async function rescore(options: RescoreOptions): Promise<Rescored> {
  const { store, path, purpose, out, threads, onProgress } = options;
  const chosen = store.episodes.filter((one) => purpose === undefined || one.purpose === purpose);
  if (chosen.length === 0) {
    const known = [...new Set(store.episodes.map((one) => one.purpose))].join(', ') || 'none';
    throw new UserError('BAD_ARGUMENT', `${path}: no episode matches; it holds ${store.size} of purpose ${known}`);
  }
  if (out !== undefined && existsSync(out)) {
    throw new UserError('RUN_EXISTS', `--out ${out} exists already; name a new folder`);
  }
  const { url, sha256 } = readModule(options.verify);
  const scorers = Array.from({ length: Math.min(threads, chosen.length) }, () => {
    const { env, limitMs, onNotice } = options;
    return new EpisodeScorer({ path: options.verify, url, env, limitMs, onNotice });
  });
  const writer = out === undefined ? undefined : new RescoredTrace(options, out, sha256);
  const groups = groupEpisodes(chosen);
  const scores = new Map<StoredEpisode, EpisodeScore>();
  let stopped = false;
  let ended = 0;
  const endGroups = (all: boolean) => {
    for (; ended < groups.length; ended++) {
      const group = groups[ended]!;
      if (!all && group.some((one) => !scores.has(one))) return;
      writer?.write(group, scores);
    }
  };
  const stop = () => {
    stopped = true;
    return Promise.all(scorers.map((scorer) => scorer.close()));
  };
  void options.interrupted.then(stop);
  try {
    await scorers[0]!.start(); // a module that cannot be used is refused once, before anything is written
    let next = 0;
    const ordered = groups.flat();
    const work = async (scorer: EpisodeScorer) => {
      while (next < ordered.length && !stopped) {
        const stored = ordered[next++]!;
        const score = await scoreStored(store, stored, scorer);
        if (stopped && score.failed !== undefined) return; // cut off: it has not been scored
        scores.set(stored, score);
        endGroups(false);
        onProgress(scores.size, ordered.length);
      }
    };
    await Promise.all(scorers.map(work));
    endGroups(true);
  } finally {
    await stop();
    writer?.close();
  }
  const done = groups.map((group) => ({ size: group.length, scores: group.flatMap((one) => scores.get(one) ?? []) }));
  const report = reportRescored(done, options.byTask === true);
  const { all } = report;
  writer?.finish({
    asked: chosen.length,
    episodes: all.episodes,
    failed: report.episodes.filter(({ failed }) => failed),
  });
  return { ...report, asked: chosen.length, sha256 };
}

/** @throws {UserError} BAD_ARGUMENT for a path without a module */
function readModule(path: string): { readonly url: string; readonly sha256: string } {
  try {
    const sha256 = createHash('sha256').update(readBounded(path, MAX_SETTINGS_BYTES)).digest('hex');
    return { url: pathToFileURL(resolve(path)).href, sha256 };
  } catch (thrown) {
    throw new UserError(
      'BAD_ARGUMENT',
      `--verify ${path}: expected a module that exports verify: ${messageOf(thrown)}`,
    );
  }
}

/** Episodes by group, in the order of the trace. */
function groupEpisodes(episodes: readonly StoredEpisode[]): readonly (readonly StoredEpisode[])[] {
  return [...groupBy(episodes, ({ group, purpose, file }) => `${group} ${purpose} ${file}`).values()];
}

async function scoreStored(store: TraceStore, stored: StoredEpisode, scorer: EpisodeScorer): Promise<EpisodeScore> {
  const { episode, group, purpose, label, env, index, seed, success, at } = stored;
  const about = { episode, group, purpose, label, task: { env, index, seed } };
  const facts = { ...about, old: { reward: stored.return, success } };
  let read: TraceLine;
  try {
    read = store.read(at);
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown;
    return { ...facts, failed: thrown.message };
  }
  if (read.turns.length === 0) return { ...facts, failed: 'it has no turn that could carry a reward' };
  const scored = await scorer.score(read);
  return 'failed' in scored ? { ...facts, failed: scored.failed } : { ...facts, new: scored.outcome };
}

/**
 * Gives an episode its new reward: the last turn carries it, as the world's would at the end, and the recorded ones stand
 * beside it. Advantages go: they were computed from the recorded rewards.
 */
function applyReward(
  episode: TraceLine,
  { reward, success, metrics }: AgentOutcome,
  by: { readonly verify: string; readonly sha256: string },
): TraceLine {
  const last = episode.turns.length - 1;
  return {
    ...episode,
    turns: episode.turns.map(({ advantage: _, ...turn }, t) => ({ ...turn, reward: t === last ? reward : 0 })),
    success,
    rescored: {
      ...by,
      metrics,
      old: { success: episode.success, rewards: episode.turns.map((turn) => turn.reward) },
    },
  };
}

/** Trace of episodes with their new rewards, in a folder of its own. */
class RescoredTrace {
  readonly #options: RescoreOptions;
  readonly #out: string;
  readonly #by: { readonly verify: string; readonly sha256: string };
  readonly #files: TraceFiles;

  constructor(options: RescoreOptions, out: string, sha256: string) {
    this.#options = options;
    this.#out = out;
    this.#by = { verify: basename(options.verify), sha256 };
    this.#files = new TraceFiles({
      dir: join(out, 'traces'),
      config: relocateEnv(options.store.config, options.path, out),
    });
  }

  /** Writes what is scored of a group; what cannot be read any more has failed. @throws {UserError} NO_PERMISSION with the system's words */
  write(group: readonly StoredEpisode[], scores: Map<StoredEpisode, EpisodeScore>): void {
    const episodes = group.flatMap((stored) => {
      const score = scores.get(stored);
      if (!score?.new) return [];
      try {
        return [applyReward(this.#options.store.read(stored.at), score.new, this.#by)];
      } catch (thrown) {
        if (!(thrown instanceof UserError)) throw thrown;
        scores.set(stored, { ...score, new: undefined, failed: thrown.message }); // removed meanwhile by its run
        return [];
      }
    });
    const [first] = episodes;
    if (!first) return;
    const { purpose, label } = first;
    explainWrite(this.#out, () => this.#files.episodes(episodes, purpose, label));
  }

  close(): void {
    this.#files.close();
  }

  /** Writes where the trace comes from, and what it lacks; nothing where no episode was written. */
  finish(facts: { readonly asked: number; readonly episodes: number; readonly failed: readonly EpisodeScore[] }): void {
    if (facts.episodes === 0) return;
    const source = resolve(this.#options.path);
    const about = { format: 1, source, ...this.#by, ...facts };
    const path = join(this.#out, RESCORED_FILE);
    explainWrite(this.#out, () => writeFileAtomic(path, `${JSON.stringify(about, null, 2)}\n`));
  }
}
