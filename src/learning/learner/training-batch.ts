/**
 * Training batches: trajectories → the training program's inputs. Pure.
 *
 * A trajectory is read again through the codec, as the policy read it. Each stretch of it under one prompt becomes a
 * member of a group. Members of a rollout group that share their prompt (`Prompt.shared`) follow it together; a prompt
 * that was rendered anew is a group of its own with one member. The token ids are the recorded ones.
 */

import type { HostTensor } from '../../compute/engine/engine.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import { candidateFeeds, f32, i32, PAD, promptFeeds, steps } from '../../compute/model/feeds.ts';
import type { DecoderKind, Decoding } from '../../compute/model/programs.ts';
import { UserError } from '../../core/errors.ts';
import { largestOf } from '../../core/extremes.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { maskOf } from '../../text/reading/answer-mask.ts';
import type { Codec } from '../../text/reading/codec.ts';
import { replayTurns } from '../../text/reading/replay-turns.ts';
import { type Candidate, equalTokens, type Prompt, type Transcript } from '../../text/reading/transcript.ts';

/** Trained decision: a choice, or one token of a run. */
export interface TrainDecision {
  /** Index of its trajectory in the batch, of its turn, and of its token in the turn's run (0 for a choice). */
  readonly trajectory: number;
  readonly turn: number;
  readonly token: number;
  /** Position in the member's tokens whose hidden state decides. */
  readonly at: number;
  /** Rows of the group's candidates, or token ids, that were possible; `undefined` for all tokens. */
  readonly allowed: readonly number[] | undefined;
  /** Row or token id. */
  readonly chosen: number;
  readonly logprob: number;
  readonly value: number;
}

/** Stretch of a trajectory under one prompt. */
interface TrainMember {
  /** Tokens after the prompt. */
  readonly tokens: readonly number[];
  readonly decisions: readonly TrainDecision[];
}

/** Prompt and the members that follow it. */
export interface TrainGroup {
  /** World of its trajectories, which are alike in their prompts, turns and lists; absent where that is not known. */
  readonly world?: string;
  readonly prompt: Prompt;
  readonly candidates: readonly Candidate[];
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

/** Token of the world after the first decision: where in the member's tokens it is predicted, and its id. */
interface WorldToken {
  readonly at: number;
  readonly id: number;
}

/**
 * Lists the tokens of a member that the world wrote, with those of the template around them: all behind the first decision
 * that no decision sampled.
 */
function listWorldTokens({ tokens, decisions }: TrainMember): WorldToken[] {
  const decided = new Set(decisions.map(({ at }) => at));
  const found: WorldToken[] = [];
  for (let at = decisions[0]?.at ?? tokens.length; at + 1 < tokens.length; at++) {
    if (!decided.has(at)) found.push({ at, id: tokens[at + 1]! });
  }
  return found;
}

/** Counts the world's tokens that members read behind their first decisions. */
export function countWorldTokens(groups: readonly TrainGroup[]): number {
  let count = 0;
  for (const { members } of groups) for (const member of members) count += listWorldTokens(member).length;
  return count;
}

/** Number of tokens a training step reads, padding left out. */
export function tokenCount(groups: readonly TrainGroup[]): number {
  let count = 0;
  for (const { prompt, members } of groups) {
    count += prompt.tokens.length;
    for (const { tokens } of members) count += tokens.length;
  }
  return count;
}

/**
 * Encodes trajectories of one group. The result is cut where a batch may be cut: trajectories that share their opening
 * prompt stay together, others stand for themselves.
 *
 * @param first index of the first trajectory in the batch; the others follow
 * @returns units of a minibatch, each one or more prompts with the members that follow them
 * @throws {UserError} BAD_TRACE when a trajectory was read through another view or vocabulary
 */
export function trainUnits(codec: Codec, trajectories: readonly Trajectory[], first: number): TrainGroup[][] {
  const units: GroupBuilder[][] = [];
  trajectories.forEach((trajectory, i) => {
    let unit: GroupBuilder[] | undefined;
    let group: GroupBuilder | undefined;
    let read: Prompt | undefined;
    replayTurns(codec, trajectory, (transcript, turn) => {
      const { prompt } = transcript;
      if (prompt !== read) {
        read = prompt;
        if (!unit) {
          unit = prompt.shared
            ? units.find(([opening]) => equalTokens(opening!.prompt.tokens, prompt.tokens))
            : undefined;
          group = unit?.[0];
          if (!unit) units.push((unit = []));
        } else group = undefined;
        if (!group) unit.push((group = new GroupBuilder(prompt, trajectory.task.env)));
        group.enter();
      }
      group!.decide(codec, transcript, trajectory, { trajectory: first + i, turn });
    });
  });
  return units;
}

/**
 * Final observation of a trajectory as a decision that was never made: reading its value is what a truncated episode is
 * bootstrapped from. The first row (or token) stands in for the choice.
 * @param maxPositions what the model reads; of an observation that goes on beyond it the value is that of its last token
 *   within
 */
export function finalGroup(
  codec: Codec,
  trajectory: Trajectory,
  index: number,
  maxPositions = Number.POSITIVE_INFINITY,
): TrainGroup {
  const { prompt, tokens: all } = replayTurns(codec, trajectory);
  const tokens = all.slice(0, Math.max(0, maxPositions - prompt.tokens.length));
  const never = { at: tokens.length - 1, allowed: [0], chosen: 0, logprob: 0, value: 0 };
  const decisions = [{ trajectory: index, turn: trajectory.turns.length, token: 0, ...never }];
  return { world: trajectory.task.env, prompt, candidates: [], members: [{ tokens: [...tokens], decisions }] };
}

/** Group under construction: its candidates in order of first appearance, its members decision by decision. */
class GroupBuilder implements TrainGroup {
  readonly world: string;
  readonly prompt: Prompt;
  readonly candidates: Candidate[] = [];
  readonly members: { readonly tokens: number[]; readonly decisions: TrainDecision[] }[] = [];
  readonly #rows = new Map<string, number>();

