/** Identity of the run of a chaos test: learner and workers have it in common. */
import { type ClusterIdentity, longplayVersion, PROTOCOL } from '../../src/cluster/identity.ts';
import { smallModel } from '../../src/compute/model/config.ts';

/** Milliseconds that a worker may be silent. */
export const CHAOS_LEASE_MS = 1000;

export const chaosIdentity: ClusterIdentity = {
  env: 'toy',
  view: 'none',
  vocabulary: 'none',
  decoder: 'choice',
  model: smallModel(10, {}),
  protocol: PROTOCOL,
  longplay: longplayVersion(),
};
