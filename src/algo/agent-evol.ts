/**
 * AgentEvol: trajectories that earned more than `threshold` are imitated, the others are left out. Nothing is compared;
 * the trainer's loss is the negative log-likelihood. Differs from the paper in going on from the present weights
 * instead of training the base model anew in every iteration.
 * @see Xi et al. 2024 (AgentGym), §4.2, alg. 1. https://arxiv.org/abs/2406.04151
 */
import { z } from 'zod';
import { broadcast, commonShape, type Estimator, estimatorDefaults, threshold } from './estimator.ts';

export const agentEvolSchema = z.strictObject({
  algorithm: z.literal('agent_evol'),
  ...commonShape,
  threshold,
});
/** AgentEvol: what earned more than `threshold` is imitated; −Infinity imitates all (supervised). */
export type AgentEvolConfig = z.infer<typeof agentEvolSchema>;

/** Estimator of AgentEvol: 1 for all that is imitated; a score that is not finite stays visible. */
export const agentEvol: Estimator<AgentEvolConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'AgentEvol (rejection sampling)',
    papers: ['2406.04151'],
    summary: 'Log-likelihood of the episodes that scored more than a threshold.',
    use: 'Imitation of one’s own best episodes, the first thing to try after a warm start.',
  },
  objective: 'likelihood',
  trains: (score, { threshold }) => score > threshold,
  advantages(group) {
    const scores = Float64Array.from(group, estimatorDefaults.score);
    return broadcast(
      group,
      scores.map((R) => (Number.isFinite(R) ? 1 : R)),
    );
  },
};
