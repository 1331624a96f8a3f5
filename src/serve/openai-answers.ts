/** OpenAI answers: decisions in the shapes of OpenAI's API, as whole bodies and streamed chunks. Pure. */

/** Answer to a request. */
export interface Answered {
  readonly text: string;
  readonly finish: 'stop' | 'length';
  /** Pieces of the answer, token by token. */
  readonly pieces: readonly { readonly text: string; readonly logprob: number }[];
  /** Tokens of the prompt, counted in the first answer to it; 0 in the others. */
  readonly promptTokens: number;
  /** Tokens of the answer, the end token included. */
  readonly tokens: number;
  readonly tokenIds?: readonly number[];
  /** Prompt that a completion repeats before its answer. */
  readonly echo?: string;
  readonly longplay?: { readonly version: number; readonly value: number };
}

/** Head of an answer. */
export interface AnswerHead {
  readonly id: string;
  readonly model: string;
  /** Unix time in whole seconds. */
  readonly created: number;
}

export function completionBody(head: AnswerHead, answers: readonly Answered[], logprobs: boolean) {
  return {
    ...makeHead(head, 'text_completion'),
    choices: answers.map((answered, index) => ({
      index,
      text: (answered.echo ?? '') + answered.text,
      finish_reason: answered.finish,
      logprobs: logprobs ? completionLogprobs(answered.pieces, 0) : null,
      ...extraFields(answered),
    })),
    usage: usageOf(answers),
  };
}

export function chatBody(head: AnswerHead, answers: readonly Answered[], logprobs: boolean) {
  return {
    ...makeHead(head, 'chat.completion'),
    choices: answers.map((answered, index) => ({
      index,
      message: { role: 'assistant', content: answered.text, refusal: null },
      finish_reason: answered.finish,
      logprobs: logprobs ? chatLogprobs(answered.pieces) : null,
      ...extraFields(answered),
    })),
    usage: usageOf(answers),
  };
}

/**
 * Chunks of a completion: the repeated prompt, one per token, the last one of an answer with its reason; then the usage
 * where it is asked for.
 */
export function completionChunks(
  head: AnswerHead,
  answers: readonly Answered[],
  logprobs: boolean,
  usage: boolean,
): readonly object[] {
  const top = makeHead(head, 'text_completion');
  const chunks: object[] = [];
  for (const [index, { pieces, finish, echo }] of answers.entries()) {
    let offset = 0;
    if (echo) chunks.push({ ...top, choices: [{ index, text: echo, finish_reason: null, logprobs: null }] });
    for (const piece of pieces) {
      const own = logprobs ? completionLogprobs([piece], offset) : null;
      chunks.push({ ...top, choices: [{ index, text: piece.text, finish_reason: null, logprobs: own }] });
      offset += piece.text.length;
    }
    chunks.push({ ...top, choices: [{ index, text: '', finish_reason: finish, logprobs: null }] });
  }
  if (usage) chunks.push({ ...top, choices: [], usage: usageOf(answers) });
  return chunks;
}

/** Chunks of a chat; the first chunk of an answer names the role. */
export function chatChunks(
  head: AnswerHead,
  answers: readonly Answered[],
  logprobs: boolean,
  usage: boolean,
): readonly object[] {
  const top = makeHead(head, 'chat.completion.chunk');
  const chunks: object[] = [];
  for (const [index, { pieces, finish }] of answers.entries()) {
    const chunk = (delta: object, reason: string | null, logprobs: object | null) =>
      chunks.push({ ...top, choices: [{ index, delta, finish_reason: reason, logprobs }] });
    chunk({ role: 'assistant', content: '' }, null, null);
    for (const piece of pieces) chunk({ content: piece.text }, null, logprobs ? chatLogprobs([piece]) : null);
    chunk({}, finish, null);
  }
  if (usage) chunks.push({ ...top, choices: [], usage: usageOf(answers) });
  return chunks;
}

function makeHead({ id, model, created }: AnswerHead, object: string) {
  return { id, object, created, model };
}

function extraFields({ tokenIds, longplay }: Answered) {
  return { ...(tokenIds ? { token_ids: tokenIds } : {}), ...(longplay ? { longplay } : {}) };
}

function usageOf(answers: readonly Answered[]) {
  const prompt = answers.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  const completion = answers.reduce((sum, { tokens }) => sum + tokens, 0);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function completionLogprobs(pieces: Answered['pieces'], from: number) {
  let offset = from;
  return {
    tokens: pieces.map(({ text }) => text),
    token_logprobs: pieces.map(({ logprob }) => logprob),
    top_logprobs: null,
    text_offset: pieces.map(({ text }) => (offset += text.length) - text.length),
  };
}

function chatLogprobs(pieces: Answered['pieces']) {
  return {
    content: pieces.map(({ text, logprob }) => ({
      token: text,
      logprob,
      bytes: [...Buffer.from(text)],
      top_logprobs: [],
    })),
    refusal: null,
  };
}
