/** Loads and opens worlds: module, resources, rules. Env hosts, conformance checks and commands all open them here. */
import type { Env, EnvOptions } from '../core/env.ts';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import type { TaskTable } from '../core/task.ts';
import type { Resources, World } from '../core/world.ts';
import { localUrl } from '../runtime/thread.ts';

/** Open world: one with rules, ready to open sessions. */
export interface OpenWorld {
  readonly world: World;
  readonly env: Env;
  /** Makes fresh rules over the same resources. */
  createEnv(): Env;
  /** Releases the resources of `start`; calling it twice does no harm. */
  dispose(): Promise<void>;
}

/** Module that plays a world behind a server. */
interface RemoteWorldModule {
  /** Makes the World of an AgentGym server out of the world's own module, which exports the dialect. */
  before(world: World): World;
  /** Makes the World of an OpenEnv server, which says itself what it is. */
  connect(server: string, tokenEnv: string): Promise<World>;
}

/**
 * Imports a world's module. Two queries make it a client: with `?world=<url>` the module's `before(world)` is the World,
 * with `?server=<url>&tokenEnv=<name>` its `connect(server, tokenEnv)`.
 * @param url of a module that can run here (see `localUrl`)
 * @param name as messages should call it; default the URL
 * @throws {UserError} UNKNOWN_ENV where nothing is there or it cannot be loaded; BAD_ARGUMENT where it is no world
 */
export async function loadWorld(url: URL, name = url.href): Promise<World> {
  const behind = url.searchParams.get('world');
  const server = url.searchParams.get('server');
  const isClient = behind !== null || server !== null;
  let module: World;
  try {
    const loaded: unknown = await import(isClient ? url.href.replace(url.search, '') : url.href);
    const client = loaded as RemoteWorldModule;
    if (behind !== null) module = client.before(await loadWorld(localUrl(new URL(behind)), name));
    else if (server !== null) module = await client.connect(server, url.searchParams.get('tokenEnv') ?? '');
    else module = loaded as World;
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    const why = `${name}: the module cannot be loaded: ${messageOf(thrown)}${cureOf(thrown)}`;
    throw new UserError('UNKNOWN_ENV', why, { cause: thrown });
  }
  if (typeof module.createEnv === 'function' || typeof module.agentgym?.client === 'object') return module;
  const exported = Object.keys(module).join(', ') || 'nothing';
  throw new UserError(
    'BAD_ARGUMENT',
    `${name}: expected a module that exports createEnv, got one that exports ${exported}`,
  );
}

/** Cure of a TypeScript module under a Node that runs JavaScript alone. */
function cureOf(thrown: unknown): string {
  const isTypeScript = (thrown as NodeJS.ErrnoException)?.code === 'ERR_UNKNOWN_FILE_EXTENSION';
  return isTypeScript
    ? '; this Node runs JavaScript alone: compile the module (npx tsc), or take Node 22.18 or newer'
    : '';
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
    const facts = { id, description, rewardRange, maxObservationChars, tasks: labelled(env.tasks) };
    return { ...facts, ...(replay ? { replay } : {}), open: (task) => env.open(task) };
  } catch (thrown) {
    if (thrown instanceof LongplayError) throw thrown;
    const message = `${name}: createEnv gives no world under these options: ${messageOf(thrown)}`;
    throw new UserError('BAD_CONFIG', message, { cause: thrown });
  }
}

/** Label of a task whose own label throws. */
const UNLABELLED = 'unlabelled';

/** Labelled table: its labels are texts whatever the world does, so that one task without a label ends no run. */
function labelled(tasks: TaskTable): TaskTable {
  return {
    count: tasks.count,
    labels: tasks.labels,
    split: (split) => tasks.split(split),
    ...(tasks.sets ? { sets: tasks.sets } : {}),
    ...(tasks.seen ? { seen: (index) => tasks.seen!(index) } : {}),
    evalSeed: tasks.evalSeed,
    label(index) {
      try {
        const label: unknown = tasks.label(index);
        return typeof label === 'string' ? label : UNLABELLED;
      } catch (thrown) {
        if (!(index >= 0 && index < tasks.count)) throw thrown; // as the contract says
        return UNLABELLED;
      }
    },
  };
}

/**
 * Starts a world and makes its rules.
 * @param where path for its messages, e.g. `/env-hosts/2`
 * @param shared what `World.share` made, for `start`
 * @throws what the world's `start` or `createEnv` throws
 */
export async function openWorld(
  world: World,
  name: string,
  options: EnvOptions,
  where: string,
  shared?: unknown,
): Promise<OpenWorld> {
  if (!world.createEnv) describeEnv(world, name); // throws the reason
  let resources: Resources | undefined = await world.start?.(options, { where, shared });
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
    await dispose().catch(() => {}); // the first mistake is the one to tell
    throw thrown;
  }
}
