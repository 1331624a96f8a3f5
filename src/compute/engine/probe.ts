/**
 * Probes of devices other than the cpu, each in a process of its own: native code writes to the console as it likes and may
 * abort its process, and neither is the caller's.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { workerUrl } from '../../runtime/module-url.ts';
import type { EngineDevice } from './engine.ts';

/** Milliseconds a device may take to compute one number for the first time. */
const PROBE_MS = 60_000;

/** Answer of the process. */
export interface Probed {
  /** Reason that the device cannot be used; absent where it can. */
  readonly trouble?: string;
}

/** @returns why onnxruntime-node cannot use the device, in its own words; undefined where it can */
export function probeDevice(device: EngineDevice): Promise<string | undefined> {
  const main = fileURLToPath(workerUrl(new URL('./probe-main.ts', import.meta.url)));
  return new Promise((resolve) => {
    const child = fork(main, [device], { stdio: 'ignore', execArgv: [] });
    const answer = (trouble: string | undefined) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(trouble);
    };
    const timer = setTimeout(() => answer(`it computed nothing within ${PROBE_MS / 1000} s`), PROBE_MS);
    child.once('message', ({ trouble }: Probed) => answer(trouble));
    child.once('error', (error) => answer(error.message));
    child.once('exit', (code, signal) => answer(`its process ended by ${signal ?? `exit code ${code}`}`));
  });
}
