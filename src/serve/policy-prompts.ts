/**
 * From what a client sends to what the small policy reads.
 *
 * Token ids: a prompt of the world's view, then an `<act>` (id 1) for each turn with what came of it, ending in the
 * `<act>` that decides. What the view knows beside the tokens comes in the extension
 * `longplay: { prompt_length, focus: [ids], mentions: [[positions] per choice] }`; without it the prompt ends at the
 * first `<act>`, nothing is in focus, and no action is mentioned.
 *
 * Conversations: instructions and their acknowledgement are left out; the first thing the world said opens the episode,
 * every later pair is a turn. Answers, and the choices of `guided_choice`, may be in any of the prompt formats.
 */

import type { WorldPrompt } from '../core/prompt.ts';
import type { SeenTurn, View } from '../core/view.ts';
import { readRendered, readTurn } from '../policy/reading.ts';
import { ACT, type Tokenizer } from '../policy/tokenizer.ts';
import type { Message } from '../prompts/conversation.ts';
import { FORMATS } from '../prompts/formats.ts';

/** What a prompt comes to; `GivenPrompt` without seed and length. */
export interface ReadPrompt {
  readonly prompt: Int32Array;
  readonly after: Int32Array;
  readonly focus: readonly number[];
  readonly mentions: ReadonlyMap<string, readonly number[]>;
}

export interface TokenExtras {
  readonly prompt_length?: number | undefined;
  readonly focus?: readonly number[] | undefined;
  readonly mentions?: readonly (readonly number[])[] | undefined;
}

/** A mistake in what a client sent: becomes a 400. */
export class BadPrompt extends Error {}

/**
 * @param ids token ids
 * @param choices the actions, in the order of `extras.mentions`
 * @throws {BadPrompt}
 */
export function readTokens(
  ids: readonly number[],
  extras: TokenExtras,
  choices: readonly string[],
  vocabulary: number,
): ReadPrompt {
  if (ids.length === 0) throw new BadPrompt('prompt: at least one token id');
  const wrong = [...ids, ...(extras.focus ?? [])].find((id) => id < 0 || id >= vocabulary);
  if (wrong !== undefined) throw new BadPrompt(`prompt: token id ${wrong} is not in [0, ${vocabulary})`);
  const marked = ids.indexOf(ACT);
  const length = extras.prompt_length ?? (marked < 1 ? ids.length : marked);
  if (length < 1 || length > ids.length) throw new BadPrompt(`longplay.prompt_length: expected 1 … ${ids.length}`);
  const after = length === ids.length ? [ACT] : ids.slice(length);
  const { mentions } = extras;
  if (mentions && mentions.length !== choices.length) {
    throw new BadPrompt(`longplay.mentions: expected ${choices.length} lists, one per choice, got ${mentions.length}`);
  }
  if (mentions?.some((places) => places.some((place) => place < 0 || place >= length))) {
    throw new BadPrompt('longplay.mentions: a position outside the prompt');
  }
  return {
    prompt: Int32Array.from(ids.slice(0, length)),
    after: Int32Array.from(after),
    focus: extras.focus ?? [],
    mentions: new Map(choices.map((choice, i) => [choice, mentions?.[i] ?? []])),
  };
}

/** Plain text, as it stands. @throws {BadPrompt} */
export function readText(text: string, tokenizer: Tokenizer): ReadPrompt {
  const ids = tokenizer.encode(text);
  if (ids.length === 0) throw new BadPrompt('prompt: must not be empty');
  return { prompt: ids, after: Int32Array.of(ACT), focus: [], mentions: new Map() };
}

/** @param actions the actions that will be chosen among @throws {BadPrompt} for a conversation that is no episode */
export function readConversation(
  messages: readonly Message[],
  actions: readonly string[],
  view: View,
  tokenizer: Tokenizer,
  world: WorldPrompt,
): ReadPrompt {
  const { firstObservation, turns } = episodeOf(messages, world);
  const first = { kind: 'first', observation: firstObservation } as const;
  try {
    const reading = readRendered(tokenizer, view.mode === 'append' ? view.prompt(first) : view.render(first, turns));
    const after = view.mode === 'append' ? turns.flatMap((turn) => [...readTurn(tokenizer, view, turn)]) : [];
    return {
      prompt: reading.tokens,
      after: Int32Array.from([ACT, ...after]),
      focus: [...reading.focus],
      mentions: new Map(actions.map((action) => [action, reading.mentions(action)])),
    };
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new BadPrompt(`messages: the policy cannot read this world from them: ${thrown.message}`);
  }
}

const LIST = '\n\nAvailable actions:\n';

function episodeOf(messages: readonly Message[], world: WorldPrompt) {
  const said = messages.filter(({ role }) => role !== 'system');
  // "OK. I will follow the instructions": what comes before it is no part of the episode.
  const begin = said[1]?.role === 'assistant' && /^OK\b/.test(said[1].content) ? 2 : 0;
  const own = said.slice(begin);
  if (own.length % 2 === 0 || own.some(({ role }, i) => role !== (i % 2 === 0 ? 'user' : 'assistant'))) {
    throw new BadPrompt('messages: expected user and assistant in turn, the last one from the user');
  }
  const texts = own.map(({ content }) => content);
  const observation = (text: string) => {
    const list = text.lastIndexOf(LIST);
    return list < 0 ? text : text.slice(0, list);
  };
  const turns: SeenTurn[] = [];
  for (let i = 1; i < texts.length; i += 2) {
    turns.push({ action: actionIn(texts[i]!, world), observation: observation(texts[i + 1]!) });
  }
  return { firstObservation: observation(texts[0]!), turns };
}

/** The action in an answer of whatever format; the text itself where it has none. */
export function actionIn(text: string, world: WorldPrompt): string {
  for (const format of Object.values(FORMATS)) {
    const parsed = format.parse(text, world);
    if ('action' in parsed) return parsed.action;
  }
  return text.trim();
}
