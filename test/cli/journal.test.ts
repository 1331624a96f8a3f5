import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { digestsOf, Journal, readJournal } from '../../src/storage/journal.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { longplay } from '../support/longplay-command.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

it('train --journal: kill -9 costs no update, and each is made again with its weights', {
  timeout: 600_000,
}, async () => {
  const folder = temporaryFolder('journal');
  try {
    const config = smallConfig({
      stop: { updates: 100_000 },
      checkpoint: { everyUpdates: 1000 },
      trace: { maxShare: 1 },
    });
    writeFileSync(join(folder, 'small.yaml'), stringify(config));
    const run = join(folder, 'runs', 'small');
    const args = [main, 'train', join(folder, 'small.yaml'), '--runs', join(folder, 'runs'), '--journal'];
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    const updates = () => {
      try {
        return readFileSync(join(run, 'metrics.jsonl'), 'utf8').split('\n').length - 1;
      } catch {
        return 0;
      }
    };
    const deadline = Date.now() + 60_000;
    while (updates() < 5 && Date.now() < deadline) await sleep(20);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    const { entries } = readJournal(join(run, 'journal'), 0);
    const made = digestsOf(entries);
    expect(made.size).toBeGreaterThanOrEqual(4);
    const last = Math.max(...made.keys());

    const resumed = longplay('train', '--resume', run, '--set', `stop={updates: ${last + 1}}`, '--json');
    expect(resumed.stderr).toContain('resuming from update 0');
    expect(resumed.stderr).toContain(`the journal holds ${entries.length} entries after update 0`);
    expect(resumed.stderr).not.toContain('other weights');
    expect(resumed.status).toBe(0);
    const store = TraceStore.open(run);
    const played = store.episodes.filter(({ purpose }) => purpose === 'train');
    expect(played.length).toBeGreaterThanOrEqual(4 * 2 * last);
    expect(new Set(played.map(({ episode }) => episode)).size).toBe(played.length);
    const credited = store.credits.flatMap(({ groups }) => groups);
    expect(credited.length).toBeGreaterThan(0);
    expect(new Set(credited).size).toBe(credited.length);
    const again = digestsOf(readJournal(join(run, 'journal'), 0).entries);
    for (const [version, digest] of made) expect(again.get(version)).toBe(digest);

    const replayed = longplay('replay-learner', run);
    expect(replayed.stderr).toBe('');
    expect(replayed.stdout).toBe(`${last + 1} updates made again from update 0 on: each has the recorded weights\n`);
    // A journal that names other weights for an update is noticed.
    const { position } = readJournal(join(run, 'journal'), 0);
    const journal = new Journal(join(run, 'journal'), position);
    journal.append({ type: 'updated', version: 2, digest: 'f'.repeat(64) });
    journal.close();
    const other = longplay('replay-learner', run);
    expect(other.status).toBe(2);
    expect(other.stderr).toMatch(/update 2: expected the recorded weights ffff/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