  constructor(prompt: Prompt, world: string) {
    this.world = world;
    this.prompt = prompt;
  }

  /** Enters a new member: the following decisions belong to it. */
  enter(): void {
    this.members.push({ tokens: [], decisions: [] });
  }

  /** Appends what the member read before a turn, and its decision. @throws {UserError} BAD_TRACE */
  decide(
    codec: Codec,
    transcript: Transcript,
    trajectory: Trajectory,
    place: Pick<TrainDecision, 'trajectory' | 'turn'>,
  ): void {
    const { decision, actions } = trajectory.turns[place.turn]!;
    if (!decision) throw createNotTrainable(trajectory, `turn ${place.turn} was not decided by a policy of ours`);
    if (!equalTokens(transcript.takeContext(), decision.context)) {
      throw createNotTrainable(
        trajectory,
        `the tokens recorded of turn ${place.turn} are not what this view and vocabulary read`,
      );
    }
    const { tokens, decisions } = this.members.at(-1)!;
    const from = tokens.length === 0 ? this.prompt.tokens.length : 0;
    for (let i = from; i < decision.context.length; i++) tokens.push(decision.context[i]!);
    const at = tokens.length - 1;
    const { value } = decision;
    if (decision.kind === 'choice') {
      const allowed = new Array<number>(actions.length);
      for (let i = 0; i < actions.length; i++) {
        allowed[i] = this.#row(transcript, trajectory.actionTable[actions[i]!]!);
      }
      const chosen = allowed[decision.choice]!;
      decisions.push({ ...place, token: 0, at, allowed, chosen, logprob: decision.logprob, value });
      return;
    }
    const run = [...decision.tokens];
    const mask = decision.masked ? maskOf(codec, transcript, actions) : undefined;
    if (decision.masked && !mask) throw createNotTrainable(trajectory, `turn ${place.turn} was sampled under a mask`);
    run.forEach((chosen, token) => {
      const allowed = mask?.allowed();
      mask?.advance(chosen);
      decisions.push({ ...place, token, at: at + token, allowed, chosen, logprob: decision.logprobs[token]!, value });
    });
    for (const id of run) tokens.push(id);
  }

  #row(transcript: Transcript, action: string): number {
    const read = transcript.candidate(action);
    const key = read === action ? action : `${action}\n${read}`;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const row = this.candidates.push({ action, read }) - 1;
    this.#rows.set(key, row);
    return row;
  }
}

