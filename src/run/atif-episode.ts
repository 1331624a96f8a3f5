/**
 * Episodes as documents of ATIF, and back. A document holds what ATIF has a field for; `extra.longplay` holds the difference
 * between the episode and what a reader of the document makes of it, so that nothing is lost on the way back. Pure.
 * @see https://harborframework.com/docs/trajectory-format
 */
import { type AgentCall, type AgentReply, createReplyMessage } from '../core/agent-call.ts';
import { followReplies, isCallEpisode } from '../core/call-episode.ts';
import { append, largestOf } from '../core/extremes.ts';
import { parseJson } from '../core/json-text.ts';
import type { AssistantMessage, ConversationMessage, Tool } from '../core/model-call.ts';
import { isRecord, recordOf } from '../core/record.ts';
import { episodeReturn, type Turn } from '../core/trajectory.ts';
import { parseLine, plainTrajectory, type TraceLine, toJson } from '../storage/trace.ts';
import { buildRecordedConversation } from '../text/prompts/conversation.ts';
import { printChatTool } from '../text/tools/plain-tools.ts';
import { readAtif } from './import/atif.ts';
import { Losses } from './import/losses.ts';
import { createTrajectory } from './import/read-episode.ts';

type Json = Record<string, unknown>;

/** Version of ATIF that is written. */
const ATIF_VERSION = 'ATIF-v1.8';
/** Version of what stands in `extra.longplay`. */
const PATCH_FORMAT = 1;

/** Document of ATIF. */
export interface AtifDocument {
  readonly schema_version: string;
  readonly session_id?: string;
  readonly trajectory_id?: string;
  readonly agent: Json;
  readonly steps: readonly Json[];
  readonly final_metrics?: Json;
  readonly extra?: Json;
  readonly subagent_trajectories?: readonly AtifDocument[];
}

/**
 * Converts an episode to a document of ATIF.
 * @param version of this program
 */
export function atifDocument(episode: TraceLine, version: string): AtifDocument {
  const document = createDocument(episode, version);
  const whole = toJson(plainTrajectory(episode)) as Json;
  const read = rebuild(document);
  return {
    ...document,
    extra: { ...document.extra, longplay: { format: PATCH_FORMAT, patch: diff(read, whole) ?? {} } },
  };
}

function createDocument(episode: TraceLine, version: string): AtifDocument {
  if (!isCallEpisode(episode.turns)) return textDocument(episode, version);
  try {
    return callDocument(episode, version);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return textDocument(episode, version); // a text that looked like a call
  }
}

/**
 * Restores the episode of a document that `atifDocument` made.
 * @returns undefined for any other document
 */
export function restoreEpisode(document: unknown): TraceLine | undefined {
  const extra = recordOf(recordOf(document)?.extra);
  const { format, patch } = recordOf(extra?.longplay) ?? {};
  if (format !== PATCH_FORMAT || !isRecord(patch)) return undefined;
  const { episode } = parseLine(JSON.stringify(apply(rebuild(document), patch)));
  return episode;
}

/** Episode as a reader of the document makes it, as plain JSON with its turns by number. */
function rebuild(document: unknown): Json {
  const read = readAtif(document, { losses: new Losses() });
  const facts = { episode: 0, index: 0, score: Object.values(read.scores)[0] };
  return toJson(plainTrajectory(createTrajectory(read, facts))) as unknown as Json;
}

/**
 * Difference between two JSON values: `{ "=": value }` in the place of the first, or for objects and lists `{ "+": { key:
 * difference }, "-": [keys] }`.
 * @returns undefined for equal values
 */
function diff(from: unknown, to: unknown): Json | undefined {
  const isBoth = isRecord(from) && isRecord(to);
  const areTurns = areObjects(from) && areObjects(to) && from.length === to.length;
  if (!isBoth && !areTurns) return JSON.stringify(from) === JSON.stringify(to) ? undefined : { '=': to };
  const [before, after] = [Object.entries(from), Object.entries(to)];
  const known = new Map(before);
  const changed = after.flatMap(([key, value]): [string, unknown][] => {
    const change = known.has(key) ? diff(known.get(key), value) : { '=': value };
    return change ? [[key, change]] : [];
  });
  const gone = before.map(([key]) => key).filter((key) => !Object.hasOwn(to, key));
  if (changed.length === 0 && gone.length === 0) return undefined;
  return {
    ...(changed.length > 0 ? { '+': Object.fromEntries(changed) } : {}),
    ...(gone.length > 0 ? { '-': gone } : {}),
  };
}

function areObjects(value: unknown): value is readonly Json[] {
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
}

/** Applies a difference. */
function apply(from: unknown, patch: Json): unknown {
  if ('=' in patch) return patch['='];
  const changes = recordOf(patch['+']) ?? {};
  const gone = Array.isArray(patch['-']) ? patch['-'] : [];
  const entries = new Map(Object.entries((from ?? {}) as Json).filter(([key]) => !gone.includes(key)));
  for (const [key, change] of Object.entries(changes)) {
    entries.set(key, apply(entries.get(key), recordOf(change) ?? {}));
  }
  return Array.isArray(from) ? [...entries.values()] : Object.fromEntries(entries);
}

