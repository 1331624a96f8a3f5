/** Codec of a world, as every reader of its episodes has to open it. */
import type { World } from '../../core/world.ts';
import { type AgentCodec, openAgentCodec } from './agent-codec.ts';
import { type ChatCodec, type ChatCodecSpec, openChatCodec } from './chat-codec.ts';
import type { Codec } from './codec.ts';
import { defaultView } from './default-view.ts';
import { ViewCodec } from './view-codec.ts';

/**
 * Opens the codec of a world: a language model's where its reading is given, else the view codec of the world's own
 * view, or the default one.
 * @throws {UserError} BAD_CHECKPOINT for a model folder without a usable tokenizer or template
 */
export function codecOf({ view }: Pick<World, 'view'>, chat?: ChatCodecSpec): Codec {
  return chat ? openModelCodec(chat) : new ViewCodec(view ?? defaultView);
}

/**
 * Opens the codec of a language model: of an agent world, or of any other.
 * @throws {UserError} BAD_CHECKPOINT for a folder without a usable tokenizer or template
 */
export function openModelCodec(chat: ChatCodecSpec): ChatCodec | AgentCodec {
  return chat.agent ? openAgentCodec(chat.folder, chat) : openChatCodec(chat);
}
