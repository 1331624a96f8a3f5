/** Chat prompting: episodes as conversations, for language models. */
import type { OpenAIConfig, RunConfig } from '../../config/run-config.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import { seedFrom } from '../../core/rng.ts';
import type { ConversationOpening, Decision, ModelResponse } from '../../core/trajectory.ts';
import {
  conversation,
  instructions,
  type Message,
  type PromptTurn,
  renderObservation,
} from '../../text/prompts/conversation.ts';
import { actionOfCall, FORMATS, type Parsed, type PromptFormat, readReply } from '../../text/prompts/formats.ts';
import { renderChat } from '../../text/templates/plain-template.ts';
import type { Acted, ActRequest } from '../policy.ts';
import type { Completion } from './openai-client.ts';
import type { Prompt, Prompting } from './prompting.ts';

interface Talk {
  readonly table: string[];
  readonly turns: PromptTurn[];
  /** Message that the model has not answered yet. */
  message: string;
  error: string | undefined;
  /** Prompt and answer of the last turn as token ids, where the server reports them. */
  read: readonly number[];
}

/** Options of conversations with a model behind a server. */
export type ChatPromptingOptions = Omit<RunConfig['policy']['chat'], 'contextTokens'>;

export class ChatPrompting implements Prompting {
  readonly #config: OpenAIConfig;
  readonly #chat: ChatPromptingOptions;
  readonly #model: string;
  readonly #world: WorldPrompt;
  readonly #format: PromptFormat;
  readonly #start: string;
  readonly #opening: ConversationOpening;
  readonly #talks = new Map<number, Talk>();

  constructor(config: OpenAIConfig, chat: ChatPromptingOptions, model: string, world: WorldPrompt) {
    this.#config = config;
    this.#chat = chat;
    this.#model = model;
    this.#world = world;
    this.#format = FORMATS[chat.format === 'world' ? world.format : chat.format];
    this.#start = instructions(world, this.#format, chat.instructions);
    const { system, listActions } = chat;
    this.#opening = { ...(system === undefined ? {} : { system }), instructions: this.#start, listed: listActions };
  }

