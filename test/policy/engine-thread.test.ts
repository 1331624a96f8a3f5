import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openEngine } from '../../src/compute/engine/open.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { isUserMistake, type UserError } from '../../src/core/errors.ts';
import { EngineThread } from '../../src/policy/engine-thread.ts';
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

it('an engine that this machine does not have is the same mistake of the user as without a thread', async () => {
  const config = smallModel(300);
  const engine = { name: 'onnxruntime-node', device: 'cuda', threads: 1 } as const;
  const alone = await openEngine(engine).catch((error: unknown) => error);
  expect(isUserMistake(alone)).toBe(true);
  const { code, message } = alone as UserError;
  await expect(EngineThread.open({ engine, config, decoder: 'choice' })).rejects.toMatchObject({ code, message });
});
