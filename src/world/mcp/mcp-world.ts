/**
 * World of an MCP server: any server of the Model Context Protocol, played by calls of its tools. Its module is opened with the
 * options in its query (`mcp-world.js?mcp=…`, see `loadWorld`), since tasks and verifier may be a user's module.
 *
 * Observation  the opening with the tools, then the results of calls, as JSON (agent-call.ts).
 * Action       the reply, as JSON; or, for a policy that chooses, a tool and its arguments in stages (call-stages.ts).
 * Reward       0, until the end state is verified.
 * Terminates   by a reply without calls, or once the check is met (`until: verified`).
 * Failure      a server that dies, or does not answer any more. Never a reward.
 */
import { pathToFileURL } from 'node:url';
import { describeValue } from '../../core/describe-value.ts';
import type { Env, EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import type { TaskTable } from '../../core/task.ts';
import { readTaskList } from '../../core/task-list.ts';
import { MCP, openToolSession } from '../../core/tool-world.ts';
import { verifyBy } from '../../core/verify.ts';
import type { World } from '../../core/world.ts';
import { explainLoadError } from '../../runtime/module-url.ts';
import { loadClientPackage } from './client-package.ts';
import { McpEpisode, type McpEpisodeOptions } from './mcp-episode.ts';
import { checkOf, type McpOptions, type McpTask, readMcpOptions, readMcpTask } from './options.ts';
import { type CreateServer, McpServers } from './servers.ts';
import { type Verify, verifyCheck } from './verify.ts';

/** Characters of one observation: an opening holds all tools. */
const MAX_OBSERVATION_CHARS = 64 * 2 ** 20;

/** Parts of a world that the user gives: tasks, and what the module exports. */
interface Given {
  readonly table: TaskTable;
  readonly tasks: readonly McpTask[];
  readonly createServer: CreateServer | undefined;
  readonly verify: McpEpisodeOptions['verify'];
}

/** Makes the world of an MCP server. @param query its options as JSON, under `mcp` @throws {UserError} BAD_CONFIG */
export async function connect(query: URLSearchParams): Promise<World<McpServers>> {
  const options = readMcpOptions(parseJson(query.get('mcp')!) as EnvOptions);
  const given = await loadGiven(options);
  return {
    createEnv: (_options, servers) => createEnv(options, given, servers),
    async start() {
      const first = { task: given.tasks[0]!, index: 0, seed: 0 };
      return McpServers.open(options, await loadClientPackage(), given.createServer, first);
    },
    tools: true,
  };
}

function createEnv(options: McpOptions, { table, tasks, verify }: Given, servers: McpServers | undefined): Env {
  return {
    id: MCP,
    description: 'Tools of an MCP server.',
    tasks: table,
    rewardRange: options.rewardRange,
    maxObservationChars: MAX_OBSERVATION_CHARS,
    replay: options.replay,
    async open({ index, seed }, limits) {
      table.label(index); // throws for an index outside
      const request = { task: tasks[index]!, index, seed };
      return openToolSession(
        await McpEpisode.open({ options, servers: servers!, request, horizon: limits?.horizon, verify }),
      );
    },
  };
}

/** Loads tasks, verifier and server. @throws {UserError} BAD_CONFIG for what is missing or wrong */
async function loadGiven(options: McpOptions): Promise<Given> {
  const { module: path } = options;
  const here = pathToFileURL(path ?? `${process.cwd()}/config.yaml`);
  const exported = path === undefined ? {} : await loadModule(here, path);
  const verify = readFunction<Verify>(exported, 'verify', path);
  const createServer = readFunction<CreateServer>(exported, 'createServer', path);
  const isElsewhere = options.command !== undefined || options.url !== undefined;
  if (createServer ? isElsewhere : !isElsewhere) {
    const found = createServer ? 'got both' : 'got neither';
    throw new UserError(
      'BAD_CONFIG',
      `mcp: ${path}: expected one of command, url and an export createServer, ${found}`,
    );
  }
  if ((options.tasks ?? exported.tasks) === undefined) {
    throw new UserError('BAD_CONFIG', "mcp: tasks: give a list, a JSONL file, or a module that exports 'tasks'");
  }
  // Paths of a configuration are absolute by now; those of a module start from it.
  const { table, task } = readTaskList(options.tasks ?? exported.tasks, here, MCP);
  const tasks = Array.from({ length: table.count }, (_, index) => readMcpTask(task(index), index, options));
  if (verify) return { table, tasks, createServer, verify: (request) => verifyBy(verify, request) };
  const checks = tasks.map((one) => checkOf(options, one));
  const unchecked = checks.findIndex((one) => one?.expect === undefined);
  if (unchecked >= 0) {
    const cure = "give it 'expect', or a module that exports verify";
    throw new UserError('BAD_CONFIG', `mcp: tasks[${unchecked}]: nothing gives its reward: ${cure}`);
  }
  return { table, tasks, createServer, verify: (request) => verifyCheck(checks[request.index]!, request) };
}

async function loadModule(url: URL, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(url.href)) as Readonly<Record<string, unknown>>;
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `mcp: ${path} cannot be loaded: ${explainLoadError(thrown)}`, { cause: thrown });
  }
}

function readFunction<F>(
  exported: Readonly<Record<string, unknown>>,
  name: string,
  path: string | undefined,
): F | undefined {
  const value = exported[name];
  if (value === undefined || typeof value === 'function') return value as F | undefined;
  throw new UserError(
    'BAD_CONFIG',
    `mcp: ${path}: expected a function as the export ${name}, got ${describeValue(value)}`,
  );
}
