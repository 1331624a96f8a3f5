/** SciWorld, played through an AgentGym server. */
export { agentgym } from './agentgym.ts';
export { prompt } from './prompt.ts';

export const description = 'A house with laboratory equipment in which science tasks are carried out step by step.';
