/**
 * Simulation of a cluster whose machines share the cores of this one: workers play groups, the learner makes an update of each
 * `groupsPerUpdate` of them, tickets wait for the weights that they name, and the lag bounds how many are out. Jobs share the cores
 * equally, each at most one. From two measured costs it predicts updates per second.
 */
import { Rng } from '../../src/core/rng.ts';
import { groupsToStart } from '../../src/learning/schedule/admission.ts';

export interface ClusterCosts {
  readonly cores: number;
  readonly workers: number;
  /** Groups that a worker plays at once. */
  readonly slots: number;
  readonly maxLag: number;
  readonly groupsPerUpdate: number;
  /** Processor seconds of a group, and of an update. */
  readonly groupSeconds: number;
  readonly updateSeconds: number;
  /** Spread of a group's cost: σ of its logarithm. */
  readonly sigma: number;
  readonly updates: number;
}

interface Job {
  left: number;
  readonly done: () => void;
}

/** Updates per second of simulated time. */
export function simulateCluster(of: ClusterCosts, seed = 1): number {
  const { cores, workers, slots, maxLag, groupsPerUpdate, groupSeconds, updateSeconds, sigma, updates } = of;
  const rng = Rng.fromSeed(seed);
  const jobs = new Set<Job>();
  const queue: number[] = [];
  let [version, waiting, playing, seconds] = [0, 0, 0, 0];
  let isLearning = false;
  const spread = () => Math.exp(sigma * normal(rng) - (sigma * sigma) / 2);
  const start = (left: number, done: () => void) => void jobs.add({ left, done });
  const settle = () => {
    if (!isLearning && waiting >= groupsPerUpdate) {
      isLearning = true;
      waiting -= groupsPerUpdate;
      start(updateSeconds, () => {
        isLearning = false;
        version++;
      });
    }
    const accepted = version * groupsPerUpdate + waiting + (isLearning ? groupsPerUpdate : 0);
    const fresh = groupsToStart({ maxLag, version, groupsPerUpdate, accepted, running: queue.length + playing });
    for (let n = 0; n < fresh; n++) queue.push(version);
    while (queue.length > 0 && playing < workers * slots) {
      queue.shift();
      playing++;
      start(groupSeconds * spread(), () => {
        playing--;
        waiting++;
      });
    }
  };
  for (settle(); version < updates; settle()) {
    const speed = Math.min(1, cores / jobs.size);
    const step = Math.min(...[...jobs].map(({ left }) => left)) / speed;
    seconds += step;
    for (const job of jobs) {
      job.left -= step * speed;
      if (job.left > 1e-12) continue;
      jobs.delete(job);
      job.done();
    }
  }
  return version / seconds;
}

/** Normal deviate. */
function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}
