import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

/** A software Vulkan device, and the folder of a Vulkan loader that may lie beside it. */
function softwareVulkan(): { readonly icd: string; readonly libraries: string } | undefined {
  const found = [process.env.VK_DRIVER_FILES, '/usr/lib/chromium/vk_swiftshader_icd.json', ...lavapipe()].find(
    (file) => file !== undefined && existsSync(file),
  );
  return found === undefined ? undefined : { icd: found, libraries: dirname(found) };
}

function lavapipe(): string[] {
  const folder = '/usr/share/vulkan/icd.d';
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith('lvp_icd'))
    .map((name) => join(folder, name));
}

const CHECK = 'dist/test/compute/engine/webgpu-check.js';
const device = softwareVulkan();
const reason = !device
  ? 'no software Vulkan device: $VK_DRIVER_FILES, Debian’s chromium or mesa-vulkan-drivers'
  : existsSync(CHECK)
    ? undefined
    : `${CHECK} is not built`;
if (reason) console.log(`webgpu is not tested: ${reason}`);

it.skipIf(reason !== undefined)('computes ops, gradients and training steps on webgpu', { timeout: 300_000 }, () => {
  const { icd, libraries } = device!;
  const out = execFileSync(process.execPath, [CHECK, process.env.LONGPLAY_LONG === '1' ? '1' : '10'], {
    encoding: 'utf8',
    env: { ...process.env, VK_DRIVER_FILES: icd, LD_LIBRARY_PATH: libraries },
  });
  const { ops, failures, worst, training, kept, keeping } = JSON.parse(out.trim().split('\n').at(-1)!) as {
    ops: number;
    failures: string[];
    worst: { name: string; difference: number };
    training: number;
    kept: number;
    keeping: string;
  };
  console.log(`webgpu: ${ops} ops, worst ${worst.name} ${worst.difference.toFixed(2)}e-5, losses ${training}`);
  expect(failures).toEqual([]);
  expect(worst.difference, worst.name).toBeLessThanOrEqual(10); // a GPU's exp and tanh are shorter than a cpu's
  expect(training).toBeLessThanOrEqual(1e-3);
  expect(keeping).toBe('yes');
  expect(kept).toBe(0); // weights and moments that never left the device
});
