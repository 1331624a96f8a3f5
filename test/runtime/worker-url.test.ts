import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { localUrl, workerUrl } from '../../src/runtime/module-url.ts';

const root = new URL('../../', import.meta.url);
const at = (path: string) => new URL(path, root);

it.each([
  ['actors/env/env-host.ts', 'dist/actors/env/env-host.js'],
  ['envs/textcraft/index.js', 'dist/envs/textcraft/index.js'],
  ['dist/actors/env/env-host.ts', 'dist/actors/env/env-host.js'],
  ['dist/actors/env/env-host.js', 'dist/actors/env/env-host.js'],
  ['node_modules/some-env/index.js', 'node_modules/some-env/index.js'],
])('a thread loads %s from %s', (from, to) => {
  expect(workerUrl(at(from)).href).toBe(at(to).href);
});

it('leaves modules of others alone, and finds sources for this thread', () => {
  expect(workerUrl(new URL('file:///elsewhere/env.mjs')).href).toBe('file:///elsewhere/env.mjs');
  const named = localUrl(at('actors/env/env-host.js'));
  expect(named.href).toBe(at('actors/env/env-host.ts').href);
  expect(existsSync(named)).toBe(true);
});
