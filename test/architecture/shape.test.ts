/** Shape of the code, as the compiler's own parser reads it: sizes of functions and classes, and no circle of protocols. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import {
  isCallExpression,
  isClassLikeDeclaration,
  isExportDeclaration,
  isFunctionLikeDeclaration,
  isImportDeclaration,
  isNewExpression,
  isSpreadElement,
  isStringLiteral,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MAX_LINES = 80;
const MAX_MEMBERS = 40;

/** Functions that may be longer, each with the reason. */
const LONG: Readonly<Record<string, string>> = {
  'envs/babyai/paths.ts searchPaths':
    'one algorithm, a breadth-first search over all ways to reach a cell, read with its source beside it',
  'src/cli/skeleton.ts env': 'a table: the text of the file that `new-env` writes',
};

/** Calls that pass the values of a list as arguments, each with what bounds the list. */
const SPREAD: Readonly<Record<string, string>> = {
  'envs/babyai/tasks.ts seedRange': 'a pair',
  'envs/sciworld/tasks/chemistry.ts goals.sameRoom': 'a pair',
  'envs/webarena/page.ts group': 'blocks of a page of our own sites',
  'envs/webarena/page.ts row': 'eight links',
  'envs/webarena/session.ts this.#driver.click': 'a point',
  'envs/webarena/session.ts this.#driver.hover': 'a point',
  'src/world/conformance/script.ts String.fromCharCode': 'at most 60 letters',
  'src/core/rng.ts seedFrom': 'four words of a state',
  'src/compute/model/attention.ts times': 'axes of a tensor',
  'src/compute/tensor/ops/elementwise.ts requireDType': 'types that an operation takes',
  'src/compute/tensor/ops/layout.ts plus': 'operands of an operation of ours',
  'src/compute/tensor/shape.ts times': 'axes of a tensor',
  'src/viewer/client/charts.ts item.firstElementChild!.classList.add': 'one class or none',
};
/** Pages of our own sites, which hold what we put on them: a few dozen entries each. */
const OWN_SITES = 'envs/webarena/sites/';

interface Shape {
  /** `<file> <name>` of each function over the limit, with its lines. */
  readonly long: readonly (readonly [name: string, lines: number])[];
  /** `<file> <name>` of each class over the limit, with its members. */
  readonly large: readonly (readonly [name: string, members: number])[];
  /** `<file> <callee>` of each call that passes a list's values as arguments. */
  readonly spreads: readonly string[];
  /** Imports of each file, types included. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  /** Functions and classes looked at, against a reading that finds nothing. */
  readonly counted: { functions: number; classes: number };
}

/** @param folder with a `tsconfig.json` @param parts folders in it, ending in `/` */
function shapeOf(folder: string, parts: readonly string[]): Shape {
  const api = new API({ cwd: folder });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(folder, 'tsconfig.json')] }).getProjects();
    const long: [string, number][] = [];
    const large: [string, number][] = [];
    const spreads: string[] = [];
    const imports = new Map<string, string[]>();
    const counted = { functions: 0, classes: 0 };
    for (const path of project!.rootFiles) {
      const file = path.slice(folder.length + 1);
      if (!parts.some((part) => file.startsWith(part))) continue;
      const source = project!.program.getSourceFile(path)!;
      const visit = (node: Node, within: string): void => {
        const name = nameOf(node) ?? within;
        if (isClassLikeDeclaration(node)) {
          counted.classes++;
          if (node.members.length > MAX_MEMBERS) large.push([`${file} ${name}`, node.members.length]);
        } else if (isFunctionLikeDeclaration(node) && 'body' in node && node.body) {
          counted.functions++;
          const lines = linesOf(node, source);
          if (lines > MAX_LINES) long.push([`${file} ${name}`, lines]);
        } else if ((isCallExpression(node) || isNewExpression(node)) && node.arguments?.some(isSpreadElement)) {
          spreads.push(`${file} ${source.text.slice(node.expression.pos, node.expression.end).trim()}`);
        } else if ((isImportDeclaration(node) || isExportDeclaration(node)) && node.moduleSpecifier) {
          const { moduleSpecifier: to } = node;
          if (isStringLiteral(to) && to.text.startsWith('.')) {
            imports.set(file, [...(imports.get(file) ?? []), normalize(join(dirname(file), to.text))]);
          }
        }
        node.forEachChild((child) => visit(child, name));
      };
      visit(source, '');
    }
    return { long, large, spreads, imports, counted };
  } finally {
    api.close();
  }
}

