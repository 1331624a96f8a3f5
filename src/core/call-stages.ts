/**
 * Replies as lists: what a policy that chooses among listed actions can reply to a call. A tool is chosen first, then each
 * of its required arguments, from the schema's values or from what the conversation has shown. Lists and objects are chosen value
 * by value; a tool that takes more than `MAX_PARTIAL_STEPS` of them is not offered.
 */
import { type AgentReply, NO_USAGE, readAgentReply } from './agent-call.ts';
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from './env.ts';
import { parseJson } from './json-text.ts';
import type { ConversationMessage, JsonSchema, ModelCall, Tool } from './model-call.ts';
import { isRecord } from './record.ts';
import { followReferences } from './schema-check.ts';

/** Text of the choice that replies in words, without a call. */
export const REPLY = 'reply';
/** Content of a reply in words: a chooser writes no text of its own. */
const REPLY_TEXT = 'Done.';

/** Values that a conversation has shown, newest last; each once. */
export class SeenValues {
  readonly #kept: readonly string[];
  readonly #values = new Set<string>();
  #newestFirst: readonly string[] = [];
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
    for (const value of this.#newestFirst) {
      if (found.length >= count) break;
      if (isWanted(value) && !this.#kept.includes(value)) found.push(value);
    }
    return found.slice(0, count);
  }

