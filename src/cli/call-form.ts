/** Form of a model call for a person: choose a tool, answer for its arguments one by one, or reply in words. Pure. */

import { nearest } from '../config/nearest.ts';
import { describeMessages } from '../console/call-text.ts';
import {
  type AgentCall,
  type AgentReply,
  isAgentCall,
  NO_USAGE,
  readAgentCall,
  readAgentReply,
} from '../core/agent-call.ts';
import { describeCall } from '../core/call-text.ts';
import { describeValue } from '../core/describe-value.ts';
import { parseJson } from '../core/json-text.ts';
import type { JsonSchema, Tool, ToolChoice } from '../core/model-call.ts';
import { isRecord } from '../core/record.ts';
import { fitsSchema, followReferences } from '../core/schema-check.ts';

/** Result of a typed line: the reply that it finishes, or a text to show before the next question; nothing to show where empty. */
export type TypedLine = { readonly reply: AgentReply } | { readonly text: string };

/** Argument of a tool. */
interface Argument {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** Call that is being put together: the arguments to ask for, and those given so far. */
interface OpenCall {
  readonly tool: Tool;
  readonly open: readonly Argument[];
  readonly given: Readonly<Record<string, TypedValue>>;
}

/** Value that was typed, and its JSON with numbers as they were typed: a world may tell `1.0` from `1`. */
interface TypedValue {
  readonly value: unknown;
  readonly text: string;
}

/** Instructions for a person who replies to a call. */
export const CALL_FORM_HELP =
  "type a tool's number or name, or your words (`reply …` for words that look like a tool); ? lists the tools, hint asks the oracle, quit ends";
/** Text that takes back a tool whose arguments are being asked for. */
const CANCEL = 'cancel';

/** Form of the calls of an episode. */
export class CallForm {
  readonly #toolsOf = new Map<number, readonly Tool[]>();
  #tools: readonly Tool[] = [];
  #choice: ToolChoice = 'auto';
  #open: OpenCall | undefined;

  /**
   * Takes the next observation.
   * @returns its text as a person reads it: the messages of a call, and its tools where they are new; any other text as it is
   */
  observe(observation: string): string {
    this.#open = undefined;
    const call = readCall(observation);
    if (!call) return observation;
    const before = call.parent === null ? [] : (this.#toolsOf.get(call.parent) ?? []);
    const known = JSON.stringify(this.#tools);
    this.#tools = call.tools ?? before;
    this.#choice = call.toolChoice ?? 'auto';
    this.#toolsOf.set(call.call, this.#tools);
    const messages = describeMessages(call.messages);
    return JSON.stringify(this.#tools) === known ? messages : `${messages}\n\n${this.list()}`;
  }

  /** Lists the tools by number, each with its description and its arguments. */
  list(): string {
    if (this.#tools.length === 0) return 'no tools: reply in words';
    const lines = this.#tools.flatMap((tool, i) => [
      `${String(i + 1).padStart(3)}  ${tool.name}`,
      ...indent(tool.description),
      ...argumentsOf(tool).map((argument) => `       - ${describeArgument(argument, tool)}`),
    ]);
    return ['tools', ...lines].join('\n');
  }

  /** Question of an argument; undefined where any reply may be typed. */
  get question(): string | undefined {
    const [argument] = this.#open?.open ?? [];
    if (!argument || !this.#open) return undefined;
    const { description } = argument.schema;
    const explained = typeof description === 'string' ? indent(description) : [];
    return [...explained, `    ${describeArgument(argument, this.#open.tool, ', empty leaves it out')} > `].join('\n');
  }

  /** Takes a line that was typed. Bad input is answered by the reason, and changes nothing. */
  take(line: string): TypedLine {
    return this.#open ? this.#takeArgument(this.#open, line) : this.#takeFirst(line);
  }

  #takeFirst(line: string): TypedLine {
    if (line === '') return { text: CALL_FORM_HELP };
    if (line.startsWith('{')) return takeJson(line);
    if (/^\d+$/.test(line)) {
      const tool = this.#tools[Number(line) - 1];
      if (tool) return this.#begin(tool);
      const range = this.#tools.length === 0 ? 'there are no tools' : `tools have numbers 1 to ${this.#tools.length}`;
      return { text: `${range}, got ${line}; reply ${line} sends it as words` };
    }
    const [, first, rest] = /^(\S+)\s*(.*)$/s.exec(line)!;
    const tool = this.#tools.find(({ name }) => name === first);
    if (tool && rest === '') return this.#begin(tool);
    if (tool && rest!.startsWith('{')) return this.#takeCall(tool, rest!);
    if (first === 'reply') {
      return rest === '' ? { text: 'reply: expected your words behind it, got none' } : this.#reply(rest!);
    }
    const names = this.#tools.map(({ name }) => name);
    const meant = rest === '' && first!.includes('_') ? nearest(first!, names) : undefined;
    if (meant === undefined) return this.#reply(line);
    return { text: `there is no tool ${first}; did you mean ${meant}? reply ${first} sends it as words` };
  }

  #reply(content: string): TypedLine {
    if (this.#choice === 'auto' || this.#choice === 'none') {
      return { reply: { content, calls: [], finish: 'stop', usage: NO_USAGE } };
    }
    const which = this.#choice === 'required' ? 'a tool' : `the tool ${this.#choice.name}`;
    return { text: `this call expects ${which}, got words; ? lists the tools` };
  }

  #begin(tool: Tool): TypedLine {
    const refused = this.#refuse(tool);
    if (refused !== undefined) return { text: refused };
    const open = argumentsOf(tool);
    if (open.length === 0) return finish(tool, '{}');
    this.#open = { tool, open, given: {} };
    return { text: `${tool.name}: ${CANCEL} takes it back, "quoted" values are JSON` };
  }

