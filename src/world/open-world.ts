/** Loads and opens worlds: module, resources, rules. Env hosts, conformance checks and commands all open them here. */
import { AGENT } from '../core/agent-call.ts';
import type { Env, EnvOptions } from '../core/env.ts';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { TaskTable } from '../core/task.ts';
import { MCP } from '../core/tool-world.ts';
import type { View } from '../core/view.ts';
import type { Resources, StartContext, World } from '../core/world.ts';
import { explainLoadError, localUrl } from '../runtime/module-url.ts';
import { agentView } from '../text/reading/agent-view.ts';
import type { Reading } from '../text/reading/codec-of.ts';
import { draw } from './tool-draw.ts';

/** Open world: one with rules, ready to open sessions. */
export interface OpenWorld {
  readonly world: World;
  readonly env: Env;
  /** Makes fresh rules over the same resources. */
  createEnv(): Env;
  /** Releases the resources of `start`; calling it twice does no harm. */
  dispose(): Promise<void>;
}

/** Front: a module that stands before another world and plays it in its own way. */
interface Front {
  wrap(world: World): World;
}

/** Client: a module that makes the world of a server, or of an agent. */
interface Client {
  connect(query: URLSearchParams): Promise<World>;
}

/** View and drawing of a world of tools that brings none: what its calls show. */
export const toolWorldParts = { view: agentView, draw } satisfies Pick<World, 'view' | 'draw'>;

/**
 * Imports a world's module. With `?world=<url>` in its query the module stands before that world: its `wrap(world)` is
 * the World. With `?server=<url>`, `?agent=<options>` or `?mcp=<options>` it is a client: what its
 * `connect(query)` makes is the World.
 * @param url of a module that can run here (see `localUrl`)
 * @param name as messages should call it; default the URL
 * @throws {UserError} UNKNOWN_ENV where nothing is there or it cannot be loaded; BAD_ARGUMENT where it is no world
 */
export async function loadWorld(url: URL, name = url.href): Promise<World> {
  const behind = url.searchParams.get('world');
  const isClient = ['server', AGENT, MCP].some((name) => url.searchParams.has(name));
  let module: World;
  try {
    const isAsked = behind !== null || isClient;
    const loaded: unknown = await import(isAsked ? url.href.replace(url.search, '') : url.href);
    if (behind !== null) module = (loaded as Front).wrap(await loadWorld(localUrl(new URL(behind)), name));
    else if (isClient) module = await (loaded as Client).connect(url.searchParams);
    else module = loaded as World;
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    const why = `${name}: the module cannot be loaded: ${explainLoadError(thrown)}`;
    throw new UserError('UNKNOWN_ENV', why, { cause: thrown });
  }
  if (typeof module.createEnv === 'function' || typeof module.agentgym?.client === 'object') {
    return module.tools ? { ...toolWorldParts, ...module } : module;
  }
  const exported = Object.keys(module).join(', ') || 'nothing';
  throw new UserError(
    'BAD_ARGUMENT',
    `${name}: expected a module that exports createEnv, got one that exports ${exported}`,
  );
}

/**
 * URL that stands for the modules of several worlds, where threads are told by one URL what they read.
 * @param modules by the worlds' names
 */
export function urlOfWorlds(modules: ReadonlyMap<string, URL>): URL {
  const url = new URL(import.meta.url);
  url.searchParams.set('worlds', JSON.stringify([...modules].map(([name, { href }]) => [name, href])));
  return url;
}

/** Modules of several worlds by name, in a URL of `urlOfWorlds`; undefined in that of one world. */
export function modulesOf(url: URL): ReadonlyMap<string, URL> | undefined {
  const listed = url.searchParams.get('worlds');
  if (listed === null) return undefined;
  return new Map((parseJson(listed) as [string, string][]).map(([name, href]) => [name, new URL(href)]));
}

/**
 * Loads what a policy reads a world by, in threads that play nothing there. An agent's program, or the module of an
 * MCP world, is not loaded for it.
 * @throws as `loadWorld`
 */
export async function loadReading(url: URL): Promise<Reading> {
  const modules = modulesOf(url);
  if (modules) {
    const views = new Map<string, View | undefined>();
    for (const [name, module] of modules) views.set(name, (await loadReading(localUrl(module))).view);
    return { views };
  }
  return url.searchParams.has(AGENT) || url.searchParams.has(MCP) ? toolWorldParts : loadWorld(url);
}

/**
 * Describes the rules of a world as facts: tasks, bounds, description. No session can be opened of a world that is
 * started.
 * @throws {UserError} UNKNOWN_ENV for a world without rules; BAD_CONFIG for an option it does not have, or options under
 *   which it throws
 */
export function describeEnv(world: World, name: string, options: EnvOptions = {}): Env {
  if (!world.createEnv) {
    throw new UserError('UNKNOWN_ENV', `'${name}' has no rules here: it is played through an AgentGym server`);
  }
  try {
    const env = world.createEnv(options);
    const { id, description, rewardRange, maxObservationChars, replay } = env;
    const facts = { id, description, rewardRange, maxObservationChars, tasks: withSafeLabels(env.tasks) };
    return { ...facts, ...(replay ? { replay } : {}), open: (task, limits) => env.open(task, limits) };
  } catch (thrown) {
    if (thrown instanceof LongplayError) throw thrown;
    const message = `${name}: createEnv gives no world under these options: ${messageOf(thrown)}`;
    throw new UserError('BAD_CONFIG', message, { cause: thrown });
  }
}

/** Label of a task whose own label throws. */
const UNLABELLED = 'unlabelled';

/** Labelled table: its labels are texts whatever the world does, so that one task without a label ends no run. */
function withSafeLabels(tasks: TaskTable): TaskTable {
  return {
    count: tasks.count,
    labels: tasks.labels,
    split: (split) => tasks.split(split),
    ...(tasks.sets ? { sets: tasks.sets } : {}),
    ...(tasks.isSeen ? { isSeen: (index) => tasks.isSeen!(index) } : {}),
    evalSeed: tasks.evalSeed,
    label(index) {
      try {
        const label: unknown = tasks.label(index);
        return typeof label === 'string' ? label.toWellFormed() : UNLABELLED;
      } catch (thrown) {
        if (!(index >= 0 && index < tasks.count)) throw thrown; // required by the contract
        return UNLABELLED;
      }
    },
  };
}

/**
 * Starts a world and makes its rules.
 * @param where path for its messages, e.g. `/env-hosts/2`
 * @param context what `World.share` made, and what opens models, for `start`
 * @throws what the world's `start` or `createEnv` throws
 */
export async function openWorld(
  world: World,
  name: string,
  options: EnvOptions,
  where: string,
  context: Omit<StartContext, 'where'> = {},
): Promise<OpenWorld> {
  if (!world.createEnv) describeEnv(world, name); // throws the reason
  let resources: Resources | undefined = await world.start?.(options, { ...context, where });
  const started = resources;
  const dispose = async () => {
    const held = resources;
    resources = undefined;
    await held?.dispose();
  };
  const createEnv = () => world.createEnv!(options, started);
  try {
    return { world, env: createEnv(), createEnv, dispose };
  } catch (thrown) {
    await dispose().catch(() => {}); // the first error is the one to report
    throw thrown;
  }
}
