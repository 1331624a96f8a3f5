/**
 * Worlds of a configuration: the list `worlds`, or the one of `env`, `tasks` and `horizon`. Whoever plays or evaluates reads this
 * list, in which a run of one world is a list of one. In a run of several, `env` is a placeholder that no world has as its id: what
 * can play one world alone refuses it by name.
 */
import { estimatorOf } from '../algo/estimators.ts';
import { describeValue } from '../core/describe-value.ts';
import { UserError } from '../core/errors.ts';
import { isRecord, recordOf } from '../core/record.ts';
import { kindsThat, policyKindOf } from './policy-kinds.ts';
import { type RunConfig, WORLD_NAME, type WorldConfig } from './run-config.ts';

/** Id in the place of `env.id` in a run of several worlds. */
export const WORLDS = 'worlds';

/** World of a run: its name, and the configuration as if the run had no other. */
export interface RunWorld {
  /** Name in tasks (`Task.env`), metrics and evaluations; undefined where the run has one world, which names itself. */
  readonly name: string | undefined;
  /** Configuration of the run with this world alone: `env`, `tasks`, `horizon`, `evaluation`, and the estimator's γ and λ. */
  readonly config: RunConfig;
  /** Weights of its groups, each from an update on, ascending from update 0. */
  readonly schedule: readonly { readonly from: number; readonly weight: number }[];
}

/** True for a configuration of several worlds. */
export function hasWorlds(config: Pick<RunConfig, 'worlds'>): boolean {
  return config.worlds !== undefined;
}

/** Lists the worlds of a configuration, in its order; one where it has no list. */
export function listWorlds(config: RunConfig): readonly [RunWorld, ...RunWorld[]] {
  const { worlds } = config;
  if (worlds === undefined) return [{ name: undefined, config, schedule: [{ from: 0, weight: 1 }] }];
  const [first, ...others] = worlds.map((world) => ({
    name: nameWorld(world),
    config: isolateWorld(config, world),
    schedule: world.schedule ?? [{ from: 0, weight: world.weight ?? 1 }],
  }));
  return [first!, ...others];
}

/** Name of a world of several: its own, or its id. */
export function nameWorld({ name, env }: Pick<WorldConfig, 'name' | 'env'>): string {
  return name ?? env.id;
}

/** Configuration of a run with one of its worlds alone. */
function isolateWorld(
  { worlds: _, mixture: __, normalizePerWorld: ___, ...run }: RunConfig,
  world: WorldConfig,
): RunConfig {
  const { env, tasks, horizon, gamma, lambda, evaluation } = world;
  const { estimator } = run.learner;
  const own = { ...(gamma === undefined ? {} : { gamma }), ...(lambda === undefined ? {} : { lambda }) };
  return {
    ...run,
    env,
    tasks,
    horizon,
    learner: { ...run.learner, estimator: { ...estimator, ...own } as typeof estimator },
    evaluation: { ...run.evaluation, ...evaluation },
  };
}

/**
 * Refuses several worlds where one is played, by the name of what plays it.
 * @param what command, or place of the configuration, that takes one world
 * @throws {UserError} BAD_CONFIG naming the worlds, and what to do
 */
export function requireOneWorld(config: RunConfig, what: string): void {
  const { worlds } = config;
  if (worlds === undefined) return;
  throw new UserError(
    'BAD_CONFIG',
    `${what}: it takes a run of one world, and this one has several (${worlds.map(nameWorld).join(', ')}); train, eval, view, replay, compare and replay-learner take them`,
  );
}

/** Configuration with each of its worlds changed. */
export function mapEnvs(config: RunConfig, change: (env: RunConfig['env']) => RunConfig['env']): RunConfig {
  const { worlds } = config;
  if (worlds === undefined) return { ...config, env: change(config.env) };
  return { ...config, worlds: worlds.map((world) => ({ ...world, env: change(world.env) })) };
}

/**
 * World that a task names (`Task.env`), in a configuration that was not checked: that of a trace's header, say.
 * @returns its `env`; undefined where a list has none of that name
 */
export function findEnvOf(config: unknown, named: string): unknown {
  const { env, worlds } = recordOf(config) ?? {};
  if (!Array.isArray(worlds)) return env;
  return recordOf(worlds.find((one: unknown) => readName(one) === named))?.env;
}

/** Id of the world of a configuration that was not checked, or the names of several; undefined where it has none. */
export function describeWorlds(config: unknown): string | undefined {
  const { env, worlds } = recordOf(config) ?? {};
  if (Array.isArray(worlds)) return worlds.map((one: unknown) => String(readName(one) ?? '?')).join(', ');
  const id = recordOf(env)?.id;
  return typeof id === 'string' ? id : undefined;
}

/** Reads the name of an entry of `worlds`, as `nameWorld` has it. */
function readName(world: unknown): unknown {
  const { name, env } = recordOf(world) ?? {};
  return name ?? recordOf(env)?.id;
}

/** Keys that a list of worlds stands in place of. */
const REPLACED = ['env', 'agent', 'tasks', 'horizon'] as const;

/**
 * Fills in what stands in the place of one world where a configuration lists several. Pure.
 * @throws {UserError} BAD_CONFIG where one world is given too
 */
