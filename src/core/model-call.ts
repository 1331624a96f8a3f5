/**
 * Model calls: what a program asks of a language model, and what the model replies, in one form for every API dialect,
 * template and world. A world with tools is played by calls of these tools; an agent's request is a `ModelCall`.
 */

/** JSON Schema of a tool's parameters or of a structured answer, as the program gave it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Tool that the model may call. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of an object; `{ type: 'object', properties: {} }` where the tool takes nothing. */
  readonly parameters: JsonSchema;
  /** True where every call of it has to fit its schema: a language model is held to it as it writes, where that can be. */
  readonly strict?: true | undefined;
}

/** Call of a tool. */
export interface ToolCall {
  /** Id, unique in the episode, e.g. `call_3_0`; empty until something mints it. */
  readonly id: string;
  readonly name: string;
  /** Arguments as JSON text of an object, as they were written. Compare them as values, never as texts. */
  readonly arguments: string;
}

/**
 * Message of a conversation. `developer` is `system`; parts of text are joined; the results of parallel calls are
 * messages of their own, in the order of the calls.
 */
export type ConversationMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | AssistantMessage
  | { readonly role: 'tool'; readonly callId: string; readonly content: string; readonly isError?: true };

/** Turn of the model: its text, its thinking, its calls. */
export interface AssistantMessage {
  readonly role: 'assistant';
  /** Text; empty where there is none. */
  readonly content: string;
  /** Thinking, where the program gives it back or the model wrote some. */
  readonly reasoning?: string | undefined;
  readonly calls?: readonly ToolCall[] | undefined;
}

/** Constraint on the use of tools: free, none, at least one call, or a call of the one that is named. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** Form that a text answer must have: any JSON object, or JSON of a schema. */
export type AnswerFormat =
  | { readonly type: 'json' }
  | { readonly type: 'json-schema'; readonly name: string; readonly schema: JsonSchema };

/** Settings that reshape the distribution of a language model's next token. An absent one changes nothing. */
export interface TokenSampling {
  /** Draws among as many of the likeliest tokens, ≥ 1. */
  readonly topK?: number | undefined;
  /** Draws among the likeliest tokens that hold this share of the probability together, in [0, 1]. */
  readonly topP?: number | undefined;
  /** Draws among tokens that have at least this share of the likeliest one's probability, in [0, 1]. */
  readonly minP?: number | undefined;
  /** Divides positive scores of tokens in the prompt or the answer, and multiplies negative ones; > 0. */
  readonly repetitionPenalty?: number | undefined;
  /** Taken off the score of each token that is in the answer, in [−2, 2]. */
  readonly presencePenalty?: number | undefined;
  /** Taken off a token's score as often as it is in the answer, in [−2, 2]. */
  readonly frequencyPenalty?: number | undefined;
}

/** Sampling settings that the program asked for. The trainer's values hold in training; these hold in evaluation. */
export interface AskedSampling extends TokenSampling {
  readonly temperature?: number;
  readonly seed?: number;
}

/** Request to a model. */
export interface ModelCall {
  readonly messages: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** True where one reply may hold several calls. */
  readonly parallelCalls: boolean;
  readonly format?: AnswerFormat | undefined;
  /** Most tokens of the reply, ≥ 1; absent: what the context has room for. */
  readonly maxTokens?: number | undefined;
  /** Texts that end the reply; they are not part of it. */
  readonly stop: readonly string[];
  readonly sampling: AskedSampling;
}

/** Reason why a reply ended. */
export type ReplyFinish = 'stop' | 'calls' | 'length' | 'filter';

/** Reply of a model. */
export interface ModelReply {
  /** Text; empty where there is none. */
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: readonly ToolCall[];
  readonly finish: ReplyFinish;
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number };
}