function createNotTrainable(trajectory: Trajectory, why: string): UserError {
  return new UserError('BAD_TRACE', `episode ${trajectory.episode} cannot be trained on: ${why}`);
}

/** Inputs of the loss of one decision. */
export interface DecisionFeed {
  readonly oldLogprob: number;
  readonly referenceLogprob: number;
  readonly advantage: number;
  readonly weight: number;
  /** Target of the value head. */
  readonly return: number;
  readonly oldValue: number;
  readonly valueWeight: number;
  /** Number of the sequence whose ratio it shares, any whole number; present where the policy loss is one of sequences. */
  readonly sequence?: number | undefined;
  /** 1 / trained decisions of the sequence; 0 where it is not trained on. */
  readonly sequenceShare?: number | undefined;
  /** Teacher's log-probabilities of the allowed actions of a choice, in their order; present where a teacher has them. */
  readonly teacher?: ArrayLike<number> | undefined;
}

const NOTHING = {
  oldLogprob: 0,
  referenceLogprob: 0,
  advantage: 0,
  weight: 0,
  return: 0,
  oldValue: 0,
  valueWeight: 0,
} satisfies DecisionFeed;

/** Sizes of a batch's arrays. */
interface Layout {
  /** Groups, members of the largest, tokens of the longest member, all tokens of members. */
  readonly G: number;
  readonly K: number;
  readonly T: number;
  readonly N: number;
  /** Decisions of the group with the most, and rows of the decision columns. */
  readonly perGroup: number;
  readonly rows: number;
  /** Alternatives of one decision: candidates of a choice, or the vocabulary. */
  readonly width: number;
}

function layoutOf(
  { vocabSize }: ModelConfig,
  decoder: DecoderKind,
  groups: readonly TrainGroup[],
  predicted: number,
): Layout {
  const members = groups.flatMap((group) => group.members);
  const G = groups.length;
  const perGroup = largestOf(groups.map((group) => decisionCount([group])));
  return {
    G,
    K: largestOf(groups.map((group) => group.members.length)),
    T: largestOf(members.map(({ tokens }) => tokens.length)),
    N: members.reduce((sum, { tokens }) => sum + tokens.length, 0),
    perGroup,
    rows: decoder === 'choice' ? G * perGroup : decisionCount(groups) + predicted,
    width:
      decoder === 'choice'
        ? largestOf(
            groups.map(({ candidates }) => candidates.length),
            1,
          )
        : vocabSize,
  };
}

/**
 * @param codec spells candidates, and names the ids that free sampling may draw
 * @param decoding without `masked`, no decision may name the ids that were possible
 * @param groups at least one, each with at least one decision
 * @param feedOf inputs of the loss of a decision; `at` counts decisions in order. Absent for a pass that only measures
 * @param observationWeight weight of each of the world's tokens, which are then predicted too: decoder tokens, not masked
 * @returns the program's inputs, and the row of each decision in the programs' outputs
 */
export function trainingFeeds(
  config: ModelConfig,
  codec: Pick<Codec, 'spell' | 'sampled'>,
  { decoder, masked = true }: Decoding,
  groups: readonly TrainGroup[],
  feedOf: (decision: TrainDecision, at: number) => DecisionFeed = () => NOTHING,
  observationWeight?: number,
): { readonly feeds: Record<string, HostTensor>; readonly rows: Int32Array } {
  const layout = layoutOf(config, decoder, groups, observationWeight === undefined ? 0 : countWorldTokens(groups));
  const prompts = groups.map(({ prompt }) => prompt);
  const { feeds, rows } = decisionColumns(codec, { decoder, masked }, groups, layout, feedOf, observationWeight);
  return {
    rows,
    feeds: {
      ...promptFeeds(config, prompts, largestOf(prompts.map(({ tokens }) => tokens.length))),
      ...tokenColumns(config, groups, layout),
      ...feeds,
      ...(decoder === 'choice' ? candidateFeeds(config, codec, groups) : {}),
    },
  };
}

