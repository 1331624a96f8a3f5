/**
 * Tree of the calls of an episode. A call continues the longest earlier context, its answer included, that its messages
 * begin with under equal tools; every other call begins a chain.
 *
 * Contexts are compared by chained hashes: the hash of k messages is made of the hash of k − 1 and of message k. A call of T
 * messages costs one pass over them, whatever came before; an answered call leaves one hash behind.
 *
 * Messages are equal where role, text, and calls (name, arguments as JSON values) are. Ids do not count: they decide among
 * equal contexts. Reasoning must be equal, or absent on one side: most clients drop it.
 */
import { hash } from 'node:crypto';
import { parseJson } from '../core/json-text.ts';
import type { AssistantMessage, ConversationMessage, ModelCall, Tool } from '../core/model-call.ts';

/** Reasoning within a context, the latest first; the nodes before it are shared with the calls that it continues. */
interface Reasoning {
  /** Place of its message. */
  readonly at: number;
  readonly text: string;
  readonly before: Reasoning | undefined;
}

/** Call in its tree. */
export class TreeCall {
  readonly parent: TreeCall | null;
  /** Messages of the parent's context and its answer; 0 where there is no parent. */
  readonly shared: number;
  /** Messages of its context, the answer left out. */
  readonly length: number;
  /** Place in the order of arrival. */
  readonly order: number;
  /** Hash of its context. */
  readonly context: string;
  /** Reasoning within its context. */
  readonly reasoning: Reasoning | undefined;
  /** Hash of its context and its answer; undefined while it is nobody's parent. */
  answered: string | undefined;
  /** Ids of the calls of its answer. */
  callIds: readonly string[] = [];
  /** Reasoning within its context and its answer. */
  answeredReasoning: Reasoning | undefined;
  /** Calls that continue it, those that were withdrawn left out. */
  continued = 0;
  isWithdrawn = false;
  /** Number by which the episode knows it; undefined until it has one. */
  number: number | undefined;
  /** Id of its reply, where that is kept for later requests. */
  replyId: string | undefined;

  constructor(
    parent: TreeCall | null,
    shared: number,
    length: number,
    order: number,
    context: string,
    reasoning: Reasoning | undefined,
  ) {
    this.parent = parent;
    this.shared = shared;
    this.length = length;
    this.order = order;
    this.context = context;
    this.reasoning = reasoning;
  }
}

/** Contexts that a call may continue; of older ones nothing is known, and what continues them begins a chain. */
const MAX_CONTEXTS = 100_000;

/** Tree of the calls of one episode. */
export class CallTree {
  readonly #max: number;
  /** Answered calls by the hash of context and answer. */
  readonly #answered = new Map<string, TreeCall[]>();
  #order = 0;
  #tools = { text: '', hash: '' };

  /** @param max contexts that are remembered */
  constructor(max = MAX_CONTEXTS) {
    this.#max = max;
  }

