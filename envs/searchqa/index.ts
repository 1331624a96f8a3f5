/** SearchQA, played through an AgentGym server. */
export { agentgym } from './agentgym.ts';
export { prompt } from './prompt.ts';

export const description = 'Questions that are answered with a search engine.';
