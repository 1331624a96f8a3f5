/**
 * Decisions from a call's scores: a whole action, or the next token of a run. A draw depends on the episode's seed and
 * the turn alone, never on the batch or the time of it. So runs repeat, and policies can be compared.
 */
import { Rng, seedFrom } from '../core/rng.ts';
import { type Decision, type ModelResponse, versionsKept } from '../core/trajectory.ts';
import { maskOf } from '../text/reading/answer-mask.ts';
import type { Codec } from '../text/reading/codec.ts';
import { cutAtStop, stopWindow } from '../text/reading/stop-texts.ts';
import type { MemberState } from './episode-state.ts';
import type { Acted, ActRequest } from './policy.ts';
import { type Drawn, drawFrom, likeliestOf, penalise, truncate } from './sampling.ts';

/** Outputs of a call at the position that decides. */
export interface Scored {
  /** [C] scores of the slot's candidates, or [V] logits. */
  readonly scores: Float32Array;
  /** Value V of the critic; 0 without a value head. */
  readonly value: number;
  /** Version of the weights. */
  readonly version: number;
}

/** Draws one of the listed actions. */
export function choose(member: MemberState, request: ActRequest, { scores, value, version }: Scored): Acted {
  const { candidates, transcript } = member;
  const { actions } = request;
  // Only what is listed now takes part: the group's other candidates, of other members or earlier turns, are not drawn from,
  // and the log-probability is over the listed ones, as the learner recomputes it.
  const listed = new Float32Array(actions.length);
  for (let i = 0; i < actions.length; i++) listed[i] = scores[candidates[actions[i]!]!.row]!;
  const { at, logprob } = drawFrom(listed, request.temperature, drawOf(request));
  const context = transcript.takeContext();
  const likeliest = likeliestOf(listed);
  const decision: Decision = { kind: 'choice', version, context, value, choice: at, logprob, likeliest };
  return { episode: member.episode, turn: request.turn, action: transcript.table[actions[at]!]!, decision };
}

/** Limits of a run of tokens. */
export interface RunLimits {
  /** Codec that ends runs, reads answers and spells actions. */
  readonly codec: Codec;
  /** True to sample only spellings of listed actions, where some are listed, and only what a call of an agent allows. */
  readonly masked: boolean;
  /** Longest run of a turn; a given prompt may ask for less. */
  readonly maxTokens: number;
  /** Model of the policy; a run ends where it has no position left to read its last token at. */
  readonly config: { readonly maxPositions: number };
}

/**
 * Samples the next token of a member's run, which begins here where it has none. Where a mask lets it go on in one way
 * only, it does so at once: the engine is asked again where there is something to choose. Such a token has
 * log-probability 0.
 * @returns the turn, once the run ends
 */
export function sample(limits: RunLimits, member: MemberState, request: ActRequest, scored: Scored): Acted | undefined {
  const { codec } = limits;
  const { transcript } = member;
  // The context is taken before the first token is written: it ends where the run begins.
  member.run ??= {
    tokens: [],
    logprobs: [],
    versions: [],
    value: scored.value,
    context: transcript.takeContext(),
    rng: drawOf(request),
    mask: limits.masked ? maskOf(codec, transcript, request.actions) : undefined,
  };
  const { run } = member;
  const { mask } = run;
  const begun = run.tokens.length;
  const logits = request.sampling
    ? penalise(scored.scores, request.sampling, { read: listRead(transcript), written: run.tokens })
    : scored.scores;
  let next = mask ? drawAllowed(mask.allowed(), logits, request, run.rng) : drawToken(codec, logits, request, run.rng);
  let ended: boolean;
  for (;;) {
    run.tokens.push(next.id);
    run.logprobs.push(next.logprob);
    run.versions.push(scored.version);
    ended = endsRun(limits, member, request, run.tokens.length - begun);
    if (ended || !mask) break;
    mask.advance(next.id);
    const allowed = mask.allowed();
    if (allowed.length !== 1) break;
    next = { id: allowed[0]!, logprob: 0 };
    // One number a token, forced or not: a later draw does not depend on how many tokens before it were forced.
    if (request.temperature !== 0) run.rng.float();
  }
  transcript.write(run.tokens.slice(begun)); // read in the next call, or on the next turn before the observation
  if (!ended) return undefined;
  member.run = undefined;
  return finishRun(codec, member, request, run);
}

