/** The programs of WORLDS.md run as they stand there. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTemplate } from '../../src/cli/templates.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';

// Within the package, so that it finds itself and its dependencies by their names.
const folder = join(fileURLToPath(packageRoot), 'dist', `readme-${process.pid}`);

beforeAll(() => {
  mkdirSync(join(folder, 'guess'), { recursive: true });
  for (const [name, text] of Object.entries(readTemplate('world', 'guess')))
    writeFileSync(join(folder, 'guess', name), text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The first program under a heading. */
function program(heading: string): string {
  const page = readFileSync(new URL('WORLDS.md', packageRoot), 'utf8');
  const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0];
  const code = /```js\n([\s\S]*?)```/.exec(section ?? '')?.[1];
  if (code === undefined) throw new Error(`WORLDS.md: no program under '${heading}'`);
  return code;
}

function run(heading: string, ...flags: string[]) {
  const file = join(folder, `${heading.split(' ')[0]!.toLowerCase()}.mjs`);
  writeFileSync(file, program(heading));
  return spawnSync(process.execPath, [...flags, file], { cwd: folder, encoding: 'utf8', timeout: 110_000 });
}

describe('WORLDS.md', () => {
  it('subscribes to a run', () => {
    const { status, stdout, stderr } = run('Subscribe to a run');
    expect(stderr).toContain('trained 3 updates');
    expect(status).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines.filter((line) => /^observed \d+$/.test(line)).length).toBeGreaterThan(100);
    expect(lines.filter((line) => /^train (true|false)$/.test(line)).length).toBeGreaterThan(20);
    expect(lines.filter((line) => /^[123] \d/.test(line))).toHaveLength(3);
    expect(lines.at(-1)).toMatch(/^updates .* 0$/);
  }, 120_000);

  it('property-tests a world', () => {
    const { status, stdout } = run('Property-test your world', '--test');
    expect(stdout).toMatch(/pass 2\b/);
    expect(status).toBe(0);
  }, 120_000);

  it('keeps its programs to fifteen lines', () => {
    for (const heading of ['Subscribe to a run', 'Property-test your world']) {
      expect(program(heading).trim().split('\n').length).toBeLessThanOrEqual(15);
    }
  });
});
