/** Actions and observations of an OpenEnv server as text, by the server's own JSON schemas. */
import { z } from 'zod';
import { parseJson } from '../../core/json-text.ts';
import { recordOf } from '../../core/record.ts';

const objectSchema = z.object({ properties: z.record(z.string(), z.unknown()).default({}) });

/** Schemas that `GET /schema` answers. */
export const schemasSchema = z.object({ action: objectSchema, observation: objectSchema });

/** Schemas of a server. */
export type OpenEnvSchemas = z.infer<typeof schemasSchema>;

/** Fields of every OpenEnv action and observation, which are no part of their text. */
const COMMON_FIELDS: ReadonlySet<string> = new Set(['metadata', 'done', 'reward']);

/** Fields that carry text. */
export interface TextFields {
  /** Field of the action that takes the action's text; undefined where the text is one JSON object. */
  readonly action: string | undefined;
  /** Field of the observation that is the observation's text; undefined where that is JSON. */
  readonly observation: string | undefined;
}

/** Fields of a longplay server. */
export const LONGPLAY_FIELDS: TextFields = { action: 'action', observation: 'text' };

/**
 * Finds the fields that carry text: the only field where that is a string, and an observation's field `text`.
 * @param named fields that the user names
 */
export function textFields({ action, observation }: OpenEnvSchemas, named: Partial<TextFields> = {}): TextFields {
  const { text } = observation.properties;
  return {
    action: named.action ?? findOnlyText(action.properties),
    observation: named.observation ?? (isText(text) ? 'text' : findOnlyText(observation.properties)),
  };
}

/**
 * Writes an action as the object that the server takes.
 * @returns undefined for a text that is not one JSON object where the server takes one
 */
export function writeAction(text: string, { action }: TextFields): object | undefined {
  if (action !== undefined) return { [action]: text };
  try {
    const read: unknown = parseJson(text);
    return recordOf(read);
  } catch {
    return undefined;
  }
}

/** Reads an observation's text: its text field, else compact JSON of all fields but `done`, `reward` and `metadata`. */
export function readObservation(
  observation: Readonly<Record<string, unknown>>,
  { observation: field }: TextFields,
): string {
  const text = field === undefined ? undefined : observation[field];
  if (typeof text === 'string') return text;
  return JSON.stringify(Object.fromEntries(Object.entries(observation).filter(([name]) => !COMMON_FIELDS.has(name))));
}

function findOnlyText(properties: Readonly<Record<string, unknown>>): string | undefined {
  const own = Object.entries(properties).filter(([name]) => !COMMON_FIELDS.has(name));
  const [only] = own;
  return own.length === 1 && isText(only?.[1]) ? only![0] : undefined;
}

/** True for a schema that takes any string: `{type: string}`, or one of several alternatives. */
function isText(schema: unknown): boolean {
  const { type, anyOf, enum: choices } = (schema ?? {}) as { type?: unknown; anyOf?: unknown; enum?: unknown };
  if (choices !== undefined) return false;
  return type === 'string' || (Array.isArray(anyOf) && anyOf.some(isText));
}