/** Members' tokens: packed [N], and where each stands in the padded layout [G, K, T]. */
function tokenColumns(
  config: ModelConfig,
  groups: readonly TrainGroup[],
  { G, K, T, N }: Layout,
): Record<string, HostTensor> {
  const ids = new Int32Array(N);
  const previous1 = new Int32Array(N);
  const previous2 = new Int32Array(N);
  const focus = new Float32Array(N);
  const positions = new Int32Array(N);
  const index = new Int32Array(G * K * T).fill(-1);
  const inverse = new Int32Array(N);
  const padded = new Int32Array(G * K * T).fill(-1);
  let n = 0;
  groups.forEach(({ prompt, members }, g) => {
    const P = prompt.tokens.length;
    members.forEach(({ tokens }, k) => {
      const readToken = (i: number) => (i >= 0 ? tokens[i]! : (prompt.tokens[P + i] ?? PAD));
      padded.set(tokens, (g * K + k) * T);
      tokens.forEach((id, t) => {
        ids[n] = id;
        previous1[n] = readToken(t - 1);
        previous2[n] = readToken(t - 2);
        focus[n] = prompt.focus.has(id) ? 1 : 0;
        positions[n] = P + t;
        index[(g * K + k) * T + t] = n;
        inverse[n] = (g * K + k) * T + t;
        n++;
      });
    });
  });
  const feeds: Record<string, HostTensor> = {
    'tokens.ids': i32([N], ids),
    'tokens.positions': i32([N], positions),
    'episodes.index': i32([G, K, T], index),
    'episodes.inverse': i32([N], inverse),
    'episodes.steps': steps(T),
  };
  if (config.tokenShift > 0) feeds['tokens.previous1'] = i32([N], previous1);
  if (config.tokenShift > 1) feeds['tokens.previous2'] = i32([N], previous2);
  if (config.focusBit) feeds['tokens.focus'] = f32([N, 1], focus);
  if (config.sameTokenBias !== undefined) feeds['episodes.padded'] = i32([G, K, T], padded);
  return feeds;
}

const COLUMNS = Object.keys(NOTHING) as (keyof typeof NOTHING)[];

/** Decisions: where they stand, what was possible, what was chosen, and the loss's own columns. */
function decisionColumns(
  { sampled }: Pick<Codec, 'sampled'>,
  { decoder, masked }: Decoding,
  groups: readonly TrainGroup[],
  { G, N, perGroup, rows, width }: Layout,
  feedOf: (decision: TrainDecision, at: number) => DecisionFeed,
  observationWeight: number | undefined,
): { readonly feeds: Record<string, HostTensor>; readonly rows: Int32Array } {
  const index = new Int32Array(rows).fill(-1);
  const inverse = new Int32Array(N).fill(-1);
  const mask = decoder === 'choice' ? new Float32Array(rows * width).fill(-1e9) : undefined;
  const chosen = new Int32Array(rows);
  const columns = COLUMNS.map((name) => ({ name, values: new Float32Array(rows) }));
  const rowOf = new Int32Array(decisionCount(groups));
  const sequences = new SequenceColumns(rows);
  let teacher: Float32Array | undefined;
  const observed = observationWeight === undefined ? undefined : new Float32Array(rows);
  let start = 0; // of the member's tokens
  let decided = 0;
  let predicted = rowOf.length; // rows of the world's tokens lie behind those of decisions
  groups.forEach(({ members }, g) => {
    let inGroup = 0;
    for (const member of members) {
      const { tokens, decisions } = member;
      for (const decision of decisions) {
        const row = decoder === 'choice' ? g * perGroup + inGroup++ : decided;
        index[row] = start + decision.at;
        inverse[start + decision.at] = row;
        if (mask) for (const id of decision.allowed!) mask[row * width + id] = 0;
        chosen[row] = decision.chosen;
        const fed = feedOf(decision, decided);
        for (const { name, values } of columns) values[row] = fed[name];
        sequences.add(row, fed);
        if (fed.teacher) {
          teacher ??= new Float32Array(rows * width);
          for (const [i, id] of decision.allowed!.entries()) teacher[row * width + id] = fed.teacher[i]!;
        }
        rowOf[decided++] = row;
      }
      if (observed) {
        for (const { at, id } of listWorldTokens(member)) {
          index[predicted] = start + at;
          inverse[start + at] = predicted;
          chosen[predicted] = id;
          observed[predicted++] = observationWeight!;
        }
      }
      start += tokens.length;
    }
  });
  // Rows that pad the layout need one possible action, or their softmax would be over nothing.
  if (mask) for (let row = 0; row < rows; row++) if (index[row] === -1) mask[row * width] = 0;

  const shape = decoder === 'choice' ? [G, perGroup] : [rows];
  const feeds: Record<string, HostTensor> = {
    'decisions.index': i32(shape, index),
    'decisions.inverse': i32([N], inverse),
    ...(mask ? { 'decisions.mask': f32([...shape, width], mask) } : {}),
    ...(decoder === 'tokens' && masked ? possibleColumns(decisionsOf(groups), sampled, width) : {}),
    'decisions.chosen': i32([...shape, 1], chosen),
    ...sequences.feeds(shape),
    ...(teacher ? { 'decisions.teacher': f32([...shape, width], teacher) } : {}),
    ...(observed ? { 'decisions.observationWeight': f32(shape, observed) } : {}),
  };
  for (const { name, values } of columns) feeds[`decisions.${name}`] = f32(shape, values);
  return { feeds, rows: rowOf };
}

