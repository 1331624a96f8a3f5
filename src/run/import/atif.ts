/**
 * ATIF, Harbor's Agent Trajectory Interchange Format: a document of steps. An agent's step is a call of the model, what it
 * observed and what others said come before the next. Trajectories of sub-agents are conversations of their own. What
 * `longplay export --format atif` has put into `extra.longplay` brings an episode back as it was. Pure but for the files of
 * sub-agents.
 * @see https://harborframework.com/docs/trajectory-format
 */
import { append } from '../../core/extremes.ts';
import type { AssistantMessage, ConversationMessage, ToolCall } from '../../core/model-call.ts';
import { isRecord, recordOf, recordsOf } from '../../core/record.ts';
import type { TokensDecision } from '../../core/trajectory.ts';
import type { Losses } from './losses.ts';
import { CallBuilder, type CallFacts, countOf, type ReadEpisode } from './read-episode.ts';
import { readTools } from './read-messages.ts';

type Json = Record<string, unknown>;

/** True for a document of ATIF. */
export function isAtif(value: unknown): boolean {
  return isRecord(value) && Array.isArray(value.steps) && isVersion(value.schema_version);
}

function isVersion(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('ATIF');
}

/** Options of reading a document. */
export interface AtifOptions {
  readonly losses: Losses;
  /** Opens the file of a sub-agent's trajectory; undefined where it cannot be read. */
  readonly open?: ((path: string) => unknown) | undefined;
}

/** Fields that are read, or that name what is known otherwise. */
const ROOT = [
  ...['schema_version', 'session_id', 'trajectory_id', 'agent', 'steps', 'final_metrics', 'extra'],
  'subagent_trajectories',
];
const STEP = [
  ...['step_id', 'source', 'message', 'reasoning_content', 'tool_calls', 'observation', 'metrics', 'is_copied_context'],
  ...['llm_call_count', 'extra'],
];
const METRICS = ['prompt_tokens', 'completion_tokens', 'prompt_token_ids', 'completion_token_ids', 'logprobs', 'extra'];

/** Reads a document as an episode. */
export function readAtif(document: unknown, { losses, open }: AtifOptions): ReadEpisode {
  const root = recordOf(document) ?? {};
  const reader = new AtifReader(losses, open);
  const rest = reader.read(root);
  return {
    calls: reader.builder.calls,
    rest: reader.builder.end(rest),
    scores: readScores(root),
    ...(typeof root.session_id === 'string' ? { id: root.session_id } : {}),
  };
}

/** Scores of a document: ATIF has no field for them; `reward` and `rewards` in an `extra` are taken. */
function readScores({ extra, final_metrics: metrics }: Json): Record<string, number> {
  const scores: Record<string, number> = {};
  for (const place of [recordOf(extra), recordOf(recordOf(metrics)?.extra)]) {
    if (!place) continue;
    for (const [name, value] of [['reward', place.reward] as const, ...Object.entries(recordOf(place.rewards) ?? {})]) {
      if (typeof value === 'number' && Number.isFinite(value)) scores[name] = value;
    }
  }
  return scores;
}

/** Reader of a document and of the documents within it. */
class AtifReader {
  readonly builder = new CallBuilder();
  readonly #losses: Losses;
  readonly #open: ((path: string) => unknown) | undefined;
  readonly #below = new Map<string, Json>();
  readonly #files = new Map<string, unknown>();
  readonly #seen = new Set<unknown>();
  /** Places of calls by the numbers that our export gave them. */
  readonly #numbers = new Map<number, number>();

  constructor(losses: Losses, open: ((path: string) => unknown) | undefined) {
    this.#losses = losses;
    this.#open = open;
  }

