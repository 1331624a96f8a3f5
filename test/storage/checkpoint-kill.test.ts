import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/core/rng.ts';
import { listCheckpoints, loadNewest } from '../../src/storage/checkpoint.ts';
import { checkpointOf } from '../support/numbered-checkpoint.ts';

const kills = process.env.LONGPLAY_LONG === '1' ? 200 : 10;
const script = fileURLToPath(new URL('../../dist/test/support/save-forever.js', import.meta.url));
const built = existsSync(script);
if (!built) console.log('checkpoint-kill: skipped, dist/ is not built (npm run build)');

/**
 * Starts the child, lets `saves` of its saves return, kills it at a random instant of the next ones.
 * @param share of the time that a save took it, ≥ 0
 * @returns the numbers it printed, in order
 */
async function saveAndKill(dir: string, first: number, saves: number, share: number): Promise<number[]> {
  const child: ChildProcess = spawn(process.execPath, [script, dir, String(first)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  let complaint = '';
  let timer: NodeJS.Timeout | undefined;
  let readyAt: number | undefined;
  child.stderr!.on('data', (chunk) => (complaint += chunk));
  child.stdout!.on('data', (chunk) => {
    printed += chunk;
    readyAt ??= performance.now();
    if (printed.split('\n').length < saves + 2) return;
    const saveMs = (performance.now() - readyAt) / saves; // this machine's own measure, whatever its load
    timer ??= setTimeout(() => child.kill('SIGKILL'), share * saveMs);
  });
  const signal = await new Promise((resolve) => child.on('close', (_, by) => resolve(by)));
  clearTimeout(timer);
  expect(signal, complaint).toBe('SIGKILL');
  return printed.split('\n').slice(1, -1).map(Number);
}

describe.skipIf(!built)('kill -9 during saves', () => {
  it(`at ${kills} random instants: the newest complete checkpoint loads, whole, with no warning`, {
    timeout: 300_000,
  }, async () => {
    const dir = join(mkdtempSync(join(tmpdir(), 'longplay-kill-')), 'checkpoints');
    const rng = Rng.fromSeed(20250909);
    let newest = 0; // a save that returned
    let inside = 0; // kills that left something unfinished behind
    try {
      for (let kill = 0; kill < kills; kill++) {
        const printed = await saveAndKill(dir, newest + 1, 1 + rng.int(3), 2 * rng.float());
        const returned = printed.at(-1)!;
        if (readdirSync(dir).some((name) => name.startsWith('.'))) inside++;
        const loaded = loadNewest(dir);
        expect(loaded.warnings).toEqual([]);
        // The one that was being written may have been completed before its number could be printed.
        expect([returned, returned + 1]).toContain(loaded.update);
        expect(loaded.update).toBe(listCheckpoints(dir)[0]);
        expect({ tensors: loaded.tensors, state: loaded.state }).toEqual(checkpointOf(loaded.update));
        newest = loaded.update;
      }
      console.log(`checkpoint-kill: ${inside} of ${kills} kills left something unfinished, newest update ${newest}`);
      expect(newest).toBeGreaterThan(0);
      expect(inside).toBeGreaterThan(0); // the kills did hit saves
    } finally {
      rmSync(join(dir, '..'), { recursive: true, force: true });
    }
  });
});
