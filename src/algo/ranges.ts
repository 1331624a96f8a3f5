/** Ranges of an estimator's parameters, as its configuration is checked by. */
import { z } from 'zod';

/** Largest counter: updates, steps and tokens are compared and summed, never allocated for. */
export const MAX_COUNT = 2 ** 40;

/** Count of updates, steps or tokens in all: 1 … 2^40. */
export const count = z.int().min(1).max(MAX_COUNT);

/** Share in [0, 1]. */
export const share = z.number().min(0).max(1);
