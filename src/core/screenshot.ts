/** Screenshots that an env keeps of its states, beside the trace. */
import type { EnvOptions } from './env.ts';
import type { Task } from './task.ts';

/**
 * Path of the JPEG file that was kept with an observation, there or not; undefined where the options ask for none.
 * @param options the world's, as the run has them
 */
export type Screenshot = (task: Task, observation: string, options: EnvOptions) => string | undefined;
