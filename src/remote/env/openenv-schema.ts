/**
 * Actions and observations of an OpenEnv server that is not ours: objects there, texts here. Which fields they have is
 * read from the JSON schemas of its `/schema`.
 */

/** JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Fields that every action and observation of OpenEnv has beside its own. */
const COMMON_FIELDS: ReadonlySet<string> = new Set(['metadata', 'done', 'reward']);

/** Schema of a server's actions, as far as a text becomes one of them. */
export interface ActionSchema {
  /** Field that takes the text; undefined where the text is one JSON object. */
  readonly textField: string | undefined;
  /** Names of the action's fields, for messages. */
  readonly fields: readonly string[];
}

/**
 * Reads the schema of the actions. An action takes text where text is all that it needs: its only field is a text, or the
 * only one that is required.
 * @throws {Error} where it is no schema of an object
 */
export function readActionSchema(schema: unknown): ActionSchema {
  const { properties, required } = objectSchema(schema, 'action');
  const fields = Object.keys(properties).filter((name) => !COMMON_FIELDS.has(name));
  const needed = fields.length === 1 ? fields : fields.filter((name) => required.includes(name));
  const [only] = needed;
  const isText = needed.length === 1 && takesText(properties[only!]);
  return { textField: isText ? only : undefined, fields };
}

/**
 * Makes the object of an action.
 * @returns the object, or a sentence for the agent where its text is none
 */
export function actionOf({ textField, fields }: ActionSchema, text: string): JsonObject | string {
  if (textField !== undefined) return { [textField]: text };
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as JsonObject;
  } catch {} // answered in words, as every text that an env does not understand
  return `Invalid action: expected one JSON object with the fields ${fields.join(', ')}.`;
}

/**
 * Text of an observation: its only field where that is a text, else all its fields as compact JSON, so that nothing is
 * lost. `done`, `reward` and `metadata`, which older servers repeat in it, are left out.
 */
export function observationText(observation: JsonObject): string {
  const own = Object.entries(observation).filter(([name]) => !COMMON_FIELDS.has(name));
  const [only] = own;
  return own.length === 1 && typeof only![1] === 'string' ? only![1] : JSON.stringify(Object.fromEntries(own));
}

function objectSchema(schema: unknown, name: string) {
  const { properties, required = [] } = (schema ?? {}) as JsonObject;
  if (typeof properties !== 'object' || properties === null || !Array.isArray(required)) {
    throw new Error(`${name}: expected the JSON schema of an object`);
  }
  return { properties: properties as JsonObject, required: required as readonly unknown[] };
}

function takesText(schema: unknown): boolean {
  const { type, anyOf } = (schema ?? {}) as JsonObject;
  if (Array.isArray(type)) return type.includes('string');
  return type === 'string' || (Array.isArray(anyOf) && anyOf.some(takesText));
}
