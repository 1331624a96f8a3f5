/**
 * Replies as lists: what a policy that chooses among listed actions can reply to a call. A tool is chosen first, then each
 * of its required arguments, from the schema's values or from what the conversation has shown.
 */
import { type AgentReply, NO_USAGE, readAgentReply } from './agent-call.ts';
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from './env.ts';
import { parseJson } from './json-text.ts';
import type { ConversationMessage, JsonSchema, ModelCall, Tool } from './model-call.ts';
import { isRecord } from './record.ts';

/** Text of the choice that replies in words, without a call. */
export const REPLY = 'reply';
/** Content of a reply in words: a chooser writes no text of its own. */
const REPLY_TEXT = 'Done.';

/** Values that a conversation has shown, newest last; each once. */
export class SeenValues {
  readonly #kept: readonly string[];
  readonly #values = new Set<string>();
  /** Texts whose values nobody has wanted yet: a policy that writes its replies never wants them. */
  #unread: string[] = [];

  /** @param kept values that count as the newest ones all the time, the first one first */
  constructor(kept: readonly string[] = []) {
    this.#kept = [...new Set(kept)];
  }

  /** Takes the values of new messages: strings and numbers of JSON, quoted texts, numbers, short pieces of lines. */
  add(messages: readonly ConversationMessage[]): void {
    for (const { role, content } of messages) {
      if (role !== 'assistant') this.#unread.push(content); // not our own words
    }
  }

  /** Newest values, the newest first. @param count at most */
  newest(count: number): string[] {
    return this.#newest(() => true, count);
  }

  /** Newest numbers among them. */
  newestNumbers(count: number): string[] {
    return this.#newest((value) => value.trim() !== '' && Number.isFinite(Number(value)), count);
  }

  #newest(isWanted: (value: string) => boolean, count: number): string[] {
    this.#read();
    const found = this.#kept.filter(isWanted);
    for (const value of [...this.#values].reverse()) {
      if (found.length >= count) break;
      if (isWanted(value) && !this.#kept.includes(value)) found.push(value);
    }
    return found.slice(0, count);
  }

  /** Reads the texts that came since values were wanted last. */
  #read(): void {
    for (const value of this.#unread.flatMap(valuesIn)) {
      this.#values.delete(value); // seen again: the newest
      this.#values.add(value);
    }
    this.#unread = [];
  }
}

/** Longest value, in UTF-16 units, and the longest text that is looked through. */
const MAX_VALUE = 200;
const MAX_TEXT = 16_384;
/** Words of a piece of a line that counts as a value. */
const MAX_WORDS = 6;

/** Values in a text. */
export function valuesIn(text: string): string[] {
  const found: string[] = [];
  const add = (value: string) => {
    const trimmed = value.trim();
    if (trimmed !== '' && trimmed.length <= MAX_VALUE) found.push(trimmed);
  };
  const shown = text.slice(0, MAX_TEXT);
  try {
    const json: unknown = parseJson(shown);
    if (typeof json === 'object' && json !== null) {
      addLeaves(json, add);
      return found;
    }
  } catch {} // no JSON: a text
  for (const line of shown.split('\n')) {
    if (line.length <= MAX_VALUE) add(line);
    for (const piece of line.split(/[,;:|]|\.\s/)) {
      const words = piece.trim().split(/\s+/);
      if (words.length <= MAX_WORDS) add(piece);
    }
    for (const [number] of line.matchAll(/(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)/g)) add(number);
    for (const [, double, single] of line.matchAll(/"([^"]+)"|(?<!\w)'([^']+)'/g)) add((double ?? single)!);
  }
  return found;
}

function addLeaves(value: unknown, add: (text: string) => void): void {
  if (typeof value === 'string') add(value);
  else if (typeof value === 'number') add(String(value));
  else if (Array.isArray(value)) for (const one of value) addLeaves(one, add);
  else if (isRecord(value)) for (const one of Object.values(value)) addLeaves(one, add);
}