  /** Reads the texts that came since values were wanted last. */
  #read(): void {
    if (this.#unread.length === 0) return;
    for (const value of this.#unread.flatMap(valuesIn)) {
      this.#values.delete(value); // seen again: the newest
      this.#values.add(value);
    }
    this.#unread = [];
    this.#newestFirst = [...this.#values].reverse();
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

/** Text of the choice that ends a list of an argument, and of the one that adds another object to it. */
export const END_OF_LIST = 'end of list';
export const NEXT_OBJECT = 'next object';
/** Values of a list at most, where its schema demands no more. */
const MAX_LIST_VALUES = 4;

/** Reply under construction: the tool that was chosen, and the values chosen so far, one a stage. */
export interface ReplyStage {
  readonly tool: Tool;
  readonly chosen: readonly unknown[];
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
  const { tool, chosen } = stage;
  const { values = () => [] } = replayStages(stage, seen);
  const byText = new Map<string, unknown>();
  for (const value of values()) {
    const text = typeof value === 'string' ? value : value instanceof ListChoice ? value.text : JSON.stringify(value);
    if (!byText.has(text)) byText.set(text, value);
  }
  return {
    texts: [...byText.keys()],
    take(text) {
      if (!byText.has(text)) return undefined;
      return next({ tool, chosen: [...chosen, byText.get(text)] }, seen);
    },
  };
}

function listTools({ tools, toolChoice }: Pick<ModelCall, 'tools' | 'toolChoice'>, seen: SeenValues): StageChoices {
  const callable = tools.filter((tool) => {
    if (toolChoice === 'none') return false;
    if (typeof toolChoice === 'object' && toolChoice.name !== tool.name) return false;
    return new ArgumentStages(tool, seen).isChoosable();
  });
  const words = toolChoice === 'auto' || toolChoice === 'none' ? [REPLY] : [];
  return {
    texts: [...callable.map(({ name }) => name), ...words],
    take(text) {
      const tool = callable.find(({ name }) => name === text);
      if (tool) return next({ tool, chosen: [] }, seen);
      if (!words.includes(text)) return undefined;
      return { content: REPLY_TEXT, calls: [], finish: 'stop', usage: NO_USAGE };
    },
  };
}

/** The stage itself where arguments are missing, else its call. */
function next(stage: ReplyStage, seen: SeenValues): ReplyStage | AgentReply {
  const { args } = replayStages(stage, seen);
  if (args === undefined) return stage;
  const calls = [{ name: stage.tool.name, arguments: JSON.stringify(args) }];
  return { content: '', calls, finish: 'calls', usage: NO_USAGE };
}

/** Goes through the stages that were chosen. @returns the values of the next one, or the arguments where there is none */
function replayStages(
  { tool, chosen }: ReplyStage,
  seen: SeenValues,
): { readonly values?: () => readonly unknown[]; readonly args?: unknown } {
  const stages = new ArgumentStages(tool, seen).build();
  let at = stages.next();
  for (const value of chosen) at = stages.next(value);
  return at.done ? { args: at.value } : { values: at.value };
}

/** Choice about a list, which is no value of it. */
class ListChoice {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
const END = new ListChoice(END_OF_LIST);
const NEXT = new ListChoice(NEXT_OBJECT);

/** Stages of a value: each yields the values to choose from, and is sent the chosen one. Returns the whole value. */
type Stages = Generator<() => readonly unknown[], unknown, unknown>;

/** Form of an argument: values to choose from, an object with required properties, or a list. */
type Form =
  | { readonly kind: 'values'; values(): readonly unknown[] }
  | { readonly kind: 'object'; readonly properties: readonly (readonly [name: string, schema: JsonSchema])[] }
  | { readonly kind: 'list'; readonly items: JsonSchema; readonly min: number; readonly max: number };

/** Schemas that are looked at for one argument or tool: they may go in circles. */
const MAX_SCHEMAS = 256;

/**
 * Arguments of a tool as stages: the required ones in order, of objects their required properties. A list is a value, and others
 * up to `MAX_LIST_VALUES` while `MAX_PARTIAL_STEPS` leaves room. Optional arguments are left out.
 */
class ArgumentStages {
  readonly #root: JsonSchema;
  readonly #seen: SeenValues;
  /** Stages that no required value needs. */
  #spare = 0;

  constructor({ parameters }: Tool, seen: SeenValues) {
    this.#root = parameters;
    this.#seen = seen;
  }

  /** Returns true where each stage has a choice, and there are not too many. */
  isChoosable(): boolean {
    const { properties } = objectForm(this.#root);
    const isWithin = this.#countAll(properties) <= MAX_PARTIAL_STEPS;
    return isWithin && properties.every(([, schema]) => this.#hasValues(schema));
  }

  *build(): Stages {
    const { properties } = objectForm(this.#root);
    this.#spare = MAX_PARTIAL_STEPS - this.#countAll(properties);
    return yield* this.#buildObject(properties);
  }

  *#build(schema: JsonSchema): Stages {
    const form = this.#formOf(schema);
    if (form.kind === 'values') return yield form.values;
    return yield* form.kind === 'object' ? this.#buildObject(form.properties) : this.#buildList(form);
  }

  *#buildObject(properties: Extract<Form, { kind: 'object' }>['properties']): Stages {
    const entries: [string, unknown][] = [];
    for (const [name, schema] of properties) entries.push([name, yield* this.#build(schema)]);
    return Object.fromEntries(entries);
  }

  *#buildList({ items, min, max }: Extract<Form, { kind: 'list' }>): Stages {
    const list: unknown[] = [];
    while (list.length < min) list.push(yield* this.#build(items));
    const form = this.#formOf(items);
    const stages = form.kind === 'values' ? 1 : 1 + this.#count(items);
    while (list.length < max && this.#spare >= stages) {
      const others = form.kind === 'values' ? form.values().filter((value) => !list.includes(value)) : [NEXT];
      if (others.length === 0) break;
      const chosen = yield () => [END, ...others].slice(0, ACTIONS_PER_STAGE);
      this.#spare -= chosen === NEXT ? stages : 1;
      if (chosen === END) break;
      list.push(chosen === NEXT ? yield* this.#build(items) : chosen);
    }
    return list;
  }

  #hasValues(schema: JsonSchema): boolean {
    const form = this.#formOf(schema);
    if (form.kind === 'values') return form.values().length > 0;
    if (form.kind === 'list') return this.#hasValues(form.items);
    return form.properties.every(([, one]) => this.#hasValues(one));
  }

  #countAll(properties: readonly (readonly [name: string, schema: JsonSchema])[]): number {
    return properties.reduce((sum, [, schema]) => sum + this.#count(schema), 0);
  }

  /** Stages that a value takes at least; infinite where its schema goes in circles. */
  #count(schema: JsonSchema): number {
    let schemas = 0;
    const count = (given: JsonSchema): number => {
      if (++schemas > MAX_SCHEMAS) return Number.POSITIVE_INFINITY;
      const form = this.#formOf(given);
      if (form.kind === 'values') return 1;
      if (form.kind === 'list') return form.min * count(form.items);
      let sum = 0;
      for (const [, one] of form.properties) if (sum <= MAX_PARTIAL_STEPS) sum += count(one);
      return sum;
    };
    return count(schema);
  }

  /** Form of a schema. Of alternatives values come first, then the first list or object. */
  #formOf(given: JsonSchema): Form {
    const schema = followReferences(given, this.#root);
    const composite = compositeForm(schema);
    if (composite) return composite;
    if (Array.isArray(schema.anyOf)) {
      const members = schema.anyOf.map((one) => compositeForm(followReferences(one, this.#root)));
      const found = members.find((one) => one !== undefined);
      if (found && this.#values(schema).length === 0) return found;
    }
    return { kind: 'values', values: () => this.#values(schema) };
  }

  /** Values of a schema. Where one of several alternatives lists its values, the others are left out. */
  #values(schema: JsonSchema): readonly unknown[] {
    let schemas = 0;
    const valuesOf = (given: JsonSchema): readonly unknown[] => {
      if (++schemas > MAX_SCHEMAS) return [];
      const { enum: listed, const: only, type, anyOf } = followReferences(given, this.#root);
      if (Array.isArray(listed)) return listed.slice(0, ACTIONS_PER_STAGE);
      if (only !== undefined) return [only];
      if (Array.isArray(anyOf)) {
        const members = anyOf.filter(isRecord).map((one) => followReferences(one, this.#root));
        const listing = members.filter((one) => Array.isArray(one.enum) || one.const !== undefined);
        return (listing.length > 0 ? listing : members).flatMap(valuesOf).slice(0, ACTIONS_PER_STAGE);
      }
      const types: readonly unknown[] = Array.isArray(type) ? type : [type];
      if (types.includes('boolean')) return [true, false];
      if (types.includes('integer') || types.includes('number')) {
        const numbers = this.#seen.newestNumbers(ACTIONS_PER_STAGE).map(Number);
        return types.includes('number') ? numbers : numbers.filter(Number.isSafeInteger);
      }
      return types.includes('string') || type === undefined ? this.#seen.newest(ACTIONS_PER_STAGE) : [];
    };
    return valuesOf(schema);
  }
}

/** Form of a list, or of an object that requires something; undefined for any other schema. */
function compositeForm(schema: JsonSchema): Form | undefined {
  const { type, items, minItems, maxItems } = schema;
  if (type === 'array' && isRecord(items)) {
    const min = Math.max(1, Number.isSafeInteger(minItems) ? (minItems as number) : 1);
    const max = Number.isSafeInteger(maxItems) ? (maxItems as number) : MAX_LIST_VALUES;
    return { kind: 'list', items, min, max: Math.min(MAX_LIST_VALUES, max) };
  }
  const form = type === 'object' ? objectForm(schema) : undefined;
  return form && form.properties.length > 0 ? form : undefined;
}

/** Required properties of an object, any value for those that are not described. */
function objectForm({ required, properties }: JsonSchema): Extract<Form, { kind: 'object' }> {
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  const known = isRecord(properties) ? properties : {};
  const schemaOf = (name: string) => (Object.hasOwn(known, name) && isRecord(known[name]) ? known[name] : {});
  return { kind: 'object', properties: names.map((name) => [name, schemaOf(name)] as const) };
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
