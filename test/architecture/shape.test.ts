/** Shape of the code, as the compiler's own parser reads it: names, calls, and no circle of protocols. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import {
  isCallExpression,
  isClassLikeDeclaration,
  isExportDeclaration,
  isFunctionDeclaration,
  isFunctionLikeDeclaration,
  isImportDeclaration,
  isNewExpression,
  isSpreadElement,
  isStringLiteral,
  isVariableDeclaration,
  type Node,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Exported functions that are named by a participle, each with the reason. */
const PARTICIPLES: Readonly<Record<string, string>> = {
  'src/core/env.ts terminated': 'the kind of a step, as dm_env names it; what users of the library call',
};

/** Calls that pass the values of a list as arguments, each with what bounds the list. */
const SPREAD: Readonly<Record<string, string>> = {
  'envs/babyai/tasks.ts seedRange': 'a pair',
  'envs/sciworld/tasks/chemistry.ts goals.requireSameRoom': 'a pair',
  'envs/tau2/environment.ts method.run': 'the parameters of a tool',
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
  'src/viewer/client/curves.ts item.firstElementChild!.classList.add': 'one class or none',
};
/** Pages of our own sites, which hold what we put on them: a few dozen entries each. */
const OWN_SITES = 'envs/webarena/sites/';

interface Shape {
  /** `<file> <name>` of each exported function that a participle names. */
  readonly participles: readonly string[];
  /** `<file> <name>` of each constant called `MOST_…` or `LEAST_…`. */
  readonly extremes: readonly string[];
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
    const participles: string[] = [];
    const extremes: string[] = [];
    const spreads: string[] = [];
    const imports = new Map<string, string[]>();
    const counted = { functions: 0, classes: 0 };
    for (const path of project!.rootFiles) {
      const file = path.slice(folder.length + 1);
      if (!parts.some((part) => file.startsWith(part))) continue;
      const source = project!.program.getSourceFile(path)!;
      const visit = (node: Node, within: string): void => {
        const name = nameOf(node) ?? within;
        if (isClassLikeDeclaration(node)) counted.classes++;
        else if (isFunctionLikeDeclaration(node)) counted.functions++;
        if (isFunctionDeclaration(node) && isExported(node) && isParticiple(name)) participles.push(`${file} ${name}`);
        if (isVariableDeclaration(node) && /^(MOST|LEAST)_/.test(name)) extremes.push(`${file} ${name}`);
        if ((isCallExpression(node) || isNewExpression(node)) && node.arguments?.some(isSpreadElement)) {
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
    return { participles, extremes, spreads, imports, counted };
  } finally {
    api.close();
  }
}

function nameOf(node: Node): string | undefined {
  const { name } = node as { readonly name?: { readonly text?: string } };
  return name?.text;
}

function isExported(node: Node): boolean {
  const { modifiers } = node as { readonly modifiers?: readonly Node[] };
  return modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword) ?? false;
}

/** Participles that do not end in `ed`, and words in `ed` that are none. */
const IRREGULAR =
  /^(told|said|heard|taken|given|gone|begun|broken|shown|seen|known|held|kept|made|left|lost|found|sent|built|drawn|written|chosen|frozen|got|gotten|thrown|understood)$/;
const NO_PARTICIPLE = /^(need|feed|embed|seed|speed|shed|exceed|proceed|heed)$/;

/** True for a name whose first word is a past participle. */
function isParticiple(name: string): boolean {
  const word = /^[a-z]+/.exec(name)?.[0] ?? '';
  return IRREGULAR.test(word) || (word.endsWith('ed') && !NO_PARTICIPLE.test(word));
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

  it('names no exported function by a participle but those listed, each with its reason', () => {
    expect(shape.counted.functions).toBeGreaterThan(4000);
    expect(shape.counted.classes).toBeGreaterThan(100);
    expect([...shape.participles].sort()).toEqual(Object.keys(PARTICIPLES).sort());
  });

  it('calls a bound MAX_ or MIN_, never MOST_ or LEAST_', () => {
    expect(shape.extremes).toEqual([]);
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

  it('finds participles, MOST_ and LEAST_, and a circle of protocols by way of types', () => {
    const files: Readonly<Record<string, string>> = {
      'tsconfig.json':
        '{ "compilerOptions": { "noLib": true, "types": [] }, "files": ["names.ts", "a.ts", "b.ts", "c.ts"] }',
      'names.ts': [
        'export function told() {}',
        'export function compared() {}',
        'export function comparedWeights() {}',
        'export function compareWeights() {}',
        'export function feed() {}',
        'function taken() {}',
        'export const MOST_HITS = 1;',
        'const LEAST_MS = 1;',
        'const MAX_MS = 1;',
      ].join('\n'),
      'a.ts': "import type { B } from './b.ts';\nexport type A = B;",
      'b.ts': "export type { C } from './c.ts';",
      'c.ts': "import { type A } from './a.ts';\nexport type C = A;",
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

    const shape = shapeOf(folder, ['']);

    expect(shape.participles).toEqual(['names.ts told', 'names.ts compared', 'names.ts comparedWeights']);
    expect(shape.extremes).toEqual(['names.ts MOST_HITS', 'names.ts LEAST_MS']);
    expect(circle(shape.imports, () => true)).toEqual(['a.ts', 'b.ts', 'c.ts', 'a.ts']);
    expect(circle(shape.imports, (file) => file !== 'c.ts')).toEqual([]);
  });
});
