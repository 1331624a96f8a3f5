/**
 * Tool formats: how the models of a family write calls of tools. Each format is a printer and a parser in one module.
 * A parser reads strictly first, then with a fixed list of repairs, each of which is reported. A reply with a call that
 * cannot be read has no calls at all: its text is the content, and it counts as malformed.
 */
import { append } from '../../core/extremes.ts';
import type { Tool, ToolCall } from '../../core/model-call.ts';
import { type Literal, printJson, readLiteral, readWhole, skipSpace, spaceObject } from './literal.ts';

/** Call as it is written: without an id. */
export type WrittenCall = Omit<ToolCall, 'id'>;

/** Repair of a call that is not written as its format asks. */
export type Repair =
  /** Call in a Markdown fence. */
  | 'fence'
  /** Python literals in place of JSON: single quotes, True, None. */
  | 'python-literals'
  /** Arguments as a string of JSON. */
  | 'string-arguments'
  /** `parameters` in place of `arguments`, or the reverse. */
  | 'parameters'
  /** Call within an object `function`. */
  | 'wrapper'
  /** Several calls in one tag. */
  | 'several-in-tag'
  /** Tag that was not opened, or not closed. */
  | 'open-tag'
  | 'close-tag'
  /** Last braces left out. */
  | 'close-brace';

/** Reply as a format reads it. */
export interface ParsedReply {
  /** Text before the first call; the whole text where there is none. */
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: readonly WrittenCall[];
  /** Repairs that were needed, once each time. */
  readonly repairs: readonly Repair[];
  /** Reason why a call could not be read; there are no calls then. */
  readonly malformed?: string | undefined;
}

/** Format of calls. */
export interface ToolFormat {
  readonly id: string;
  /** Texts of special tokens that carry the format: a decoder has to keep them. */
  readonly markers: readonly string[];
  /** Prints a reply without its reasoning and without the token that ends it. */
  print(content: string, calls: readonly WrittenCall[]): string;
  /**
   * Reads a reply. Nothing throws.
   * @param tools known tools, by which untyped arguments are read; a call of another one is a call too
   * @param isCut true for a text that was cut off: a call that is not finished is then left out
   */
  parse(text: string, tools: readonly Tool[], isCut?: boolean): ParsedReply;
}

/** Reads the body of a reply, without its reasoning. */
export type ParseBody = (body: string, tools: readonly Tool[], isCut: boolean) => ParsedReply;

/** Makes the `parse` of a format whose reasoning is a block before everything else. */
export function afterReasoning(parse: ParseBody): ToolFormat['parse'] {
  return (text, tools, isCut = false) => {
    const { reasoning, body } = splitReasoning(text);
    const parsed = parse(body, tools, isCut);
    return reasoning === undefined ? parsed : { ...parsed, reasoning };
  };
}

/** Divides a reply into a block of reasoning, and what follows it; all of it is reasoning where the block is open. */
export function splitReasoning(text: string): { readonly reasoning?: string; readonly body: string } {
  for (const [open, close] of [
    ['<think>', '</think>'],
    ['[THINK]', '[/THINK]'],
  ] as const) {
    const begun = text.trimStart().startsWith(open);
    const end = text.indexOf(close);
    if (!begun && end < 0) continue;
    const from = begun ? text.indexOf(open) + open.length : 0;
    if (end < 0) return { reasoning: text.slice(from).trim(), body: '' };
    return { reasoning: text.slice(from, end).trim(), body: text.slice(end + close.length).replace(/^\n+/, '') };
  }
  return { body: text };
}

/** Reply that is text alone. */
export function plainReply(content: string): ParsedReply {
  return { content, calls: [], repairs: [] };
}

/** Reply with a call that cannot be read. */
export function rejectReply(content: string, malformed: string): ParsedReply {
  return { content, calls: [], repairs: [], malformed };
}

/** Content before a call: one line end between them is the format's. */
export function beforeCall(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

/** Joins content and calls as `beforeCall` divides them. */
export function joinContent(content: string, calls: string): string {
  return content === '' || calls === '' ? content + calls : `${content}\n${calls}`;
}

/** Names under which an object has the arguments of a call, the expected one first. */
export type ArgumentNames = readonly ['arguments', 'parameters'] | readonly ['parameters', 'arguments'];

/**
 * Reads a call from an object `{"name", "arguments"}`.
 * @param text that the value was read from
 * @param repairs that were needed; added to
 * @returns undefined where it is none
 */
export function callOfObject(
  text: string,
  value: Literal,
  names: ArgumentNames,
  repairs: Repair[],
): WrittenCall | undefined {
  const wrapped = value.members?.get('function');
  const name = value.members?.get('name') ?? (wrapped?.kind === 'string' ? wrapped : undefined);
  if (!name && wrapped?.kind === 'object') {
    const call = callOfObject(text, wrapped, names, repairs);
    if (call) repairs.push('wrapper');
    return call;
  }
  const [expected, other] = names;
  const args = value.members?.get(expected) ?? value.members?.get(other);
  if (name?.kind !== 'string' || !args) return undefined;
  const written = argumentsOf(text, args);
  if (!written) return undefined;
  if (!value.members!.has('name')) repairs.push('wrapper');
  if (!value.members!.has(expected)) repairs.push('parameters');
  append(repairs, written.repairs);
  return { name: name.text!, arguments: written.json };
}

/** Prints a call as an object, as `callOfObject` reads one. @param key of its arguments */
export function printCallObject({ name, arguments: args }: WrittenCall, [key]: ArgumentNames): string {
  return `{"name": ${printJson(name)}, "${key}": ${spaceObject(args)}}`;
}

/** JSON of a value as it is written in its text, where that is JSON. */
export function sliceJson(text: string, { isPython, json, start, end }: Literal): string {
  return isPython ? json : text.slice(start, end);
}

/** Arguments as they are written, where they are JSON of an object. */
function argumentsOf(
  text: string,
  args: Literal,
): { readonly json: string; readonly repairs: readonly Repair[] } | undefined {
  if (args.kind === 'object') {
    return { json: sliceJson(text, args), repairs: [] };
  }
  if (args.kind !== 'string') return undefined;
  const inner = readWhole(args.text!);
  return inner?.kind === 'object' ? { json: args.text!.trim(), repairs: ['string-arguments'] } : undefined;
}

/** Reads a value at a place: JSON, or else Python's literals. */
export function readRepaired(text: string, at: number, repairs: Repair[]): Literal | undefined {
  const strict = readLiteral(text, at);
  if (strict) return strict;
  const loose = readLiteral(text, at, true);
  if (loose) repairs.push('python-literals');
  return loose;
}

/** Reads a value that the text ends in the middle of: with the braces that are left out. @returns its text too */
export function readUnclosed(
  text: string,
  at: number,
  repairs: Repair[],
): { readonly text: string; readonly value: Literal } | undefined {
  for (const braces of ['}', '}}']) {
    const closed = text.trimEnd() + braces;
    const value = readRepaired(closed, at, repairs);
    if (!value || skipSpace(closed, value.end) !== closed.length) continue;
    repairs.push('close-brace');
    return { text: closed, value };
  }
  return undefined;
}

/** Reads a value in a fence of Markdown, which the text is. */
export function withoutFence(text: string): string | undefined {
  return /^\s*```[a-z_]*[^\S\n]*\n([\s\S]*?)\n?[^\S\n]*```\s*$/.exec(text)?.[1];
}
