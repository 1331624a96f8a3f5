/** `evaluation.everyUpdates`: held-out tasks are played while training goes on, recorded, and never trained on. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { EvaluationSummary } from '../../../src/learning/evaluation/summary.ts';
import { train } from '../../../src/run/train.ts';
import { readTrace } from '../../../src/storage/trace.ts';
import { tracePaths } from '../../../src/storage/trace-files.ts';
import { smallConfig, temporaryFolder } from '../../support/small-run.ts';

const folder = temporaryFolder('evaluations');
const dir = join(folder, 'run');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('evaluates every n updates, sampled and greedy, beside the training', { timeout: 60_000 }, async () => {
  const config = smallConfig({
    stop: { updates: 7 },
    learner: { groupsPerUpdate: 2, maxLag: 1, filterGroups: false },
    evaluation: { everyUpdates: 3, episodesPerTask: 1, horizons: [4], greedy: true, randomBaseline: false },
    trace: { maxShare: 1 },
    metrics: { tensorboard: false },
  });
  const notices: string[] = [];
  const onNotice = (line: string) => notices.push(line);
  const { ended, evaluations } = await train({ config, dir, mode: 'serial', onNotice }).done;
  const lines = readFileSync(join(dir, 'evaluations.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { update: number; evaluation: EvaluationSummary });
  expect(lines.map(({ update, evaluation }) => `${update}: ${evaluation.name}`).sort()).toEqual([
    '3: h4 greedy @3',
    '3: h4 sampled @3',
    '6: h4 greedy @6',
    '6: h4 sampled @6',
  ]);
  expect(evaluations.map(({ name }) => name)).toEqual(['h4 sampled', 'h4 greedy']); // and at the end
  for (const { all } of lines.map(({ evaluation }) => evaluation))
    expect([all.tasks, all.episodes]).toEqual([100, 100]);
  expect(notices.filter((line) => /^update [36], h4 (sampled|greedy) @[36]: success/.test(line))).toHaveLength(4);

  const episodes = tracePaths(join(dir, 'traces')).flatMap((path) => readTrace(path).episodes);
  const of = (purpose: RegExp) =>
    new Set(episodes.filter((one) => purpose.test(one.purpose)).map(({ task }) => task.index));
  const trained = of(/^train$/);
  const held = of(/^h4/);
  expect(held.size).toBe(100);
  expect([...trained].some((index) => held.has(index))).toBe(false);
  // Episodes of evaluations are counted, and never as trained.
  expect(ended.status.accounting.trained).toBe(7 * 2 * 4);
});
