/**
 * On-policy distillation (OPD): the student plays, a teacher scores the same decisions, and the loss is the reverse KL of the
 * student to the teacher in each of them. No gradient flows through the sampling of the episode.
 *
 *   L = L_policy + coef·Σₜ wₜ·KL(π(·|sₜ) ‖ π_T(·|sₜ))
 *
 * Where the policy chooses from a list, the KL is exact over the listed actions, since both distributions are at hand:
 * KL = Σₐ π(a)·(log π(a) − log π_T(a)), a term of the graph (`src/compute/model/loss.ts`). Where it writes tokens, the teacher
 * gives the log-probability of each sampled token alone, and its gain joins the token's advantage ({@link computeTeacherGain}):
 * the policy gradient of it has the gradient of the reverse KL as its expectation. Policy losses and off-policy corrections
 * apply to it like to any advantage.
 *
 * @see Agarwal et al. 2023 (GKD), §3: L_GKD with λ = 1 and the reverse KL as divergence. https://arxiv.org/abs/2306.13649
 * @see Thinking Machines 2025, On-Policy Distillation (advantage = log π_T − log π, discount 0),
 *   https://thinkingmachines.ai/blog/on-policy-distillation
 */
import { z } from 'zod';
import type { AlgorithmFacts } from './facts.ts';

/** Share that an average may keep: at 1 it would never move. */
const MAX_DECAY = 0.999;

const teacherSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('run'),
    path: z.string().min(1).describe('Folder of a run of the same world and reading: its newest checkpoint teaches.'),
  }),
  z.strictObject({
    type: z.literal('server'),
    url: z.url().describe('Root of an OpenAI-compatible server that reports log-probabilities of prompts.'),
    model: z
      .string()
      .min(1)
      .exactOptional()
      .describe('Model as the server calls it; the one that it has where absent.'),
    apiKeyEnv: z
      .string()
      .min(1)
      .exactOptional()
      .describe('Environment variable that holds its key; none is sent where absent.'),
  }),
  z.strictObject({
    type: z.literal('ema'),
    decay: z
      .number()
      .min(0)
      .max(MAX_DECAY)
      .default(0.95)
      .describe('Share of the average that an update keeps: θ_T ← decay·θ_T + (1 − decay)·θ.'),
  }),
]);

/** Shape of `learner.distillation`. */
export const distillationSchema = z.strictObject({
  teacher: teacherSchema.describe(
    "Teacher: another run, a model behind a server (tokens), or the average of the run's own weights.",
  ),
  coef: z.number().positive().max(1e6).default(1).describe('Weight of the reverse KL to the teacher.'),
  useRewards: z
    .boolean()
    .default(false)
    .describe('Learn from rewards too, by the estimator and the policy loss; false: the teacher is the only signal.'),
});

/** Configuration of distillation. */
export type DistillationConfig = z.infer<typeof distillationSchema>;
/** Name of a kind of teacher. */
export type TeacherType = DistillationConfig['teacher']['type'];

/** Facts of distillation by the kind of its teacher. */
export const distillationFacts: Readonly<Record<TeacherType, AlgorithmFacts>> = {
  run: {
    title: 'On-policy distillation (OPD, GKD)',
    papers: ['2306.13649'],
    summary: 'Reverse KL to the newest checkpoint of another run, in the states that the student plays.',
    use: 'A trained policy is at hand: another size or architecture learns from it in a fraction of its steps.',
    keys: ['learner.distillation.coef', 'learner.distillation.useRewards'],
  },
  server: {
    title: 'On-policy distillation from a server',
    papers: ['2306.13649'],
    summary: 'log π_T − log π of each sampled token joins its advantage; the server scores the tokens as a prompt.',
    use: 'Language models: a larger model of the same tokenizer behind vLLM teaches.',
    keys: ['learner.distillation.coef', 'learner.distillation.useRewards'],
  },
  ema: {
    title: 'Self-distillation (EMA-PG’s anchor)',
    papers: ['2602.04417'],
    summary: 'Reverse KL to the moving average of the run’s own weights, beside rewards.',
    use: 'RL that swings: the average of its own past steadies it, and moves along with what was gained.',
    keys: ['learner.distillation.coef', 'learner.distillation.useRewards'],
  },
};

/** Nats that a sampled token may gain or lose by its teacher, before `coef`; as the loss bounds its log-ratios. */
const MAX_GAIN = 20;

/**
 * Computes the gain of a sampled token: coef·(log π_T − log π), the difference held within ±20 nats.
 * @param logprob log π of the policy that the loss's ratio is taken against
 */
export function computeTeacherGain(coef: number, teacher: number, logprob: number): number {
  return coef * Math.min(MAX_GAIN, Math.max(-MAX_GAIN, teacher - logprob));
}
