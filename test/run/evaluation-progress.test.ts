/** Progress of evaluations: finished episodes of each plan, and of nothing else. */
import { expect, it } from 'vitest';
import { EvaluationProgress } from '../../src/run/evaluation-progress.ts';
import { trajectoryOf } from '../support/traces.ts';

it('counts the episodes of the plans that are played', () => {
  const shown: string[] = [];
  const progress = new EvaluationProgress((text) => void shown.push(text()));
  const tasks = [0, 1, 2].map((index) => ({ env: 'toy', index, seed: 0 }));
  progress.recordFinished([trajectoryOf()], 'h8 sampled'); // of an evaluation while training went on
  progress.expect([{ name: 'h8 sampled', tasks, episodes: 2, horizon: 8, temperature: 1, seed: 1 }]);
  progress.recordFinished([trajectoryOf({ success: true }), trajectoryOf()], 'h8 sampled');
  progress.recordFinished([trajectoryOf()], 'train');
  progress.recordFinished([trajectoryOf(), trajectoryOf()], 'h8 sampled');
  expect(shown).toEqual([
    'evaluating h8 sampled: 2 of 6 episodes, success 50 %',
    'evaluating h8 sampled: 4 of 6 episodes, success 25 %',
  ]);
});