/** Columns of sequences that share a ratio: each row names the first row of its sequence. */
class SequenceColumns {
  readonly #ids: Int32Array;
  readonly #shares: Float32Array;
  readonly #firstOf = new Map<number, number>();

  constructor(rows: number) {
    this.#ids = Int32Array.from({ length: rows }, (_, row) => row); // padding: sequences of their own
    this.#shares = new Float32Array(rows);
  }

  add(row: number, { sequence, sequenceShare = 0 }: DecisionFeed): void {
    if (sequence === undefined) return;
    const first = this.#firstOf.get(sequence) ?? row;
    this.#firstOf.set(sequence, first);
    this.#ids[row] = first;
    this.#shares[row] = sequenceShare;
  }

  /** Feeds of the columns; none where no decision names its sequence. */
  feeds(shape: readonly number[]): Record<string, HostTensor> {
    if (this.#firstOf.size === 0) return {};
    return {
      'decisions.sequence': i32([...shape], this.#ids),
      'decisions.sequenceShare': f32([...shape], this.#shares),
    };
  }
}

/**
 * Ids that each token decision could draw (`possibleMask`): its list, or all that are sampled where it has none. A list of more
 * than half of the vocabulary is fed as its complement: ids that are taken out of those that are sampled.
 */
function possibleColumns(
  decisions: readonly TrainDecision[],
  sampled: Codec['sampled'],
  vocabSize: number,
): Record<string, HostTensor> {
  const rows = decisions.length;
  const complements = new Map<object, Int32Array>();
  const lists = decisions.map(({ allowed }) => {
    const isMost = allowed !== undefined && allowed.length * 2 > vocabSize;
    // Ascending: its ends show whether free sampling draws all of it.
    if (!isMost || allowed[0]! < sampled.from || allowed.at(-1)! >= sampled.to) {
      return { ids: allowed as ArrayLike<number> | undefined, isComplement: false };
    }
    let ids = complements.get(allowed);
    if (!ids) complements.set(allowed, (ids = complementOf(allowed, sampled)));
    return { ids, isComplement: true };
  });
  const longest = largestOf(
    lists.map((list) => list.ids?.length ?? 0),
    1,
  );
  const ids = new Int32Array(rows * longest);
  const lift = new Float32Array(rows * longest);
  const listed = new Float32Array(rows);
  for (const [row, list] of lists.entries()) {
    if (!list.ids) continue;
    listed[row] = list.isComplement ? 0 : 1;
    ids.set(list.ids, row * longest);
    lift.fill(list.isComplement ? -1e9 : 1e9, row * longest, row * longest + list.ids.length);
  }
  return {
    'decisions.allowed': i32([rows, longest], ids),
    'decisions.lift': f32([rows, longest], lift),
    'decisions.listed': f32([rows, 1], listed),
    'decisions.sampled': f32([1, vocabSize], new Float32Array(vocabSize).fill(-1e9).fill(0, sampled.from, sampled.to)),
  };
}

/** Ids that are sampled and not in a list. */
function complementOf(allowed: readonly number[], { from, to }: Codec['sampled']): Int32Array {
  const isAllowed = new Uint8Array(to);
  for (const id of allowed) isAllowed[id] = 1;
  const others: number[] = [];
  for (let id = from; id < to; id++) if (isAllowed[id] === 0) others.push(id);
  return Int32Array.from(others);
}
