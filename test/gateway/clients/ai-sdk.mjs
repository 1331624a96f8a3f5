/** AI SDK over `@ai-sdk/openai-compatible`: chat completions. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { scenariosOf } from './ai.mjs';

export const scenarios = scenariosOf(({ model }) =>
  createOpenAICompatible({
    name: 'longplay',
    baseURL: model.baseURL,
    apiKey: model.apiKey,
    supportsStructuredOutputs: true,
  })(model.name),
);
