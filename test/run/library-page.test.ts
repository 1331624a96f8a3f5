/**
 * LIBRARY.md: its list has every export with signature and first sentence, its examples run as they stand, and the
 * package exports few values. `LONGPLAY_RECORD=1` writes the list anew.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

/** Values (functions, classes, constants) that the package may export, `longplay/testing` included. */
const MAX_VALUES = 90;

/** Characters of a signature on the page; a longer one is cut. */
const MAX_SIGNATURE = 180;

const run = promisify(execFile);
const root = fileURLToPath(packageRoot);
const path = join(root, 'LIBRARY.md');
const page = readFileSync(path, 'utf8');
/** Examples of the page; a block with a file name is a file that others import, or a test file. */
const examples = [...page.matchAll(/^```js(?: (\S+))?\n([\s\S]*?)^```/gm)].map(([, file, code]) => ({
  file,
  code: code!,
}));
const project = temporaryFolder('library-page');
afterAll(() => rmSync(project, { recursive: true, force: true }));

interface Exported {
  readonly name: string;
  readonly isValue: boolean;
  readonly signature: string;
  readonly summary: string;
}

const REEXPORT = /^export (type )?(?:\*|\{([^}]*)\}) from '([^']+)';/gm;
/** Exported declaration with its docstring. Interfaces and classes end with a brace, others with the last semicolon. */
const DECLARED =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?^export (?:declare )?(?:(interface|class) (\w+)([\s\S]*?^\})|(type|function|const) (\w+)([\s\S]*?;)(?=\n(?:\/\*|\w)|\n*$(?![\s\S])))/gm;
const MEMBER = /^ {4}(?:(?:static|readonly) )*((?:get )?[\w$]+)(\??)(?:<[^(:]*>)?(\(?)/gm;

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
  return (/^.*?(?<!e\.g|i\.e|\bDr)[.;](?= |$)/.exec(text)?.[0] ?? text).replace(/[;:]$/, '.');
}

/** Signature of a declaration on one line; an interface or a class is shown by the names of its members. */
function signatureOf(kind: string, name: string, body: string): string {
  const code = body.replace(/\/\*[\s\S]*?\*\//g, '');
  let rest = code
    .replace(/\s+/g, ' ')
    .replace(/;$/, '')
    .replace(/^ = \| /, ' = ')
    .trimEnd();
  if (kind === 'interface' || kind === 'class') {
    const members = [...code.matchAll(MEMBER)].map(([, own, optional, call]) =>
      own!.startsWith('get ') ? own!.slice(4) : `${own}${optional}${call && '()'}`,
    );
    const shown = [...new Set(members)].filter((own) => !/^(private|constructor)\b/.test(own));
    rest = `${rest.slice(0, rest.indexOf(' {'))}${shown.length > 0 ? ` { ${shown.join(', ')} }` : ''}`;
  } else if (rest.length > MAX_SIGNATURE) rest = `${rest.slice(0, rest.lastIndexOf(' ', MAX_SIGNATURE))} …`;
  return `${kind === 'class' ? 'class ' : ''}${name}${rest}`;
}

/** Declarations of a built module, by name; overloads count once. @param as name under which one is exported */
function declared(file: string, as: Readonly<Record<string, string>> = {}): Map<string, Exported> {
  const all = new Map<string, Exported>();
  for (const [, comment = '', ...parts] of readFileSync(file, 'utf8').matchAll(DECLARED)) {
    const [kind, own, body] = parts[0] === undefined ? parts.slice(3) : parts;
    if (all.has(own!)) continue;
    const name = as[own!] ?? own!;
    const isValue = kind !== 'interface' && kind !== 'type';
    all.set(own!, { name, isValue, signature: signatureOf(kind!, name, body!), summary: firstSentence(comment) });
  }
  return all;
}

/** Declaration of a name that a module exports, its own or one that it passes on. */
function declarationOf(file: string, own: string, name: string): Exported {
  const found = declared(file, { [own]: name }).get(own);
  if (found) return found;
  for (const [, , list, from] of readFileSync(file, 'utf8').matchAll(REEXPORT)) {
    if (new RegExp(`\\b${own}\\b`).test(list ?? ''))
      return declarationOf(join(dirname(file), typesOf(from!)), own, name);
  }
  throw new Error(`${file}: no declaration of ${own}`);
}

function typesOf(specifier: string): string {
  return specifier.replace(/\.[jt]s$/, '.d.ts');
}

/** Exports of a built module of re-exports, in alphabetical order. */
function exportsOf(built: string): Exported[] {
  const all: Exported[] = [];
  const file = join(root, built);
  for (const [, typesOnly, list, from] of readFileSync(file, 'utf8').matchAll(REEXPORT)) {
    const target = join(dirname(file), typesOf(from!));
    if (list === undefined) {
      for (const one of declared(target).values()) if (!(typesOnly && one.isValue)) all.push(one);
      continue;
    }
    for (const item of list.split(',')) {
      const [, asType, own, name = own] = /^\s*(type )?(\w+)(?: as (\w+))?\s*$/.exec(item) ?? [];
      if (own === undefined) continue;
      const one = declarationOf(target, own, name!);
      all.push({ ...one, isValue: one.isValue && !typesOnly && !asType });
    }
  }
  return all.sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
}

function listOf(title: string, all: readonly Exported[]): string {
  const rows = (kind: boolean) =>
    all.filter(({ isValue }) => isValue === kind).map(({ signature, summary }) => `- \`${signature}\`: ${summary}`);
  return [`### ${title}`, '', ...rows(true), '', 'Types:', '', ...rows(false)].join('\n');
}

const library = exportsOf('dist/src/index.d.ts');
const testing = exportsOf('dist/src/testing.d.ts');

it('lists every export with its signature and what it is', () => {
  const list = [listOf('`longplay`', library), listOf('`longplay/testing`', testing)].join('\n\n');
  const [head, , tail] = page.split(/<!-- \/?exports -->/);
  if (process.env.LONGPLAY_RECORD) writeFileSync(path, `${head}<!-- exports -->\n${list}\n<!-- /exports -->${tail}`);
  else expect(page.split(/<!-- \/?exports -->/)[1]!.trim()).toBe(list);
  expect([...library, ...testing].filter(({ summary }) => summary === '').map(({ name }) => name)).toEqual([]);
});

it(`exports at most ${MAX_VALUES} values`, async () => {
  const names = (all: readonly Exported[]) => all.filter(({ isValue }) => isValue).map(({ name }) => name);
  const built = await Promise.all(
    ['index', 'testing'].map(async (name) => Object.keys(await import(join(root, `dist/src/${name}.js`))).sort()),
  );
  expect([library, testing].map((all) => names(all).sort())).toEqual(built); // the list leaves none out
  expect(new Set(built.flat()).size).toBeLessThanOrEqual(MAX_VALUES);
});

it('has examples that run', { timeout: 300_000 }, async () => {
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  for (const [name, target] of [
    ['longplay', root],
    ['fast-check', join(root, 'node_modules/fast-check')],
  ] as const)
    symlinkSync(target, join(project, 'node_modules', name));
  const files = examples.map(({ file }, i) => file ?? `example-${i + 1}.mjs`);
  for (const [i, { code }] of examples.entries()) writeFileSync(join(project, files[i]!), code);
  const tests = files.filter((file) => file.endsWith('.test.mjs'));
  const main = files
    .filter((file) => !tests.includes(file))
    .map((file) => `console.log('${file}'); await import('./${file}');`);
  writeFileSync(join(project, 'main.mjs'), `${main.join('\n')}\nconsole.log('all ran');\n`);
  const play = async (args: readonly string[]) =>
    run(process.execPath, args, { cwd: project, maxBuffer: 1e8 }).then(
      ({ stdout }) => stdout,
      (failed) => `${failed.stdout}\n${failed.stderr}`,
    );
  expect(await play(['main.mjs'])).toMatch(/\nall ran\n$/);
  expect(tests).toHaveLength(1);
  expect(await play(['--test', ...tests])).toMatch(/ pass 2\n[\s\S]* fail 0\n/);
});
