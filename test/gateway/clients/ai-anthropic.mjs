/** AI SDK over `@ai-sdk/anthropic`: messages. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { scenariosOf } from './ai.mjs';

export const scenarios = scenariosOf(({ model }) =>
  createAnthropic({ baseURL: model.baseURL, apiKey: model.apiKey })(model.name),
);
