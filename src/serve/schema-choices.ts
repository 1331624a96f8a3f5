/**
 * Choices of a JSON schema: the values that `response_format: { type: 'json_schema' }` allows, where they can be listed.
 * A schema can be an enum of texts (or one `const`), or an object whose only property is one, as OpenAI asks of a root;
 * `$ref` into the schema's own `$defs` is followed, as pydantic writes its enums.
 */

/** Value that a schema allows. */
export interface SchemaChoice {
  /** Text of the enum. */
  readonly value: string;
  /** Answer that means it: JSON of the schema, e.g. `{"action":"inventory"}`. */
  readonly json: string;
}

/** References that are followed before a schema counts as circular. */
const MAX_REFERENCES = 16;

type Schema = Readonly<Record<string, unknown>>;

/** Lists what a schema allows. @returns undefined where that is no list of texts */
export function choicesOfSchema(schema: unknown): readonly SchemaChoice[] | undefined {
  if (!isSchema(schema)) return undefined;
  const root = resolveReference(schema, schema);
  if (root === undefined) return undefined;
  const values = textsOf(root);
  if (values) return values.map((value) => ({ value, json: JSON.stringify(value) }));
  const properties = isSchema(root.properties) ? Object.entries(root.properties) : [];
  const [only] = properties;
  if (properties.length !== 1 || !isSchema(only![1])) return undefined;
  const inner = resolveReference(only![1], schema);
  const texts = inner && textsOf(inner);
  return texts?.map((value) => ({ value, json: JSON.stringify({ [only![0]]: value }) }));
}

function textsOf({ enum: listed, const: one }: Schema): readonly string[] | undefined {
  const values = listed === undefined && one !== undefined ? [one] : listed;
  if (!Array.isArray(values) || values.length === 0) return undefined;
  return values.every((value) => typeof value === 'string') ? values : undefined;
}

/** Schema that a reference stands for. @returns undefined for a reference that leads nowhere or round in a circle */
function resolveReference(schema: Schema, root: Schema): Schema | undefined {
  let at: Schema = schema;
  for (let followed = 0; typeof at.$ref === 'string'; followed++) {
    const [, table, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(at.$ref) ?? [];
    const defined = table === undefined ? undefined : root[table];
    if (followed === MAX_REFERENCES || !isSchema(defined) || !Object.hasOwn(defined, name!)) return undefined;
    const next = defined[name!];
    if (!isSchema(next)) return undefined;
    at = next;
  }
  return at;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
