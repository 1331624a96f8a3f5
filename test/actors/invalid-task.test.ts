/**
 * A run survives one invalid task of its world: the culprit is quarantined after its attempts, nothing else is, and the
 * run ends by its own rule.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterAll, expect, it, vi } from 'vitest';
import { runConfigSchema } from '../../src/config/run-config.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { startRun } from '../../src/run/start-run.ts';
import { INVALID } from '../support/invalid-world.ts';
import { temporaryFolder } from '../support/small-run.ts';

vi.setConfig({ testTimeout: 90_000 });
const folder = temporaryFolder('invalid-task');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let runs = 0;

/** Trains; @returns how the run ended, its notices, and the tasks it gave up */
async function trainOn(fault: string, policy: object = {}) {
  const dir = join(folder, String(runs++));
  mkdirSync(dir);
  const config = runConfigSchema.parse({
    env: { id: 'invalid', options: { fault } },
    tasks: { sampling: { type: 'epoch' } },
    horizon: { type: 'fixed', rounds: 3 },
    policy: { ...policy, model: { hiddenSize: 16, layers: 1, heads: 2, maxPositions: 100 } },
    rollout: { groupSize: 2, concurrentGroups: 2, maxBatch: 4, envThreads: 1, stepDeadlineMs: 2000 },
    learner: { groupsPerUpdate: 2, epochs: 1, filterGroups: false },
    stop: { updates: 6 },
    checkpoint: { everyUpdates: 1000 },
    trace: { everyGroups: 0 },
  });
  const notices: string[] = [];
  const metrics$ = new Subject<MetricsRow>();
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: new URL('../support/invalid-world.ts', import.meta.url),
    learn: true,
    metrics$,
    limits: { retry: { maxAttempts: 2 } },
    onNotice: (line) => notices.push(line),
  });
  try {
    const ended = await run.train();
    const file = join(dir, 'quarantine', 'tasks.jsonl');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    const givenUp: number[] = lines.map((line) => JSON.parse(line).task.index);
    return { ended, notices, givenUp };
  } finally {
    await run.stop();
  }
}

it.each([
  ['throws', 'threw', /something without a message/],
  ['floating', 'threw', /unawaited/],
  ['microtask', 'threw', /from no call/],
  ['exits', 'exited', /exited/],
  ['nothing', 'policy', /lists no action on turn 0/],
  ['long', 'policy', /tokens long and the model reads 100/],
])('%s: only the invalid task is given up', async (fault, cause, message) => {
  const { ended, notices, givenUp } = await trainOn(fault);
  expect(ended.why).toBe('updates');
  const { accounting } = ended.status;
  expect(countUnaccounted(accounting)).toBe(0);
  expect(Object.keys(accounting.failed)).toEqual([cause]);
  expect(notices.filter((line) => message.test(line)).length, notices.join('\n')).toBeGreaterThan(0);
  expect(givenUp).toEqual([INVALID]);
});

it('a run of tokens ends where the model has no position left', async () => {
  const { ended, givenUp } = await trainOn('none', { decoder: 'tokens', masked: false, maxTokens: 300 });
  expect(ended.why).toBe('updates');
  expect(ended.status.accounting.failed).toEqual({});
  expect(givenUp).toEqual([]);
});

it('a task whose label throws is trained on like any other', async () => {
  const { ended } = await trainOn('label');
  expect(ended.why).toBe('updates');
  expect(ended.status.accounting.failed).toEqual({});
});
