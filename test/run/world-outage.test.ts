/** A world whose server goes away pauses its share, not the run; the others have it until it answers again. */
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { evaluateRun } from '../../src/run/evaluate-run.ts';
import { EvaluationProgress } from '../../src/run/evaluation-progress.ts';
import { startRun } from '../../src/run/start-run.ts';
import { evaluateTrained } from '../../src/run/train-evaluations.ts';
import { urlOfWorlds } from '../../src/world/open-world.ts';
import { down } from '../support/outage-world.ts';
import { inFolder } from '../support/toy-run.ts';

const module = new URL('../support/outage-world.ts', import.meta.url);
const NAMES = ['a', 'b', 'c'];

const config = (updates: number) =>
  checkRunConfig(
    {
      worlds: NAMES.map((name) => ({
        name,
        env: { id: fileURLToPath(module), options: { server: name } },
        horizon: { type: 'scaling_inter_stepwise', rounds: [2, 3], steps_scaling_inter: 4 },
      })),
      policy: { model: { hiddenSize: 16, layers: 1, maxPositions: 64 } },
      rollout: { groupSize: 2, concurrentGroups: 6 },
      learner: { groupsPerUpdate: 6, maxLag: 0, epochs: 1, filterGroups: false },
      evaluation: { horizons: [2], episodesPerTask: 1, greedy: false },
      stop: { updates },
      trace: { everyGroups: 0 },
    },
    'test',
  );

afterEach(() => down.clear());

/** Trains; `at` runs after each update. */
async function train<T>(
  updates: number,
  at: (update: number) => void,
  use: (
    run: Awaited<ReturnType<typeof startRun>>,
    rows: readonly MetricsRow[],
    notices: readonly string[],
  ) => Promise<T>,
  maxFailures = 256,
): Promise<T> {
  return inFolder(async (dir) => {
    const rows: MetricsRow[] = [];
    const notices: string[] = [];
    const envModule = urlOfWorlds(new Map(NAMES.map((name) => [name, module])));
    const options = { config: config(updates), dir, mode: 'serial', envModule, learn: true } as const;
    // A serial run's clock stands still between messages: an outage is one at once.
    const run = await startRun({
      ...options,
      limits: { retry: { maxOutageMs: 0, maxFailures } },
      onNotice: (text) => notices.push(text),
    });
    run.metrics$.subscribe((row) => {
      rows.push(row);
      at(row.update!);
    });
    try {
      return await use(run, rows, notices);
    } finally {
      await run.stop();
    }
  });
}

const episodes = (row: MetricsRow) => NAMES.map((name) => row.episodesByWorld![name] ?? 0);

describe('a world whose server goes away', () => {
  it('pauses its share: the run goes on with the others, and it comes back with its own', async () => {
    await train(
      16,
      (update) => {
        if (update === 3) down.add('b');
        if (update === 9) down.delete('b');
      },
      async (run, rows, notices) => {
        const ended = await run.train();
        await run.flush();
        expect(ended.why).toBe('updates');
        expect(rows).toHaveLength(16);
        expect(rows.slice(0, 3).map(episodes)).toEqual([
          [4, 4, 4],
          [4, 4, 4],
          [4, 4, 4],
        ]);
        // Every update is as full as before, of the two that answer.
        for (const row of rows.slice(4, 9)) expect(episodes(row)).toEqual([6, 0, 6]);
        expect(rows[5]!.downByWorld).toEqual({ a: 0, b: 1, c: 0 });
        for (const row of rows.slice(-2)) expect(episodes(row)).toEqual([4, 4, 4]);
        expect(rows.at(-1)!.downByWorld).toEqual({ a: 0, b: 0, c: 0 });
        const said = notices.filter((text) => /answer/.test(text));
        expect(said).toEqual([
          expect.stringMatching(
            /^b does not answer \(no connection to b\): its share of the groups goes to the other worlds/,
          ),
          'b answers again: it gets its share of the groups',
        ]);
        // Each update counts for each world of its episodes, and the horizon of one that is away waits for it.
        expect(rows[2]!.horizonByWorld).toEqual({ a: 2, b: 2, c: 2 });
        expect(rows[3]!.horizonByWorld).toEqual({ a: 3, b: 2, c: 3 });
        expect(rows[8]!.horizonByWorld).toEqual({ a: 3, b: 2, c: 3 });
        expect(rows.at(-1)!.horizonByWorld).toEqual({ a: 3, b: 3, c: 3 });
        const { accounting } = await run.status();
        expect(accounting.failed.unreachable).toBeGreaterThan(0);
      },
      1, // what is not answered while others answer is no failure in a row
    );
  });

  it('ends the run where all are down, as one world’s does', async () => {
    await train(
      40,
      (update) => {
        if (update >= 3) down.add(NAMES[update - 3] ?? 'c');
      },
      async (run, rows) => {
        await expect(run.train()).rejects.toMatchObject({
          code: 'REMOTE_FAILED',
          message: expect.stringMatching(/server has not answered for .*start the environment's server again/),
        });
        expect(rows.length).toBeGreaterThan(3);
        expect(rows.length).toBeLessThan(40);
      },
    );
  });

  it('is left out of the evaluations, by name; the others are evaluated', async () => {
    await train(
      2,
      () => {},
      async (run) => {
        await run.train();
        down.add('b');
        const notices: string[] = [];
        const found = await evaluateRun(run, undefined, undefined, (text) => notices.push(text));
        expect(found.map(({ name }) => name)).toEqual(['a h2 sampled', 'c h2 sampled']);
        expect(notices).toEqual([
          expect.stringMatching(/^evaluation b h2 sampled: every episode failed .*unreachable/),
        ]);
        down.add('a').add('c');
        await expect(evaluateRun(run)).rejects.toMatchObject({ code: 'REMOTE_FAILED' });
      },
    );
  });

  it('costs a run no evaluation of what it trained, where the random policy finds all of them down', async () => {
    await train(
      1,
      () => {},
      async (run) => {
        await run.train();
        const evaluated = {
          ...run,
          evaluate: async (plan: EvaluationPlan) => {
            const record = await run.evaluate(plan);
            if (plan.name.startsWith('c ')) for (const name of NAMES) down.add(name);
            return record;
          },
        };
        const notices: string[] = [];
        await inFolder(async (dir) => {
          const request = {
            ...{ config: config(1), dir, mode: 'serial' as const, interrupt: new AbortController().signal },
            onNotice: (text: string) => void notices.push(text),
          };
          const found = await evaluateTrained(evaluated, request, new EvaluationProgress(() => {}));
          expect(found.map(({ name }) => name)).toEqual(NAMES.map((name) => `${name} h2 sampled`));
        });
        expect(notices.at(-1)).toMatch(/^random policy: evaluation c h2 sampled: .*; it is not evaluated$/);
      },
    );
  });
});
