/**
 * Reference of the configuration: CONFIG.md and a JSON schema for editors, made from the zod schema (types, ranges,
 * defaults) and from the comments above its keys (meaning). A test holds both files to it.
 */
import { z } from 'zod';
import { runConfigSchema } from './run-config.ts';

/** A node of a JSON schema, as far as it is read here. */
interface Node {
  type?: string | string[];
  description?: string;
  properties?: Record<string, Node>;
  required?: string[];
  anyOf?: Node[];
  oneOf?: Node[];
  items?: Node;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  format?: string;
}

/** A key of the configuration. */
export interface ConfigKey {
  /** `learner.estimator.gamma`. */
  readonly path: string;
  /** The kinds of its union that have the key; none where it always is there. */
  readonly kinds: readonly string[];
  readonly type: string;
  readonly default: string;
  readonly meaning: string;
}

/**
 * @param source text of run-config.ts
 * @returns every key in order, the page, and the JSON schema (draft 7)
 */
export function makeConfigReference(source: string): { keys: readonly ConfigKey[]; page: string; schema: object } {
  const docs = readComments(source);
  const root = z.toJSONSchema(runConfigSchema, { io: 'input', target: 'draft-7', unrepresentable: 'any' }) as Node;
  const keys: ConfigKey[] = [];
  walk(root, [], docs, keys);
  // An agent stands in the place of a world, and a list of worlds in that of a world and its horizon.
  const required = root.required?.filter((key) => key !== 'env' && key !== 'horizon');
  const schema = { ...root, ...(required ? { required } : {}), title: 'longplay run configuration' };
  return { keys, page: renderPage(keys), schema };
}

/** Keys of a run of one world that each world of a list has too. */
const SHARED: readonly string[] = ['env', 'tasks', 'horizon'];

function walk(node: Node, path: readonly string[], docs: Docs, keys: ConfigKey[]): void {
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    const here = [...path, name];
    const meaning = docs(here) || (child.description ?? '');
    if (meaning !== '') child.description = meaning;
    const variants = findVariants(child);
    // What a world of a list has of a run of one has its rows there; editors read its meaning in both places.
    const isShared = path.at(-1) === 'worlds[]' && SHARED.includes(name);
    const inner = isShared ? [] : keys;
    if (child.items?.properties) walk(child.items, [...path, `${name}[]`], docs, keys);
    else if (variants) walkUnion(child, variants, here, meaning, docs, inner);
    else if (child.properties) walk(child, here, docs, inner);
    const isLeaf = !child.items?.properties && !variants && !child.properties;
    if (!isLeaf && !isShared) continue;
    const absent = node.required?.includes(name) ? 'must be given' : '';
    keys.push({
      path: here.join('.'),
      kinds: [],
      type: isShared ? `the keys of \`${name}\`` : describeType(child),
      default: (isShared ? '' : formatDefault(child)) || absent,
      meaning,
    });
  }
}

function walkUnion(
  union: Node,
  variants: readonly Node[],
  path: readonly string[],
  meaning: string,
  docs: Docs,
  keys: ConfigKey[],
): void {
  const discriminator = Object.entries(variants[0]!.properties!).find(
    ([, { const: value }]) => value !== undefined,
  )![0];
  const kindOf = (variant: Node) => String(variant.properties![discriminator]!.const);
  const byDefault = (union.default as Record<string, unknown> | undefined)?.[discriminator];
  for (const variant of variants) {
    // Keys given without a kind are the default kind's (union-defaults.ts).
    if (variant.properties![discriminator]!.const !== byDefault) continue;
    variant.required = (variant.required ?? []).filter((name) => name !== discriminator);
    if (variant.required.length === 0) delete variant.required;
  }
  keys.push({
    path: [...path, discriminator].join('.'),
    kinds: [],
    type: variants.map((variant) => `\`${kindOf(variant)}\``).join(', '),
    default: byDefault === undefined ? 'must be given' : formatCode(byDefault),
    meaning: [meaning, docs([...path, discriminator])].filter((text) => text !== '').join(' '),
  });
  const merged = new Map<string, ConfigKey>();
  for (const variant of variants) {
    const own: ConfigKey[] = [];
    walk({ ...variant, properties: omitKey(variant.properties!, discriminator) }, path, docs, own);
    for (const key of own) {
      const id = `${key.path} ${key.type} ${key.default}`;
      const kinds = [...(merged.get(id)?.kinds ?? []), kindOf(variant)];
      merged.set(id, { ...key, kinds });
    }
  }
  for (const key of merged.values()) keys.push(key.kinds.length === variants.length ? { ...key, kinds: [] } : key);
}

function omitKey(properties: Record<string, Node>, name: string): Record<string, Node> {
  return Object.fromEntries(Object.entries(properties).filter(([key]) => key !== name));
}

/** Variants of a union of objects that one key discriminates. */
function findVariants({ oneOf, anyOf }: Node): readonly Node[] | undefined {
  const all = oneOf ?? anyOf;
  return all?.every(({ properties }) => Object.values(properties ?? {}).some((one) => one.const !== undefined))
    ? all
    : undefined;
}

function describeType(node: Node): string {
  const { type, items, minimum, maximum, exclusiveMinimum } = node;
  const choices = node.enum ?? (node.const === undefined ? undefined : [node.const]);
  if (choices) return choices.map(formatCode).join(', ');
  const either = node.anyOf ?? node.oneOf;
  if (either) return either.map(describeType).join(' or ');
  if (type === 'array') return `list of ${items ? describeType(items) : 'anything'}`;
  if (type === 'integer' || type === 'number') {
    const kind = type === 'integer' ? 'whole number' : 'number';
    const from = exclusiveMinimum === undefined ? formatBound(minimum) : `> ${formatBound(exclusiveMinimum)}`;
    return `${kind}, ${from} … ${formatBound(maximum)}`;
  }
  if (type === 'string') return node.format === 'uri' ? 'URL' : 'text';
  if (type === 'boolean') return 'true, false';
  return type === 'object' ? 'keys and values' : 'anything';
}

