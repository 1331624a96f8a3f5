/**
 * Turns and their answers in columns, for the same reason as the batches of the env hosts. A thread's message pays for
 * every object and every array in it; a batch has hundreds of turns, a run thousands of batches. Rare parts (a history,
 * a rendered prompt, a language model's answer) stay objects.
 *
 * Both directions walk the columns once, in the order of the turns: each column keeps a cursor, and a head gives the
 * step of a turn.
 */
import type { Decision } from '../core/trajectory.ts';
import type { Acted, ActRequest } from './policy.ts';

/** Batch of requests, in order. */
export interface RequestBatch {
  /** [N, 9]: kind, episode, group, member, group size, turn, sampling seed, number of actions, number of new actions */
  readonly heads: Int32Array;
  /** [N] temperature of each; float64, so that a value comes out as it went in. */
  readonly temperatures: Float64Array;
  /** Observations of the requests that are not whole. */
  readonly observations: readonly string[];
  /** Worlds of the requests that have no last action; empty where a request names none. */
  readonly worlds: readonly string[];
  /** Last actions of the requests that have one. */
  readonly lastActions: readonly string[];
  /** Action indices of all requests, one after the other. */
  readonly actions: Int32Array;
  /** Texts appended to the episodes' action tables, of all requests, one after the other. */
  readonly newActions: readonly string[];
  /** Requests with a history, a given prompt or settings of sampling. */
  readonly whole: readonly ActRequest[];
}

/** Kind of an item that is an object in `whole`, in both directions; 0, so that a fresh head means it by itself. */
const WHOLE = 0;
/** Kind of a first request: no last action. */
const FIRST = 1;
const LATER = 2;
/** Kind of a later request whose last action was a stage. */
const STAGED = 3;
const REQUEST_HEAD = 9;

/** Packs requests as columns, in order. */
export function packRequests(requests: readonly ActRequest[]): RequestBatch {
  const heads = new Int32Array(REQUEST_HEAD * requests.length);
  const temperatures = new Float64Array(requests.length);
  const observations: string[] = [];
  const worlds: string[] = [];
  const lastActions: string[] = [];
  const newActions: string[] = [];
  const whole: ActRequest[] = [];
  let listed = 0;
  // Sizes first: typed arrays do not grow, and growing plain ones would cost what the columns save.
  for (const request of requests) if (isPlain(request)) listed += request.actions.length;
  const actions = new Int32Array(listed);
  listed = 0;
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    if (!isPlain(request)) {
      whole.push(request);
      continue; // its kind is WHOLE, 0
    }
    const at = REQUEST_HEAD * i;
    heads[at] = request.lastAction === undefined ? FIRST : request.partial ? STAGED : LATER;
    heads[at + 1] = request.episode;
    heads[at + 2] = request.group;
    heads[at + 3] = request.member;
    heads[at + 4] = request.groupSize;
    heads[at + 5] = request.turn;
    heads[at + 6] = request.samplingSeed; // a uint32 comes out again by >>> 0
    heads[at + 7] = request.actions.length;
    heads[at + 8] = request.newActions.length;
    temperatures[i] = request.temperature;
    observations.push(request.observation);
    if (request.lastAction !== undefined) lastActions.push(request.lastAction);
    else worlds.push(request.world ?? '');
    actions.set(request.actions, listed);
    listed += request.actions.length;
    for (const text of request.newActions) newActions.push(text);
  }
  return { heads, temperatures, observations, worlds, lastActions, actions, newActions, whole };
}

/**
 * Unpacks requests; their `actions` are views of the batch. A batch that never left its thread is returned as it is.
 */
