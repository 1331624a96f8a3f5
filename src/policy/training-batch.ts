/**
 * Trajectories → the training program's inputs. Pure.
 *
 * Under an append view a group is read once and its members follow it; under a window view every turn is a group of
 * its own with one member, because nothing is shared.
 */
import { UserError } from '../core/errors.ts';
import type { Trajectory } from '../core/trajectory.ts';
import type { View } from '../core/view.ts';
import type { HostTensor } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import type { DecoderKind } from '../model/programs.ts';
import { candidateFeeds, f32, i32, promptFeeds, steps } from './feeds.ts';
import { type PromptReading, readRendered } from './reading.ts';
import { nextInTrie } from './spellings.ts';
import { END, PAD, type Tokenizer } from './tokenizer.ts';

/** What the estimator says of one turn; a run of tokens shares it. */
export interface TurnEstimate {
  readonly advantage: number;
  /** Target of the value head. */
  readonly return: number;
  /** Weight of the turn's decisions in the loss; weights of a batch are normalised by `trainingFeeds`. */
  readonly weight: number;
}

/** One trained decision: a choice, or one token of a run. */
interface TrainDecision {
  /** Position in the member's tokens whose hidden state decides. */
  readonly at: number;
  /** Rows of the group's action list, or token ids, that were possible; `undefined` for all tokens. */
  readonly allowed: readonly number[] | undefined;
  /** Row or token id. */
  readonly chosen: number;
  readonly logprob: number;
  readonly value: number;
  readonly estimate: TurnEstimate;
  /** Only the first token of a run trains the value head. */
  readonly trainsValue: boolean;
}

interface TrainMember {
  /** Tokens after the prompt. */
  readonly tokens: readonly number[];
  readonly decisions: readonly TrainDecision[];
}

/** A prompt and the members that follow it. */
export interface TrainGroup {
  readonly reading: PromptReading;
  readonly actions: readonly string[];
  readonly members: readonly TrainMember[];
}

/** Number of trained decisions. */
export function decisionCount(groups: readonly TrainGroup[]): number {
  let count = 0;
  for (const { members } of groups) for (const { decisions } of members) count += decisions.length;
  return count;
}

/** Number of tokens a training step reads, padding left out. */
export function tokenCount(groups: readonly TrainGroup[]): number {
  let count = 0;
  for (const { reading, members } of groups) {
    count += reading.tokens.length;
    for (const { tokens } of members) count += tokens.length;
  }
  return count;
}

/**
 * @param trajectories members of one group
 * @param estimates per trajectory, per turn
 * @throws {UserError} BAD_TRACE when a trajectory was read through another view or vocabulary
 */
export function trainGroups(
  view: View,
  tokenizer: Tokenizer,
  trajectories: readonly Trajectory[],
  estimates: readonly (readonly TurnEstimate[])[],
): TrainGroup[] {
  return view.mode === 'append'
    ? appendGroup(view, tokenizer, trajectories, estimates)
    : trajectories.flatMap((trajectory, i) => windowGroups(view, tokenizer, trajectory, estimates[i]!));
}

function appendGroup(
  view: View & { mode: 'append' },
  tokenizer: Tokenizer,
  trajectories: readonly Trajectory[],
  estimates: readonly (readonly TurnEstimate[])[],
): TrainGroup[] {
  const observation = trajectories[0]?.turns[0]?.observation;
  if (observation === undefined) return [];
  const reading = readRendered(tokenizer, view.prompt({ kind: 'first', observation }));
  const table = new ActionRows();
  const members = trajectories.map((trajectory, i) => {
    const tokens: number[] = [];
    const decisions: TrainDecision[] = [];
    trajectory.turns.forEach((turn, t) => {
      const { decision } = turn;
      if (!decision) throw notTrainable(trajectory, `turn ${t} was not decided by a policy of ours`);
      const context = t === 0 ? withoutPrompt(decision.context, reading, trajectory) : decision.context;
      tokens.push(...context);
      decisions.push(...turnDecisions(tokenizer, trajectory, t, tokens.length - 1, table, estimates[i]![t]!));
      if (decision.kind === 'tokens') tokens.push(...decision.tokens);
    });
    return { tokens, decisions };
  });
  return [{ reading, actions: table.texts, members }];
}

