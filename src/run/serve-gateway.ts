/** Gateway in front of a hosted chat server: clients of three dialects call it, and it can keep what they say. */
import { openGateway } from '../gateway/server.ts';
import { readApiKey } from '../http/api-key.ts';
import { listModels } from '../policy/remote/connect.ts';
import { OpenAIClient } from '../policy/remote/openai-client.ts';
import { CallRecord } from '../serve/call-record.ts';
import { forwardCalls } from '../serve/forward-calls.ts';

/** Options of a gateway. */
export interface ForwardingSettings {
  /** Base URL of the chat server, e.g. `https://api.openai.com/v1`. */
  readonly upstream: string;
  /** Name of the model in every request; by default the server's only one, else the one that a client asks for. */
  readonly model?: string | undefined;
  /** File that keeps the conversations. */
  readonly record?: string | undefined;
  /** Port on the loopback; 0 (the default) takes a free one. */
  readonly port?: number | undefined;
  /** Environment variable that holds the server's key. */
  readonly tokenEnv: string;
  /** Called with lines for the person who waits. */
  readonly onNotice?: ((line: string) => void) | undefined;
}

/** Gateway that has started. */
export interface StartedGateway {
  /** Base URL for OpenAI-like clients, which ends in `/v1`. */
  readonly baseURL: string;
  /** The same without `/v1`, for Anthropic's clients. */
  readonly root: string;
  readonly key: string;
  /** Name of the model in requests to the server; absent: as clients ask. */
  readonly model: string | undefined;
  /** Resolves when it has ended: rejects where it failed. */
  readonly ended: Promise<void>;
  /** Ends it. @returns conversations in the record, where there is one */
  close(): Promise<{ readonly conversations: number; readonly bytes: number } | undefined>;
}

/**
 * Starts a gateway. The server behind it is asked for its models first.
 * @throws {UserError} REMOTE_FAILED where the server does not answer or refuses the key; BAD_ARGUMENT for a port or a file
 */
export async function startGateway(settings: ForwardingSettings): Promise<StartedGateway> {
  const { upstream, record: path, port = 0, tokenEnv, onNotice } = settings;
  const key = readApiKey(tokenEnv);
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const client = new OpenAIClient({ baseUrl: upstream, headers });
  try {
    const models = await listModels(client, upstream, tokenEnv);
    const model = settings.model ?? (models?.length === 1 ? models[0]!.id : undefined);
    const gateway = await openGateway({ port, model });
    try {
      const record = path === undefined ? undefined : CallRecord.open(path, { onNotice });
      const episode = gateway.open();
      const ending = new AbortController();
      const forwarded = forwardCalls({ episode, client, model, keyName: tokenEnv, record, onNotice }, ending.signal);
      forwarded.catch(() => {}); // reported where it is awaited
      const { baseURL, root, key } = episode;
      return {
        ...{ baseURL, root, key, model, ended: forwarded },
        async close() {
          ending.abort();
          await forwarded.catch(() => {});
          await gateway.close();
          return record?.close();
        },
      };
    } catch (thrown) {
      await gateway.close();
      throw thrown;
    }
  } catch (thrown) {
    client.close();
    throw thrown;
  }
}