  /** Adds a call: finds what it continues. */
  add({ messages, tools }: Pick<ModelCall, 'messages' | 'tools'>): TreeCall {
    const hashes: string[] = [];
    let context = this.#hashTools(tools);
    for (const message of messages) hashes.push((context = chain(context, message)));
    let parent: TreeCall | null = null;
    let shared = messages.length;
    for (; shared > 0; shared--) {
      if (messages[shared - 1]!.role !== 'assistant') continue;
      const candidates = this.#answered.get(hashes[shared - 1]!);
      parent = (candidates && choose(candidates, messages)) ?? null;
      if (parent) break;
    }
    let reasoning = parent?.answeredReasoning;
    for (let at = shared; at < messages.length; at++) reasoning = addReasoning(reasoning, at, messages[at]!);
    if (parent) parent.continued++;
    return new TreeCall(parent, shared, messages.length, this.#order++, context, reasoning);
  }

  /** Makes a call a possible parent. */
  answer(call: TreeCall, answer: AssistantMessage): void {
    if (call.isWithdrawn || call.answered !== undefined) return;
    const key = chain(call.context, answer);
    call.answered = key;
    call.callIds = (answer.calls ?? []).map(({ id }) => id);
    call.answeredReasoning = addReasoning(call.reasoning, call.length, answer);
    const equals = this.#answered.get(key);
    if (equals) equals.push(call);
    else this.#answered.set(key, [call]);
    if (this.#answered.size > this.#max) this.#answered.delete(this.#answered.keys().next().value!);
  }

  /** Takes a call out of the tree, e.g. one that was refused: it is nobody's parent, and continues nothing. */
  withdraw(call: TreeCall): void {
    if (call.isWithdrawn) return;
    call.isWithdrawn = true;
    if (call.parent) call.parent.continued--;
    if (call.answered === undefined) return;
    const equals = this.#answered.get(call.answered);
    const at = equals?.indexOf(call) ?? -1;
    if (at < 0) return; // forgotten
    if (equals!.length === 1) this.#answered.delete(call.answered);
    else equals!.splice(at, 1);
  }

  #hashTools(tools: readonly Tool[]): string {
    const text = JSON.stringify(tools);
    // As a rule a program sends the same tools each time.
    if (this.#tools.text !== text) {
      const shapes = tools.map(({ name, description, parameters }) => [name, description ?? '', parameters]);
      this.#tools = { text, hash: digest(canonicalJson(shapes)) };
    }
    return this.#tools.hash;
  }
}

/** Call that a context continues: its reasoning agrees, its ids are echoed, it was continued least, it is the oldest. */
function choose(candidates: readonly TreeCall[], messages: readonly ConversationMessage[]): TreeCall | undefined {
  let best: { readonly call: TreeCall; readonly isEchoed: boolean } | undefined;
  for (const call of candidates) {
    if (!agrees(call.answeredReasoning, messages)) continue;
    const isEchoed = candidates.length === 1 || areIdsEchoed(call, messages);
    if (!best || (isEchoed === best.isEchoed ? isBefore(call, best.call) : isEchoed)) best = { call, isEchoed };
  }
  return best?.call;
}

function isBefore(a: TreeCall, b: TreeCall): boolean {
  return a.continued < b.continued || (a.continued === b.continued && a.order < b.order);
}

/** True where the messages carry the ids of all calls of the chain that ends with this one. */
function areIdsEchoed(last: TreeCall, messages: readonly ConversationMessage[]): boolean {
  for (let call: TreeCall | null = last; call; call = call.parent) {
    const echo = messages[call.length];
    const echoed = echo?.role === 'assistant' ? (echo.calls ?? []) : [];
    if (call.callIds.some((id, i) => echoed[i]?.id !== id)) return false;
  }
  return true;
}

/** True where each message has the reasoning that is known of it, or none. */
function agrees(known: Reasoning | undefined, messages: readonly ConversationMessage[]): boolean {
  for (let one = known; one; one = one.before) {
    const message = messages[one.at];
    if (message?.role === 'assistant' && message.reasoning && message.reasoning !== one.text) return false;
  }
  return true;
}

function addReasoning(before: Reasoning | undefined, at: number, message: ConversationMessage): Reasoning | undefined {
  return message.role === 'assistant' && message.reasoning ? { at, text: message.reasoning, before } : before;
}

/** Hash of a context and one more message. */
function chain(context: string, message: ConversationMessage): string {
  return digest(context + canonicalMessage(message));
}

/** Text that is equal for equal messages alone. */
export function canonicalMessage(message: ConversationMessage): string {
  if (message.role !== 'assistant') return `${message.role} ${message.content}`;
  const { content, calls = [] } = message;
  if (calls.length === 0) return `assistant ${JSON.stringify(content)}`;
  return `assistant ${JSON.stringify([content, calls.map((call) => [call.name, canonicalArguments(call.arguments)])])}`;
}

/** Arguments with sorted keys and without white space; broken ones as they stand, none at all as `{}`. */
function canonicalArguments(text: string): string {
  if (text.trim() === '') return '{}';
  try {
    return canonicalJson(parseJson(text));
  } catch {
    return text;
  }
}

/** Levels of nesting that are put in order; deeper values stay as they are. */
const MAX_NESTING = 500;

/** JSON with sorted keys. Keys without a value are left out. @throws {RangeError} beyond 500 levels of nesting */
export function canonicalJson(value: unknown): string {
  return isSorted(value, 0) ? (JSON.stringify(value) ?? 'null') : sortedJson(value);
}

/** True for a value whose keys are in order all the way down: most are. */
function isSorted(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === MAX_NESTING) throw new RangeError(`values nested more than ${MAX_NESTING} levels deep`);
  if (Array.isArray(value)) return value.every((item) => isSorted(item, depth + 1));
  let last: string | undefined;
  for (const key in value) {
    if ((last !== undefined && key < last) || !isSorted((value as Fields)[key], depth + 1)) return false;
    last = key;
  }
  return true;
}

function sortedJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  const fields = value as Fields;
  const keys = Object.keys(fields).filter((key) => fields[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${sortedJson(fields[key])}`)
    .join(',')}}`;
}

type Fields = Readonly<Record<string, unknown>>;

function digest(text: string): string {
  return hash('sha256', text, 'base64');
}
