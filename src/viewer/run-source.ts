/** Run source: a run folder (or a bare trace) as the viewer reads it; follows a run that is still writing. */
import { existsSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { describeWorlds, findEnvOf } from '../config/worlds.ts';
import { readText } from '../core/bounded-file.ts';
import { type ReadTurn, readCallTurns } from '../core/call-episode.ts';
import { describeReply } from '../core/call-text.ts';
import type { Draw, Drawing } from '../core/draw.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { ConversationMessage } from '../core/model-call.ts';
import type { Screenshot } from '../core/screenshot.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import { wholeLines } from '../storage/lines.ts';
import { parseLine, type TraceLine } from '../storage/trace.ts';
import { type StoredEpisode, type TraceLoss, TraceStore } from '../storage/trace-store.ts';
import { buildRecordedConversation } from '../text/prompts/conversation.ts';
import type {
  Curves,
  EpisodeHit,
  EpisodeRow,
  EpisodeView,
  GroupView,
  Plain,
  RunInfo,
  SearchPage,
  ShownMessage,
} from './api.ts';
import { CurveBuffer } from './curve-buffer.ts';
import { EvaluationFiles } from './evaluations.ts';
import { type EpisodeFilters, passes } from './query.ts';
import { matchRow, matchTurns, mayHold, needleOf } from './search.ts';

/** World tools: the parts of a world that the viewer needs. */
export interface WorldTools {
  readonly draw?: Draw;
  readonly screenshot?: Screenshot;
  /** Text of a token id. */
  readonly spell?: (id: number) => string;
}

/** Lookup of a world by id; undefined for one that is not installed. */
export type WorldsOf = (env: string) => Promise<WorldTools>;

/** Most states of an episode that are drawn, or have their screenshots shown; later ones show their text alone. */
const MAX_DRAWINGS = 200;
/** Most members of a group that are put side by side. */
const MAX_MEMBERS = 32;
/** Bytes of a trace that one piece of a search reads, the last episode whole; some tenths of a second. */
const SEARCH_BYTES = 8 * 1024 * 1024;
/** Bytes that opening a file is worth, found or not. */
const OPENING_BYTES = 512;
/** Hits after which a piece of a search ends. */
const SEARCH_HITS = 50;

export class RunSource {
  readonly #path: string;
  readonly #id: number;
  readonly #worlds: WorldsOf;
  readonly #store: TraceStore;
  readonly #curves = new CurveBuffer();
  readonly #rows: EpisodeRow[] = [];
  readonly #evaluations: EvaluationFiles | undefined;
  readonly #config: { readonly text: string; readonly value: Record<string, unknown> };
  #metricsBytes = 0;

  /** @throws {UserError} UNKNOWN_RUN for a path that is neither a run nor a trace */
  constructor(path: string, id: number, worlds: WorldsOf) {
    if (!existsSync(path)) throw new UserError('UNKNOWN_RUN', `${path} does not exist; give a run's folder or a trace`);
    this.#path = path;
    this.#id = id;
    this.#worlds = worlds;
    const folder = statSync(path).isDirectory();
    if (
      folder &&
      !['config.yaml', 'metrics.jsonl', 'traces', '00001.jsonl'].some((name) => existsSync(join(path, name)))
    ) {
      throw new UserError('UNKNOWN_RUN', `${path} is no run: it has neither config.yaml, metrics.jsonl nor traces`);
    }
    this.#store = TraceStore.follow(path);
    this.#evaluations = folder ? new EvaluationFiles(path) : undefined;
    this.#config = folder ? readConfig(join(path, 'config.yaml')) : { text: '', value: {} };
    this.refresh();
  }

  /** Refreshes: reads what was written since. */
  refresh(): void {
    this.#store.refresh();
    for (let at = this.#rows.length; at < this.#store.size; at++) this.#rows.push(rowOf(this.#store.episodes[at]!));
    this.#readMetrics(join(this.#path, 'metrics.jsonl'));
  }

  /** Losses of its traces. */
  get losses(): readonly TraceLoss[] {
    return this.#store.losses;
  }

  /** Stamp of what has been read of the run: equal while nothing was added. */
  get stamp(): string {
    return `${this.#store.bytes} ${this.#rows.length} ${this.#metricsBytes}`;
  }

  get info(): RunInfo {
    const config = this.#configValue();
    const { seed, ...rest } = config;
    return {
      id: this.#id,
      name: basename(resolve(this.#path)),
      env: describeWorlds(config) ?? this.#store.episodes[0]?.env ?? '?',
      seed: typeof seed === 'number' ? seed : undefined,
      family: Object.keys(config).length === 0 ? `run ${this.#id}` : JSON.stringify(rest),
      episodes: this.#rows.length,
      rows: this.#curves.rows,
      config: this.#config.text,
    };
  }

  get curves(): Curves {
    return { ...this.#curves.curves, evaluations: this.#evaluations?.rows() ?? [] };
  }

  get rows(): readonly EpisodeRow[] {
    return this.#rows;
  }

  /**
   * Episode at a place.
   * @throws {RangeError} outside the list; {UserError} BAD_TRACE when it was rotated away meanwhile
   */
  async episode(at: number): Promise<EpisodeView> {
    const episode = this.#store.read(at);
    const tools = await this.#worlds(episode.task.env);
    const calls = readCallTurns(episode.turns, episode.finalObservation);
    return {
      at,
      episode: plain(episode),
      drawings: drawings(tools.draw, episode, this.#envOptions(episode.task.env)),
      screenshots: this.#screenshots(tools.screenshot, episode).map((path, state) =>
        path === undefined ? null : `api/runs/${this.#id}/episodes/${at}/screenshots/${state}`,
      ),
      spelling: spelling(tools.spell, episode),
      conversation: conversationOf(episode, calls),
      calls: calls ?? [],
    };
  }

  /** File of an episode's screenshot. @param state in [0, turns] @throws {RangeError} where none was kept */
  async screenshot(at: number, state: number): Promise<string> {
    const episode = this.#store.read(at);
    const { screenshot } = await this.#worlds(episode.task.env);
    const path = this.#screenshots(screenshot, episode)[state];
    if (path === undefined) throw new RangeError(`no screenshot of state ${state} of episode ${at}`);
    return path;
  }

  /** Paths by state; undefined where there is no file. */
  #screenshots(find: Screenshot | undefined, { task, turns, finalObservation }: TraceLine): (string | undefined)[] {
    const options = this.#envOptions(task.env);
    if (!find) return [];
    const seen = [...turns.map(({ observation }) => observation), finalObservation].slice(0, MAX_DRAWINGS);
    return seen.map((observation) => {
      const path = find(task, observation, options);
      return path !== undefined && existsSync(path) ? path : undefined;
    });
  }

  async group(at: number): Promise<GroupView> {
    const members = this.#store.groupOf(at).slice(0, MAX_MEMBERS);
    return { members: await Promise.all(members.map((member) => this.episode(member.at))) };
  }

  /**
   * Searches the text of episodes, from the newest to the oldest; one piece of bounded bytes.
   * @param below place that it starts below; the piece before returned it
   */
  search(text: string, filters: EpisodeFilters, below = this.#rows.length): SearchPage {
    const needle = needleOf(text);
    const hits: EpisodeHit[] = [];
    let searched = 0;
    let bytes = 0;
    let at = Math.min(below, this.#rows.length);
    while (at > 0 && needle !== '' && bytes < SEARCH_BYTES && hits.length < SEARCH_HITS) {
      const row = this.#rows[--at]!;
      if (!passes(row, filters)) continue;
      const line = this.#line(at);
      bytes += OPENING_BYTES + (line?.length ?? 0);
      if (line === undefined) continue;
      searched++;
      const match = matchRow(row, needle) ?? matchLine(line, needle);
      if (match) hits.push({ row, match });
    }
    return { hits, searched, next: at > 0 && needle !== '' ? at : null };
  }

  /** Line of an episode in its trace; undefined where that was rotated away. */
  #line(at: number): string | undefined {
    try {
      return this.#store.line(at);
    } catch (thrown) {
      if (thrown instanceof UserError) return undefined;
      throw thrown;
    }
  }

  #configValue(): Record<string, unknown> {
    const { value } = this.#config;
    return Object.keys(value).length > 0 ? value : ((this.#store.config as Record<string, unknown> | undefined) ?? {});
  }

  /** Options of the world that a task names. */
  #envOptions(named: string): EnvOptions {
    const env = findEnvOf(this.#configValue(), named) as { options?: EnvOptions } | undefined;
    return env?.options ?? {};
  }

  /**
   * Reads whole new lines of metrics.jsonl; a damaged one is left out, and a last one being written comes next time.
   */
  #readMetrics(path: string): void {
    if (!existsSync(path)) return;
    for (const { text = '', offset, length } of wholeLines(path, this.#metricsBytes)) {
      this.#metricsBytes = offset + length + 1;
      const row = rowFrom(text);
      if (row) this.#curves.add(row);
    }
  }
}

function matchLine(line: string, needle: string): EpisodeHit['match'] | undefined {
  const episode = mayHold(line, needle) ? parseLine(line).episode : undefined;
  return episode && matchTurns(episode, needle);
}

function rowFrom(line: string): MetricsRow | undefined {
  try {
    const row: unknown = parseJson(line);
    return typeof row === 'object' && row !== null ? (row as MetricsRow) : undefined;
  } catch {
    return undefined;
  }
}

function readConfig(path: string): { text: string; value: Record<string, unknown> } {
  if (!existsSync(path)) return { text: '', value: {} };
  let text = '';
  try {
    text = readText(path);
    const value: unknown = parse(text, { logLevel: 'error' });
    return { text, value: typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {} };
  } catch {
    return { text, value: {} }; // shown as it is; everything else works without
  }
}

function rowOf(stored: StoredEpisode): EpisodeRow {
  const { at, episode, group, index, seed, label, purpose, horizon, turns, success, truncated, version } = stored;
  return {
    at,
    episode,
    group,
    task: index,
    seed,
    label,
    purpose,
    horizon,
    turns,
    return: stored.return,
    success,
    truncated,
    version,
  };
}

/** Converts to the form that JSON has. */
function plain(episode: TraceLine): Plain<TraceLine> {
  const turns = episode.turns.map(({ actions, decision, ...turn }) => ({
    ...turn,
    actions: Array.from(actions),
    ...(decision
      ? {
          decision:
            decision.kind === 'choice'
              ? {
                  ...decision,
                  context: Array.from(decision.context),
                  ...(decision.likeliest ? { likeliest: Array.from(decision.likeliest) } : {}),
                }
              : {
                  ...decision,
                  context: Array.from(decision.context),
                  tokens: Array.from(decision.tokens),
                  logprobs: Array.from(decision.logprobs),
                },
        }
      : {}),
  }));
  return { ...episode, turns } as Plain<TraceLine>;
}

function drawings(
  draw: Draw | undefined,
  { task, turns, finalObservation }: TraceLine,
  options: EnvOptions,
): (Drawing | null)[] {
  if (!draw) return [];
  const first = { kind: 'first', observation: turns[0]?.observation ?? finalObservation } as const;
  const seen = turns.map(({ action }, t) => ({ action, observation: turns[t + 1]?.observation ?? finalObservation }));
  return Array.from({ length: Math.min(turns.length + 1, MAX_DRAWINGS) }, (_, t) => {
    try {
      return draw(task, first, seen.slice(0, t), options);
    } catch {
      return null; // recorded under another version of the world
    }
  });
}

function spelling(spell: WorldTools['spell'], { turns }: TraceLine): Record<number, string> {
  const texts: Record<number, string> = {};
  if (!spell) return texts;
  for (const { decision } of turns) {
    if (!decision) continue;
    for (const id of [...decision.context, ...(decision.kind === 'tokens' ? decision.tokens : [])]) {
      if (texts[id] !== undefined) continue;
      try {
        texts[id] = spell(id);
      } catch {
        texts[id] = `#${id}`;
      }
    }
  }
  return texts;
}

/** Conversation of an episode: that of its calls, or that with a language model. One message a turn has a reward. */
function conversationOf(episode: TraceLine, calls: readonly ReadTurn[] | undefined): readonly ShownMessage[] {
  const { turns } = episode;
  if (!calls) return turns.some(({ response }) => response) ? buildRecordedConversation(episode) : [];
  const shown = calls.flatMap(({ messages, reply }, t): ShownMessage[] => {
    const { action, reward } = turns[t]!;
    return [
      ...messages.map(shownMessage),
      { role: 'assistant', content: reply ? describeReply(reply) : action, reward },
    ];
  });
  const last = calls.at(-1)?.reply?.next ?? [];
  return [...shown, ...last.map(shownMessage)];
}

function shownMessage(message: ConversationMessage): ShownMessage {
  return { role: message.role, content: describeReply(message) };
}