  ask(request: ActRequest): Prompt {
    const talk = this.#talks.get(request.episode) ?? this.#open(request);
    for (const text of request.newActions) talk.table.push(text);
    const actions = Array.from(request.actions, (index) => talk.table[index]!);
    const { history, guided } = this.#config;
    const { listActions, system } = this.#chat;
    talk.message = renderObservation(request.observation, talk.error, listActions ? actions : undefined);
    const talked = conversation(this.#start, talk.turns, talk.message, history);
    const messages: readonly Message[] =
      system === undefined ? talked : [{ role: 'system', content: system }, ...talked];
    const choices =
      guided === 'none' || actions.length === 0
        ? undefined
        : actions.map((action) => this.#format.print('', action, this.#world));
    return { api: this.#config.api, body: this.#body(request, messages, choices) };
  }

  read(request: ActRequest, completion: Completion): Acted {
    const { episode, turn } = request;
    const talk = this.#talks.get(episode)!;
    const { promptTokens, completionTokens, finish } = completion;
    const parsed = readAnswer(this.#format, this.#world, completion);
    const cut = finish === 'length' ? ' The answer was cut off: be shorter.' : '';
    const formatError = 'error' in parsed ? parsed.error + cut : undefined;
    talk.error = formatError;
    const action = 'action' in parsed ? parsed.action : '';
    // The model sees a call of a tool again as the answer that it was asked for, and so it is recorded.
    const recorded = writeCalls(completion, action, this.#format, this.#world);
    const answer = stripReasoning(recorded);
    talk.turns.push({ message: talk.message, answer });
    const response: ModelResponse = {
      text: recorded,
      promptTokens,
      completionTokens,
      ...(formatError === undefined ? {} : { formatError }),
      ...(turn === 0 ? { opening: this.#opening } : {}),
    };
    const decision = decisionOf(talk, completion);
    return { episode, turn, action, response, ...(decision ? { decision } : {}) };
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#talks.delete(episode);
  }

  forget(): void {
    this.#talks.clear();
  }

  /** Opens an episode. One that comes with a history has lost the model's words; its actions take their place. */
  #open(request: ActRequest): Talk {
    const turns = (request.history ?? []).map(({ observation, action }) => ({
      message: observation,
      answer: this.#format.print('', action, this.#world),
    }));
    const talk: Talk = { table: [], turns, message: '', error: undefined, read: [] };
    this.#talks.set(request.episode, talk);
    return talk;
  }

  #body(
    { samplingSeed, turn, temperature }: ActRequest,
    messages: readonly Message[],
    choices: readonly string[] | undefined,
  ): Record<string, unknown> {
    const { api, maxTokens, logprobs, tokenIds, guided, template, body, omit } = this.#config;
    const rendered = api === 'completions' ? renderChat(template, messages) : undefined;
    const request = {
      model: this.#model,
      ...(rendered ? { prompt: rendered.prompt, stop: rendered.stop } : { messages }),
      temperature,
      top_p: 1, // sent, since a server's own default may cut the distribution; `body` overrides it
      max_tokens: maxTokens,
      seed: seedFrom(samplingSeed, turn),
      ...(logprobs ? { logprobs: api === 'chat' ? true : 1 } : {}),
      ...(tokenIds ? { return_token_ids: true } : {}),
      ...(choices
        ? guided === 'guided_choice'
          ? { guided_choice: choices }
          : { structured_outputs: { choice: choices } }
        : {}),
      ...body,
    };
    return Object.fromEntries(Object.entries(request).filter(([key]) => !omit.includes(key)));
  }
}

/**
 * Reads the action of an answer: of the one tool that it called, else of its text, else of its reasoning. The last is
 * for servers that count the whole answer as reasoning, and for forms that mark an action.
 */
function readAnswer(format: PromptFormat, world: WorldPrompt, completion: Completion): Parsed {
  const { text, reasoning, calls, finish } = completion;
  const called = calls?.length === 1 ? actionOfCall(world, calls[0]!.name, calls[0]!.args) : undefined;
  if (called && 'action' in called) return called;
  const parsed = format.parse(text, world);
  // Words beside a call are no action, though the plain form would take them for one.
  if ('action' in parsed && !(calls && format.id === 'action')) return parsed;
  if (calls) return called ?? { error: `Call one function at a time, not ${calls.length}.` };
  const answer = reasoning === undefined ? text : stripReasoning(text);
  if (reasoning === undefined || answer !== '' || format.id === 'action' || format.id === 'think') return parsed;
  if (finish === 'length') return parsed; // a thought that was cut off names no action
  const thought = format.parse(reasoning, world);
  return 'action' in thought ? thought : parsed;
}

/**
 * The whole answer as it is recorded: a text as it was written. A call of a tool becomes the answer of the format that means the
 * same action, the words beside it its thought; so what is exported reads back to the same actions. Calls that mean none are
 * recorded as JSON.
 */
function writeCalls({ text, calls }: Completion, action: string, format: PromptFormat, world: WorldPrompt): string {
  if (!calls) return text;
  const written = stripReasoning(text);
  const reasoning = text.slice(0, text.length - written.length);
  if (action !== '') {
    const plainly = reasoning + format.print('', action, world);
    const ways = [text, reasoning + format.print(written, action, world)]; // words beside a call may look like another answer
    const readsBack = (way: string) => {
      const parsed = format.parse(way, world);
      // By this format, and by a reader that does not know it.
      return 'action' in parsed && parsed.action === action && readReply(way, world).action === action;
    };
    return ways.find(readsBack) ?? plainly;
  }
  const shown = calls.map(({ name, args }) => JSON.stringify({ function_name: name, arguments: args }));
  return [text, ...shown].filter((part) => part !== '').join('\n');
}

/**
 * Decision to train on, only where the server reports ids and log-probabilities of the same tokens. The context is what
 * the model had not read before; the whole prompt where it was rendered anew.
 */
function decisionOf(talk: Talk, { tokens, promptTokenIds, logprobs, longplay }: Completion): Decision | undefined {
  if (!tokens || !promptTokenIds || !logprobs || tokens.length !== logprobs.length) return undefined;
  const { read } = talk;
  const continues = read.length <= promptTokenIds.length && read.every((id, i) => id === promptTokenIds[i]);
  talk.read = [...promptTokenIds, ...tokens];
  return {
    kind: 'tokens',
    version: longplay?.version ?? 0,
    context: continues ? promptTokenIds.slice(read.length) : promptTokenIds,
    value: longplay?.value ?? 0,
    tokens,
    logprobs,
    masked: false,
  };
}

/** Removes reasoning, which a model is not shown again: servers leave it out, and it would fill the context. */
function stripReasoning(text: string): string {
  const end = text.startsWith('<think>') ? text.indexOf('</think>') : -1;
  return end < 0 ? text : text.slice(end + '</think>'.length).trimStart();
}
