/**
 * Agent prompting: the calls of an agent passed on to a chat server as they are, with their tools, choices and formats. The
 * server's reply is the action (agent-call.ts), so an agent can be evaluated on any hosted model.
 */
import type { OpenAIConfig } from '../../config/run-config.ts';
import {
  type AgentCall,
  type AgentReply,
  createReplyMessage,
  printAgentReply,
  readAgentCall,
  readAgentReply,
} from '../../core/agent-call.ts';
import type { ConversationMessage, Tool } from '../../core/model-call.ts';
import { seedFrom } from '../../core/rng.ts';
import type { Acted, ActRequest } from '../policy.ts';
import { printChatBody, readChatReply } from './chat-body.ts';
import type { Completion } from './openai-client.ts';
import type { Prompt, Prompting } from './prompting.ts';

/** Conversation up to a call, and the reply to it once there is one. */
interface Context {
  readonly messages: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  reply: AgentReply | undefined;
}

/** Episode: its conversations by the number of their call. */
interface Episode {
  readonly contexts: Map<number, Context>;
  /** Number of the call that waits. */
  waiting: number;
}

/** Passes agents' calls on; remembers the conversations of running episodes. */
export class AgentPrompting implements Prompting {
  readonly #config: OpenAIConfig;
  readonly #model: string;
  readonly #episodes = new Map<number, Episode>();

  constructor(config: OpenAIConfig, model: string) {
    this.#config = config;
    this.#model = model;
  }

  ask(request: ActRequest): Prompt {
    let episode = this.#episodes.get(request.episode);
    if (!episode) {
      this.#episodes.set(request.episode, (episode = { contexts: new Map(), waiting: 0 }));
      for (const { observation, action } of request.history ?? []) {
        open(episode, readAgentCall(observation)).reply = readAgentReply(action);
      }
    }
    const call = readAgentCall(request.observation);
    const { messages, tools } = open(episode, call);
    return { api: 'chat', body: this.#body(request, call, messages, tools) };
  }

  read({ episode: number, turn }: ActRequest, completion: Completion): Acted {
    const episode = this.#episodes.get(number)!;
    const { text, promptTokens, completionTokens } = completion;
    const reply = readChatReply(completion);
    episode.contexts.get(episode.waiting)!.reply = reply;
    return {
      episode: number,
      turn,
      action: printAgentReply(reply),
      response: { text, promptTokens, completionTokens },
    };
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#episodes.delete(episode);
  }

  forget(): void {
    this.#episodes.clear();
  }

  #body(
    { samplingSeed, turn, temperature }: ActRequest,
    call: AgentCall,
    messages: readonly ConversationMessage[],
    tools: readonly Tool[],
  ): Record<string, unknown> {
    const { maxTokens, body, omit } = this.#config;
    const { toolChoice = 'auto', parallelCalls = true, format, stop = [], sampling } = call;
    const asked = {
      messages,
      tools,
      toolChoice,
      parallelCalls,
      format,
      maxTokens: Math.min(maxTokens, call.maxTokens ?? maxTokens),
      stop,
      // The agent's own settings hold where it has some.
      sampling: { temperature, seed: seedFrom(samplingSeed, turn), ...sampling },
    };
    const request = { ...printChatBody(asked, this.#model), ...body };
    return Object.fromEntries(Object.entries(request).filter(([key]) => !omit.includes(key)));
  }
}

/** Opens the conversation of a call: its own messages, behind those of its parent and the parent's reply. */
function open(episode: Episode, { call, parent, messages, tools }: AgentCall): Context {
  const before = parent === null ? undefined : episode.contexts.get(parent);
  // What was thought before a reply is not given back.
  const reply = before?.reply ? { ...before.reply, reasoning: undefined } : { content: '', calls: [] };
  const context: Context = {
    messages: before ? [...before.messages, createReplyMessage(reply, parent!, messages), ...messages] : messages,
    tools: tools ?? before?.tools ?? [],
    reply: undefined,
  };
  episode.contexts.set(call, context);
  episode.waiting = call;
  return context;
}
