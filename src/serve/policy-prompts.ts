/**
 * Prompts of the policy server: a client's request, as a transcript that the policy reads.
 *
 * Token ids: a prompt of the world's view, then an `<act>` (id 1) for each turn with what came of it, ending in the
 * `<act>` that decides. What the view knows beside the tokens comes in the extension
 * `longplay: { prompt_length, focus: [ids], mentions: [[positions] per choice], candidates: [text read per choice] }`;
 * without it the prompt ends at the first `<act>`, nothing is in focus, no action is mentioned, and each is read as it is.
 *
 * Conversations: a language model reads them as its template renders them, with special tokens in their texts spelt out.
 * For a policy of our own, instructions and their acknowledgement are left out; the world's first text opens the
 * episode, every later pair is a turn. Answers, and the choices of `guided_choice`, may be in any of the prompt formats.
 */

import { UserError } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import type { Message } from '../text/prompts/conversation.ts';
import { FORMATS } from '../text/prompts/formats.ts';
import type { Codec } from '../text/reading/codec.ts';
import { type RenderedPrompt, renderPrompt } from '../text/reading/received-transcript.ts';
import { RefusedRequest } from './openai-requests.ts';

/** Extension of a token prompt: what the codec knows of it beside the ids. */
export interface TokenExtras {
  readonly prompt_length?: number | undefined;
  readonly focus?: readonly number[] | undefined;
  readonly mentions?: readonly (readonly number[])[] | undefined;
  readonly candidates?: readonly string[] | undefined;
}

/**
 * Reads a prompt of token ids.
 * @param ids token ids
 * @param choices the actions, in the order of `extras.mentions`
 * @throws {RefusedRequest}
 */
export function readTokens(
  ids: readonly number[],
  extras: TokenExtras,
  choices: readonly string[],
  codec: Codec,
): RenderedPrompt {
  if (ids.length === 0) throw new RefusedRequest('prompt', 'at least one token id');
  const wrong = [...ids, ...(extras.focus ?? [])].find((id) => id < 0 || id >= codec.vocabSize);
  if (wrong !== undefined) throw new RefusedRequest('prompt', `token id ${wrong} is not in [0, ${codec.vocabSize})`);
  const given = extras.prompt_length;
  if (given !== undefined && (given < 1 || given > ids.length)) {
    throw new RefusedRequest('longplay.prompt_length', `expected 1 … ${ids.length}`);
  }
  const { prompt, tokens } = codec.divide(ids, given);
  const { mentions, candidates } = extras;
  if (mentions && mentions.length !== choices.length) {
    throw new RefusedRequest(
      'longplay.mentions',
      `expected ${choices.length} lists, one per choice, got ${mentions.length}`,
    );
  }
  if (candidates && candidates.length !== choices.length) {
    throw new RefusedRequest(
      'longplay.candidates',
      `expected ${choices.length} texts, one per choice, got ${candidates.length}`,
    );
  }
  if (mentions?.some((places) => places.some((place) => place < 0 || place >= prompt.length))) {
    throw new RefusedRequest('longplay.mentions', 'a position outside the prompt');
  }
  return {
    prompt: Int32Array.from(prompt),
    after: Int32Array.from(tokens),
    focus: extras.focus ?? [],
    mentions: new Map(choices.map((choice, i) => [choice, mentions?.[i] ?? []])),
    ...(candidates ? { candidates: new Map(choices.map((choice, i) => [choice, candidates[i]!])) } : {}),
  };
}

/** Reads plain text, as it stands. @throws {RefusedRequest} */
export function readText(text: string, codec: Codec): RenderedPrompt {
  try {
    return renderPrompt(codec.openText(text), []);
  } catch (thrown) {
    throw unreadable('prompt', thrown);
  }
}

/**
 * Reads a conversation: as the model's template renders it where the codec has one, else as an episode of the world.
 * @param actions the actions that will be chosen among @throws {RefusedRequest} for a conversation that is no episode
 */
export function readConversation(
  messages: readonly Message[],
  actions: readonly string[],
  codec: Codec,
  world: WorldPrompt,
): RenderedPrompt {
  if (codec.openMessages) {
    if (messages.at(-1)?.role !== 'user') throw new RefusedRequest('messages', 'expected the last one from the user');
    try {
      return renderPrompt(codec.openMessages(messages), []);
    } catch (thrown) {
      throw unreadable('messages', thrown);
    }
  }
  const { firstObservation, turns } = episodeOf(messages, world);
  // A conversation does not hold the actions listed on earlier turns, only those that can be chosen now.
  const nothing = { actions: new Int32Array(0), newActions: [] };
  const listed = { actions: Int32Array.from(actions, (_, i) => i), newActions: actions };
  try {
    const transcript = codec.open({ observation: firstObservation, ...(turns.length === 0 ? listed : nothing) });
    turns.forEach(({ action, observation }, t) => {
      transcript.observe(action, { observation, ...(t === turns.length - 1 ? listed : nothing) });
    });
    return renderPrompt(transcript, actions);
  } catch (thrown) {
    throw unreadable('messages', thrown, 'the policy cannot read this world from them: ');
  }
}

/** A client's mistake in what a codec or a template refused; anything else stays what it is. */
function unreadable(field: string, thrown: unknown, why = ''): unknown {
  const mistake = thrown instanceof RangeError || thrown instanceof UserError;
  return mistake ? new RefusedRequest(field, `${why}${thrown.message}`) : thrown;
}

const LIST = '\n\nAvailable actions:\n';

function episodeOf(messages: readonly Message[], world: WorldPrompt) {
  const dialogue = messages.filter(({ role }) => role !== 'system');
  // "OK. I will follow the instructions": what comes before it is no part of the episode.
  const begin = dialogue[1]?.role === 'assistant' && /^OK\b/.test(dialogue[1].content) ? 2 : 0;
  const own = dialogue.slice(begin);
  if (own.length % 2 === 0 || own.some(({ role }, i) => role !== (i % 2 === 0 ? 'user' : 'assistant'))) {
    throw new RefusedRequest('messages', 'expected user and assistant in turn, the last one from the user');
  }
  const texts = own.map(({ content }) => content);
  const observation = (text: string) => {
    const list = text.lastIndexOf(LIST);
    return list < 0 ? text : text.slice(0, list);
  };
  const turns: { readonly action: string; readonly observation: string }[] = [];
  for (let i = 1; i < texts.length; i += 2) {
    turns.push({ action: actionIn(texts[i]!, world), observation: observation(texts[i + 1]!) });
  }
  return { firstObservation: observation(texts[0]!), turns };
}

/** Action in an answer of any format; the text itself where it has none. */
export function actionIn(text: string, world: WorldPrompt): string {
  for (const format of Object.values(FORMATS)) {
    const parsed = format.parse(text, world);
    if ('action' in parsed) return parsed.action;
  }
  return text.trim();
}
