/** BabyAI: instructions in a grid of rooms, as an environment of this framework. */
export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { createEnv } from './env.ts';
export { VectorBabyAI, type VectorOptions } from './gym.ts';
export { createOracle } from './oracle.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export { heldOutTasks, indexOf, PAPER_LEVELS, SUBTASKS } from './tasks.ts';
export { view } from './view.ts';
