/**
 * A key of the configuration exists because it is set somewhere: few leaves, and each stands in a yaml, a page or an
 * experiment.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { checkRunConfig } from '../../src/config/load.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

/** Leaves that the configuration may have. */
const MAX_LEAVES = 189;

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

/** Paths of all leaves of a schema; those of a union's variants once. */
function leavesOf({ properties, oneOf, anyOf }: Schema, path = ''): string[] {
  const variants = (oneOf ?? anyOf)?.filter((variant) => variant.properties);
  if (variants && variants.length > 0) return [...new Set(variants.flatMap((variant) => leavesOf(variant, path)))];
  if (!properties) return [path];
  return Object.entries(properties).flatMap(([key, inner]) => leavesOf(inner, path === '' ? key : `${path}.${key}`));
}

/** Paths of the values in a configuration, down to the leaves that are known. */
function pathsOf(value: unknown, leaves: ReadonlySet<string>, path = ''): string[] {
  if (leaves.has(path)) return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, leaves, path === '' ? key : `${path}.${key}`));
}

/** Files of a folder, at any depth. */
function filesOf(folder: string, ending: RegExp): string[] {
  const names = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => ending.test(name)).map((name) => `${folder}${name}`);
}

/** Configurations in the `yaml` blocks of a page. */
function examplesIn(page: string): unknown[] {
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text]) => text!);
  return blocks.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as unknown));
}

const leaves = leavesOf(JSON.parse(read('src/config/run-config.schema.json')) as Schema);
const library = ['LIBRARY.md', 'REWARDS.md', 'src/metrics/README.md'].flatMap((page) => examplesIn(read(page)));

it(`the configuration has at most ${MAX_LEAVES} leaves`, () => {
  expect(leaves.length).toBeGreaterThan(100);
  expect(leaves.length).toBeLessThanOrEqual(MAX_LEAVES);
});

it('every leaf stands in a yaml, a page or an experiment', () => {
  const known = new Set(leaves);
  const configurations = filesOf('experiments/', /^[^/]*\.yaml$/).map((path) => parse(read(path)) as unknown);
  const texts = [
    ...[
      'README.md',
      'COMMANDS.md',
      'WORLDS.md',
      'LIBRARY.md',
      'ALGORITHMS.md',
      'src/gateway/README.md',
      'src/policy/README.md',
      'src/policy/pretrained/README.md',
      ...filesOf('experiments/', /\.(ts|md)$/),
      ...filesOf('envs/', /README\.md$/),
    ],
  ].map(read);
  // `--set learner.kl={in: loss}` stands for the leaves inside, too.
  const settings = texts.flatMap((text) => [...text.matchAll(/\b([a-z][\w.]*)=(\{[^'`\n]*\})/g)]);
  const set = settings.flatMap(([, path, value]) => {
    try {
      return pathsOf(parse(value!), known, path);
    } catch {
      return []; // cut short by an ellipsis
    }
  });
  const found = new Set([...[...configurations, ...library].flatMap((one) => pathsOf(one, known)), ...set]);
  const whole = texts.join('\n');
  const unused = leaves.filter(
    (path) => !found.has(path) && !new RegExp(`(?<![\\w.])${path.replaceAll('.', '\\.')}(?![\\w.])`).test(whole),
  );
  expect(unused).toEqual([]);
});

it('every configuration that a page shows is one', () => {
  expect(library.length).toBeGreaterThan(8);
  for (const example of library) {
    const base = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 8 }, stop: { updates: 1 } };
    expect(() => checkRunConfig({ ...base, ...(example as object) }, 'LIBRARY.md')).not.toThrow();
  }
});

it('no page names a key that is not there', () => {
  const sections = [...new Set(leaves.filter((path) => path.includes('.')).map((path) => path.split('.')[0]!))];
  const key = new RegExp(`\`((?:${sections.join('|')})\\.[\\w.]+?)\\.?(?:[:=][^\`]*)?\``, 'g');
  const pages = [
    ...readdirSync(root).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
    ...['src/', 'actors/', 'envs/', 'experiments/'].flatMap((folder) => filesOf(folder, /\.md$/)),
  ];
  const named = pages.flatMap((page) => [...read(page).matchAll(key)].map(([, path]) => ({ page, path: path! })));
  const isFile = (path: string) => /\.(ts|md|jsonl?|ya?ml|safetensors)$/.test(path);
  const isThere = (path: string) => leaves.some((leaf) => leaf === path || leaf.startsWith(`${path}.`));
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter(({ path }) => !isFile(path) && !path.startsWith('env.options.') && !isThere(path))).toEqual([]);
});
