/** World of a trace that was copied elsewhere: a module that moved with its run is found from the new folder. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { findTracedEnv, relocateEnv } from '../../src/run/traced-env.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = temporaryFolder('traced-env');
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('the way to a module of the run starts from the folder of the copy', () => {
  const module = join(root, 'worlds/env.mjs');
  const traces = join(root, 'runs/first/traces');
  const out = join(root, 'copies/of/mine');
  for (const folder of [join(root, 'worlds'), traces, out]) mkdirSync(folder, { recursive: true });
  writeFileSync(module, '');
  writeFileSync(join(root, 'runs/first/config.yaml'), ''); // a run's folder
  const config = { seed: 3, env: { id: '/nowhere/env.mjs', options: {}, fromRun: '../../worlds/env.mjs' } };
  const copied = relocateEnv(config, traces, out);
  expect(copied).toMatchObject({ seed: 3 });
  expect(findTracedEnv(config, traces, 'mine').id).toBe(module);
  expect(findTracedEnv(copied, out, 'mine').id).toBe(module);
  expect(findTracedEnv(config, out, 'mine').id).toBe('/nowhere/env.mjs');
});
