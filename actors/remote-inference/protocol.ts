/** Init of the remote inference actor, which takes the commands of the inference actor (../inference/protocol.ts). */
import type { OpenAIConfig } from '../../src/config/run-config.ts';
import type { WorldPrompt } from '../../src/core/prompt.ts';
import type { AttemptOptions } from '../../src/http/attempts.ts';
import type { ChatPromptingOptions } from '../../src/policy/remote/chat-prompting.ts';

export interface RemoteInferenceInit {
  readonly openai: OpenAIConfig;
  readonly chat: ChatPromptingOptions;
  /** Limits of a turn's request; absent ones have their defaults. */
  readonly limits?: Partial<AttemptOptions> | undefined;
  readonly server: { readonly baseUrl: string; readonly headers: Readonly<Record<string, string>> };
  /** Model, as the server calls it. */
  readonly model: string;
  /** Instructions of the world; of a world of tools the model's calls are passed on. */
  readonly prompt: WorldPrompt;
  /** URL of the env's module; its view makes token prompts. */
  readonly envModule: string;
  /** Path of the actor that gets `noticed`. */
  readonly noticePath: string;
  /** Path of the actor that gets `acted`. */
  readonly replyPath: string;
}
