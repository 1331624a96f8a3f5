/**
 * Tools, choices among them and forms of answers in OpenAI's two APIs. They differ in one thing: what has a type holds its
 * other fields itself in responses (`{ type, name, … }`), and in a record under the type's name in chat completions
 * (`{ type, function: { name, … } }`).
 */
import type { AnswerFormat, Tool, ToolChoice } from '../../core/model-call.ts';
import {
  type Fields,
  isAbsent,
  readFunction,
  readJsonFormat,
  readList,
  readName,
  readRecord,
  refuseTool,
  refuseValue,
} from './read-fields.ts';

/** Fields of something that has a type, and their path. @throws {RefusedCall} where they are not there */
type Inner = (fields: Fields, type: string, path: string) => { readonly fields: Fields; readonly path: string };

/** Finds the fields in responses: beside the type. */
export const readFlat: Inner = (fields, _type, path) => ({ fields, path });

/** Finds the fields in chat completions: under the name of the type. @throws {RefusedCall} */
export const readNested: Inner = (fields, type, path) => {
  const at = `${path}.${type}`;
  return { fields: readRecord(fields[type], at), path: at };
};

/** Reads the tools of a request; none where the field is absent. @throws {RefusedCall} */
export function readTools(value: unknown, inner: Inner): readonly Tool[] {
  if (isAbsent(value)) return [];
  return readList(value, 'tools').map((tool, i) => {
    const { fields, path } = readTyped(tool, `tools[${i}]`, inner);
    return readFunction(fields, path, 'parameters');
  });
}

/** Choice among the tools, and the only ones that it allows; absent: all. */
export interface OpenAiChoice {
  readonly choice: ToolChoice;
  readonly allowed?: readonly string[];
}

/** Reads `tool_choice`. @throws {RefusedCall} */
export function readToolChoice(value: unknown, inner: Inner): OpenAiChoice {
  if (isAbsent(value)) return { choice: 'auto' };
  if (value === 'auto' || value === 'none' || value === 'required') return { choice: value };
  if (typeof value === 'string') throw refuseValue('tool_choice', 'auto, none, required or a function', value);
  const given = readRecord(value, 'tool_choice');
  if (given.type !== 'allowed_tools') return { choice: { name: readChosen(given, 'tool_choice', inner) } };
  const { fields, path } = inner(given, 'allowed_tools', 'tool_choice');
  const { mode, tools } = fields;
  if (mode !== 'auto' && mode !== 'required') throw refuseValue(`${path}.mode`, 'auto or required', mode);
  const allowed = readList(tools, `${path}.tools`).map((tool, i) => readChosen(tool, `${path}.tools[${i}]`, inner));
  return { choice: mode, allowed };
}

/** Reads the form of the answer; undefined for any text. @throws {RefusedCall} */
export function readAnswerFormat(value: unknown, path: string, inner: Inner): AnswerFormat | undefined {
  if (isAbsent(value)) return undefined;
  const format = readRecord(value, path);
  if (format.type === 'text') return undefined;
  if (format.type === 'json_object') return { type: 'json' };
  const expected = 'text, json_object or json_schema';
  if (format.type !== 'json_schema') throw refuseValue(`${path}.type`, expected, format.type);
  const { fields, path: at } = inner(format, 'json_schema', path);
  return readJsonFormat(fields.name, fields.schema, at);
}

/** Name of a function that a choice points at. */
function readChosen(value: unknown, at: string, inner: Inner): string {
  const { fields, path } = readTyped(value, at, inner);
  return readName(fields.name, `${path}.name`);
}

/** Fields of a function. @throws {RefusedCall} for a tool of another type */
function readTyped(value: unknown, path: string, inner: Inner): ReturnType<Inner> {
  const tool = readRecord(value, path);
  if (tool.type !== 'function') throw refuseTool(path, tool.type, 'function');
  return inner(tool, 'function', path);
}