function formatBound(value: number | undefined): string {
  if (value === undefined) return '';
  const power = Math.log2(Math.abs(value));
  if (Math.abs(value) >= 2 ** 20 && Number.isInteger(power)) return `2^${power}`;
  if (Math.abs(value) >= 2 ** 30 && Number.isInteger(Math.log2(value + 1))) return `2^${Math.log2(value + 1)} − 1`;
  return Math.abs(value) >= 1e9 ? value.toExponential().replace('e+', 'e') : value.toLocaleString('en');
}

function formatDefault(node: Node): string {
  return node.default === undefined ? '' : formatCode(node.default);
}

function formatCode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text === '' ? 'empty' : `\`${text}\``;
}

/** Looks up the comment above a key. */
type Docs = (path: readonly string[]) => string;

/** Comments of the source by key: those of a shared part are found under the key that has its name. */
function readComments(source: string): Docs {
  const found = new Map<string, string>();
  let stack: { readonly indent: number; readonly name: string }[] = [];
  let part = '';
  let pending = '';
  let open: string[] | undefined;
  for (const line of source.split('\n')) {
    const text = line.trim();
    if (open || text.startsWith('/**')) {
      open = [
        ...(open ?? []),
        text
          .replace(/^\/?\*+\/?/, '')
          .replace(/\*\/$/, '')
          .trim(),
      ];
      if (!text.endsWith('*/')) continue;
      pending = open.filter((one) => one !== '').join(' ');
      open = undefined;
      continue;
    }
    const start = /^(?:export )?const (\w+) = /.exec(line)?.[1];
    if (start !== undefined) {
      part = start === 'runConfigSchema' ? '' : start;
      stack = [];
    }
    const key = /^(\s+)(\w+)(?::|,$)/.exec(line);
    if (key) {
      const indent = key[1]!.length;
      stack = [...stack.filter((one) => one.indent < indent), { indent, name: key[2]! }];
      const at = `${part}:${stack.map(({ name }) => name).join('.')}`;
      if (pending !== '' && !found.has(at)) found.set(at, pending);
    }
    if (text !== '') pending = '';
  }
  return (keys) => {
    const path = keys.map((key) => key.replace('[]', ''));
    const whole = found.get(`:${path.join('.')}`);
    if (whole !== undefined) return whole;
    for (let cut = path.length - 1; cut > 0; cut--) {
      const shared = found.get(`${path[cut - 1]}:${path.slice(cut).join('.')}`);
      if (shared !== undefined) return shared;
    }
    return '';
  };
}

const INTRODUCTION = `# Configuration

Every key of a run's configuration: its values, its default, and what it means. Made from \`src/config/run-config.ts\`, like
the JSON schema by which editors complete and check a file whose first line is

\`\`\`yaml
# yaml-language-server: $schema=node_modules/longplay/src/config/run-config.schema.json
\`\`\`

A configuration is YAML; on the command line \`--set learner.maxLag=0\` overrides a key, once for each key. A key inside a
default is set in that default: \`--set learner.estimator.gamma=0.95\` keeps the default estimator. A misspelt key or value is
refused with the nearest right one. \`env\` and \`horizon\`, or \`worlds\`, and one of \`stop\` must be given; everything else has a
default.

## Set these first

\`\`\`yaml
env: { id: ./guess/env.mjs }                                     # the world, and its options
horizon: { type: scaling_inter_stepwise, rounds: [8, 16, 24], steps_scaling_inter: 200 } # turns, and when they grow
stop: { minutes: 5 }                                             # or updates, envSteps
learner: { estimator: { algorithm: grpo, gamma: 0.95 }, learningRate: 0.001, groupsPerUpdate: 16 }
rollout: { groupSize: 8, envThreads: 2 }                         # episodes of a task; threads of env hosts
policy: { kind: local, model: { layers: 2 } }                    # or checkpoint, with path: a language model's folder
evaluation: { horizons: [24] }                                   # turns of the evaluation at the end
\`\`\`

The next ones are \`tasks.sampling\` (which task comes next), \`learner.maxLag\` (how old an episode's weights may be),
\`checkpoint.everyUpdates\` and \`trace.everyGroups\` (what is kept), \`engine.name\` (what computes).
`;

function renderPage(keys: readonly ConfigKey[]): string {
  const sections = new Map<string, ConfigKey[]>();
  for (const key of keys) {
    const section = key.path.includes('.') ? key.path.split('.')[0]!.replace('[]', '') : 'seed';
    sections.set(section, [...(sections.get(section) ?? []), key]);
  }
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const parts = [...sections].map(([section, own]) => {
    const rows = own.map(({ path, kinds, type, default: fallback, meaning }) => {
      const only = kinds.length === 0 ? '' : ` (${kinds.join(', ')})`;
      return `| \`${path}\`${only} | ${cell(type)} | ${cell(fallback)} | ${cell(meaning)} |`;
    });
    return [`## ${section}`, '', '| key | values | default | meaning |', '| --- | --- | --- | --- |', ...rows].join(
      '\n',
    );
  });
  return `${[INTRODUCTION.trimEnd(), ...parts].join('\n\n')}\n`;
}
