import type { Run } from '../../actors/tree.ts';
import type { ActorLine } from '../console/state.ts';
import type { RunStatus } from '../metrics/run-status.ts';

/** Lines of the actors, with the env hosts as one line beside them. */
export function actorLines(run: Run, status: RunStatus | undefined, threads: number): ActorLine[] {
  const { actors, envs } = run.stats();
  const up = envs.hosts.filter(({ up }) => up).length;
  const restarts = envs.hosts.reduce((sum, { replaced }) => sum + replaced, 0);
  const hosts: ActorLine = {
    path: 'env hosts',
    state: up === envs.hosts.length ? 'running' : `${up} of ${envs.hosts.length} up`,
    depth: 0,
    busyMs: (status?.time.hostMs ?? 0) / threads,
    restarts,
    message: undefined,
    note: `${envs.open} episodes open`,
    oldestMs: 0,
    waitingFor: [],
  };
  return [...actors, hosts];
}
