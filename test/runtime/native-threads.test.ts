/** Processes with a thread inside a native call: none may end by the native library's abort. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';

const main = fileURLToPath(new URL('dist/test/support/native-call-main.js', packageRoot));

function run(how: 'end' | 'stop') {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [main, how], { encoding: 'utf8' });
  return { status, signal, stdout, stderr };
}

it('a process that must end at once does, by the signal', { timeout: 120_000 }, () => {
  expect(run('end')).toEqual({ status: null, signal: 'SIGINT', stdout: '', stderr: '' });
});

it('a system that is stopped waits for the call, and the process ends by itself', { timeout: 120_000 }, () => {
  const stdout = '/engine was stopped while it started\n';
  expect(run('stop')).toEqual({ status: 0, signal: null, stdout, stderr: '' });
});
