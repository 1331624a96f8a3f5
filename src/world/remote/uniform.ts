/**
 * Uniform client: a world behind another longplay's `serve-env`; with `rollout.envServer` the env hosts of a run play
 * their episodes there. Observations, actions, rewards and ends are the world's own; tasks and view are those it has
 * here, so both sides should be the same version. A step whose answer was lost is sent again: it names its turn, so the
 * server takes it once.
 */
import { type Env, type EnvOptions, type EnvStep, type First, mid, type Session, terminated } from '../../core/env.ts';
import type { Task } from '../../core/task.ts';
import { excerpt } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import { OPEN_SHARE, type RemoteEnvOptions, remoteEnvOptions } from './options.ts';
import { RemoteRequests } from './requests.ts';

interface Answer {
  readonly session: string;
  readonly turn: number;
  readonly step: {
    readonly kind: string;
    readonly observation: string;
    readonly reward: number;
    readonly success: boolean;
  };
  readonly actions: readonly string[];
}

const CLOSE_MS = 2000;

/**
 * Makes the env that a host loads in the world's place.
 * @param options those of `remoteEnvOptions`, and the world's own `rewardRange` and `maxObservationChars`
 * @throws {UserError} BAD_CONFIG
 */
export function createEnv(options: EnvOptions = {}): Env {
  const remote = remoteEnvOptions('rollout.envServer', options, ['rewardRange', 'maxObservationChars']);
  const { rewardRange, maxObservationChars } = options as Pick<Env, 'rewardRange' | 'maxObservationChars'>;
  const requests = new RemoteRequests(remote);
  return {
    id: remote.world,
    description: `${remote.world} on ${remote.url}`,
    // The table is in the process that draws the tasks.
    tasks: { count: 0, labels: [], label: () => remote.world, split: () => [], evalSeed: 0 },
    rewardRange,
    maxObservationChars,
    open: (task) => RemoteSession.open(requests, remote, task),
  };
}

class RemoteSession implements Session {
  readonly first: First;
  readonly #requests: RemoteRequests;
  readonly #id: string;
  readonly #deadlineMs: number;
  #turn = 0;
  #actions: readonly string[];
  #closed = false;

  private constructor(requests: RemoteRequests, deadlineMs: number, { session, step, actions }: Answer) {
    this.#deadlineMs = deadlineMs;
    this.#requests = requests;
    this.#id = session;
    this.#actions = actions;
    this.first = { kind: 'first', observation: step.observation };
  }

  static async open(
    requests: RemoteRequests,
    { world: env, deadlineMs }: RemoteEnvOptions,
    { index, seed }: Task,
  ): Promise<RemoteSession> {
    // An open whose answer was lost leaves a session behind, which the server lets go when it is idle.
    const body = { env, index, seed };
    const answer = await requests.send('POST', 'v1/sessions', body, OPEN_SHARE * deadlineMs, true, (told) =>
      readAnswer(told, undefined, 0),
    );
    return new RemoteSession(requests, deadlineMs, answer);
  }

  async step(action: string): Promise<EnvStep> {
    const turn = this.#turn + 1;
    const path = `v1/sessions/${this.#id}/step`;
    const body = { turn, action };
    const answer = await this.#requests.send('POST', path, body, this.#deadlineMs, true, (told) =>
      readAnswer(told, this.#id, turn),
    );
    const { kind, observation, reward, success } = answer.step;
    this.#turn = turn;
    this.#actions = answer.actions;
    return kind === 'terminated' ? terminated(observation, reward, success) : mid(observation, reward);
  }

  actions(): readonly string[] {
    return this.#actions;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#requests
      .send('DELETE', `v1/sessions/${this.#id}`, undefined, CLOSE_MS, false, () => {})
      .catch(() => {});
  }
}

/**
 * Reads an answer.
 * @throws {RemoteError} for another shape, another session or another turn
 */
function readAnswer(value: unknown, session: string | undefined, turn: number): Answer {
  const answer = value as Partial<Answer> | null | undefined;
  const step = answer?.step;
  const wellFormed =
    typeof answer?.session === 'string' &&
    typeof answer.turn === 'number' &&
    typeof step?.observation === 'string' &&
    Array.isArray(answer.actions) &&
    answer.actions.every((action) => typeof action === 'string') &&
    (turn === 0 ? step.kind === 'first' : step.kind === 'mid' || step.kind === 'terminated') &&
    (turn === 0 || typeof step.reward === 'number') &&
    (step.kind !== 'terminated' || typeof step.success === 'boolean');
  if (!wellFormed)
    throw new RemoteError('malformed', `not a session's answer: ${excerpt(JSON.stringify(value) ?? 'nothing', 120)}`);
  if ((session !== undefined && answer.session !== session) || answer.turn !== turn) {
    const got = `session ${answer.session}, turn ${answer.turn}`;
    throw new RemoteError('mismatch', `asked for turn ${turn} of session ${session ?? 'new'}, got ${got}`);
  }
  return answer as Answer;
}
