/** Check of a world's module: laws, leak, costs, agents. The command runs it in a thread of its own. */
import { systemClock } from '../../core/clock.ts';
import type { EnvOptions } from '../../core/env.ts';
import { loadWorld, type OpenWorld, openWorld } from '../open-world.ts';
import { type AgentResult, oracleAgent, randomAgent, sampleTasks } from './agents.ts';
import { checkLaws } from './check.ts';
import { measureCosts, measureLeak } from './measure.ts';
import { type ConformanceReport, conforms } from './report.ts';

export interface CheckRequest {
  /** URL of the world's module. */
  readonly url: string;
  readonly options: EnvOptions;
  /** Scripts per law. */
  readonly cases: number;
  /** uint32. */
  readonly seed: number;
  /** Episodes of the leak check. */
  readonly episodes: number;
  /** Turns the agents may take. */
  readonly horizon: number;
}

/** Tasks each agent plays. */
const AGENT_TASKS = 200;

/**
 * @param onProgress gets the present step; called often
 * @throws {UserError} where the module is no world, or cannot be started
 */
export async function checkModule(
  request: CheckRequest,
  onProgress: (doing: string) => void = () => {},
): Promise<ConformanceReport> {
  const { options } = request;
  const world = await loadWorld(new URL(request.url));
  const opened = await openWorld(world, request.url, options, 'check-env');
  try {
    return await checkOpened(opened, request, onProgress);
  } finally {
    await opened.dispose();
  }
}

async function checkOpened(
  { world, env, createEnv }: OpenWorld,
  { seed, options, ...request }: CheckRequest,
  onProgress: (doing: string) => void,
): Promise<ConformanceReport> {
  const laws = await checkLaws(
    { createEnv, module: world },
    { cases: request.cases, seed, onProgress: (law, n) => onProgress(`law '${law}', case ${n}`) },
  );
  const leak = await measureLeak(createEnv, request.episodes, seed, (n) => onProgress(`leak check, episode ${n}`));
  const costs = await measureCosts(createEnv, systemClock, seed, undefined, () => onProgress('measuring costs'));
  onProgress('random agent');
  const tasks = sampleTasks(env, AGENT_TASKS);
  const agents: AgentResult[] = [await randomAgent(env, tasks, request.horizon, seed)];
  if (world.createOracle) {
    onProgress('oracle');
    agents.push(await oracleAgent(env, world.createOracle(options), tasks, request.horizon));
  }
  const found = { laws, leak, agents };
  return { format: 1, env: env.id, ok: conforms(found), seed, ...found, costs };
}