function nameOf(node: Node): string | undefined {
  const { name } = node as { readonly name?: { readonly text?: string } };
  return name?.text;
}

function linesOf(node: Node, source: SourceFile): number {
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  return lineAt(node.end) - lineAt(node.getStart(source)) + 1;
}

/** The files of a circle of imports among `files`, or nothing. */
function circle(imports: Shape['imports'], files: (file: string) => boolean): readonly string[] {
  const done = new Set<string>();
  const walk = (file: string, way: readonly string[]): readonly string[] => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of (imports.get(file) ?? []).filter(files)) {
      const found = walk(next, [...way, file]);
      if (found.length > 0) return found;
    }
    done.add(file);
    return [];
  };
  for (const file of [...imports.keys()].filter(files)) {
    const found = walk(file, []);
    if (found.length > 0) return found;
  }
  return [];
}

const isProtocol = (file: string) => file.endsWith('/protocol.ts');
const isRuntime = (file: string) => file.startsWith('src/runtime/');

describe('the shape of the code', () => {
  let shape: Shape;
  beforeAll(() => {
    shape = shapeOf(normalize(join(import.meta.dirname, '../..')), ['src/', 'actors/', 'envs/']);
  }, 300_000);

  it(`has no function of more than ${MAX_LINES} lines but those listed, each with its reason`, () => {
    expect(shape.counted.functions).toBeGreaterThan(4000);
    expect(shape.long.map(([name]) => name).sort()).toEqual(Object.keys(LONG).sort());
  });

  it(`has no class of more than ${MAX_MEMBERS} fields and methods`, () => {
    expect(shape.counted.classes).toBeGreaterThan(100);
    expect(shape.large).toEqual([]);
  });

  it('passes no list as arguments whose length the outside may choose: a call takes some 120,000', () => {
    const found = shape.spreads.filter((one) => !one.startsWith(OWN_SITES));
    expect(found.length).toBeLessThan(shape.spreads.length); // they are found
    expect([...new Set(found)].sort()).toEqual(Object.keys(SPREAD).sort());
  });

  it('has no circle of imports among protocols, nor in the runtime', () => {
    expect([...shape.imports.keys()].filter(isProtocol).length).toBeGreaterThan(5);
    expect(circle(shape.imports, isProtocol)).toEqual([]);
    expect([...shape.imports.keys()].filter(isRuntime).length).toBeGreaterThan(15);
    expect(circle(shape.imports, isRuntime)).toEqual([]);
  });
});

describe('a reading of the shape', () => {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-shape-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('finds a long function, method and arrow, a large class, and a circle of protocols by way of types', () => {
    const lines = (n: number) => '  void 0;\n'.repeat(n);
    const files: Readonly<Record<string, string>> = {
      'tsconfig.json':
        '{ "compilerOptions": { "noLib": true, "types": [] }, "files": ["long.ts", "a.ts", "b.ts", "c.ts"] }',
      'long.ts': [
        `function long() {\n${lines(79)}}`,
        `function short() {\n${lines(78)}}`,
        `const arrow = () => {\n${lines(79)}};`,
        `class Large {\n${Array.from({ length: 40 }, (_, i) => `  f${i} = 0;\n`).join('')}  method() {\n${lines(79)}}\n}`,
        `class Small {\n${Array.from({ length: 40 }, (_, i) => `  f${i} = 0;\n`).join('')}}`,
      ].join('\n'),
      'a.ts': "import type { B } from './b.ts';\nexport type A = B;",
      'b.ts': "export type { C } from './c.ts';",
      'c.ts': "import { type A } from './a.ts';\nexport type C = A;",
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

    const shape = shapeOf(folder, ['']);

    expect(shape.long).toEqual([
      ['long.ts long', 81],
      ['long.ts arrow', 81],
      ['long.ts method', 81],
    ]);
    expect(shape.large).toEqual([['long.ts Large', 41]]);
    expect(circle(shape.imports, () => true)).toEqual(['a.ts', 'b.ts', 'c.ts', 'a.ts']);
    expect(circle(shape.imports, (file) => file !== 'c.ts')).toEqual([]);
  });
});
