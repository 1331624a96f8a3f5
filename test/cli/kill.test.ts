import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { listCheckpoints } from '../../src/storage/checkpoint.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

it('kill -9 costs at most one checkpoint interval; --resume goes on', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder('kill');
  try {
    const config = smallConfig({ stop: { updates: 100_000 }, checkpoint: { everyUpdates: 3, keep: 2 } });
    writeFileSync(join(folder, 'small.yaml'), stringify(config));
    const run = join(folder, 'runs', 'small');
    const child = spawn(process.execPath, [main, 'train', join(folder, 'small.yaml'), '--runs', join(folder, 'runs')], {
      stdio: 'ignore',
    });
    const checkpoints = () => listCheckpoints(join(run, 'checkpoints'));
    const deadline = Date.now() + 60_000;
    while ((checkpoints()[0] ?? 0) < 9 && Date.now() < deadline) await sleep(20);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    const rows = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n');
    const reached = (JSON.parse(rows.at(-1)!) as { update: number }).update;
    const kept = checkpoints()[0]!;
    expect(reached - kept).toBeLessThanOrEqual(3);

    // A run of an earlier version: its configuration has keys that are constants now.
    const written = readFileSync(join(run, 'config.yaml'), 'utf8');
    writeFileSync(join(run, 'config.yaml'), `${written}watchdog:\n  stallMs: 300000\n  lagMs: 2000\n`);
    const resumed = spawnSync(
      process.execPath,
      [main, 'train', '--resume', run, '--set', `stop={updates: ${kept + 2}}`, '--json'],
      { encoding: 'utf8', timeout: 60_000 },
    );
    expect(resumed.stderr).toContain(`process ${child.pid} ended without a word: it was killed, or a native library`);
    expect(resumed.stderr).toContain(`resuming from update ${kept}`);
    expect(resumed.status).toBe(0);
    // Rows behind the checkpoint were cut away: each update stands there once.
    const updates = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n');
    const after = updates
      .map((row) => (JSON.parse(row) as { update: number }).update)
      .filter((update) => update > kept);
    expect(after).toEqual([kept + 1, kept + 2]);
    expect(checkpoints()[0]).toBe(kept + 2);
    expect(existsSync(join(run, 'lock.json'))).toBe(false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('a native abort is reported at the next start, which goes on from the newest checkpoint', {
  timeout: 120_000,
}, async () => {
  const folder = temporaryFolder('abort');
  try {
    const config = smallConfig({ stop: { updates: 100_000 }, checkpoint: { everyUpdates: 1, keep: 2 } });
    writeFileSync(join(folder, 'small.yaml'), stringify(config));
    const run = join(folder, 'runs', 'small');
    // As a native library ends a process: SIGABRT from within, no handler runs.
    const abort = join(folder, 'abort.mjs');
    writeFileSync(
      abort,
      `import { existsSync } from 'node:fs'; import { isMainThread } from 'node:worker_threads';
       if (isMainThread) setInterval(() => { if (existsSync(${JSON.stringify(join(run, 'checkpoints', '3'))})) process.abort(); }, 5).unref();`,
    );
    const args = [main, 'train', join(folder, 'small.yaml'), '--runs', join(folder, 'runs')];
    const first = spawnSync(process.execPath, ['--import', abort, ...args], { encoding: 'utf8', timeout: 60_000 });
    expect(first.signal).toBe('SIGABRT');
    const kept = listCheckpoints(join(run, 'checkpoints'))[0]!;
    const resumed = spawnSync(
      process.execPath,
      [main, 'train', '--resume', run, '--set', `stop={updates: ${kept + 1}}`, '--json'],
      { encoding: 'utf8', timeout: 60_000 },
    );
    expect(resumed.stderr).toContain(`process ${first.pid} ended without a word`);
    expect(resumed.stderr).toContain(`resuming from update ${kept}`);
    expect(resumed.status).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
