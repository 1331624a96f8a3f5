/**
 * Trajectories → the training program's inputs. Pure.
 *
 * Under an append view a group is read once and its members follow it; under a window view every turn is a group of
 * its own with one member, because nothing is shared.
 */
import { UserError } from '../core/errors.ts';
import type { Trajectory } from '../core/trajectory.ts';
import type { SeenTurn, View } from '../core/view.ts';
import type { HostTensor } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import type { DecoderKind } from '../model/programs.ts';
import { candidateFeeds, f32, i32, promptFeeds, steps } from './feeds.ts';
import { type PromptReading, readRendered, readTurn } from './reading.ts';
import { nextInTrie } from './spellings.ts';
import { ACT, END, PAD, type Tokenizer } from './tokenizer.ts';

/** One trained decision: a choice, or one token of a run. */
export interface TrainDecision {
  /** Index of its trajectory in the batch, of its turn, and of its token in the turn's run (0 for a choice). */
  readonly trajectory: number;
  readonly turn: number;
  readonly token: number;
  /** Position in the member's tokens whose hidden state decides. */
  readonly at: number;
  /** Rows of the group's action list, or token ids, that were possible; `undefined` for all tokens. */
  readonly allowed: readonly number[] | undefined;
  /** Row or token id. */
  readonly chosen: number;
  readonly logprob: number;
  readonly value: number;
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

/** All decisions, in the order of the columns that `trainingFeeds` asks for. */
export function decisionsOf(groups: readonly TrainGroup[]): TrainDecision[] {
  return groups.flatMap(({ members }) => members.flatMap(({ decisions }) => decisions));
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
 * Encodes trajectories of one group. What is returned is cut where a batch may be cut: an append view's group reads
 * one prompt and stays whole, under a window view every trajectory stands for itself.
 *
 * @param first index of the first trajectory in the batch; the others follow
 * @returns units of a minibatch, each one or more prompts with the members that follow them
 * @throws {UserError} BAD_TRACE when a trajectory was read through another view or vocabulary
 */
export function trainUnits(
  view: View,
  tokenizer: Tokenizer,
  trajectories: readonly Trajectory[],
  first: number,
): TrainGroup[][] {
  return view.mode === 'append'
    ? [appendGroup(view, tokenizer, trajectories, first)]
    : trajectories.map((trajectory, i) => windowGroups(view, tokenizer, trajectory, first + i));
}

/**
 * The final observation of a trajectory as a decision that was never made: reading its value is what a truncated
 * episode is bootstrapped from. The first row (or token) stands in for the choice.
 */
export function finalGroup(view: View, tokenizer: Tokenizer, trajectory: Trajectory, index: number): TrainGroup {
  const opening = { kind: 'first', observation: trajectory.turns[0]?.observation ?? '' } as const;
  const seen = seenTurns(trajectory);
  const rendered = view.mode === 'append' ? view.prompt(opening) : view.render(opening, seen);
  const tokens: number[] = [ACT];
  if (view.mode === 'append') {
    seen.forEach((turn, t) => {
      const { decision } = trajectory.turns[t]!;
      if (decision?.kind === 'tokens') tokens.push(...decision.tokens);
      tokens.push(...readTurn(tokenizer, view, turn));
    });
  }
  const never = { at: tokens.length - 1, allowed: [0], chosen: 0, logprob: 0, value: 0 };
  const decisions = [{ trajectory: index, turn: trajectory.turns.length, token: 0, ...never }];
  return { reading: readRendered(tokenizer, rendered), actions: [], members: [{ tokens, decisions }] };
}

function seenTurns(trajectory: Trajectory): SeenTurn[] {
  return trajectory.turns.map(({ action }, t) => ({
    action,
    observation: trajectory.turns[t + 1]?.observation ?? trajectory.finalObservation,
  }));
}

function appendGroup(
  view: View & { mode: 'append' },
  tokenizer: Tokenizer,
  trajectories: readonly Trajectory[],
  first: number,
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
      decisions.push(...turnDecisions(tokenizer, trajectory, first + i, t, tokens.length - 1, table));
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
  index: number,
): TrainGroup[] {
  const first = { kind: 'first', observation: trajectory.turns[0]?.observation ?? '' } as const;
  const seen = seenTurns(trajectory);
  return trajectory.turns.map((turn, t) => {
    const { decision } = turn;
    if (!decision) throw notTrainable(trajectory, `turn ${t} was not decided by a policy of ours`);
    const reading = readRendered(tokenizer, view.render(first, seen.slice(0, t)));
    const table = new ActionRows();
    const tokens = [...withoutPrompt(decision.context, reading, trajectory)];
    const decisions = turnDecisions(tokenizer, trajectory, index, t, tokens.length - 1, table);
    if (decision.kind === 'tokens') tokens.push(...decision.tokens);
    return { reading, actions: table.texts, members: [{ tokens, decisions }] };
  });
}

function turnDecisions(
  tokenizer: Tokenizer,
  trajectory: Trajectory,
  index: number,
  t: number,
  at: number,
  table: ActionRows,
): TrainDecision[] {
  const { decision, actions } = trajectory.turns[t]!;
  const texts = Array.from(actions, (action) => trajectory.actionTable[action]!);
  const place = { trajectory: index, turn: t };
  if (decision!.kind === 'choice') {
    const rows = texts.map((text) => table.row(text));
    const { choice, logprob, value } = decision!;
    return [{ ...place, token: 0, at, allowed: rows, chosen: rows[choice]!, logprob, value }];
  }
  const { tokens, logprobs, masked, value } = decision!;
  const spellings = masked ? texts.map((text) => tokenizer.encode(text)) : [];
  return Array.from(tokens, (chosen, i) => ({
    ...place,
    token: i,
    at: at + i,
    allowed: masked ? nextInTrie(spellings, Array.from(tokens.subarray(0, i))) : undefined,
    chosen,
    logprob: logprobs[i]!,
    value,
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

/** What the loss is fed of one decision, padding aside. */
export interface DecisionFeed {
  readonly oldLogprob: number;
  readonly referenceLogprob: number;
  readonly advantage: number;
  readonly weight: number;
  /** Target of the value head. */
  readonly return: number;
  readonly oldValue: number;
  readonly valueWeight: number;
}

const NOTHING: DecisionFeed = {
  oldLogprob: 0,
  referenceLogprob: 0,
  advantage: 0,
  weight: 0,
  return: 0,
  oldValue: 0,
  valueWeight: 0,
};

/**
 * @param groups at least one, each with at least one decision
 * @param feedOf what the loss is told of a decision; `at` counts decisions in order. Absent for a pass that only looks
 * @returns the program's inputs, and the row of each decision in the programs' outputs
 */
export function trainingFeeds(
  config: ModelConfig,
  tokenizer: Tokenizer,
  decoder: DecoderKind,
  groups: readonly TrainGroup[],
  feedOf: (decision: TrainDecision, at: number) => DecisionFeed = () => NOTHING,
): { readonly feeds: Record<string, HostTensor>; readonly rows: Int32Array } {
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

  const names = Object.keys(columns) as (keyof DecisionFeed)[];
  const rowOf = new Int32Array(decisionCount(groups));

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
        const fed = feedOf(decision, decided);
        for (const name of names) columns[name][row] = fed[name];
        rowOf[decided++] = row;
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
  return { feeds, rows: rowOf };
}