export function unpackRequests(batch: RequestBatch | readonly ActRequest[]): readonly ActRequest[] {
  if (isList(batch)) return batch;
  const { heads, temperatures, observations, worlds, lastActions, actions, newActions, whole } = batch;
  const out: ActRequest[] = [];
  let object = 0;
  let observation = 0;
  let first = 0;
  let last = 0;
  let action = 0;
  let text = 0;
  for (let at = 0, i = 0; at < heads.length; at += REQUEST_HEAD, i++) {
    const kind = heads[at]!;
    if (kind === WHOLE) {
      out.push(whole[object++]!);
      continue;
    }
    const added = heads[at + 8]!;
    out.push({
      episode: heads[at + 1]!,
      group: heads[at + 2]!,
      member: heads[at + 3]!,
      groupSize: heads[at + 4]!,
      turn: heads[at + 5]!,
      observation: observations[observation++]!,
      ...(kind === FIRST ? namedWorld(worlds[first++]!) : { lastAction: lastActions[last++]! }),
      ...(kind === STAGED ? { partial: true as const } : {}),
      // A view: the policy reads it at once, and the batch is its own.
      actions: actions.subarray(action, (action += heads[at + 7]!)),
      newActions: added === 0 ? [] : newActions.slice(text, (text += added)),
      samplingSeed: heads[at + 6]! >>> 0,
      temperature: temperatures[i]!,
    });
  }
  return out;
}

/** World of a first request; nothing where it named none. */
function namedWorld(world: string): Pick<ActRequest, 'world'> {
  return world === '' ? {} : { world };
}

function isList(batch: RequestBatch | readonly ActRequest[]): batch is readonly ActRequest[] {
  return Array.isArray(batch);
}

/** True for a request that fits the columns: no history, prompt or sampling of its own, a stage only after an action, a world only before one. */
function isPlain({ given, history, sampling, stop, partial, lastAction, world }: ActRequest): boolean {
  const isRare = given !== undefined || history !== undefined || sampling !== undefined || stop !== undefined;
  return !isRare && (lastAction === undefined ? !partial : world === undefined);
}

/** Batch of answers, in order. */
export interface ActedBatch {
  /**
   * [N, 9]: kind, episode, turn, version, choice (or number of tokens), length of the context, whether it has stages, length of
   * `versions`, length of `likeliest`
   */
  readonly heads: Int32Array;
  /** [N, 5]: value, log-probability of the choice, and of the stages waitMs, prefillMs, decodeMs */
  readonly numbers: Float64Array;
  /** Texts for the envs, of the answers that are not whole. */
  readonly actions: readonly string[];
  /** Contexts of all decisions, each followed by its sampled tokens if there are any. */
  readonly tokens: Int32Array;
  /** Log-probabilities of the sampled tokens. */
  readonly logprobs: Float32Array;
  /** Versions of the runs that were sampled under more than one. */
  readonly versions: Int32Array;
  /** Likeliest actions of the choices that carry them. */
  readonly likeliest: Int32Array;
  /** Answers without a decision, or of a language model. */
  readonly whole: readonly Acted[];
}

const CHOICE = 1;
const TOKENS = 2;
const MASKED_TOKENS = 3;
const ACTED_HEAD = 9;
const ACTED_NUMBERS = 5;

