/** LangGraph over `@langchain/openai`: chat completions, and responses by the names that end in `-responses`. */
import { ChatOpenAI } from '@langchain/openai';
import { scenariosOf } from './langchain.mjs';

const modelOf =
  (useResponsesApi) =>
  ({ model: { name, apiKey, baseURL }, isImpatient }) =>
    new ChatOpenAI({
      model: name,
      apiKey,
      configuration: { baseURL },
      useResponsesApi,
      ...(isImpatient ? { timeout: 1500 } : {}),
    });

const responses = scenariosOf(modelOf(true), 'required');

export const scenarios = {
  ...scenariosOf(modelOf(false), 'required'),
  ...Object.fromEntries(Object.entries(responses).map(([name, play]) => [`${name}-responses`, play])),
};
