import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { workerUrl } from '../../src/runtime/module-url.ts';

it('a thread that exits while its engine is inside a call waits for the call: the process lives on', {
  timeout: 60_000,
}, () => {
  const main = workerUrl(new URL('../support/engine-thread-exit-main.ts', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(main)], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('exited with 3');
  expect(stdout).toContain('alive');
});