/** Packs answers as columns, in order. */
export function packActed(turns: readonly Acted[]): ActedBatch {
  const heads = new Int32Array(ACTED_HEAD * turns.length);
  const numbers = new Float64Array(ACTED_NUMBERS * turns.length);
  const actions: string[] = [];
  const whole: Acted[] = [];
  let read = 0;
  let sampled = 0;
  let changes = 0;
  let ranked = 0;
  // Sizes first, as above.
  for (const { decision, response } of turns) {
    if (!decision || response) continue;
    read += decision.context.length;
    if (decision.kind === 'choice') {
      ranked += decision.likeliest?.length ?? 0;
      continue;
    }
    sampled += decision.tokens.length;
    changes += decision.versions?.length ?? 0;
  }
  const tokens = new Int32Array(read + sampled);
  const logprobs = new Float32Array(sampled);
  const versions = new Int32Array(changes);
  const likeliest = new Int32Array(ranked);
  read = sampled = changes = ranked = 0;
  for (let i = 0; i < turns.length; i++) {
    const turn = turns[i]!;
    const { decision, response, stages } = turn;
    if (!decision || response) {
      whole.push(turn); // its head stays zero, which reads as WHOLE
      continue;
    }
    const at = ACTED_HEAD * i;
    const n = ACTED_NUMBERS * i;
    heads[at + 1] = turn.episode;
    heads[at + 2] = turn.turn;
    heads[at + 3] = decision.version;
    heads[at + 5] = decision.context.length;
    numbers[n] = decision.value;
    tokens.set(decision.context, read);
    read += decision.context.length;
    if (decision.kind === 'choice') {
      heads[at] = CHOICE;
      heads[at + 4] = decision.choice;
      numbers[n + 1] = decision.logprob;
      if (decision.likeliest) {
        heads[at + 8] = decision.likeliest.length;
        likeliest.set(decision.likeliest, ranked);
        ranked += decision.likeliest.length;
      }
    } else {
      heads[at] = decision.masked ? MASKED_TOKENS : TOKENS;
      heads[at + 4] = decision.tokens.length;
      tokens.set(decision.tokens, read);
      logprobs.set(decision.logprobs, sampled);
      read += decision.tokens.length;
      sampled += decision.tokens.length;
      if (decision.versions) {
        heads[at + 7] = decision.versions.length;
        versions.set(decision.versions, changes);
        changes += decision.versions.length;
      }
    }
    actions.push(turn.action);
    if (!stages) continue;
    heads[at + 6] = 1;
    numbers[n + 2] = stages.waitMs;
    numbers[n + 3] = stages.prefillMs;
    numbers[n + 4] = stages.decodeMs;
  }
  return { heads, numbers, actions, tokens, logprobs, versions, likeliest, whole };
}

/** Unpacks answers; contexts and runs are copies, so that none keeps its batch alive. */
export function unpackActed(batch: ActedBatch): Acted[] {
  const { heads, numbers, actions, tokens, logprobs, versions, likeliest, whole } = batch;
  const out: Acted[] = [];
  let object = 0;
  let action = 0;
  let read = 0;
  let sampled = 0;
  let changes = 0;
  let ranked = 0;
  for (let at = 0, n = 0; at < heads.length; at += ACTED_HEAD, n += ACTED_NUMBERS) {
    const kind = heads[at]!;
    if (kind === WHOLE) {
      out.push(whole[object++]!);
      continue;
    }
    const version = heads[at + 3]!;
    const value = numbers[n]!;
    // Copies: trajectories keep them, and a view would carry the whole batch along wherever it is sent next.
    const context = tokens.slice(read, (read += heads[at + 5]!));
    let decision: Decision;
    if (kind === CHOICE) {
      decision = {
        kind: 'choice',
        version,
        context,
        value,
        choice: heads[at + 4]!,
        logprob: numbers[n + 1]!,
        ...(heads[at + 8] === 0 ? {} : { likeliest: likeliest.slice(ranked, (ranked += heads[at + 8]!)) }),
      };
    } else {
      const length = heads[at + 4]!;
      decision = {
        kind: 'tokens',
        version,
        context,
        value,
        tokens: tokens.slice(read, (read += length)),
        logprobs: logprobs.slice(sampled, (sampled += length)),
        masked: kind === MASKED_TOKENS,
        ...(heads[at + 7] === 0 ? {} : { versions: versions.slice(changes, (changes += heads[at + 7]!)) }),
      };
    }
    const turn = { episode: heads[at + 1]!, turn: heads[at + 2]!, action: actions[action++]!, decision };
    if (heads[at + 6] === 0) out.push(turn);
    else {
      const stages = { waitMs: numbers[n + 2]!, prefillMs: numbers[n + 3]!, decodeMs: numbers[n + 4]! };
      out.push({ ...turn, stages });
    }
  }
  return out;
}
