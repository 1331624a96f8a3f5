/** Dependencies: each has a row with its licence, what they bring along is under a licence of the list, and the release can run. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Manifest {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}
interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
}

const manifest = JSON.parse(read('package.json')) as Manifest;
const { packages } = JSON.parse(read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> };
/** [name, licence] of each row of the tables. */
const rows = [...read('DEPENDENCIES.md').matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(([, name, licence]) => [
  name!,
  licence!.trim(),
]);

it('has a row for each package that package.json names', () => {
  const { dependencies, optionalDependencies, peerDependencies } = manifest;
  const named = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  expect(rows.map(([name]) => name).sort()).toEqual(named.sort());
});

it('names the licences that the lock file has', () => {
  const known = rows.filter(([name]) => packages[`node_modules/${name}`]);
  expect(known.length).toBeGreaterThan(25);
  for (const [name, licence] of known) expect(licence, name).toBe(packages[`node_modules/${name}`]!.license);
});

it('brings along only packages under the licences of the page', () => {
  const allowed =
    /^(?:MIT|Apache-2\.0|ISC|BSD-[23]-Clause|0BSD|Unlicense|BlueOak-1\.0\.0|\(?(?:MIT|Apache-2\.0)[^)]*\)?)$/;
  const brought = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
  expect(brought.length).toBeGreaterThan(50);
  expect(brought.filter(([, { license = '' }]) => !allowed.test(license)).map(([path]) => path)).toEqual([]);
});

it('has a release whose scripts and files are there', () => {
  const workflow = parse(read('.github/workflows/release.yml')) as {
    readonly jobs: { readonly release: { readonly steps: readonly { run?: string; 'working-directory'?: string }[] } };
  };
  const { steps } = workflow.jobs.release;
  const scripts = steps.flatMap(({ run = '' }) => [...run.matchAll(/^npm (?:run )?(test|lint|build)\b/gm)]);
  expect(scripts.length).toBeGreaterThan(1);
  for (const [, script] of scripts) expect(manifest.scripts).toHaveProperty(script!);
  for (const step of steps) expect(existsSync(join(root, step['working-directory'] ?? '.', 'package.json'))).toBe(true);
});
