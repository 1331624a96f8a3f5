/** Codec of a world, as every reader of its episodes has to open it. */
import type { View } from '../../core/view.ts';
import { type AgentCodec, openAgentCodec } from './agent-codec.ts';
import { type ChatCodec, type ChatCodecSpec, openChatCodec } from './chat-codec.ts';
import type { Codec } from './codec.ts';
import { defaultView } from './default-view.ts';
import { ViewCodec } from './view-codec.ts';

/** Reading of a run: what its episodes are read by. */
export interface Reading {
  /** View of the world; absent: the default one. */
  readonly view?: View | undefined;
  /** Views of several worlds by name, in the place of one; absent ones are the default view. */
  readonly views?: ReadonlyMap<string, View | undefined> | undefined;
}

/**
 * Opens the codec of a world: a language model's where its reading is given, else the view codec of the world's own
 * view, or the default one. Of several worlds it is the view codec of all their views.
 * @throws {UserError} BAD_CHECKPOINT for a model folder without a usable tokenizer or template
 */
export function codecOf({ view, views }: Reading, chat?: ChatCodecSpec): Codec {
  if (chat) return openModelCodec(chat);
  if (views) return new ViewCodec(new Map([...views].map(([name, own]) => [name, own ?? defaultView])));
  return new ViewCodec(view ?? defaultView);
}

/**
 * Opens the codec of a language model: of an agent world, or of any other.
 * @throws {UserError} BAD_CHECKPOINT for a folder without a usable tokenizer or template
 */
export function openModelCodec(chat: ChatCodecSpec): ChatCodec | AgentCodec {
  return chat.agent ? openAgentCodec(chat.folder, chat) : openChatCodec(chat);
}
