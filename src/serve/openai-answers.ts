/** OpenAI answers: decisions in the shapes of OpenAI's API, as whole bodies and streamed chunks. Pure. */

/** Answer to a request. */
export interface Answered {
  readonly text: string;
  readonly finish: 'stop' | 'length';
  /** Pieces of the answer, token by token. */
  readonly pieces: readonly { readonly text: string; readonly logprob: number }[];
  readonly promptTokens: number;
  /** Tokens of the answer, the end token included. */
  readonly tokens: number;
  readonly tokenIds?: readonly number[];
  readonly longplay?: { readonly version: number; readonly value: number };
}

export function completionBody(id: string, model: string, answers: readonly Answered[], logprobs: boolean) {
  return {
    ...head(id, 'text_completion', model),
    choices: answers.map((answered, index) => ({
      index,
      text: answered.text,
      finish_reason: answered.finish,
      logprobs: logprobs ? completionLogprobs(answered.pieces, 0) : null,
      ...extras(answered),
    })),
    usage: usageOf(answers),
  };
}

export function chatBody(id: string, model: string, answers: readonly Answered[], logprobs: boolean) {
  return {
    ...head(id, 'chat.completion', model),
    choices: answers.map((answered, index) => ({
      index,
      message: { role: 'assistant', content: answered.text, refusal: null },
      finish_reason: answered.finish,
      logprobs: logprobs ? chatLogprobs(answered.pieces) : null,
      ...extras(answered),
    })),
    usage: usageOf(answers),
  };
}

/**
 * Chunks of a completion, one per token, the last one of an answer with its reason; then the usage where it is asked
 * for.
 */
export function completionChunks(
  id: string,
  model: string,
  answers: readonly Answered[],
  logprobs: boolean,
  usage: boolean,
): readonly object[] {
  const top = head(id, 'text_completion', model);
  const chunks: object[] = [];
  for (const [index, { pieces, finish }] of answers.entries()) {
    let offset = 0;
    for (const piece of pieces) {
      const told = logprobs ? completionLogprobs([piece], offset) : null;
      chunks.push({ ...top, choices: [{ index, text: piece.text, finish_reason: null, logprobs: told }] });
      offset += piece.text.length;
    }
    chunks.push({ ...top, choices: [{ index, text: '', finish_reason: finish, logprobs: null }] });
  }
  if (usage) chunks.push({ ...top, choices: [], usage: usageOf(answers) });
  return chunks;
}

/** Chunks of a chat; the first chunk of an answer tells the role. */
export function chatChunks(
  id: string,
  model: string,
  answers: readonly Answered[],
  logprobs: boolean,
  usage: boolean,
): readonly object[] {
  const top = head(id, 'chat.completion.chunk', model);
  const chunks: object[] = [];
  for (const [index, { pieces, finish }] of answers.entries()) {
    const chunk = (delta: object, reason: string | null, told: object | null) =>
      chunks.push({ ...top, choices: [{ index, delta, finish_reason: reason, logprobs: told }] });
    chunk({ role: 'assistant', content: '' }, null, null);
    for (const piece of pieces) chunk({ content: piece.text }, null, logprobs ? chatLogprobs([piece]) : null);
    chunk({}, finish, null);
  }
  if (usage) chunks.push({ ...top, choices: [], usage: usageOf(answers) });
  return chunks;
}

function head(id: string, object: string, model: string) {
  return { id, object, created: 0, model };
}

function extras({ tokenIds, longplay }: Answered) {
  return { ...(tokenIds ? { token_ids: tokenIds } : {}), ...(longplay ? { longplay } : {}) };
}

function usageOf(answers: readonly Answered[]) {
  const prompt = answers[0]?.promptTokens ?? 0;
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