function windowGroups(
  view: View & { mode: 'window' },
  tokenizer: Tokenizer,
  trajectory: Trajectory,
  estimates: readonly TurnEstimate[],
): TrainGroup[] {
  const first = { kind: 'first', observation: trajectory.turns[0]?.observation ?? '' } as const;
  const seen = trajectory.turns.map(({ action }, t) => ({
    action,
    observation: trajectory.turns[t + 1]?.observation ?? trajectory.finalObservation,
  }));
  return trajectory.turns.map((turn, t) => {
    const { decision } = turn;
    if (!decision) throw notTrainable(trajectory, `turn ${t} was not decided by a policy of ours`);
    const reading = readRendered(tokenizer, view.render(first, seen.slice(0, t)));
    const table = new ActionRows();
    const tokens = [...withoutPrompt(decision.context, reading, trajectory)];
    const decisions = turnDecisions(tokenizer, trajectory, t, tokens.length - 1, table, estimates[t]!);
    if (decision.kind === 'tokens') tokens.push(...decision.tokens);
    return { reading, actions: table.texts, members: [{ tokens, decisions }] };
  });
}

function turnDecisions(
  tokenizer: Tokenizer,
  trajectory: Trajectory,
  t: number,
  at: number,
  table: ActionRows,
  estimate: TurnEstimate,
): TrainDecision[] {
  const { decision, actions } = trajectory.turns[t]!;
  const texts = Array.from(actions, (action) => trajectory.actionTable[action]!);
  if (decision!.kind === 'choice') {
    const rows = texts.map((text) => table.row(text));
    const { choice, logprob, value } = decision!;
    return [{ at, allowed: rows, chosen: rows[choice]!, logprob, value, estimate, trainsValue: true }];
  }
  const { tokens, logprobs, masked, value } = decision!;
  const spellings = masked ? texts.map((text) => tokenizer.encode(text)) : [];
  return Array.from(tokens, (chosen, i) => ({
    at: at + i,
    allowed: masked ? nextInTrie(spellings, Array.from(tokens.subarray(0, i))) : undefined,
    chosen,
    logprob: logprobs[i]!,
    value,
    estimate,
    trainsValue: i === 0,
  }));
}

/** Texts of one group's candidates, in order of first appearance. */
class ActionRows {
  readonly texts: string[] = [];
  readonly #rows = new Map<string, number>();

  row(text: string): number {
    const known = this.#rows.get(text);
    if (known !== undefined) return known;
    const row = this.texts.push(text) - 1;
    this.#rows.set(text, row);
    return row;
  }
}

function withoutPrompt(context: Int32Array, reading: PromptReading, trajectory: Trajectory): Int32Array {
  const { tokens } = reading;
  if (context.length <= tokens.length || tokens.some((id, i) => context[i] !== id)) {
    throw notTrainable(trajectory, 'its recorded prompt tokens are not what this view and vocabulary read');
  }
  return context.subarray(tokens.length);
}

function notTrainable(trajectory: Trajectory, why: string): UserError {
  return new UserError('BAD_TRACE', `episode ${trajectory.episode} cannot be trained on: ${why}`);
}

/** Weights of decisions, for the loss: how the batch is averaged. */
export interface Normalisation {
  /** Divides every policy weight: the sum of weights for a mean over decisions, a constant for Dr. GRPO. */
  readonly policy: number;
  readonly value: number;
}

/** The usual mean: all weights of the batch, and all decisions that train the value. */
export function meanOver(groups: readonly TrainGroup[]): Normalisation {
  let policy = 0;
  let value = 0;
  for (const { members } of groups) {
    for (const { decisions } of members) {
      for (const { estimate, trainsValue } of decisions) {
        policy += estimate.weight;
        if (trainsValue) value++;
      }
    }
  }
  return { policy: Math.max(policy, 1e-8), value: Math.max(value, 1) };
}

/**
 * @param groups at least one, each with at least one decision
 * @param reference log-probabilities under the reference policy, in the order of the decisions; the behaviour
 *   policy's own where absent
 */
