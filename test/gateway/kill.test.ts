/** Books of a run of an agent: exact after each update, across `kill -9` and `--resume` with the journal. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { type JournalEntry, readJournal } from '../../src/storage/journal.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const module = fileURLToPath(new URL('test/fixtures/agents/two-call-agent.mjs', packageRoot));

interface Books {
  readonly update: number;
  readonly launched: number;
  readonly trained: number;
  readonly stale: number;
  readonly filtered: number;
  readonly failed: number;
  readonly inFlight: number;
}

/** Rows of the metrics, whole lines alone: a kill may have cut the last one. */
function rowsOf(run: string): Books[] {
  try {
    const whole = readFileSync(join(run, 'metrics.jsonl'), 'utf8').split('\n').slice(0, -1);
    return whole.map((line) => JSON.parse(line) as Books);
  } catch {
    return []; // not there yet
  }
}

function expectExact(rows: readonly Books[]): void {
  for (const { update, launched, trained, stale, filtered, failed, inFlight } of rows) {
    expect({ update, missing: launched - trained - stale - filtered - failed - inFlight }).toEqual({
      update,
      missing: 0,
    });
  }
}

/** Episodes launched and failed before each update, counted from a journal. */
function booksOf(entries: readonly JournalEntry[]): ReadonlyMap<number, Pick<Books, 'update' | 'launched' | 'failed'>> {
  const found = new Map<number, Pick<Books, 'update' | 'launched' | 'failed'>>();
  let [launched, failed] = [0, 0];
  for (const entry of entries) {
    if (entry.type === 'launched') launched += entry.tickets.reduce((sum, { size }) => sum + size, 0);
    if (entry.type === 'played') {
      launched += entry.failed.length; // each failed attempt is made again
      failed += entry.failed.length + entry.gaveUp.length;
    }
    if (entry.type === 'updated') found.set(entry.version, { update: entry.version, launched, failed });
  }
  return found;
}

it('kill -9 and --resume keep the books of an agent exact after each update', { timeout: 300_000 }, async () => {
  const folder = temporaryFolder('agent-kill');
  try {
    const run = join(folder, 'runs', 'agent');
    const config = {
      agent: { module },
      horizon: { type: 'fixed', rounds: 3 },
      policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
      rollout: { groupSize: 4, concurrentGroups: 6, maxBatch: 16 },
      learner: { groupsPerUpdate: 2, maxLag: 1 },
      evaluation: { episodesPerTask: 1, horizons: [3], greedy: false, randomBaseline: false },
      checkpoint: { everyUpdates: 1000 }, // each resume begins at update 0, and the journal has all since then
      stop: { updates: 100_000 },
      trace: { maxShare: 1 },
    };
    writeFileSync(join(folder, 'agent.yaml'), stringify(config));
    let reached = 0;
    for (let kill = 0; kill < 2; kill++) {
      const start = [join(folder, 'agent.yaml'), '--runs', join(folder, 'runs'), '--journal'];
      const args = kill === 0 ? start : ['--resume', run];
      const child = spawn(process.execPath, [main, 'train', ...args], { stdio: 'ignore' });
      const gone = new Promise((resolve) => child.once('exit', resolve));
      const until = reached + 5;
      while ((rowsOf(run).at(-1)?.update ?? 0) < until && child.exitCode === null) await sleep(20);
      child.kill('SIGKILL');
      await gone;
      expect(child.signalCode).toBe('SIGKILL'); // it had not ended by itself
      reached = rowsOf(run).at(-1)!.update;
      expectExact(rowsOf(run));
    }
    const resumed = longplay('train', '--resume', run, '--set', `stop={updates: ${reached + 2}}`, '--json');
    expect(resumed.stderr).not.toContain('other weights');
    expect(resumed, resumed.stderr).toMatchObject({ status: 0 });
    const rows = rowsOf(run);
    expect(rows.map(({ update }) => update)).toEqual(Array.from({ length: rows.length }, (_, i) => i + 1));
    expect(rows.length).toBeGreaterThanOrEqual(reached + 2);
    expectExact(rows);
    // Exact, not only in balance: after the last update the books have what the journal has. Rows that are made again count what
    // was launched and failed until the kill.
    const { update, launched, failed } = rows.at(-1)!;
    const expected = booksOf(readJournal(join(run, 'journal'), 0).entries);
    expect({ update, launched, failed }).toEqual(expected.get(update));
    expect(failed).toBeGreaterThan(0);
    const played = TraceStore.open(run).episodes.filter(({ purpose }) => purpose === 'train');
    expect(new Set(played.map(({ episode }) => episode)).size).toBe(played.length);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
