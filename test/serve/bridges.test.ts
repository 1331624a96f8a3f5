/** Python's ways in: the client and the bridges to Gymnasium and verifiers, driven by `python3` alone. */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startEnvServer } from '../../src/run/serve-worlds.ts';

const python = spawnSync('python3', ['--version']).status === 0;
if (!python) console.log('skipped: no python3');

it('the package holds the Python files', { timeout: 60_000 }, () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const shipped = files.map(({ path }) => path).filter((path) => path.endsWith('.py') && path.startsWith('src/'));
  expect(shipped).toEqual(['gymnasium', 'openenv', 'verifiers'].map((name) => `src/serve/bridges/longplay_${name}.py`));
});

it.skipIf(!python)('Python plays through gymnasium, verifiers and OpenEnv as if they were its own', async () => {
  const server = await startEnvServer(['textcraft']);
  try {
    const path = (at: string) => fileURLToPath(new URL(at, import.meta.url));
    const { stdout } = await promisify(execFile)('python3', [
      path('../support/bridges.py'),
      path('../../src/serve/bridges'),
      server.url,
    ]).catch((failed) => ({ stdout: `${failed.stdout}\n${failed.stderr}` }));
    expect(stdout).not.toMatch(/FAILED|Error/);
    expect(stdout).toMatch(/(\d+) of \1 checks/);
    await expect.poll(() => server.sessions).toBe(0);
  } finally {
    await server.close();
  }
});
