/** Entry of a thread that scores saved episodes by the user's function: one that never answers must not take the command along. */
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { AGENT, type AgentOutcome } from '../../core/agent-call.ts';
import { describeValue } from '../../core/describe-value.ts';
import type { EnvOptions } from '../../core/env.ts';
import { messageOf } from '../../core/errors.ts';
import { readTaskList, type TaskList } from '../../core/task-list.ts';
import { isMcpId } from '../../core/tool-world.ts';
import { verifyBy } from '../../core/verify.ts';
import { explainLoadError } from '../../runtime/module-url.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { type ConfiguredEnv, mcpFileOf } from '../../world/env-id.ts';
import { readMcpFile } from '../../world/mcp/options-file.ts';
import { makeRescoreRequest, type RescoreRequest } from './rescore-request.ts';

/** Start of a thread. */
export interface RescoreThreadData {
  /** URL of the module that exports `verify`. */
  readonly url: string;
  /** World of the trace, whose list of tasks is read where it has one. */
  readonly env: ConfiguredEnv;
}

/** Messages of the thread: what it loaded, then an answer for each episode. */
export type RescoreThreadMessage =
  | { readonly type: 'ready'; readonly notice: string | undefined }
  | { readonly type: 'unusable'; readonly message: string }
  | { readonly type: 'scored'; readonly outcome: AgentOutcome }
  | { readonly type: 'failed'; readonly message: string };

const { url, env } = workerData as RescoreThreadData;
const post = (message: RescoreThreadMessage) => parentPort!.postMessage(message);

const verify = await loadVerify();
if (verify) {
  const { tasks, notice } = await loadTasks(env);
  parentPort!.on('message', (episode: TraceLine) => void score(verify, episode, tasks));
  post({ type: 'ready', notice });
}

async function score(
  by: (request: RescoreRequest) => unknown,
  episode: TraceLine,
  tasks: TaskList | undefined,
): Promise<void> {
  try {
    const { index } = episode.task;
    const entry = tasks && index < tasks.table.count ? tasks.task(index) : undefined;
    post({ type: 'scored', outcome: await verifyBy(by, makeRescoreRequest(episode, entry)) });
  } catch (thrown) {
    post({ type: 'failed', message: messageOf(thrown) });
  }
}

async function loadVerify(): Promise<((request: RescoreRequest) => unknown) | undefined> {
  try {
    const exported = (await import(url)) as Readonly<Record<string, unknown>>;
    if (typeof exported.verify === 'function') return exported.verify as (request: RescoreRequest) => unknown;
    const found = describeValue(exported.verify);
    post({ type: 'unusable', message: `expected a function as the export verify, got ${found}` });
  } catch (thrown) {
    post({ type: 'unusable', message: `it cannot be loaded: ${explainLoadError(thrown)}` });
  }
  return undefined;
}

/** List of tasks of a world whose options or module have one: an MCP server's, an agent's. */
async function loadTasks({
  id,
  options,
}: ConfiguredEnv): Promise<{ readonly tasks: TaskList | undefined; readonly notice: string | undefined }> {
  if (id !== AGENT && !isMcpId(id)) return { tasks: undefined, notice: undefined };
  try {
    const file = mcpFileOf(id);
    const { module, tasks }: EnvOptions = file === undefined ? options : { ...readMcpFile(file), ...options };
    const from = pathToFileURL(typeof module === 'string' ? module : `${process.cwd()}/config.yaml`);
    const given = tasks ?? ((await import(from.href)) as Readonly<Record<string, unknown>>).tasks;
    return { tasks: readTaskList(given, from, id), notice: undefined };
  } catch (thrown) {
    const notice = `the world's list of tasks cannot be read (${explainLoadError(thrown)}): verify gets { env, index, seed } as the task`;
    return { tasks: undefined, notice };
  }
}