/** Facts of the document that every episode has. */
function rootOf(episode: TraceLine, version: string, tools: readonly Tool[]) {
  return {
    schema_version: ATIF_VERSION,
    session_id: `${episode.task.env}-${episode.episode}`,
    agent: { name: 'longplay', version, ...(tools.length > 0 ? { tool_definitions: tools.map(printChatTool) } : {}) },
  };
}

/** Rewards, where readers of Harbor's rewards may find them. */
function scoreOf(episode: TraceLine) {
  return { final_metrics: { extra: { reward: episodeReturn(episode), success: episode.success } } };
}

function numbered(steps: readonly Json[]): Json[] {
  return steps.map((step, i) => ({ step_id: i + 1, ...step }));
}

/** Document of an episode that is text: what the model read, and what it answered. */
function textDocument(episode: TraceLine, version: string): AtifDocument {
  const steps: Json[] = [];
  let t = 0;
  for (const { role, content, reward } of buildRecordedConversation(episode)) {
    const last = steps.at(-1);
    if (role === 'assistant') {
      // The reply to the instructions is written by nobody.
      if (reward === undefined) steps.push({ source: 'agent', message: content, llm_call_count: 0 });
      else {
        const turn = episode.turns[t]!;
        const prompt = t === 0 && turn.decision ? [...turn.decision.context] : undefined;
        steps.push({ source: 'agent', message: content, ...metricsOf(turn, prompt) });
        t++;
      }
    } else if (last?.metrics !== undefined || (last?.source === 'agent' && last.llm_call_count === undefined)) {
      last.observation = { results: [{ content }] };
    } else steps.push({ source: role, message: content });
  }
  const last = steps.at(-1);
  if (last?.source === 'agent' && last.llm_call_count === undefined) {
    last.observation = { results: [{ content: episode.finalObservation }] };
  }
  // An episode without a turn has the observation alone.
  if (steps.length === 0) steps.push({ source: 'user', message: episode.finalObservation });
  return { ...rootOf(episode, version, []), steps: numbered(steps), ...scoreOf(episode) };
}

/** Metrics of a turn. @param prompt ids of the whole prompt; undefined where they are not known */
function metricsOf({ decision, response }: Turn, prompt: readonly number[] | undefined, usage?: AgentReply['usage']) {
  const asked = usage?.promptTokens || response?.promptTokens;
  const written = usage?.completionTokens || response?.completionTokens;
  const isWhole = decision?.kind === 'tokens' && decision.logprobs.every(Number.isFinite);
  const metrics = {
    ...(asked ? { prompt_tokens: asked } : {}),
    ...(written ? { completion_tokens: written } : {}),
    ...(decision?.kind === 'tokens' && prompt ? { prompt_token_ids: [...prompt] } : {}),
    ...(decision?.kind === 'tokens' ? { completion_token_ids: [...decision.tokens] } : {}),
    ...(isWhole ? { logprobs: [...decision.logprobs] } : {}),
  };
  return Object.keys(metrics).length > 0 ? { metrics } : {};
}

/** Call with its reply and the turn that made it. */
interface AnsweredTurn {
  readonly call: AgentCall;
  readonly tools: readonly Tool[];
  readonly reply: AgentReply;
  readonly turn: Turn;
  /** Ids of the whole prompt; undefined where they are not known. */
  readonly prompt: readonly number[] | undefined;
  /** Reply as a message, its calls under the ids of their results. */
  message: AssistantMessage;
}

/** Document of an episode of calls: the first conversation, and one within it for each that begins or branches off. */
function callDocument(episode: TraceLine, version: string): AtifDocument {
  const calls = answeredTurns(episode);
  const next = new Map<number, AnsweredTurn>();
  const heads: AnsweredTurn[] = [];
  for (const one of calls.values()) {
    const { parent } = one.call;
    if (parent === null || !calls.has(parent) || next.has(parent)) heads.push(one);
    else next.set(parent, one);
  }
  for (const [number, one] of calls) {
    const fresh = next.get(number)?.call.messages ?? [];
    one.message = createReplyMessage(one.reply, number, fresh);
  }
  const steps = new Map<number, Json>();
  const [first, ...others] = heads.map((head) => chainDocument(head, calls, next, steps));
  for (const [i, { head }] of others.entries()) {
    // The conversation was begun behind the newest reply before it.
    const before = [...steps.keys()].filter((number) => number < head && first!.document.numbers.has(number));
    const starter = steps.get(largestOf(before))!;
    const results = ((recordOf(starter.observation)?.results ?? []) as Json[]).slice();
    results.push({ subagent_trajectory_ref: [{ trajectory_id: `conversation-${i + 1}` }] });
    starter.observation = { results };
  }
  const below = others.map(({ document, tools, parent }, i) => ({
    ...rootOf(episode, version, tools),
    trajectory_id: `conversation-${i + 1}`,
    steps: numbered(document.steps),
    ...(parent === null ? {} : { extra: { longplay: { parent } } }),
  }));
  return {
    ...rootOf(episode, version, first?.tools ?? []),
    steps: numbered(first?.document.steps ?? [{ source: 'user', message: episode.finalObservation }]),
    ...scoreOf(episode),
    ...(below.length > 0 ? { subagent_trajectories: below } : {}),
  };
}

