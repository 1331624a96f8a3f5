/** Reads the worlds of a run: their modules, facts, training tasks, and how a policy reads them. Nothing is played here. */
import type { PreparedWorld } from '../../actors/tree.ts';
import type { RunConfig } from '../config/run-config.ts';
import { hasWorlds, listWorlds } from '../config/worlds.ts';
import { UserError } from '../core/errors.ts';
import type { World } from '../core/world.ts';
import { type EvaluationFacts, type EvaluationSummary, summarise } from '../learning/evaluation/summary.ts';
import { listTrainTasks } from '../learning/evaluation/tasks.ts';
import { localUrl } from '../runtime/module-url.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import type { Reading } from '../text/reading/codec-of.ts';
import { describeEnv, loadWorld, modulesOf } from '../world/open-world.ts';
import { runUrl } from './find-world.ts';

/** World of a run that was read, with its loaded module; `shared` is made where its hosts are started. */
export type ReadWorld = Omit<PreparedWorld, 'shared'> & { readonly world: World };

/** Worlds of a run, in the configuration's order. */
export type ReadWorlds = readonly [ReadWorld, ...ReadWorld[]];

/**
 * Reads the worlds of a run.
 * @param module as `runUrl` makes it
 * @throws {UserError} for a world that is not there, options that it does not have, tasks that it does not have
 */
export async function readWorlds(config: RunConfig, module: URL = runUrl(config)): Promise<ReadWorlds> {
  const modules = modulesOf(module);
  const read: ReadWorld[] = [];
  for (const { name, config: own, schedule } of listWorlds(config)) {
    const { id, options } = own.env;
    const url = name === undefined ? module : modules?.get(name);
    if (!url) throw new UserError('BAD_CONFIG', `worlds: no module was found for ${name}`);
    const world = await loadWorld(localUrl(url), id);
    const facts = describeEnv(world, id, options);
    const env = name === undefined ? facts : { ...facts, id: name };
    const prompt = worldPrompt(world, options, env.description);
    read.push({ config: own, env, module: url, world, tasks: listTrainTasks(env, own.tasks), prompt, schedule });
  }
  const [first, ...others] = read;
  return [first!, ...others];
}

/** Reading of a run's worlds by its policy. */
export function readingOf(config: RunConfig, worlds: ReadWorlds): Reading & Pick<ReadWorld, 'prompt'> {
  const [{ world, prompt }] = worlds;
  if (!hasWorlds(config)) return { view: world.view, prompt };
  return { views: new Map(worlds.map((one) => [one.env.id, one.world.view])), prompt };
}

/** Sums up an evaluation, whose tasks are of one world; of several the summary names it. */
export function summariseIn(worlds: readonly Pick<PreparedWorld, 'env'>[], facts: EvaluationFacts): EvaluationSummary {
  const named = facts.results[0]?.task.env;
  const { env } = worlds.find((one) => one.env.id === named) ?? worlds[0]!;
  const { name, ...summary } = summarise(facts, env.tasks);
  return worlds.length === 1 ? { name, ...summary } : { name, world: env.id, ...summary };
}
