/** Demonstrations as trajectories that the learner can train on. Pure. */

import type { DecoderKind } from '../../compute/model/programs.ts';
import { UserError } from '../../core/errors.ts';
import type { Decision, Trajectory, Turn } from '../../core/trajectory.ts';
import type { Codec } from '../../text/reading/codec.ts';
import type { Observed } from '../../text/reading/transcript.ts';
import type { Demonstration } from './demonstrations.ts';

export interface Reader {
  readonly codec: Codec;
  readonly decoder: DecoderKind;
  /** True, with the tokens decoder, when the action must be one of the listed ones, where some are listed. */
  readonly masked: boolean;
  /** Learns the whole answer of a demonstration, its thought included, where the codec writes more than actions. Default true. */
  readonly thoughts?: boolean | undefined;
}

/**
 * Reads a demonstration as if the policy had decided it. A trace made under the same view and decoder keeps the
 * token ids that were sampled; anything else is spelt by the tokenizer. Behaviour log-probabilities and values are 0:
 * they are unknown, and likelihood and preference losses do not use them.
 *
 * @param episode number the trajectory gets; `group` likewise
 * @throws {UserError} BAD_TRACE when the choice decoder is to learn from a source that lists no actions, or an action
 *   is not among those listed
 */
export function fromDemonstration(
  reader: Reader,
  demonstration: Demonstration,
  episode: number,
  group: number,
): Trajectory {
  const { codec, decoder } = reader;
  const { turns, finalObservation, trajectory, score, source } = demonstration;
  if (turns.length === 0) throw new UserError('BAD_TRACE', `${source}: it has no turns`);
  if (turns.every(({ untrained }) => untrained)) {
    throw new UserError(
      'BAD_TRACE',
      `${source}: none of its ${turns.length} replies has \`loss: true\`, so there is nothing to learn`,
    );
  }
  const same = trajectory?.view === codec.id && trajectory.turns.every(({ decision }) => decision?.kind === decoder);
  if (same) return { ...trajectory!, episode, group };

  const table: string[] = [];
  /** Observation as the transcript takes it, its actions added to the table. */
  const toObserved = (observation: string, listed: readonly string[] = []): Observed => {
    const known = table.length;
    const actions = Int32Array.from(listed, (text) => {
      const row = table.indexOf(text);
      return row >= 0 ? row : table.push(text) - 1;
    });
    return { observation, actions, newActions: table.slice(known) };
  };
  let now = toObserved(turns[0]!.observation, turns[0]!.actions);
  const transcript = codec.open(now);
  const made = turns.map(({ observation, action, reply, actions = [], untrained }, t): Turn => {
    const context = transcript.takeContext();
    const decision = decide(reader, { action, reply, actions, context, untrained }, `${source}, turn ${t}`);
    const reward = t === turns.length - 1 ? score : 0;
    const timeless = { observation, actions: now.actions, action, decision, reward, actMs: 0, envMs: 0 };
    const turn = untrained ? { ...timeless, untrained } : timeless;
    if (decision.kind === 'tokens') transcript.write(decision.tokens);
    const next = turns[t + 1];
    now = toObserved(next?.observation ?? finalObservation, next?.actions);
    transcript.observe(action, now);
    return turn;
  });
  return {
    episode,
    group,
    task: trajectory?.task ?? { env: demonstration.task, index: 0, seed: 0 },
    horizon: turns.length,
    attempt: 1,
    actionTable: table,
    turns: made,
    finalObservation,
    end: 'terminated',
    success: trajectory?.success ?? true,
    view: codec.id,
  };
}

/** Decision that would have been the turn's. One that is not trained on may have played what is not listed. */
function decide(
  { codec, decoder, masked, thoughts = true }: Reader,
  turn: {
    readonly action: string;
    readonly reply: string | undefined;
    readonly actions: readonly string[];
    readonly context: Int32Array;
    readonly untrained: true | undefined;
  },
  at: string,
): Decision {
  const { action, reply, actions, context, untrained } = turn;
  const base = { version: 0, context, value: 0 };
  const listed = actions.indexOf(action);
  const oneOf = decoder === 'choice' || (masked && actions.length > 0);
  if (oneOf && actions.length === 0) {
    throw new UserError(
      'BAD_TRACE',
      `${at}: the source lists no actions, which decoder choice needs; use --set policy.decoder=tokens`,
    );
  }
  const stray = listed < 0 && untrained === true;
  if (oneOf && listed < 0 && !stray) {
    throw new UserError('BAD_TRACE', `${at}: '${action}' is not among the ${actions.length} listed actions`);
  }
  // Nothing reads the choice of a decision that is not trained on; its action is read as the context of the next.
  if (decoder === 'choice') return { ...base, kind: 'choice', choice: stray ? 0 : listed, logprob: 0 };
  // A masked decoder can only spell listed actions, without a thought.
  const whole = thoughts && !oneOf && reply !== undefined ? codec.spellReply?.(reply, action) : undefined;
  const tokens = Int32Array.from([...(whole ?? codec.spell(action)), codec.end]);
  return { ...base, kind: 'tokens', tokens, logprobs: new Float32Array(tokens.length), masked: oneOf && !stray };
}
