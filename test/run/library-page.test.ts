/**
 * LIBRARY.md: it lists every export with the first sentence of its docstring, its examples run as they stand, and every
 * value that is exported is in one of them. `LONGPLAY_RECORD=1` writes the list anew.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/thread.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const path = join(root, 'LIBRARY.md');
const page = readFileSync(path, 'utf8');
const examples = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code!);
const project = temporaryFolder('library-page');
afterAll(() => rmSync(project, { recursive: true, force: true }));

interface Exported {
  readonly name: string;
  readonly isValue: boolean;
  readonly summary: string;
}

const REEXPORT = /export (type )?(?:\*(?: as (\w+))?|\{([^}]*)\}) from '([^']+)';/g;
const DECLARED =
  /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?export (?:declare )?(interface|type|class|function|const) (\w+)/g;

/** First sentence of a docstring: of its first paragraph, before tags and lists. */
function firstSentence(comment: string): string {
  const lines = comment.split('\n').map((line) => line.replace(/^\s*\*? ?/, '').trimEnd());
  const words = lines.findIndex((line) => line !== '');
  const end = lines.findIndex((line, i) => i > words && (line === '' || line.startsWith('- ')));
  const text = lines
    .slice(Math.max(0, words), end < 0 ? undefined : end)
    .join(' ')
    .split(' @')[0]!
    .trim();
  return (/^.*?(?<!e\.g|i\.e)[.;](?= |$)/.exec(text)?.[0] ?? text).replace(/[;:]$/, '.');
}

/** Declarations of a built module's types, by name; overloads count once. */
function declared(file: string): Map<string, Exported> {
  const all = new Map<string, Exported>();
  for (const [, comment = '', kind, name] of readFileSync(file, 'utf8').matchAll(DECLARED)) {
    const summary = firstSentence(comment);
    const isValue = kind !== 'interface' && kind !== 'type';
    if (!all.has(name!)) all.set(name!, { name: name!, isValue, summary });
  }
  return all;
}

/** Declaration of a name that a module exports, its own or one that it passes on. */
function declarationOf(file: string, name: string): Exported | undefined {
  const own = declared(file).get(name);
  if (own) return own;
  for (const [, , , list, from] of readFileSync(file, 'utf8').matchAll(REEXPORT)) {
    if (!new RegExp(`\\b${name}\\b`).test(list ?? '')) continue;
    return declarationOf(join(dirname(file), from!.replace(/\.[jt]s$/, '.d.ts')), name);
  }
  return undefined;
}

/** Source of a built module, whose head its types lack. */
function sourceOf(types: string): string {
  return types.replace(join(root, 'dist/'), root).replace(/\.d\.ts$/, '.ts');
}

/** Exports of a module of re-exports, in alphabetical order. */
function exportsOf(built: string): Exported[] {
  const all: Exported[] = [];
  const file = join(root, built);
  for (const [, , namespace, list, from] of readFileSync(file, 'utf8').matchAll(REEXPORT)) {
    const target = join(dirname(file), from!.replace(/\.[jt]s$/, '.d.ts'));
    const known = declared(target);
    if (namespace) {
      const head = /^\/\*\*((?:(?!\*\/)[\s\S])*)\*\//.exec(readFileSync(sourceOf(target), 'utf8'))![1]!;
      all.push({ name: namespace, isValue: true, summary: firstSentence(head) });
    } else if (list === undefined) all.push(...known.values());
    else
      for (const item of list.split(',').map((one) => one.replace(/\btype\b/, '').trim())) {
        if (item === '') continue;
        const [own, name = own] = item.split(/ as /);
        all.push({ ...(declarationOf(target, own!) ?? { isValue: false, summary: '' }), name: name! });
      }
  }
  return all.sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
}

function tableOf(title: string, all: readonly Exported[]): string {
  const rows = (kind: boolean) =>
    all.filter(({ isValue }) => isValue === kind).map(({ name, summary }) => `- \`${name}\`: ${summary}`);
  return [`### ${title}`, '', ...rows(true), '', 'Types:', '', ...rows(false)].join('\n');
}

const library = exportsOf('dist/src/index.d.ts');
const testing = exportsOf('dist/src/testing.d.ts');

it('lists every export, each with what it is', () => {
  const list = [tableOf('`longplay`', library), tableOf('`longplay/testing`', testing)].join('\n\n');
  const [head, , tail] = page.split(/<!-- \/?exports -->/);
  if (process.env.LONGPLAY_RECORD) writeFileSync(path, `${head}<!-- exports -->\n${list}\n<!-- /exports -->${tail}`);
  else expect(page.split(/<!-- \/?exports -->/)[1]!.trim()).toBe(list);
  expect([...library, ...testing].filter(({ summary }) => summary === '').map(({ name }) => name)).toEqual([]);
});

it('has every value in an example', () => {
  const used = new Set(examples.flatMap((code) => code.match(/\b\w+\b/g) ?? []));
  expect(library.filter(({ name, isValue }) => isValue && !used.has(name)).map(({ name }) => name)).toEqual([]);
});

it('has examples that run', { timeout: 300_000 }, async () => {
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  for (const [name, target] of [
    ['longplay', root],
    ['fast-check', join(root, 'node_modules/fast-check')],
  ] as const)
    symlinkSync(target, join(project, 'node_modules', name));
  for (const [i, code] of examples.entries()) writeFileSync(join(project, `example-${i + 1}.mjs`), code);
  const main = examples.map((_, i) => `console.log('example ${i + 1}'); await import('./example-${i + 1}.mjs');`);
  writeFileSync(join(project, 'main.mjs'), `${main.join('\n')}\nconsole.log('all ran');\n`);
  const { stdout } = await promisify(execFile)(process.execPath, ['main.mjs'], { cwd: project, maxBuffer: 1e8 }).catch(
    (failed) => ({ stdout: `${failed.stdout}\n${failed.stderr}` }),
  );
  expect(stdout).toMatch(/\nall ran\n$/);
  expect(stdout).toContain('true true '); // laws hold
});
