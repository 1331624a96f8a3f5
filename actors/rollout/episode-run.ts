/** Episodes that run, and their groups: plain records and the pure steps between them. */
import type { EnvStep, First } from '../../src/core/env.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { withHorizon } from '../../src/core/horizon.ts';
import { seedFrom } from '../../src/core/rng.ts';
import { type Trajectory, type Turn, turnsUsed } from '../../src/core/trajectory.ts';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { reviveTurns, toJson } from '../../src/storage/trace.ts';
import type { GroupTicket, Purpose, SavedEpisode, SavedGroup } from './protocol.ts';

export interface GroupRun extends GroupTicket {
  /** Finished trajectories by member; set when the episode is finished. */
  readonly finished: (Trajectory | undefined)[];
  /** Running episodes, by member. */
  readonly running: Map<number, EpisodeRun>;
}

export interface EpisodeRun {
  readonly episode: number;
  readonly member: number;
  readonly attempt: number;
  readonly group: GroupRun;
  readonly samplingSeed: number;
  readonly actionTable: string[];
  readonly turns: Turn[];
  /** Turns that the env still has to repeat, after a resume. */
  restoring: boolean;
  /** True when `request` was sent to the policy. */
  asked: boolean;
  /** Last observation; undefined until the env has opened. */
  observation: string | undefined;
  /** Actions that are possible now. */
  actions: Int32Array;
  /** Policy incarnation that has this episode's history. */
  historySentTo: number | undefined;
  /** Request that the policy has not answered yet, kept for sending it again. */
  request: ActRequest | undefined;
  /** Action that the env is working on. */
  pending: { readonly acted: Acted; readonly actMs: number; readonly sentAt: number } | undefined;
  since: number;
}

/** Reopens a saved episode of a resumed run; `observe` resumes it when the env has been restored. */
export function reopenEpisode(group: GroupRun, saved: SavedEpisode, now: number): EpisodeRun {
  const run = openEpisode(group, saved.member, saved.episode, saved.attempt, now);
  for (const turn of reviveTurns(saved.turns)) run.turns.push(turn);
  run.restoring = true;
  return run;
}

/** Group as a checkpoint keeps it. */
export function saveGroup({ group, task, horizon, finished, running }: GroupRun): SavedGroup {
  return toJson({
    group,
    task,
    horizon,
    finished: finished.flatMap((trajectory, member) => (trajectory ? [{ member, trajectory }] : [])),
    running: [...running.values()].map(({ episode, member, attempt, turns }) => ({ episode, member, attempt, turns })),
  });
}

/** Opens a group of which nothing has been played. */
export function openGroup(ticket: GroupTicket): GroupRun {
  return { ...ticket, finished: Array(ticket.size).fill(undefined), running: new Map() };
}

/** Finished episodes of a group, by member. */
export function listFinished({ finished }: GroupRun): Trajectory[] {
  return finished.filter((one) => one !== undefined);
}

/** True while some episode waits for anything but a decision that it has not asked for. */
export function moves(episodes: Iterable<EpisodeRun>): boolean {
  for (const { request, asked } of episodes) if (!request || asked) return true;
  return false;
}

/** True for a step that used a turn: the opening observation and stages of an action do not. */
export function usesTurn(step: First | EnvStep): boolean {
  return step.kind === 'terminated' || (step.kind === 'mid' && !step.partial);
}

/** True for a group that is played to be trained on. */
export function isTraining({ purpose }: { readonly purpose: Purpose }): boolean {
  return purpose.name === 'train';
}

export function openEpisode(
  group: GroupRun,
  member: number,
  episode: number,
  attempt: number,
  now: number,
): EpisodeRun {
  const run: EpisodeRun = {
    episode,
    member,
    attempt,
    group,
    samplingSeed: seedFrom(group.purpose.seed, member, attempt),
    actionTable: [],
    turns: [],
    restoring: false,
    asked: false,
    historySentTo: undefined,
    observation: undefined,
    actions: new Int32Array(0),
    request: undefined,
    pending: undefined,
    since: now,
  };
  group.running.set(member, run);
  return run;
}

/** Observation: an answer of the env hosts about an episode. */
export interface Observation {
  readonly turn: number;
  readonly step: First | EnvStep;
  readonly actions: Int32Array;
  readonly newActions: readonly string[];
  readonly envMs: number;
}

/**
 * Applies an observation.
 * @returns the next request for the policy, or the finished trajectory, or the breach of the contract
 */
