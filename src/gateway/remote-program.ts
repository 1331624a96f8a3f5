/**
 * Agent programs that run as a service elsewhere, started by a request: Eval Protocol's remote rollouts.
 *
 *     POST <url>/init    { rollout_id, model_base_url, api_key, completion_params, messages, tools?, metadata }    starts an episode
 *     GET  <url>/status?rollout_id=…    { terminated, reward? }    asked every second; 404: the service has none
 *
 * `model_base_url` holds the episode's key, so that a client needs no other. An episode ends with the reward that is posted to
 * `reward_url`, or with the status. What longplay adds to the protocol: `reward_url`, the task in `metadata`, a reward in the status.
 *
 * @see eval-protocol's python-sdk, `RemoteRolloutProcessor` and `InitRequest`
 */
import { type AgentOutcome, readOutcome } from '../core/agent-call.ts';
import { systemClock } from '../core/clock.ts';
import { describeValue } from '../core/describe-value.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { isRecord } from '../core/record.ts';
import { sleep } from '../http/attempts.ts';
import { HttpClient, parseAnswer } from '../http/http-client.ts';
import { RemoteError } from '../http/retry.ts';
import type { AgentProgram, AgentRun } from './agent-program.ts';

/** Milliseconds in which an episode must be started, as Eval Protocol asks. */
const INIT_MS = 30_000;
/** Milliseconds between two questions for the status, and of one of them. */
const POLL_MS = 1000;
const STATUS_MS = 15_000;
/** Failed questions in a row after which the episode has failed. */
const MAX_FAILURES = 5;

/** Program behind a URL. */
export interface RemoteProgram {
  readonly play: AgentProgram;
  /** Gives up requests under way. */
  close(): void;
}

/**
 * Opens a program behind a URL.
 * @param url of the service, or of its `/init`
 * @param pollMs milliseconds between two questions for the status
 * @throws {UserError} BAD_CONFIG for what is no URL
 */
export function openRemoteProgram(url: string, pollMs = POLL_MS): RemoteProgram {
  const base = url.replace(/\/init\/?$/, '').replace(/\/+$/, '');
  let client: HttpClient;
  try {
    client = new HttpClient({ baseUrl: base });
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `agent: url: ${messageOf(thrown)}`, { cause: thrown });
  }
  return {
    async play(run, posted) {
      const id = rolloutId(run);
      const started = await ask(client, 'POST', 'init', INIT_MS, initOf(run, id));
      const status = statusPath(base, started, id);
      const ending = new AbortController();
      const signal = AbortSignal.any([run.signal, ending.signal]);
      try {
        const reported = pollStatus(client, status, pollMs, signal);
        const ends = posted ? [reported, posted.then(() => undefined)] : [reported];
        return await Promise.race(ends);
      } finally {
        ending.abort();
      }
    },
    close: () => client.close(),
  };
}

/** Id of an episode's rollout: that of its address, which is unlike all others. */
function rolloutId({ model }: AgentRun): string {
  return model.root.slice(model.root.lastIndexOf('/') + 1);
}

/** Body of the request that starts an episode. */
function initOf({ task, index, seed, horizon, model }: AgentRun, id: string): object {
  const keyed = `${model.root}/key/${model.apiKey}`;
  const { messages, tools } = isRecord(task) ? task : {};
  const asked = typeof task === 'string' ? task : JSON.stringify(task);
  return {
    rollout_id: id,
    model: model.name,
    completion_params: { model: model.name },
    model_base_url: `${keyed}/v1`,
    api_key: model.apiKey,
    messages: Array.isArray(messages) && messages.length > 0 ? messages : [{ role: 'user', content: asked }],
    ...(Array.isArray(tools) ? { tools } : {}),
    metadata: {
      ...{ rollout_id: id, invocation_id: id, experiment_id: 'longplay', run_id: 'longplay', row_id: String(index) },
      ...{ task, index, seed, ...(horizon === undefined ? {} : { horizon }) },
    },
    reward_url: `${keyed}/reward`,
  };
}

/** Path of the status: where the service names one of its own, there. @throws for one of another server */
function statusPath(base: string, started: unknown, id: string): string {
  const { status_url: named } = isRecord(started) ? started : {};
  if (typeof named !== 'string') return `status?rollout_id=${encodeURIComponent(id)}`;
  const url = URL.canParse(named, `${base}/`) ? new URL(named, `${base}/`) : undefined;
  if (url?.origin === new URL(base).origin) return url.href;
  throw new Error(`the agent's service names a status of another server: ${describeValue(named)}`);
}

/**
 * Asks for the status until the episode has ended.
 * @returns the reward in it; undefined where it has none. It waits on where the service has no status.
 */
async function pollStatus(
  client: HttpClient,
  path: string,
  pollMs: number,
  signal: AbortSignal,
): Promise<AgentOutcome | undefined> {
  for (let failures = 0; !signal.aborted; ) {
    await sleep(systemClock, pollMs, signal);
    if (signal.aborted) break;
    let status: unknown;
    try {
      status = await ask(client, 'GET', path, STATUS_MS);
      failures = 0;
    } catch (thrown) {
      if (thrown instanceof RemoteError && thrown.status === 404) return aborted(signal);
      if (++failures === MAX_FAILURES) throw thrown;
      continue;
    }
    if (!isRecord(status) || status.terminated !== true) continue;
    const { reward, success, metrics } = status;
    return reward === undefined || reward === null ? undefined : readOutcome({ reward, success, metrics });
  }
  return undefined;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** Asks the service once. @returns its JSON; undefined for an answer without a body @throws {RemoteError} */
async function ask(
  client: HttpClient,
  method: string,
  path: string,
  deadlineMs: number,
  body?: object,
): Promise<unknown> {
  const answer = await client.send(method, path, body && JSON.stringify(body), deadlineMs);
  return answer.body.trim() === '' ? undefined : parseAnswer(answer.body);
}
