/** AI SDK over `@ai-sdk/openai`: responses, and chat completions by the names that end in `-chat`. */
import { createOpenAI } from '@ai-sdk/openai';
import { scenariosOf } from './ai.mjs';

const providerOf = ({ model }) => createOpenAI({ baseURL: model.baseURL, apiKey: model.apiKey });

const chat = scenariosOf((context) => providerOf(context).chat(context.model.name));

export const scenarios = {
  ...scenariosOf((context) => providerOf(context)(context.model.name)),
  ...Object.fromEntries(Object.entries(chat).map(([name, play]) => [`${name}-chat`, play])),
};
