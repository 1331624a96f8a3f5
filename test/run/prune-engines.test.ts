/** Engines without what they never load here: sizes, what stays, and that they still compute. */
import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { arch, platform } from 'node:process';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openOrtNode } from '../../src/compute/engine/onnxruntime-node.ts';
import { openOrtWeb } from '../../src/compute/engine/onnxruntime-web.ts';
import { disableTelemetry } from '../../src/compute/engine/telemetry.ts';
import { defineGraph } from '../../src/compute/tensor/graph.ts';
import { matmul } from '../../src/compute/tensor/ops.ts';
import { input } from '../../src/compute/tensor/tensor.ts';
import { listUnusedEngineFiles, removeUnusedFiles } from '../../src/run/prune-engines.ts';
import { temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('prune-engines');
const from = join(folder, 'index.js');
const ENGINES = ['onnxruntime-node', 'onnxruntime-web'];

/** Copies a package with everything it needs, by links where the file system has them. */
function copyPackage(name: string): void {
  const to = join(folder, 'node_modules', name);
  if (existsSync(to)) return;
  const source = new URL(`../../node_modules/${name}/`, import.meta.url).pathname;
  for (const path of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!path.isFile()) continue;
    const file = join(path.parentPath, path.name);
    const copy = join(to, file.slice(source.length));
    mkdirSync(dirname(copy), { recursive: true });
    try {
      linkSync(file, copy);
    } catch {
      cpSync(file, copy);
    }
  }
  const { dependencies = {} } = createRequire(import.meta.url)(join(source, 'package.json')) as {
    dependencies?: object;
  };
  for (const one of Object.keys(dependencies)) copyPackage(one);
}

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(from, '');
  for (const name of ENGINES) copyPackage(name);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }), 60_000);

async function multiply(engine: Engine): Promise<readonly number[]> {
  const graph = defineGraph({ y: matmul(input('a', [1, 2]), input('b', [2, 1])) });
  const program = await engine.compile(graph);
  const { y } = await program.run({
    a: { dtype: 'f32', shape: [1, 2], data: Float32Array.of(2, 3) },
    b: { dtype: 'f32', shape: [2, 1], data: Float32Array.of(5, 7) },
  });
  const values = [...((y!.data ?? (await y!.read()).data) as Float32Array)];
  await program.dispose();
  await engine.dispose();
  return values;
}

describe('prune-engines', () => {
  it('lists what is for other machines and for browsers', () => {
    const [node, web] = listUnusedEngineFiles(from);
    expect([node!.package, web!.package]).toEqual(ENGINES);
    expect(node!.files.every((path) => path.startsWith('bin/') && !path.includes(`/${platform}/${arch}/`))).toBe(true);
    expect(node!.bytes).toBeGreaterThan(100e6);
    expect(web!.bytes).toBeGreaterThan(100e6);
    expect(node!.kept + web!.kept).toBeLessThan(100e6);
  });

  it('leaves a package whole that has nothing for the machine', () => {
    expect(listUnusedEngineFiles(from, { platform: 'sunos', arch: 'x64' }).map((one) => one.package)).toEqual([
      'onnxruntime-web',
    ]);
    expect(listUnusedEngineFiles(join(folder, '../elsewhere.js'))).toEqual([]);
  });

  it('removes them, and the engines still compute', { timeout: 60_000 }, async () => {
    removeUnusedFiles(listUnusedEngineFiles(from));
    expect(listUnusedEngineFiles(from).map(({ files }) => files)).toEqual([[], []]);
    expect(readdirSync(join(folder, 'node_modules/onnxruntime-node/bin/napi-v6'))).toEqual([platform]);
    await disableTelemetry();
    const load = async <T>(name: string) => (await import(pathToFileURL(join(folder, 'node_modules', name)).href)) as T;
    const nodeMain = await load<typeof import('onnxruntime-node')>('onnxruntime-node/dist/index.js');
    const settings = { device: 'cpu', threads: 1, spinning: false, packing: false, reason: 'a test' } as const;
    expect(await multiply(await openOrtNode(nodeMain, settings))).toEqual([31]);
    const web = await load<typeof import('onnxruntime-web')>('onnxruntime-web/dist/ort.node.min.mjs');
    expect(await multiply(openOrtWeb(web, { threads: 1, reason: 'a test' }))).toEqual([31]);
  });
});