/** Reply under construction: the tool that was chosen, and the arguments so far. */
export interface ReplyStage {
  readonly tool: Tool;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Choices of a stage, and what each means. */
export interface StageChoices {
  readonly texts: readonly string[];
  /** Takes a choice. @returns the next stage, or the reply; undefined for a text that is none of the choices */
  take(text: string): ReplyStage | AgentReply | undefined;
}

/** True for a reply, false for a stage. */
export function isReply(taken: ReplyStage | AgentReply): taken is AgentReply {
  return 'calls' in taken;
}

/** Lists the choices of a stage. @param stage absent: nothing is chosen yet */
export function listChoices(
  call: Pick<ModelCall, 'tools' | 'toolChoice'>,
  stage: ReplyStage | undefined,
  seen: SeenValues,
): StageChoices {
  if (!stage) return listTools(call, seen);
  const { tool, args } = stage;
  const name = requiredOf(tool).find((one) => !(one in args))!;
  const values = valuesFor(tool, name, seen);
  const byText = new Map(values.map((value) => [typeof value === 'string' ? value : JSON.stringify(value), value]));
  return {
    texts: [...byText.keys()],
    take(text) {
      if (!byText.has(text)) return undefined;
      return next({ tool, args: { ...args, [name]: byText.get(text) } });
    },
  };
}

function listTools({ tools, toolChoice }: Pick<ModelCall, 'tools' | 'toolChoice'>, seen: SeenValues): StageChoices {
  const callable = tools.filter((tool) => {
    if (toolChoice === 'none') return false;
    if (typeof toolChoice === 'object' && toolChoice.name !== tool.name) return false;
    const required = requiredOf(tool);
    return required.length < MAX_PARTIAL_STEPS && required.every((name) => valuesFor(tool, name, seen).length > 0);
  });
  const words = toolChoice === 'auto' || toolChoice === 'none' ? [REPLY] : [];
  return {
    texts: [...callable.map(({ name }) => name), ...words],
    take(text) {
      const tool = callable.find(({ name }) => name === text);
      if (tool) return next({ tool, args: {} });
      if (!words.includes(text)) return undefined;
      return { content: REPLY_TEXT, calls: [], finish: 'stop', usage: NO_USAGE };
    },
  };
}

/** The stage itself where arguments are missing, else its call. */
function next(stage: ReplyStage): ReplyStage | AgentReply {
  const { tool, args } = stage;
  if (requiredOf(tool).some((name) => !(name in args))) return stage;
  const calls = [{ name: tool.name, arguments: JSON.stringify(args) }];
  return { content: '', calls, finish: 'calls', usage: NO_USAGE };
}

function requiredOf({ parameters }: Tool): readonly string[] {
  const { required } = parameters;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

/** References that are followed one after another, and schemas that are looked at for one argument: they may go in circles. */
const MAX_REFERENCES = 8;
const MAX_SCHEMAS = 256;

/** Follows references within the tool's schema (`#/$defs/Color`); any value where one leads nowhere. */
function followReferences(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let found: unknown = schema;
  for (let i = 0; i < MAX_REFERENCES && isRecord(found) && typeof found.$ref === 'string'; i++) {
    const path = found.$ref.startsWith('#/') ? found.$ref.slice(2).split('/') : [];
    found = path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
  }
  return isRecord(found) && found.$ref === undefined ? found : {};
}

/** Values that an argument can take. Where one of several schemas lists its values, the others are left out. */
function valuesFor({ parameters }: Tool, name: string, seen: SeenValues): readonly unknown[] {
  const { properties } = parameters;
  const property = isRecord(properties) ? properties[name] : undefined;
  let schemas = 0;
  const valuesOf = (given: JsonSchema): readonly unknown[] => {
    if (++schemas > MAX_SCHEMAS) return [];
    const { enum: listed, const: only, type, anyOf } = followReferences(given, parameters);
    if (Array.isArray(listed)) return listed.slice(0, ACTIONS_PER_STAGE);
    if (only !== undefined) return [only];
    if (Array.isArray(anyOf)) {
      const members = anyOf.filter(isRecord).map((one) => followReferences(one, parameters));
      const listing = members.filter((one) => Array.isArray(one.enum) || one.const !== undefined);
      return (listing.length > 0 ? listing : members).flatMap(valuesOf).slice(0, ACTIONS_PER_STAGE);
    }
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (types.includes('boolean')) return [true, false];
    if (types.includes('integer') || types.includes('number')) {
      const numbers = seen.newestNumbers(ACTIONS_PER_STAGE).map(Number);
      return types.includes('number') ? numbers : numbers.filter(Number.isSafeInteger);
    }
    return types.includes('string') || type === undefined ? seen.newest(ACTIONS_PER_STAGE) : [];
  };
  return isRecord(property) ? valuesOf(property) : valuesOf({});
}

/** Call as far as it says what a reply may be. */
type Choosable = Pick<ModelCall, 'tools' | 'toolChoice'>;

/** Chooser of replies to the calls of an episode, one stage after another. */
export class ReplyChooser {
  readonly #seen: SeenValues;
  #call: Choosable = { tools: [], toolChoice: 'auto' };
  #stage: ReplyStage | undefined;
  #choices: StageChoices | undefined;

  /** @param kept values that are always offered, before those that the conversation has shown */
  constructor(kept?: readonly string[]) {
    this.#seen = new SeenValues(kept);
  }

  /** Begins with a call. @param messages those that came with it */
  begin(call: Choosable, messages: readonly ConversationMessage[]): void {
    this.#call = call;
    this.#stage = undefined;
    this.#choices = undefined;
    this.#seen.add(messages);
  }

  /** Choices of the present stage. A stage with one choice, which leads to another stage, is passed over. */
  list(): readonly string[] {
    return this.#list().texts;
  }

  /**
   * Takes an action: a choice of the present stage, a reply as JSON, or any other text, which is a reply in words.
   * @returns undefined where the choice leads to another stage
   */
  take(action: string): AgentReply | undefined {
    // A reply is JSON; it is nothing to choose from, unless it was listed.
    const taken = this.#choices || !action.startsWith('{') ? this.#takeChoice(action) : undefined;
    if (!taken || isReply(taken)) return taken ?? readAgentReply(action);
    this.#stage = taken;
    this.#choices = undefined;
    return undefined;
  }

  /** Takes a choice of the present stage. A whole action is taken in any stage, as if nothing had been chosen. */
  #takeChoice(action: string): ReplyStage | AgentReply | undefined {
    const taken = this.#list().take(action);
    if (taken || !this.#stage) return taken;
    const whole = listChoices(this.#call, undefined, this.#seen).take(action);
    return whole && isReply(whole) ? whole : undefined;
  }

  #list(): StageChoices {
    while (!this.#choices) {
      const choices = listChoices(this.#call, this.#stage, this.#seen);
      const only = choices.texts.length === 1 ? choices.take(choices.texts[0]!) : undefined;
      if (only && !isReply(only)) this.#stage = only;
      else this.#choices = choices;
    }
    return this.#choices;
  }
}
