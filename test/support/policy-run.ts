/** A run folder with random weights, as a short training would leave it. */
import { join } from 'node:path';
import { loadRunConfig } from '../../src/config/load.ts';
import { checkpointContent } from '../../src/learning/learner/run-state.ts';
import { setUpPolicy } from '../../src/policy/setup.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { saveCheckpoint } from '../../src/storage/checkpoint.ts';
import { readIdentity } from '../../src/storage/run-identity.ts';
import { worldPrompt } from '../../src/text/prompts/world-prompt.ts';
import { describeEnv, loadWorld } from '../../src/world/open-world.ts';

/**
 * @param settings further keys of the configuration, `key=value`
 * @param change   moves the weights, in place
 */
export async function makePolicyRun(
  dir: string,
  env: string,
  settings: readonly string[] = [],
  change: (values: Readonly<Record<string, Float32Array>>) => void = () => {},
): Promise<void> {
  const raw = { env: { id: env }, horizon: { type: 'fixed', rounds: 12 }, stop: { updates: 1 } };
  const config = loadRunConfig(JSON.stringify(raw), 'test', settings);
  createRunFolder(dir, config);
  const world = await loadWorld(localUrl(worldUrl(env)));
  const { description } = describeEnv(world, env, {});
  const prompt = worldPrompt(world, {}, description);
  const { identity, params } = setUpPolicy(config, { view: world.view, prompt }, dir, undefined)!;
  const zeros = Object.fromEntries(
    Object.entries(params.values).map(([name, { length }]) => [name, new Float32Array(length)]),
  );
  change(params.values);
  const versioned = { version: 7, values: params.values };
  const moments = { steps: 0, m: zeros, v: zeros };
  const learner = { trainer: { rateScale: 1 }, brokenInARow: 0 };
  const run = readIdentity(dir);
  const content = checkpointContent({
    run,
    identity,
    params: versioned,
    moments,
    learner,
    rollout: null,
    horizon: null,
  });
  const saved = saveCheckpoint(join(dir, 'checkpoints'), 7, content);
  if (!saved.ok) throw new Error(saved.message);
}