  /** Reads a document. @returns the messages behind its last reply */
  read(document: Json): ConversationMessage[] {
    const losses = this.#losses;
    this.#seen.add(document);
    for (const below of recordsOf(document.subagent_trajectories)) this.#below.set(String(below.trajectory_id), below);
    losses.addOthers(document, ROOT, '');
    losses.addOthers(document.extra, ['longplay', 'reward', 'rewards'], 'extra');
    const { extra: sums, ...totals } = recordOf(document.final_metrics) ?? {};
    losses.addOthers(totals, TOTALS, 'final_metrics');
    losses.addOthers(sums, ['reward', 'rewards'], 'final_metrics.extra');
    const agent = recordOf(document.agent);
    losses.addOthers(agent, ['name', 'version', 'tool_definitions'], 'agent');
    const tools = readTools(agent?.tool_definitions, losses, 'agent.tool_definitions');
    const forked = recordOf(recordOf(document.extra)?.longplay)?.parent;
    let parent: number | null = typeof forked === 'number' ? this.#placeOf(forked) : null;
    let whole: ConversationMessage[] = [];
    let fresh: ConversationMessage[] = [];
    let tokens: number[] | undefined;
    for (const step of recordsOf(document.steps)) {
      const isCall = step.source === 'agent' && step.is_copied_context !== true && step.llm_call_count !== 0;
      losses.addOthers(step, STEP, 'steps[]');
      losses.addOthers(step.extra, ['longplay', 'reward'], 'steps[].extra');
      const message = this.#readMessage(step);
      if (isCall && whole.length + fresh.length === 0) {
        losses.add('steps[] (of the agent, with nothing to answer)');
        continue;
      }
      if (isCall) {
        const facts = this.#readFacts(step, tokens);
        // A turn behind another one continues no reply: its conversation begins anew.
        if (fresh.length === 0) parent = null;
        const asked = parent === null ? [...whole, ...fresh] : fresh;
        parent = this.builder.add(parent, asked, message as AssistantMessage, tools, facts);
        this.#note(step, parent);
        tokens = promptWith(step);
        whole = [...whole, ...fresh, message];
        fresh = [];
      } else if (!(step.is_copied_context === true && parent !== null)) fresh.push(message);
      append(fresh, this.#readResults(step));
      if (this.#runBelow(step) && isCall) tokens = undefined;
    }
    return fresh;
  }

  #note(step: Json, place: number): void {
    const number = recordOf(recordOf(step.extra)?.longplay)?.call;
    if (typeof number === 'number') this.#numbers.set(number, place);
  }

  #placeOf(number: number): number | null {
    return this.#numbers.get(number) ?? null;
  }

  #readMessage(step: Json): ConversationMessage {
    const content = this.#readText(step.message, 'steps[].message');
    if (step.source !== 'agent') return { role: step.source === 'system' ? 'system' : 'user', content };
    const calls = recordsOf(step.tool_calls).map((call): ToolCall => {
      this.#losses.addOthers(call, ['tool_call_id', 'function_name', 'arguments', 'extra'], 'steps[].tool_calls[]');
      this.#losses.addOthers(call.extra, ['longplay'], 'steps[].tool_calls[].extra');
      const written = recordOf(recordOf(call.extra)?.longplay)?.arguments;
      return {
        id: String(call.tool_call_id),
        name: String(call.function_name),
        arguments: typeof written === 'string' ? written : JSON.stringify(call.arguments ?? {}),
      };
    });
    const { reasoning_content: reasoning } = step;
    return {
      role: 'assistant',
      content,
      ...(typeof reasoning === 'string' ? { reasoning } : {}),
      ...(calls.length > 0 ? { calls } : {}),
    };
  }

  /** Reads the results of a step: those of its calls, and what else it observed as the user's. */
  #readResults(step: Json): ConversationMessage[] {
    const known = new Set(recordsOf(step.tool_calls).map((call) => call.tool_call_id));
    return recordsOf(recordOf(step.observation)?.results).flatMap((result): ConversationMessage[] => {
      const { source_call_id: callId, content: given, extra } = result;
      this.#losses.addOthers(extra, ['longplay', 'is_error'], 'steps[].observation.results[].extra');
      const { call_id: ours, is_error: isError } = { ...recordOf(extra), ...recordOf(recordOf(extra)?.longplay) };
      const id = typeof callId === 'string' && known.has(callId) ? callId : ours;
      // A reference to a sub-agent alone observes nothing.
      if (given === undefined || given === null) return [];
      const content = this.#readText(given, 'steps[].observation.results[].content');
      if (typeof id !== 'string') return [{ role: 'user', content }];
      return [{ role: 'tool', callId: id, content, ...(isError === true ? { isError } : {}) }];
    });
  }

  /** Reads the trajectories of sub-agents that a step started. @returns true where it started some */
  #runBelow(step: Json): boolean {
    const references = recordsOf(recordOf(step.observation)?.results).flatMap((one) =>
      recordsOf(one.subagent_trajectory_ref),
    );
    for (const { trajectory_id: id, trajectory_path: path } of references) {
      const opened = typeof path === 'string' ? this.#openOnce(path) : undefined;
      const below = this.#below.get(String(id)) ?? recordOf(opened);
      if (!below) this.#losses.add('steps[].observation.results[].subagent_trajectory_ref (not found)');
      else if (!this.#seen.has(below)) {
        const rest = this.read(below);
        this.#losses.add('subagent_trajectories[].steps[] (behind the last reply)', rest.length);
      }
    }
    return references.length > 0;
  }

  /** Opens a file, once: documents may name each other in a circle. */
  #openOnce(path: string): unknown {
    if (!this.#files.has(path)) this.#files.set(path, this.#open?.(path));
    return this.#files.get(path);
  }

  #readFacts(step: Json, before: readonly number[] | undefined): CallFacts {
    const metrics = recordOf(step.metrics) ?? {};
    this.#losses.addOthers(metrics, METRICS, 'steps[].metrics');
    this.#losses.addOthers(metrics.extra, ['longplay', 'reward'], 'steps[].metrics.extra');
    const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = metrics;
    const rewards = [recordOf(step.extra)?.reward, recordOf(metrics.extra)?.reward];
    return {
      promptTokens: countOf(promptTokens),
      completionTokens: countOf(completionTokens),
      decision: readDecision(metrics, before, this.#losses),
      reward: rewards.find((one): one is number => typeof one === 'number' && Number.isFinite(one)),
    };
  }

  #readText(value: unknown, path: string): string {
    if (typeof value === 'string') return value;
    const texts: string[] = [];
    for (const part of recordsOf(value)) {
      if (part.type === 'text') texts.push(String(part.text ?? ''));
      else this.#losses.add(`${path}[type=${String(part.type)}]`);
    }
    return texts.join('');
  }
}

