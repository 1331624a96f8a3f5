/** GRPO, and GRPO without the division by the standard deviation (of Dr. GRPO). */
import { z } from 'zod';
import { commonShape, credit, type Estimator, groupRelative, std } from './estimator.ts';
import { groupAdvantage } from './group-advantage.ts';

export const grpoSchema = z.strictObject({ algorithm: z.literal('grpo'), ...commonShape, credit, std });
/** GRPO: scores against the mean of their group, by its standard deviation. */
export type GrpoConfig = z.infer<typeof grpoSchema>;
/** Estimator of GRPO. */
export const grpo: Estimator<GrpoConfig> = groupRelative(
  {
    title: 'GRPO',
    papers: ['2402.03300'],
    summary: '(R − mean)/std of the scores of a group.',
    use: 'The default: no critic, several episodes of a task.',
  },
  (scores, config) => groupAdvantage(scores, config),
);

export const drGrpoSchema = z.strictObject({ algorithm: z.literal('dr_grpo'), ...commonShape, credit });
/** GRPO without the division by the standard deviation (of Dr. GRPO); meant with `aggregation: { type: 'constant' }`. */
export type DrGrpoConfig = z.infer<typeof drGrpoSchema>;
/** Estimator of Dr. GRPO. */
export const drGrpo: Estimator<DrGrpoConfig> = groupRelative(
  {
    title: 'Dr. GRPO',
    papers: ['2503.20783'],
    summary: 'R − mean of the scores of a group; meant with aggregation constant.',
    use: 'Tasks of very different difficulty, which the division by the std would weigh up.',
  },
  (scores) => groupAdvantage(scores, { std: false }),
);
