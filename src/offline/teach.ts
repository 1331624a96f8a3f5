/** From a demonstration's text to a trajectory that the learner can train on. Pure. */
import { UserError } from '../core/errors.ts';
import type { Decision, Trajectory, Turn } from '../core/trajectory.ts';
import type { View } from '../core/view.ts';
import type { DecoderKind } from '../model/programs.ts';
import { readRendered, readTurn } from '../policy/reading.ts';
import { ACT, END, type Tokenizer } from '../policy/tokenizer.ts';
import type { Demonstration } from './demonstrations.ts';

export interface Reader {
  readonly view: View;
  readonly tokenizer: Tokenizer;
  readonly decoder: DecoderKind;
  /** With the tokens decoder: the action is one of those listed, where they are. */
  readonly masked: boolean;
}

/**
 * Reads a demonstration as if the policy had decided it. A trace made under the same view and decoder keeps the
 * token ids that were sampled; anything else is spelt by the tokenizer. Behaviour log-probabilities and values are 0:
 * nobody knows them, and likelihood and preference losses do not ask.
 *
 * @param episode number the trajectory gets; `group` likewise
 * @throws {UserError} BAD_TRACE when the choice decoder is to learn from a source that lists no actions, or an action
 *   is not among those listed
 */
export function taught(reader: Reader, demonstration: Demonstration, episode: number, group: number): Trajectory {
  const { view, tokenizer, decoder } = reader;
  const { turns, finalObservation, trajectory, score, source } = demonstration;
  if (turns.length === 0) throw new UserError('BAD_TRACE', `${source}: it has no turns`);
  const same = trajectory?.view === view.id && trajectory.turns.every(({ decision }) => decision?.kind === decoder);
  if (same) return { ...trajectory!, episode, group };

  const table: string[] = [];
  const rowOf = (text: string) => {
    const known = table.indexOf(text);
    return known >= 0 ? known : table.push(text) - 1;
  };
  const first = { kind: 'first', observation: turns[0]!.observation } as const;
  const seen = turns.map(({ action }, t) => ({ action, observation: turns[t + 1]?.observation ?? finalObservation }));
  const made = turns.map(({ observation, action, actions = [] }, t): Turn => {
    const rendered = view.mode === 'append' ? view.prompt(first) : view.render(first, seen.slice(0, t));
    const context =
      view.mode === 'append' && t > 0
        ? readTurn(tokenizer, view, seen[t - 1]!)
        : Int32Array.from([...readRendered(tokenizer, rendered).tokens, ACT]);
    const reward = t === turns.length - 1 ? score : 0;
    const decision = decide(reader, { action, actions, context }, `${source}, turn ${t}`);
    return { observation, actions: Int32Array.from(actions, rowOf), action, decision, reward, actMs: 0, envMs: 0 };
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
    view: view.id,
  };
}

function decide(
  { tokenizer, decoder, masked }: Reader,
  turn: { readonly action: string; readonly actions: readonly string[]; readonly context: Int32Array },
  at: string,
): Decision {
  const { action, actions, context } = turn;
  const base = { version: 0, context, value: 0 };
  const listed = actions.indexOf(action);
  const oneOf = decoder === 'choice' || (masked && actions.length > 0);
  if (oneOf && actions.length === 0) {
    throw new UserError(
      'BAD_TRACE',
      `${at}: the source lists no actions, which decoder choice needs; use --set policy.decoder=tokens`,
    );
  }
  if (oneOf && listed < 0) {
    throw new UserError('BAD_TRACE', `${at}: '${action}' is not among the ${actions.length} listed actions`);
  }
  if (decoder === 'choice') return { ...base, kind: 'choice', choice: listed, logprob: 0 };
  const tokens = Int32Array.from([...tokenizer.encode(action), END]);
  return { ...base, kind: 'tokens', tokens, logprobs: new Float32Array(tokens.length), masked: oneOf };
}