export function trainingFeeds(
  config: ModelConfig,
  tokenizer: Tokenizer,
  decoder: DecoderKind,
  groups: readonly TrainGroup[],
  normalisation: Normalisation,
  reference?: ArrayLike<number>,
): Record<string, HostTensor> {
  const G = groups.length;
  const K = Math.max(...groups.map(({ members }) => members.length));
  const T = Math.max(...groups.flatMap(({ members }) => members.map(({ tokens }) => tokens.length)));
  const N = groups.reduce((sum, { members }) => sum + members.reduce((m, { tokens }) => m + tokens.length, 0), 0);
  const longest = Math.max(...groups.map(({ reading }) => reading.tokens.length));
  const perGroup = Math.max(...groups.map((group) => decisionCount([group])));
  const C = Math.max(1, ...groups.map(({ actions }) => actions.length));
  const rows = decoder === 'choice' ? G * perGroup : decisionCount(groups);
  const width = decoder === 'choice' ? C : config.vocabSize;

  const ids = new Int32Array(N);
  const previous1 = new Int32Array(N);
  const previous2 = new Int32Array(N);
  const focus = new Float32Array(N);
  const positions = new Int32Array(N);
  const index = new Int32Array(G * K * T).fill(-1);
  const inverse = new Int32Array(N);
  const deciding = new Int32Array(rows).fill(-1);
  const decidingInverse = new Int32Array(N).fill(-1);
  const mask = new Float32Array(rows * width).fill(-1e9);
  const chosen = new Int32Array(rows);
  const column = () => new Float32Array(rows);
  const columns = {
    oldLogprob: column(),
    referenceLogprob: column(),
    advantage: column(),
    weight: column(),
    return: column(),
    oldValue: column(),
    valueWeight: column(),
  };

  let n = 0;
  let decided = 0;
  groups.forEach(({ reading, members }, g) => {
    const prompt = reading.tokens;
    let inGroup = 0;
    members.forEach(({ tokens, decisions }, k) => {
      const start = n;
      const seen = (i: number) => (i >= 0 ? tokens[i]! : (prompt[prompt.length + i] ?? PAD));
      tokens.forEach((id, t) => {
        ids[n] = id;
        previous1[n] = seen(t - 1);
        previous2[n] = seen(t - 2);
        focus[n] = reading.focus.has(id) ? 1 : 0;
        positions[n] = prompt.length + t;
        index[(g * K + k) * T + t] = n;
        inverse[n] = (g * K + k) * T + t;
        n++;
      });
      for (const decision of decisions) {
        const row = decoder === 'choice' ? g * perGroup + inGroup++ : decided;
        deciding[row] = start + decision.at;
        decidingInverse[start + decision.at] = row;
        if (decision.allowed) for (const id of decision.allowed) mask[row * width + id] = 0;
        else mask.fill(0, row * width + END, (row + 1) * width);
        chosen[row] = decision.chosen;
        columns.oldLogprob[row] = decision.logprob;
        columns.referenceLogprob[row] = reference ? reference[decided]! : decision.logprob;
        columns.advantage[row] = decision.estimate.advantage;
        columns.weight[row] = decision.estimate.weight / normalisation.policy;
        columns.return[row] = decision.estimate.return;
        columns.oldValue[row] = decision.value;
        columns.valueWeight[row] = decision.trainsValue ? 1 / normalisation.value : 0;
        decided++;
      }
    });
  });
  // Rows that pad the layout need one possible action, or their softmax would be over nothing.
  for (let row = 0; row < rows; row++) if (deciding[row] === -1) mask[row * width] = 0;

  const shape = decoder === 'choice' ? [G, perGroup] : [rows];
  const feeds: Record<string, HostTensor> = {
    ...promptFeeds(
      config,
      groups.map(({ reading }) => reading),
      longest,
    ),
    'tokens.ids': i32([N], ids),
    'tokens.positions': i32([N], positions),
    'episodes.index': i32([G, K, T], index),
    'episodes.inverse': i32([N], inverse),
    'episodes.steps': steps(T),
    'decisions.index': i32(shape, deciding),
    'decisions.inverse': i32([N], decidingInverse),
    'decisions.mask': f32([...shape, width], mask),
    'decisions.chosen': i32([...shape, 1], chosen),
  };
  for (const [name, values] of Object.entries(columns)) feeds[`decisions.${name}`] = f32(shape, values);
  if (config.tokenShift > 0) feeds['tokens.previous1'] = i32([N], previous1);
  if (config.tokenShift > 1) feeds['tokens.previous2'] = i32([N], previous2);
  if (config.focusBit) feeds['tokens.focus'] = f32([N, 1], focus);
  if (decoder === 'choice') Object.assign(feeds, candidateFeeds(config, tokenizer, groups));
  return feeds;
}
