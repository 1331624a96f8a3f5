/** LangGraph over `@langchain/anthropic`: messages. */
import { ChatAnthropic } from '@langchain/anthropic';
import { scenariosOf } from './langchain.mjs';

export const scenarios = scenariosOf(
  ({ model: { name, apiKey, root }, isImpatient }) =>
    new ChatAnthropic({
      model: name,
      apiKey,
      anthropicApiUrl: root,
      maxTokens: 512,
      ...(isImpatient ? { clientOptions: { timeout: 1500 } } : {}),
    }),
  'any',
);