  #refuse({ name }: Tool): string | undefined {
    if (this.#choice === 'none') return 'this call expects words, got a tool';
    if (typeof this.#choice !== 'object' || this.#choice.name === name) return undefined;
    return `this call expects the tool ${this.#choice.name}, got ${name}`;
  }

  /** Takes a whole call, `name {…}`. */
  #takeCall(tool: Tool, text: string): TypedLine {
    const refused = this.#refuse(tool);
    if (refused !== undefined) return { text: refused };
    let args: unknown;
    try {
      args = parseJson(text);
    } catch {
      return { text: `${tool.name}: expected arguments as a JSON object, got ${describeValue(text)}` };
    }
    if (!isRecord(args))
      return { text: `${tool.name}: expected arguments as a JSON object, got ${describeValue(args)}` };
    for (const { name, schema, isRequired } of argumentsOf(tool)) {
      const has = Object.hasOwn(args, name);
      if (has ? !fitsSchema(args[name], schema, tool.parameters) : isRequired) {
        const expected = describeForm(schema, tool.parameters);
        return { text: `${tool.name}: ${name}: expected ${expected}, got ${describeValue(args[name])}` };
      }
    }
    if (fitsSchema(args, tool.parameters)) return finish(tool, text.trim());
    const names = argumentsOf(tool).map(({ name }) => name);
    const which = names.length === 0 ? 'no arguments' : `no arguments but ${names.join(', ')}`;
    return { text: `${tool.name}: expected ${which}, got ${describeValue(args)}` };
  }

  #takeArgument({ tool, open, given }: OpenCall, line: string): TypedLine {
    const [argument, ...others] = open as [Argument, ...Argument[]];
    const { name, schema, isRequired } = argument;
    if (line === CANCEL) {
      this.#open = undefined;
      return { text: `${tool.name} is taken back` };
    }
    let values = given;
    if (line === '') {
      if (isRequired) return { text: `${name}: expected ${describeForm(schema, tool.parameters)}, got nothing` };
    } else {
      const value = readValue(line, schema, tool.parameters);
      if (value === undefined) {
        return { text: `${name}: expected ${describeForm(schema, tool.parameters)}, got ${describeValue(line)}` };
      }
      values = { ...given, [name]: value };
    }
    if (others.length > 0) {
      this.#open = { tool, open: others, given: values };
      return { text: '' };
    }
    this.#open = undefined;
    const written = Object.entries(values);
    const args = Object.fromEntries(written.map(([key, { value }]) => [key, value]));
    if (fitsSchema(args, tool.parameters)) {
      return finish(tool, `{${written.map(([key, { text }]) => `${JSON.stringify(key)}:${text}`).join(',')}}`);
    }
    return { text: `${tool.name}: these arguments do not fit together: ${describeValue(args)}` };
  }
}

/** Describes a reply as lines that the form reads: the oracle's advice. */
export function describeHint(action: string): string {
  const { content, calls } = readAgentReply(action);
  // What is no line of the form is shown as JSON, which it reads too.
  if (calls.length > 1 || (calls.length === 1 && content !== '') || content.includes('\n')) return action;
  return calls[0] ? describeCall(calls[0]) : `reply ${content}`;
}

/** True where two replies do the same: equal words, equal calls, whatever the spelling of their arguments. */
export function isSameReply(a: AgentReply, b: AgentReply): boolean {
  const made = ({ content, calls }: AgentReply) =>
    JSON.stringify([content.trim(), calls.map(({ name, arguments: args }) => [name, sortKeys(readOr(args, args))])]);
  return made(a) === made(b);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  const entries = Object.keys(value).sort();
  return entries.map((key) => [key, sortKeys(value[key])]);
}

function readOr(text: string, fallback: unknown): unknown {
  try {
    return parseJson(text);
  } catch {
    return fallback;
  }
}

