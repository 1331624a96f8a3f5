/**
 * Connects before a run starts: finds out whether the configured server is there and has the model, while a person
 * waits for it.
 */
import type { OpenAIConfig, RunConfig } from '../../config/run-config.ts';
import { UserError } from '../../core/errors.ts';
import type { View } from '../../core/view.ts';
import { RemoteError } from '../../http/retry.ts';
import { codecOf } from '../../text/reading/codec-of.ts';
import { OpenAIClient, type ServedModel } from './openai-client.ts';

export interface Connection {
  readonly model: string;
  readonly server: { readonly baseUrl: string; readonly headers: Readonly<Record<string, string>> };
}

const CHECK_MS = 15_000;

/**
 * Connects to the configured server.
 * @param key the API key, where there is one
 * @param view of the world, where prompts are token ids
 * @throws {UserError} REMOTE_FAILED when the server cannot be reached or refuses; BAD_CONFIG when it has no such model,
 *   or one of ours that would refuse what is configured
 */
export async function connect(
  { openai, apiKeyEnv }: Pick<RunConfig['policy'], 'openai' | 'apiKeyEnv'>,
  key: string | undefined,
  view?: View,
): Promise<Connection> {
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  const server = { baseUrl: openai.baseUrl, headers };
  const client = new OpenAIClient(server);
  let models: readonly ServedModel[] | undefined;
  try {
    models = await listModels(client, openai.baseUrl, apiKeyEnv);
  } finally {
    client.close();
  }
  const model = modelOf(openai, models);
  const served = models?.find(({ id }) => id === model);
  if (openai.prompt === 'tokens') checkVocabulary(openai, served, view);
  else if (served?.decoder === 'choice' && openai.guided === 'none') {
    throw new UserError(
      'BAD_CONFIG',
      `the policy behind ${openai.baseUrl} chooses among listed actions: set policy.openai.guided=guided_choice, or let it read token ids (policy.openai.prompt=tokens policy.openai.api=completions)`,
    );
  }
  return { model, server };
}

/**
 * Lists the models of a server, to find out whether it is there.
 * @param keyName variable that holds its key
 * @returns undefined where it keeps no list: it may complete all the same
 * @throws {UserError} REMOTE_FAILED when it cannot be reached or refuses
 */
export async function listModels(
  client: OpenAIClient,
  baseUrl: string,
  keyName: string,
): Promise<readonly ServedModel[] | undefined> {
  try {
    return await client.models(CHECK_MS);
  } catch (thrown) {
    if (!(thrown instanceof RemoteError)) throw thrown;
    const { status, message } = thrown;
    if (status === 401 || status === 403) {
      throw new UserError('REMOTE_FAILED', `${baseUrl} refuses the key: set ${keyName} (${message})`);
    }
    if (status === 404 || status === 405 || status === 501) return undefined;
    throw new UserError('REMOTE_FAILED', `${baseUrl} does not answer: ${message}; is the server running?`);
  }
}

function modelOf({ model, baseUrl }: OpenAIConfig, models: readonly ServedModel[] | undefined): string {
  const names = models?.map(({ id }) => id).join(', ');
  if (model === '') {
    if (models?.length === 1) return models[0]!.id;
    throw new UserError(
      'BAD_CONFIG',
      `policy.openai.model: name the model at ${baseUrl} (it has ${names ?? 'no list'})`,
    );
  }
  // Paid servers list hundreds, and accept names they do not list.
  return model;
}

function checkVocabulary(
  { api, baseUrl }: OpenAIConfig,
  served: ServedModel | undefined,
  view: View | undefined,
): void {
  if (api !== 'completions') throw new UserError('BAD_CONFIG', 'policy.openai.prompt: tokens: needs api: completions');
  const { id, hash } = codecOf(view ? { view } : {});
  if (served?.view === id && served.vocabulary === hash) return;
  const has = served?.view === undefined ? 'no view of ours' : `${served.view} (vocabulary ${served.vocabulary})`;
  throw new UserError(
    'BAD_CONFIG',
    `policy.openai.prompt: tokens: needs a server that reads ${id} (vocabulary ${hash}), as \`longplay serve-policy\` does; the model behind ${baseUrl} has ${has}`,
  );
}
