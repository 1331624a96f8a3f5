/** Codec of a world, as every reader of its episodes has to open it. */
import type { World } from '../../core/world.ts';
import { type ChatCodecSpec, openChatCodec } from './chat-codec.ts';
import type { Codec } from './codec.ts';
import { defaultView } from './default-view.ts';
import { ViewCodec } from './view-codec.ts';

/**
 * Opens the codec of a world: a language model's where its reading is given, else the view codec of the world's own
 * view, or the default one.
 * @throws {UserError} BAD_CHECKPOINT for a model folder without a usable tokenizer or template
 */
export function codecOf({ view }: Pick<World, 'view'>, chat?: ChatCodecSpec): Codec {
  return chat ? openChatCodec(chat) : new ViewCodec(view ?? defaultView);
}