export function fillWorlds(raw: unknown, source: string): unknown {
  if (!isRecord(raw)) return raw;
  if (raw.worlds === undefined) return raw;
  if (isRecord(raw.env) && raw.env.id === WORLDS) return raw; // filled in before
  const both = REPLACED.filter((key) => raw[key] !== undefined);
  if (both.length > 0) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: worlds: a run has one world (env, tasks, horizon) or a list of them (worlds), got both: ${both.join(', ')}; move ${both.length === 1 ? 'it' : 'them'} into the entries of worlds`,
    );
  }
  return { ...raw, env: { id: WORLDS }, horizon: { type: 'fixed', rounds: 1 } };
}

/** Configuration as it is written into a run's folder: without what `fillWorlds` filled in. */
export function omitFilled(config: RunConfig): Partial<RunConfig> {
  if (!hasWorlds(config)) return config;
  const { env: _, horizon: __, tasks: ___, ...written } = config;
  return written;
}

/**
 * Checks what the worlds of a configuration must keep together, and each world by itself.
 * @param checkWorld checks the configuration of one world
 * @throws {UserError} BAD_CONFIG naming the first key that is wrong
 */
export function checkWorlds(
  config: RunConfig,
  source: string,
  checkWorld: (config: RunConfig, source: string) => void,
): void {
  const { worlds, learner, policy, warmStart } = config;
  const refuse = (key: string, why: string) => {
    throw new UserError('BAD_CONFIG', `${source}: ${key}: ${why}`);
  };
  if (worlds === undefined) {
    for (const key of ['mixture', 'normalizePerWorld'] as const) {
      if (config[key] !== undefined)
        refuse(key, 'it is for a list of worlds (worlds), and this run has one; leave it out');
    }
    return;
  }
  if (!policyKindOf(config).playsWorlds) {
    refuse(
      'policy.kind',
      `several worlds are played by ${kindsThat('playsWorlds')}, got '${policy.kind}'; give such a policy one world`,
    );
  }
  if (warmStart.episodes > 0)
    refuse('warmStart.episodes', 'it imitates the solver of one world; leave it out with worlds');
  if (learner.selfImitation)
    refuse('learner.selfImitation', 'it remembers episodes of one world; leave it out with worlds');
  if (learner.distillation)
    refuse('learner.distillation', 'a teacher plays the world of its student; leave it out with worlds');
  if (config.rollout.envServer !== undefined) {
    refuse(
      'rollout.envServer',
      "one server has one world; name it in the world's entry: env: { id: openenv+http://… }",
    );
  }
  if (config.normalizePerWorld !== undefined && !estimatorOf(learner.estimator).whitens(learner.estimator)) {
    refuse('normalizePerWorld', `${learner.estimator.algorithm} normalises no advantages over a batch; leave it out`);
  }
  const names = new Map<string, number>();
  for (const [i, world] of worlds.entries()) {
    const { env, weight, schedule, lambda } = world;
    const at = `worlds.${i}`;
    if (env.id === WORLDS) refuse(`${at}.env.id`, 'a world of a list is no list');
    if (env.id === 'agent') refuse(`${at}.env.id`, 'a program that calls a model is trained by itself (key agent)');
    const name = nameWorld(world);
    if (!WORLD_NAME.test(name)) refuse(`${at}.name`, `must be given: '${env.id}' is no name; e.g. name: mine`);
    const before = names.get(name);
    if (before !== undefined) {
      refuse(
        `${at}.name`,
        `'${name}' is the name of worlds.${before} already; give one of them another, e.g. name: ${name}-2`,
      );
    }
    names.set(name, i);
    if (weight !== undefined && schedule)
      refuse(`${at}.schedule`, 'a world has one weight or a schedule of them, got both');
    if (schedule && schedule[0]!.from !== 0) {
      refuse(`${at}.schedule`, `the first weight is from update 0, got ${describeValue(schedule[0]!.from)}`);
    }
    const falls = schedule?.findIndex((step, n) => n > 0 && step.from <= schedule[n - 1]!.from) ?? -1;
    if (falls > 0)
      refuse(
        `${at}.schedule`,
        `expected ascending updates, got ${schedule![falls - 1]!.from}, ${schedule![falls]!.from}`,
      );
    const { estimator } = learner;
    if (lambda !== undefined && !('lambda' in estimator)) {
      refuse(`${at}.lambda`, `${estimator.algorithm} has none; leave it out`);
    }
  }
  const all = listWorlds(config);
  const starts = [...new Set(all.flatMap(({ schedule }) => schedule.map(({ from }) => from)))].sort((a, b) => a - b);
  for (const update of starts) {
    if (all.some(({ schedule }) => weightAt(schedule, update) > 0)) continue;
    refuse('worlds', `every weight is 0 from update ${update} on; expected one above 0`);
  }
  for (const [i, world] of all.entries()) checkWorld(world.config, `${source}: worlds.${i}`);
}

/** Weight of a world at an update. @param schedule ascending, from 0 on */
export function weightAt(schedule: RunWorld['schedule'], update: number): number {
  return schedule.findLast(({ from }) => from <= update)?.weight ?? 0;
}
