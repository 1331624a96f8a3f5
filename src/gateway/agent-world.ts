/**
 * World of an agent: any program that calls a model, played like a world (agent-session.ts). Its module is opened with the
 * options in its query (`agent-world.js?agent=…`, see `loadWorld`), since the tasks are the program's own.
 *
 * Observation  the program's next call, as JSON (agent-call.ts).
 * Action       the reply, as JSON; or, for a policy that chooses, a tool and its arguments in stages (call-stages.ts).
 * Reward       what the program returns or posts at its end; every call before pays 0.
 * Terminates   when the program ends. One that throws has failed.
 * Randomness   the program's; it gets a seed.
 */
import { pathToFileURL } from 'node:url';
import { AGENT, type AgentOutcome, readOutcome } from '../core/agent-call.ts';
import { describeValue } from '../core/describe-value.ts';
import type { Env, EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { taskName } from '../core/task.ts';
import { readTaskList, type TaskList } from '../core/task-list.ts';
import type { Resources, World } from '../core/world.ts';
import { explainLoadError } from '../runtime/module-url.ts';
import { type AgentOptions, readAgentOptions } from './agent-options.ts';
import {
  type AgentProgram,
  type AgentRun,
  CommandPool,
  commandProgram,
  MODEL_NAME,
  moduleProgram,
} from './agent-program.ts';
import { AgentSession } from './agent-session.ts';
import type { Gateway, GatewayEpisode } from './gateway.ts';
import { openRemoteProgram } from './remote-program.ts';
import { openGateway } from './server.ts';

/** Resources of a host: the gateway that its agents call. */
interface HostGateway extends Resources {
  readonly gateway: Gateway;
}

/** Least and largest reward that a program may give. */
const REWARD_RANGE = [-1e6, 1e6] as const;
/** Characters of one call, as it is observed: conversations begin anew, with all they hold. */
const MAX_CALL_CHARS = 64 * 2 ** 20;

/** Makes the world of an agent. @param query its options as JSON, under `agent` @throws {UserError} BAD_CONFIG */
export async function connect(query: URLSearchParams): Promise<World<HostGateway>> {
  const options = readAgentOptions(parseJson(query.get('agent')!) as EnvOptions);
  const { program, tasks, end } = await loadProgram(options);
  return {
    createEnv: (_options, resources) => createEnv(options, program, tasks, resources),
    async start() {
      const gateway = await openGateway({ host: options.host });
      return {
        gateway,
        async dispose() {
          end();
          await gateway.close();
        },
      };
    },
    tools: true,
  };
}

function createEnv(
  options: AgentOptions,
  program: AgentProgram,
  tasks: TaskList,
  resources: HostGateway | undefined,
): Env {
  const { replay, rewardAtHorizon } = options;
  return {
    id: AGENT,
    description: 'A program of the user that calls a model.',
    tasks: tasks.table,
    rewardRange: REWARD_RANGE,
    maxObservationChars: MAX_CALL_CHARS,
    replay,
    async open(task, limits) {
      tasks.table.label(task.index); // throws for an index outside
      const episode = resources!.gateway.open();
      const horizon = limits?.horizon;
      const { baseURL, root, key } = episode;
      const model = { baseURL, root, apiKey: key, name: MODEL_NAME };
      const { index, seed } = task;
      const run = (signal: AbortSignal) =>
        finish(program, { task: tasks.task(index), index, seed, horizon, model, signal }, episode, taskName(task));
      return AgentSession.open({ gateway: episode, run, horizon, rewardAtHorizon });
    },
  };
}

/** Runs a program to its reward: what it returned, else what it posted. @throws where it gave none */
async function finish(
  program: AgentProgram,
  run: AgentRun,
  episode: GatewayEpisode,
  name: string,
): Promise<AgentOutcome> {
  const outcome = (await program(run, episode.posted)) ?? readOutcome(episode.postedReward());
  if (outcome) return outcome;
  throw new Error(
    `task ${name}: the agent ended without a reward: return { reward: number }, print it as the last line of JSON, or post it to <root>/reward`,
  );
}

/** Loads the program and its tasks. @throws {UserError} BAD_CONFIG */
async function loadProgram(options: AgentOptions): Promise<{
  readonly program: AgentProgram;
  readonly tasks: TaskList;
  /** Ends what the program keeps between episodes. */
  readonly end: () => void;
}> {
  const { module: path, command, url: service, tasks: given } = options;
  const here = pathToFileURL(`${process.cwd()}/config.yaml`);
  if (service !== undefined) {
    const tasks = readTaskList(requireTasks(given, 'a service'), here, AGENT);
    const { play, close } = openRemoteProgram(service);
    return { program: play, tasks, end: close };
  }
  if (command) {
    const tasks = readTaskList(requireTasks(given, 'a command'), here, AGENT);
    if (!options.reuse) return { program: commandProgram(command, process.cwd()), tasks, end: () => {} };
    const pool = new CommandPool(command, process.cwd());
    return { program: pool.play, tasks, end: () => pool.dispose() };
  }
  const url = pathToFileURL(path!);
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(url.href)) as Readonly<Record<string, unknown>>;
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `agent: ${path} cannot be loaded: ${explainLoadError(thrown)}`, {
      cause: thrown,
    });
  }
  const { default: agent } = exported;
  if (typeof agent !== 'function') {
    throw new UserError(
      'BAD_CONFIG',
      `agent: ${path}: expected a default export, async ({ task, model, signal }) => ({ reward }), got ${describeValue(agent)}`,
    );
  }
  return {
    program: moduleProgram(agent as (run: AgentRun) => unknown),
    tasks: readTaskList(given ?? exported.tasks, url, AGENT),
    end: () => {},
  };
}

/** Tasks of a program that exports none. @throws {UserError} BAD_CONFIG where none are given */
function requireTasks(given: AgentOptions['tasks'], what: string): NonNullable<AgentOptions['tasks']> {
  if (given !== undefined) return given;
  throw new UserError('BAD_CONFIG', `agent: ${what} needs tasks: their number, or the path of a JSONL file`);
}
