/** Instructions for language models that play SearchQA. Wording is ours; actions and format of an answer are AgentGym's. */
import type { WorldPrompt } from '../../src/core/prompt.ts';

export const prompt: WorldPrompt = {
  role: 'You answer a question. Reason first, search for what you do not know as often as needed, and answer when you are sure.',
  short:
    'Answer the question.\nActions: <search>words</search> looks passages up, <answer>a few words</answer> ends with the answer.',
  forms: [
    {
      name: 'search',
      template: '<search>{query}</search>',
      meaning: 'looks passages up; they come back between <information> tags',
    },
    { name: 'answer', template: '<answer>{answer}</answer>', meaning: 'gives the final answer, in a few words' },
  ],
  hints: [],
  format: 'think',
};
