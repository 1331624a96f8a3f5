/**
 * Answers of decisions: what a policy decided as the text that a client asked for, in pieces with their log-probabilities.
 */

import type { Acted } from '../policy/policy.ts';
import type { Codec } from '../text/reading/codec.ts';
import { cutAtStop } from '../text/reading/stop-texts.ts';
import type { Answered } from './openai-answers.ts';

/**
 * Makes the answer of a decision.
 * @param lists actions as the policy knows them, and the client's texts that mean them; both empty without a list
 * @param stops strings that end the answer before them
 * @param facts tokens of the prompt to count, whether token ids are wanted, and whether one piece a token is
 */
export function makeAnswer(
  { action, decision, response }: Acted,
  lists: { readonly actions: readonly string[]; readonly shown: readonly string[] },
  stops: readonly string[],
  codec: Codec,
  facts: { readonly promptTokens: number; readonly tokenIds: boolean; readonly byToken: boolean },
): Answered {
  const { actions, shown } = lists;
  const { promptTokens } = facts;
  const extra = { longplay: { version: decision?.version ?? 0, value: decision?.value ?? 0 } };
  if (decision?.kind === 'tokens') {
    const { tokens, masked } = decision;
    // A client that sent a list gets an entry of it, letter by letter; the action in it may be spelt in another format.
    const chosen = masked ? shown[actions.indexOf(action)] : undefined;
    // A language model's whole answer is what was asked for; the action is only what a world would read in it.
    const text = chosen ?? response?.text ?? action;
    const ended = masked || codec.ends([...tokens]);
    const pieces = facts.byToken ? piecesOf(decision, codec) : [];
    const answered = {
      text,
      finish: ended ? 'stop' : 'length',
      pieces: pieces.map((piece) => piece.text).join('') === text ? pieces : [makePiece(text, decision)],
      promptTokens,
      tokens: tokens.length,
    } as const;
    return { ...endAtStop(answered, stops), ...extra, ...(facts.tokenIds ? { tokenIds: [...tokens] } : {}) };
  }
  const text = decision ? shown[decision.choice]! : action;
  const pieces = [{ text, logprob: decision?.logprob ?? 0 }];
  return { ...endAtStop({ text, finish: 'stop', pieces, promptTokens, tokens: 1 }, stops), ...extra };
}

type TokensDecision = Extract<Acted['decision'], { kind: 'tokens' }>;

/** Pieces of an answer, one a token. A character whose bytes come in several tokens counts with the last of them. */
function piecesOf({ tokens, logprobs }: TokensDecision, codec: Codec): Answered['pieces'] {
  let before = '';
  return Array.from(tokens, (_, i) => {
    const text = codec.decode(tokens.subarray(0, i + 1));
    const complete = text.startsWith(before) && (!text.endsWith('\ufffd') || i === tokens.length - 1);
    const piece = complete ? text.slice(before.length) : '';
    if (complete) before = text;
    return { text: piece, logprob: logprobs[i]! };
  });
}

/** An answer as one piece. */
function makePiece(text: string, { logprobs }: TokensDecision): Answered['pieces'][number] {
  return { text, logprob: logprobs.reduce((sum, one) => sum + one, 0) };
}

/** Ends an answer and its pieces before the first stop string in it. */
function endAtStop(answered: Answered, stops: readonly string[]): Answered {
  const { text: kept, isStopped } = cutAtStop(answered.text, stops);
  if (!isStopped) return answered;
  const end = kept.length;
  const pieces: { text: string; logprob: number }[] = [];
  let at = 0;
  for (const { text, logprob } of answered.pieces) {
    if (at >= end) break;
    pieces.push({ text: text.slice(0, end - at), logprob });
    at += text.length;
  }
  return { ...answered, text: kept, finish: 'stop', pieces };
}