function readCall(observation: string): AgentCall | undefined {
  if (!isAgentCall(observation)) return undefined;
  try {
    return readAgentCall(observation);
  } catch {
    return undefined;
  }
}

/** Takes a reply as JSON, as scripts write it. */
function takeJson(line: string): TypedLine {
  const reply = readAgentReply(line);
  if (reply.calls.length > 0 || reply.content !== line) return { reply };
  const expected = 'a reply as JSON, {"content": "", "calls": [{"name": "…", "arguments": "{…}"}], "finish": "calls"}';
  return { text: `expected ${expected}, got ${describeValue(line)}; reply … sends it as words` };
}

/** Reply of one call. @param args JSON of an object, with numbers as they were typed */
function finish({ name }: Tool, args: string): TypedLine {
  const calls = [{ name, arguments: args }];
  return { reply: { content: '', calls, finish: 'calls', usage: NO_USAGE } };
}

/** Arguments of a tool in the order of its schema; required ones that it does not describe come last. */
function argumentsOf({ parameters }: Tool): Argument[] {
  const root = followReferences(parameters, parameters);
  const properties = isRecord(root.properties) ? root.properties : {};
  const listed: readonly unknown[] = Array.isArray(root.required) ? root.required : [];
  const required = new Set(listed.filter((name) => typeof name === 'string'));
  return [...new Set([...Object.keys(properties), ...required])].map((name) => ({
    name,
    schema: Object.hasOwn(properties, name) ? followReferences(properties[name], parameters) : {},
    isRequired: required.has(name),
  }));
}

/** @param hint what is added for an optional one */
function describeArgument({ name, schema, isRequired }: Argument, { parameters }: Tool, hint = ''): string {
  return `${name} (${isRequired ? 'required' : `optional${hint}`}): ${describeForm(schema, parameters)}`;
}

/** Values of an enumeration, and levels of a schema, that are described. */
const MAX_LISTED = 30;
const MAX_LEVELS = 3;

/** Describes which values a schema takes. */
function describeForm(given: unknown, root: JsonSchema, level = 0): string {
  const { type, enum: listed, const: only, anyOf, oneOf, items, properties, required } = followReferences(given, root);
  if (Array.isArray(listed)) {
    const shown = listed
      .slice(0, MAX_LISTED)
      .map((value) => (typeof value === 'string' ? value : describeValue(value)));
    return `one of ${[...shown, ...(listed.length > MAX_LISTED ? ['…'] : [])].join(', ')}`;
  }
  if (only !== undefined) return describeValue(only);
  const members = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined;
  if (members && level < MAX_LEVELS) return members.map((one) => describeForm(one, root, level + 1)).join(' or ');
  if (Array.isArray(type)) return type.join(' or ');
  if (type === 'array' && items !== undefined && level < MAX_LEVELS) {
    return `list of ${describeForm(items, root, level + 1)}`;
  }
  if (type === 'array') return 'list';
  if (type === 'object' && isRecord(properties) && level < MAX_LEVELS) {
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    const fields = Object.entries(properties).map(
      ([name, one]) => `${name}${needed.includes(name) ? '' : '?'}: ${describeForm(one, root, level + 1)}`,
    );
    return `object {${fields.join(', ')}}`;
  }
  return typeof type === 'string' ? type : 'any value';
}

/**
 * Reads what was typed as a value of a schema: as JSON, as the text itself, as the values of a list with commas between them, or as
 * the number of a listed value; the first of these that fits. @returns undefined where none does
 */
function readValue(line: string, schema: JsonSchema, root: JsonSchema): TypedValue | undefined {
  const candidates: unknown[] = [];
  try {
    const value = parseJson(line);
    if (fitsSchema(value, schema, root)) return { value, text: line };
  } catch {} // no JSON: a text
  candidates.push(line);
  const pieces = line.split(',').map((piece) => piece.trim());
  candidates.push(
    pieces.map((piece) => readOr(piece, piece)),
    pieces,
  );
  if (Array.isArray(schema.enum) && /^\d+$/.test(line)) candidates.push(schema.enum[Number(line) - 1]);
  // Texts of a list are no JSON: "[1" is not one text.
  const isMeant = (value: unknown) =>
    value !== undefined && !(Array.isArray(value) && /^\s*[[{]/.test(line) && !isJson(line));
  const value = candidates.find((one) => isMeant(one) && fitsSchema(one, schema, root));
  return value === undefined ? undefined : { value, text: JSON.stringify(value) };
}

function isJson(text: string): boolean {
  return readOr(text, undefined) !== undefined;
}

/** Lines of a description below its tool. */
function indent(text: string | undefined): string[] {
  return text === undefined || text.trim() === ''
    ? []
    : text
        .trim()
        .split('\n')
        .map((line) => `       ${line}`.trimEnd());
}
