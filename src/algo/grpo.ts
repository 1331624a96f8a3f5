/** GRPO, and GRPO without the division by the standard deviation (of Dr. GRPO). */
import { z } from 'zod';
import { commonShape, credit, type Estimator, groupRelative, std } from './estimator.ts';
import { groupAdvantage } from './group-advantage.ts';

export const grpoSchema = z.strictObject({ algorithm: z.literal('grpo'), ...commonShape, credit, std });
/** GRPO: scores against the mean of their group, by its standard deviation. */
export type GrpoConfig = z.infer<typeof grpoSchema>;
/** Estimator of GRPO. */
export const grpo: Estimator<GrpoConfig> = groupRelative((scores, config) => groupAdvantage(scores, config));

export const drGrpoSchema = z.strictObject({ algorithm: z.literal('dr_grpo'), ...commonShape, credit });
/** GRPO without the division by the standard deviation (of Dr. GRPO); meant with `aggregation: { type: 'constant' }`. */
export type DrGrpoConfig = z.infer<typeof drGrpoSchema>;
/** Estimator of Dr. GRPO. */
export const drGrpo: Estimator<DrGrpoConfig> = groupRelative((scores) => groupAdvantage(scores, { std: false }));