/** True where a run is over, its newest `unwritten` tokens included. */
function endsRun(
  { codec, maxTokens, config }: RunLimits,
  { run, transcript }: MemberState,
  { given, actions, stop }: ActRequest,
  unwritten: number,
): boolean {
  const { tokens, mask } = run!;
  // Under a trie the spelling ends by itself, so the limit would only cut an action in two.
  const { limits } = transcript;
  const most = Math.min(maxTokens, given?.maxTokens ?? maxTokens, limits?.maxTokens ?? maxTokens);
  const full = transcript.prompt.tokens.length + transcript.tokens.length + unwritten >= config.maxPositions;
  const isWhole = codec.ends(tokens) || limits?.ends?.(tokens) === true;
  // An agent's reply has limits, and is never a spelling of the stages that its world lists.
  const isSpelling = mask !== undefined && limits === undefined && actions.length > 0;
  if (isWhole || full) return true;
  return !isSpelling && (tokens.length >= most || isStopped(codec, tokens, stop));
}

/** Finished run as a decision, and what the codec reads in it. */
function finishRun(
  codec: Codec,
  { episode, transcript }: MemberState,
  { turn, given, stop }: ActRequest,
  run: NonNullable<MemberState['run']>,
): Acted {
  const decision: Decision = {
    kind: 'tokens',
    ...versionsKept(run.versions),
    context: run.context,
    value: run.value,
    tokens: Int32Array.from(run.tokens),
    logprobs: Float32Array.from(run.logprobs),
    masked: run.mask !== undefined,
  };
  const { action, text, formatError } = codec.answer(run.tokens, transcript, given ? undefined : stop); // a client cuts its own
  if (text === undefined) return { episode, turn, action, decision };
  const completionTokens = run.tokens.length;
  // The run has been written to the transcript by now: what was read before it is the difference.
  const promptTokens = transcript.prompt.tokens.length + transcript.tokens.length - completionTokens;
  const response: ModelResponse = {
    text,
    promptTokens,
    completionTokens,
    ...(formatError === undefined ? {} : { formatError }),
    ...(turn === 0 && codec.opening ? { opening: codec.opening } : {}),
  };
  return { episode, turn, action, decision, response };
}

/** Draws a token that a mask allows; its log-probability is over those alone. */
function drawAllowed(allowed: readonly number[], logits: Float32Array, request: ActRequest, rng: Rng) {
  // The softmax is over what is allowed: the learner masks the same ids, so both log-probabilities are of one distribution.
  const scores = Float32Array.from(allowed, (id) => logits[id]!);
  const { at, logprob } = drawLeft(scores, request, rng);
  return { id: allowed[at]!, logprob };
}

/** Draws any token that free sampling may draw. */
function drawToken({ sampled: { from, to } }: Codec, logits: Float32Array, request: ActRequest, rng: Rng) {
  const { at, logprob } = drawLeft(logits.subarray(from, to), request, rng);
  return { id: from + at, logprob };
}

/** Draws from what the request's settings leave of the scores; the log-probability is over that. */
function drawLeft(scores: Float32Array, { temperature, sampling }: ActRequest, rng: Rng): Drawn {
  const left = sampling && truncate(scores, temperature, sampling);
  if (!left) return drawFrom(scores, temperature, rng);
  const { at, logprob } = drawFrom(
    Float32Array.from(left, (i) => scores[i]!),
    temperature,
    rng,
  );
  return { at: left[at]!, logprob };
}

/** Ids of an episode as it is read, sampled ones included. */
function* listRead({ prompt, tokens }: MemberState['transcript']): Generator<number> {
  yield* prompt.tokens;
  yield* tokens;
}

/** True where a stop text has been written. */
function isStopped(codec: Codec, tokens: readonly number[], stop: readonly string[] = []): boolean {
  return stop.length > 0 && cutAtStop(codec.decode(tokens.slice(-stopWindow(stop))), stop).isStopped;
}

/** Generator of a turn's draw: fixed by the episode's seed and the turn, or by a given prompt's own seed. */
export function drawOf({ given, samplingSeed, turn }: ActRequest): Rng {
  return Rng.fromSeed(given ? given.seed : seedFrom(samplingSeed, turn));
}
