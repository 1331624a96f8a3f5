/** WebArena, played through an AgentGym server. */
export { agentgym } from './agentgym.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';

export const description = 'Tasks on web sites, seen as accessibility trees.';
