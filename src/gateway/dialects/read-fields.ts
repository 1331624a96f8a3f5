/** Readers of the fields of a request: each checks one value, and refuses another by its path. `null` counts as absent. */
import { describeValue } from '../../core/describe-value.ts';
import type { AnswerFormat, JsonSchema, ReplyFinish, Tool, ToolChoice } from '../../core/model-call.ts';
import { isRecord } from '../../core/record.ts';
import { RefusedCall } from './dialect.ts';

/** Request, message, part or tool: an object of a body. */
export type Fields = Readonly<Record<string, unknown>>;

/** Stop strings of one request at most. */
const MAX_STOPS = 64;

/** Refusal of a value that has another form. @param path its place, e.g. `messages[3].role` */
export function refuseValue(path: string, expected: string, got: unknown): RefusedCall {
  return new RefusedCall(400, `${path}: expected ${expected}, got ${describeValue(got)}`, path);
}

/** True for a field that is not there. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Reads an object. @throws {RefusedCall} */
export function readRecord(value: unknown, path: string): Fields {
  if (!isRecord(value)) throw refuseValue(path, 'an object', value);
  return value;
}

/** Reads a list. @throws {RefusedCall} */
export function readList(value: unknown, path: string, minLength = 0): readonly unknown[] {
  if (!Array.isArray(value)) throw refuseValue(path, 'a list', value);
  if (value.length < minLength) throw refuseValue(path, `a list of at least ${minLength}`, value);
  return value;
}

/** Reads a text. @throws {RefusedCall} */
export function readText(value: unknown, path: string): string {
  if (typeof value !== 'string') throw refuseValue(path, 'a text', value);
  return value;
}

/** Reads a text that may be absent. @throws {RefusedCall} */
export function readOptionalText(value: unknown, path: string): string | undefined {
  return isAbsent(value) ? undefined : readText(value, path);
}

/** Reads a name or an id: a text that is not empty. @throws {RefusedCall} */
export function readName(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '') throw refuseValue(path, 'a text that is not empty', value);
  return value;
}

/** Reads a number that may be absent. @throws {RefusedCall} */
export function readNumber(value: unknown, path: string, min: number, max: number): number | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw refuseValue(path, `a number from ${min} to ${max}`, value);
}

/** Reads a whole number that may be absent. @throws {RefusedCall} */
export function readInteger(value: unknown, path: string, min: number): number | undefined {
  if (isAbsent(value)) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw refuseValue(path, `a whole number ≥ ${min}`, value);
}

/** Reads a truth value. @param absent what stands for one that is not there @throws {RefusedCall} */
export function readFlag(value: unknown, path: string, absent: boolean): boolean {
  if (isAbsent(value)) return absent;
  if (typeof value !== 'boolean') throw refuseValue(path, 'true or false', value);
  return value;
}

/** Reads the texts that end a reply: one, a list, or none. @throws {RefusedCall} */
export function readStops(value: unknown, path: string): readonly string[] {
  if (isAbsent(value)) return [];
  if (typeof value === 'string') return [readName(value, path)];
  const list = readList(value, path);
  if (list.length > MAX_STOPS) throw refuseValue(path, `at most ${MAX_STOPS} texts`, value);
  return list.map((one, i) => readName(one, `${path}[${i}]`));
}

/**
 * Reads a content: a text, or parts that are joined; empty where there is none.
 * @param readPart text of a part that is no plain text
 * @throws {RefusedCall}
 */
export function readContent(value: unknown, path: string, readPart: (part: Fields, path: string) => string): string {
  if (typeof value === 'string') return value;
  if (isAbsent(value)) return '';
  if (!Array.isArray(value)) throw refuseValue(path, 'a text or a list of parts', value);
  let text = '';
  for (let i = 0; i < value.length; i++) {
    const at = `${path}[${i}]`;
    text += readPart(readRecord(value[i], at), at);
  }
  return text;
}

/** Refusal of a part that is no text: images, audio, files, results of a server's own tools. */
export function refusePart(path: string, type: unknown, expected: string): RefusedCall {
  const message = `${path}.type: expected ${expected}, got ${describeValue(type)}: the model reads text alone`;
  return new RefusedCall(400, message, `${path}.type`, 'unsupported_content');
}

/** Reads the declaration of a function: its name, description, parameters, and whether it is strict. @throws {RefusedCall} */
export function readFunction(fields: Fields, path: string, parameters: string): Tool {
  const name = readName(fields.name, `${path}.name`);
  const description = readOptionalText(fields.description, `${path}.description`);
  const schema = fields[parameters];
  return {
    name,
    ...(description === undefined ? {} : { description }),
    parameters: isAbsent(schema) ? { type: 'object', properties: {} } : readRecord(schema, `${path}.${parameters}`),
    ...(readFlag(fields.strict, `${path}.strict`, false) ? { strict: true } : {}),
  };
}

/** Refusal of a tool that is no function of the program's. */
export function refuseTool(path: string, type: unknown, expected: string): RefusedCall {
  const message = `${path}.type: expected ${expected}, got ${describeValue(type)}: this server runs no tools of its own`;
  return new RefusedCall(400, message, `${path}.type`, 'unsupported_tool');
}

/** Tools that a reply may call, and whether it must. */
export interface ToolUse {
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
}

/**
 * Joins the declared tools and the choice among them.
 * @param allowed names of the only tools that may be called; the others are left out
 * @throws {RefusedCall} for a name twice, a name that is not declared, and `required` where there is no tool
 */
export function joinTools(declared: readonly Tool[], toolChoice: ToolChoice, allowed?: readonly string[]): ToolUse {
  const names = new Set<string>();
  for (const [i, { name }] of declared.entries()) {
    if (names.has(name)) throw refuseValue(`tools[${i}]`, 'names that differ', name);
    names.add(name);
  }
  const named = allowed ?? (typeof toolChoice === 'object' ? [toolChoice.name] : []);
  const unknown = named.find((name) => !names.has(name));
  if (unknown !== undefined) throw refuseValue('tool_choice', 'the name of a tool of the request', unknown);
  const tools = allowed === undefined ? declared : declared.filter(({ name }) => allowed.includes(name));
  if (toolChoice === 'required' && tools.length === 0) throw refuseValue('tools', 'a tool, as one must be called', []);
  return { tools, toolChoice };
}

/** Reads a schema of an answer. @returns any JSON where there is none @throws {RefusedCall} */
export function readJsonFormat(name: unknown, schema: unknown, path: string): AnswerFormat {
  if (isAbsent(schema)) return { type: 'json' };
  const called = readOptionalText(name, `${path}.name`);
  const read: JsonSchema = readRecord(schema, `${path}.schema`);
  return { type: 'json-schema', name: called || 'answer', schema: read };
}

/** Finish of a reply as clients must see it: calls that came whole are to be run. */
export function finishOf({
  calls,
  finish,
}: {
  readonly calls: readonly unknown[];
  readonly finish: ReplyFinish;
}): ReplyFinish {
  if (finish === 'length' || finish === 'filter') return finish;
  return calls.length > 0 ? 'calls' : 'stop';
}