/** Totals that the steps give again. */
const TOTALS = ['total_prompt_tokens', 'total_completion_tokens', 'total_steps'];

/** Reads the token ids of a step. @param before ids of the prompt and the reply that it continues */
function readDecision(
  metrics: Json,
  before: readonly number[] | undefined,
  losses: Losses,
): TokensDecision | undefined {
  const { prompt_token_ids: prompt, completion_token_ids: tokens, logprobs } = metrics;
  if (!isIds(tokens) || tokens.length === 0) {
    if (tokens !== undefined && tokens !== null) losses.add('steps[].metrics.completion_token_ids');
    if (logprobs !== undefined && logprobs !== null) losses.add('steps[].metrics.logprobs (without token ids)');
    if (prompt !== undefined && prompt !== null)
      losses.add('steps[].metrics.prompt_token_ids (without those of the reply)');
    return undefined;
  }
  const fits = Array.isArray(logprobs) && logprobs.length === tokens.length && logprobs.every(Number.isFinite);
  if (!fits && logprobs !== undefined && logprobs !== null) losses.add('steps[].metrics.logprobs (not one a token)');
  const ids = isIds(prompt) ? prompt : [];
  const isContinued = before !== undefined && before.length <= ids.length && before.every((id, i) => id === ids[i]);
  return {
    kind: 'tokens',
    version: 0,
    value: 0,
    context: Int32Array.from(isContinued ? ids.slice(before.length) : ids),
    tokens: Int32Array.from(tokens),
    // A log-probability that is not known is not a number: a learner leaves such episodes out.
    logprobs: fits ? Float32Array.from(logprobs) : new Float32Array(tokens.length).fill(Number.NaN),
    masked: false,
  };
}

/** Ids of a step's prompt and reply. */
function promptWith(step: Json): number[] | undefined {
  const { prompt_token_ids: prompt, completion_token_ids: tokens } = recordOf(step.metrics) ?? {};
  return isIds(prompt) && isIds(tokens) ? [...prompt, ...tokens] : undefined;
}

function isIds(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((id) => Number.isInteger(id) && id >= 0 && id < 2 ** 31);
}
