/** The built command line, typed as a person would and waited for. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../src/runtime/module-url.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

export function longplay(...args: string[]) {
  const { status, stderr, stdout } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, stderr, stdout };
}