/** Calls that were answered, by number, each with the ids of its prompt. */
function answeredTurns(episode: TraceLine): Map<number, AnsweredTurn> {
  const calls = new Map<number, AnsweredTurn>();
  let running: number[] | undefined = [];
  let before: number | undefined;
  for (const { turn, call, tools, reply } of followReplies(episode.turns)) {
    const { decision } = turn as Turn;
    if (decision) {
      // A call that continues the newest reply appends to its ids; any other begins a prompt.
      if (call.parent !== before || call.parent === null) running = [...decision.context];
      else if (running) append(running, decision.context);
    }
    const prompt = running && decision ? [...running] : undefined;
    if (reply) calls.set(call.call, { call, tools, reply, turn: turn as Turn, prompt, message: NO_MESSAGE });
    if (decision?.kind !== 'tokens') running = undefined;
    else if (running) append(running, decision.tokens);
    before = call.call;
  }
  return calls;
}

const NO_MESSAGE: AssistantMessage = { role: 'assistant', content: '' };

/** Steps of the conversation that begins with a call. */
function chainDocument(
  head: AnsweredTurn,
  calls: ReadonlyMap<number, AnsweredTurn>,
  next: ReadonlyMap<number, AnsweredTurn>,
  steps: Map<number, Json>,
) {
  const made: Json[] = [];
  const numbers = new Set<number>();
  const { parent } = head.call;
  // What a branch shares with another is its context.
  const ancestors: AnsweredTurn[] = [];
  for (let at = parent === null ? undefined : calls.get(parent); at; ) {
    ancestors.unshift(at);
    at = at.call.parent === null ? undefined : calls.get(at.call.parent);
  }
  for (const { call, message } of ancestors) {
    addMessages(made, call.messages, true);
    made.push({ ...agentStep(message), is_copied_context: true });
  }
  for (let at: AnsweredTurn | undefined = head; at; at = next.get(at.call.call)) {
    addMessages(made, at.call.messages, false);
    const { call, reply, turn, prompt, message } = at;
    const step = {
      ...agentStep(message),
      ...metricsOf(turn, prompt, reply.usage),
      extra: { longplay: { call: call.call } },
    };
    made.push(step);
    steps.set(call.call, step);
    numbers.add(call.call);
  }
  return { head: head.call.call, parent, tools: head.tools, document: { steps: made, numbers } };
}

function agentStep({ content, reasoning, calls = [] }: AssistantMessage): Json {
  return {
    source: 'agent',
    message: content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, arguments: args }) => ({
            tool_call_id: id,
            function_name: name,
            ...printArguments(args),
          })),
        }),
  };
}

/** Arguments as an object; how they were written stands beside them where that differs. */
function printArguments(written: string): Json {
  let value: unknown;
  try {
    value = parseJson(written);
  } catch {} // broken ones are kept as they were written
  const args = recordOf(value) ?? {};
  return {
    arguments: args,
    ...(JSON.stringify(args) === written ? {} : { extra: { longplay: { arguments: written } } }),
  };
}

/** Adds messages as steps. The results of calls, and what has no step of its own, is what the step before observed. */
function addMessages(steps: Json[], messages: readonly ConversationMessage[], isCopied: boolean): void {
  const copied = isCopied ? { is_copied_context: true } : {};
  for (const message of messages) {
    if (message.role === 'assistant') {
      // A turn of the conversation that nobody has sampled here.
      steps.push({ ...agentStep(message), is_copied_context: true });
    } else if (message.role !== 'tool') {
      steps.push({ source: message.role, message: message.content, ...copied });
    } else {
      const { callId, content, isError } = message;
      const step = steps.findLast((one) => one.source === 'agent') ?? steps.at(-1);
      const known = ((step?.tool_calls ?? []) as Json[]).some((call) => call.tool_call_id === callId);
      const extra = {
        ...(isError ? { is_error: true } : {}),
        ...(known ? {} : { longplay: { call_id: callId } }),
      };
      const result = {
        ...(known ? { source_call_id: callId } : {}),
        content,
        ...(Object.keys(extra).length > 0 ? { extra } : {}),
      };
      if (!step) steps.push({ source: 'user', message: '', observation: { results: [result] } });
      else {
        const results = (recordOf(step.observation)?.results ?? []) as Json[];
        step.observation = { results: [...results, result] };
      }
    }
  }
}
