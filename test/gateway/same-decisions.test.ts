/** An agent that plays a world through the gateway decides as the same policy does in the world itself. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { toJson } from '../../src/storage/trace.ts';
import { type GoldenRun, play } from '../support/golden-runs.ts';

const fixture = (name: string) => new URL(`../fixtures/agents/${name}`, import.meta.url);
const module = fileURLToPath(fixture('textcraft-agent.mjs'));

function runOf(name: string, env: GoldenRun['config']['env'], envModule: URL): GoldenRun {
  const config: GoldenRun['config'] = {
    seed: 11,
    env,
    horizon: { type: 'scaling_inter_stepwise', rounds: [3, 5], steps_scaling_inter: 2 },
    stop: { updates: 3 },
    tasks: { sampling: { type: 'uniform' } },
    policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 3, concurrentGroups: 4, maxBatch: 8 },
    learner: { groupsPerUpdate: 3, maxLag: 0, filterGroups: false },
    trace: { everyGroups: 0 },
    evaluation: { episodesPerTask: 1, horizons: [4], tasks: [0], greedy: false, randomBaseline: false },
    metrics: { tensorboard: false },
  };
  return { name, order: 'free', config, options: { envModule } };
}

/** Decisions of a run, without what names the world; batches of other turns differ in the last bits. */
function decisionsOf(trajectories: readonly Trajectory[], indexOf: (index: number) => number = (index) => index) {
  return trajectories
    .map(({ group, task, end, success, turns }) => {
      const decided = turns.map(({ action, decision }) => [
        action,
        decision?.kind === 'choice' && decision.logprob.toFixed(4),
      ]);
      const reward = turns.reduce((sum, turn) => sum + turn.reward, 0);
      return { group, index: indexOf(task.index), seed: task.seed, end, success, reward, decided };
    })
    .sort((a, b) => a.group - b.group || JSON.stringify(a.decided).localeCompare(JSON.stringify(b.decided)));
}

describe('the same policy under the same seeds, in serial runs', () => {
  it('decides the same through the gateway as in the world', async () => {
    const env = { id: 'agent', options: { module, replay: 'exact' } };
    const agent = await play(runOf('agent', env, localUrl(worldUrl('agent', env.options))));
    const native = await play(runOf('native', { id: 'textcraft' }, fixture('textcraft-plain.mjs')));
    expect(native.trajectories.length).toBeGreaterThan(20);
    const { tasks } = (await import(module)) as { readonly tasks: readonly { readonly index: number }[] };
    expect(decisionsOf(agent.trajectories, (entry) => tasks[entry]!.index)).toEqual(decisionsOf(native.trajectories));
  }, 60_000);

  it('repeats bit for bit through the gateway', async () => {
    const env = { id: 'agent', options: { module, replay: 'exact' } };
    const run = runOf('agent', env, localUrl(worldUrl('agent', env.options)));
    const [first, second] = [await play(run), await play(run)];
    const whole = (trajectories: readonly Trajectory[]) =>
      trajectories.map(({ group, turns, finalObservation }) => {
        const read = turns.map(({ observation, action, decision }) => [observation, action, toJson(decision!)]);
        return { group, read, finalObservation };
      });
    expect(whole(first.trajectories)).toEqual(whole(second.trajectories));
    expect(second.records).toEqual(first.records);
  }, 60_000);
});