export function observe(
  run: EpisodeRun,
  { turn, step, actions, newActions, envMs }: Observation,
  view: string | undefined,
  now: number,
): { request: ActRequest } | { trajectory: Trajectory } | { broken: { cause: FailureCause; message: string } } {
  const expected = run.turns.length + (run.observation === undefined || run.restoring ? 0 : 1);
  if (turn !== expected || (turn === 0) !== (step.kind === 'first')) {
    return {
      broken: {
        cause: 'protocol',
        message: `expected the answer of turn ${expected}, got '${step.kind}' of turn ${turn}`,
      },
    };
  }
  if (run.restoring && step.kind === 'terminated') {
    const message = `taking the ${turn} recorded actions again ended the episode: the env is no function of them`;
    return { broken: { cause: 'protocol', message } };
  }
  for (const text of newActions) run.actionTable.push(text); // too many for a call's arguments after a long replay
  const stray = run.restoring ? run.turns.findIndex((one) => listsBeyond(one, run.actionTable.length)) : -1;
  if (stray >= 0) {
    const message = `turn ${stray + 1} as saved lists other actions than the env lists when its actions are taken again`;
    return { broken: { cause: 'protocol', message } };
  }
  if (step.kind === 'first' || run.restoring) {
    const { beginning } = run.group;
    if (beginning && step.observation !== beginning.observation) {
      const message = `taking the ${turn} recorded actions again shows another observation than recorded`;
      return { broken: { cause: 'protocol', message } };
    }
    run.restoring = false;
    run.observation = step.observation;
    run.actions = actions;
    return { request: ask(run, newActions, now) };
  }
  const { acted, actMs } = run.pending!;
  // Filled in afterwards: spreads of objects that may be empty took a third of the rollouts' time per turn.
  const turnRecord: Writable<Turn> = {
    observation: run.observation!,
    actions: run.actions,
    action: acted.action,
    reward: step.reward,
    actMs,
    envMs,
  };
  if (acted.decision) turnRecord.decision = acted.decision;
  if (acted.response) turnRecord.response = acted.response;
  if (acted.stages) turnRecord.stages = acted.stages;
  run.turns.push(turnRecord);
  run.pending = undefined;
  run.observation = step.observation;
  run.actions = actions;
  if (step.kind === 'mid' && step.partial) turnRecord.partial = true;
  if (step.undelivered) turnRecord.untrained = true;
  const seen = withHorizon(step, turnsUsed(run.turns), run.group.horizon);
  if (seen.kind === 'mid') return { request: ask(run, newActions, now) };
  if (seen.kind === 'truncated') return { trajectory: truncate(run, view) };
  return { trajectory: { ...recordOf(run, view), end: 'terminated', success: seen.success } };
}

/** Truncates an episode where it is. @returns its trajectory, which solved nothing */
export function truncate(run: EpisodeRun, view: string | undefined): Trajectory {
  return { ...recordOf(run, view), end: 'truncated', success: false };
}

function recordOf(run: EpisodeRun, view: string | undefined): Omit<Trajectory, 'end' | 'success'> {
  return {
    episode: run.episode,
    group: run.group.group,
    task: run.group.task,
    horizon: run.group.horizon,
    attempt: run.attempt,
    actionTable: run.actionTable,
    turns: run.turns,
    finalObservation: run.observation ?? '',
    ...(view === undefined ? {} : { view }),
  };
}

function listsBeyond({ actions }: Turn, length: number): boolean {
  return actions.some((index) => index >= length);
}

/** Applies the policy's answer. @returns the action to send, or nothing where the answer comes too late */
export function act(run: EpisodeRun, acted: Acted, now: number): string | undefined {
  if (!run.request || run.request.turn !== acted.turn) return undefined;
  run.request = undefined;
  run.asked = false;
  run.pending = { acted, actMs: now - run.since, sentAt: now };
  return acted.action;
}

/** Request that is outstanding, with the whole history where this incarnation of the policy lacks it. */
export function requestFor(run: EpisodeRun, incarnation: number): ActRequest {
  const request = run.request!;
  const known = run.historySentTo === incarnation;
  run.asked = true;
  run.historySentTo = incarnation;
  if (known) return request;
  const history = run.turns.map(({ observation, action, actions, decision, partial }) => ({
    observation,
    action,
    actions,
    ...(decision ? { decision } : {}),
    ...(partial ? { partial } : {}),
  }));
  const { task } = run.group;
  return { ...request, task, world: task.env, newActions: run.actionTable, ...(history.length > 0 ? { history } : {}) };
}

function ask(run: EpisodeRun, newActions: readonly string[], now: number): ActRequest {
  run.since = now;
  const request: Writable<ActRequest> = {
    episode: run.episode,
    group: run.group.group,
    member: run.member,
    groupSize: run.group.size,
    turn: run.turns.length,
    observation: run.observation!,
    actions: run.actions,
    newActions,
    samplingSeed: run.samplingSeed,
    temperature: run.group.purpose.temperature,
  };
  const { sampling, stop } = run.group.purpose;
  if (sampling) request.sampling = sampling;
  if (stop) request.stop = stop;
  const last = run.turns.at(-1);
  if (last) request.lastAction = last.action;
  if (last?.partial) request.partial = true;
  run.request = request;
  return request;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
