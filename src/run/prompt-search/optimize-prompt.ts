/**
 * Search for a better system message of a language model, as GEPA makes it: a model reflects on episodes and proposes a prompt. One
 * that does better on a small batch joins the pool, and the parent of the next is drawn by the tasks on which it is among the best. All
 * prompts play the same tasks under the same seeds. Tasks that no step has seen decide.
 *
 * It differs from the paper in two points: there is one prompt, so no crossover of modules; and the final choice is tested.
 * @see Agrawal et al. 2025, algorithm 1, https://arxiv.org/abs/2507.19457
 */

import { policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { mean } from '../../console/numbers.ts';
import { AGENT } from '../../core/agent-call.ts';
import type { ChatModel } from '../../core/chat-model.ts';
import type { Env } from '../../core/env.ts';
import { LongplayError, UserError } from '../../core/errors.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import type { Task } from '../../core/task.ts';
import { episodeReturn, type Trajectory } from '../../core/trajectory.ts';
import { averageOverTasks, type Estimated } from '../../learning/evaluation/intervals.ts';
import { comparePaired } from '../../learning/evaluation/over-seeds.ts';
import { listTrainTasks } from '../../learning/evaluation/tasks.ts';
import { requireFinished } from '../evaluate-run.ts';
import { findWorld, worldUrl } from '../find-world.ts';
import { samplingOf } from '../rollout-plan.ts';
import { startRun } from '../start-run.ts';
import { selectParent } from './pareto.ts';
import { makeReflection, readProposal } from './reflection.ts';
import type { CandidateStep, PlayedTasks, SearchPlan, SearchState } from './search-state.ts';

/** Replies without a new prompt, one after another, that end a search: further ones would be no better. */
const MAX_UNUSABLE = 5;

/** Result of a prompt on the held-out tasks. */
export interface HeldOutResult {
  readonly success: Estimated;
  /** Mean return. */
  readonly score: number;
}

/** Outcome of a search. */
export interface PromptSearchOutcome {
  /** Best prompt by the selection tasks; the configuration's own where none did better. */
  readonly best: { readonly candidate: number; readonly prompt: string };
  readonly candidates: number;
  readonly spent: number;
  /** Own prompt and best one on the held-out tasks, the mean difference of returns by task with its 95 % interval. */
  readonly own: HeldOutResult;
  readonly found: HeldOutResult;
  readonly difference: Estimated;
  /** True where the interval of the difference is above 0: the prompt is better on tasks that it has not seen. */
  readonly isBetter: boolean;
}

export interface PromptSearchOptions {
  /** Folder of the search. */
  readonly dir: string;
  readonly config: RunConfig;
  readonly state: SearchState;
  readonly proposer: Pick<ChatModel, 'reply'>;
  readonly onNotice: (line: string) => void;
  readonly onProgress: (line: string) => void;
  /** Resolves, with the reason, when it is to end early. */
  readonly interrupted: Promise<string>;
}

/**
 * Divides the tasks of a world: the test split decides where training has none of it, else a part of the training tasks.
 * @param counts tasks that select prompts, and that decide, at most
 * @throws {UserError} BAD_ARGUMENT for a world with too few tasks, or a policy or world whose prompt is not this one
 */
export async function planPromptSearch(
  config: RunConfig,
  counts: { readonly selection: number; readonly heldOut: number },
  rest: Pick<SearchPlan, 'seed' | 'budget' | 'minibatch' | 'horizon' | 'proposer'>,
): Promise<SearchPlan> {
  const { isRemote, isLanguageModel } = policyKindOf(config);
  if (!isRemote && !isLanguageModel) {
    const why = `policy.kind '${config.policy.kind}' reads no prompt; use openai, checkpoint or server`;
    throw new UserError('BAD_ARGUMENT', `optimize-prompt: ${why}`);
  }
  const { world, env } = await findWorld(config.env.id, config.env.options);
  if (config.env.id === AGENT || world.tools) {
    const why = 'its calls bring their own system message: change it where the calls are made';
    throw new UserError('BAD_ARGUMENT', `optimize-prompt: ${env.id} is a world of calls, and ${why}`);
  }
  const rng = Rng.fromSeed(seedFrom(rest.seed, 'prompt tasks'));
  const train = rng.shuffle(listTrainTasks(env, config.tasks));
  const learnt = new Set(train);
  const { labels } = config.tasks;
  const isAsked = (index: number) => labels === undefined || labels.includes(env.tasks.label(index));
  const unseen = rng.shuffle(env.tasks.split('test').filter((index) => !learnt.has(index) && isAsked(index)));
  // A world that holds nothing out: a third of its tasks is kept apart here.
  const heldOut = unseen.length > 0 ? unseen : train.splice(0, Math.floor(train.length / 3));
  const selection = train.splice(0, Math.min(counts.selection, Math.floor(train.length / 2)));
  const { minibatch, budget } = rest;
  if (heldOut.length === 0 || selection.length === 0 || train.length < minibatch) {
    const need = `tasks to reflect on (${minibatch}), to select by and to decide by`;
    throw new UserError('BAD_ARGUMENT', `optimize-prompt: ${env.id} has ${env.tasks.count} tasks: expected ${need}`);
  }
  const least = 2 * selection.length + 2 * minibatch;
  if (budget < least) {
    const why = `one step takes ${least} episodes: ${selection.length} tasks twice and a batch of ${minibatch} twice`;
    throw new UserError('BAD_ARGUMENT', `optimize-prompt: --budget ${budget}: ${why}`);
  }
  return {
    kind: 'plan',
    format: 1,
    ...rest,
    feedback: train,
    selection,
    heldOut: heldOut.slice(0, counts.heldOut),
  };
}

/**
 * Searches until the budget is spent, then plays the held-out tasks. What is finished is in `state`, so that it can go on.
 * @throws {LongplayError} REMOTE_FAILED, ENV_BROKEN where episodes fail for good: a missing one is no failure of the prompt
 */
export async function optimizePrompt(options: PromptSearchOptions): Promise<PromptSearchOutcome> {
  const { config, state, onNotice, onProgress } = options;
  const { plan } = state;
  const { env } = await findWorld(config.env.id, config.env.options);
  const player = new PromptPlayer(options, env);
  if (state.candidates.length === 0) {
    const prompt = config.policy.chat.system ?? '';
    const played = summarise(await player.play(prompt, plan.selection));
    state.add({ kind: 'candidate', episodes: plan.selection.length, parent: null, prompt, played });
  }
  const step = 2 * plan.minibatch + plan.selection.length;
  while (state.spent + step <= plan.budget) {
    if (countUnusable(state) >= MAX_UNUSABLE) {
      onNotice(`${MAX_UNUSABLE} replies of the proposer one after another held no new prompt: the search ends here`);
      break;
    }
    onProgress(`${state.spent} of ${plan.budget} episodes, ${state.candidates.length} prompts`);
    await makeStep(options, player);
  }
  const best = bestOf(state.candidates);
  const own = await playHeldOut(state, player, 0);
  const found = await playHeldOut(state, player, best);
  const difference = comparePaired(found.returns, own.returns);
  return {
    best: { candidate: best, prompt: state.candidates[best]!.prompt },
    candidates: state.candidates.length,
    spent: state.spent,
    own: resultOf(own),
    found: resultOf(found),
    difference,
    isBetter: best !== 0 && difference.low > 0,
  };
}

/** Makes one step: a parent, a batch, a proposal, and its test. */
async function makeStep({ state, proposer }: PromptSearchOptions, player: PromptPlayer): Promise<void> {
  const { plan, candidates } = state;
  const number = state.steps.length;
  const rng = Rng.fromSeed(seedFrom(plan.seed, 'prompt step', number));
  const parent = selectParent(
    candidates.map(({ played }) => played.returns),
    rng,
  );
  const { prompt: old } = candidates[parent]!;
  const tasks = rng.shuffle(plan.feedback).slice(0, plan.minibatch);
  const before = await player.play(old, tasks);
  const { content } = await proposer.reply({ messages: makeReflection(old, before), seed: rng.int(2 ** 31) });
  const prompt = readProposal(content, old);
  if (prompt === undefined || state.steps.some((step) => 'prompt' in step && step.prompt === prompt)) {
    state.add({ kind: 'unusable', episodes: tasks.length, parent });
    return;
  }
  const after = await player.play(prompt, tasks);
  const minibatch: [number, number] = [mean(before.map(episodeReturn)), mean(after.map(episodeReturn))];
  if (!(minibatch[1] > minibatch[0])) {
    state.add({ kind: 'rejected', episodes: 2 * tasks.length, parent, prompt, minibatch });
    return;
  }
  const played = summarise(await player.play(prompt, plan.selection));
  const episodes = 2 * tasks.length + plan.selection.length;
  state.add({ kind: 'candidate', episodes, parent, prompt, played, minibatch });
}

/** Counts the replies without a new prompt at the end of a search. */
function countUnusable({ steps }: SearchState): number {
  const last = steps.findLastIndex(({ kind }) => kind !== 'unusable');
  return steps.length - 1 - last;
}

/** Best candidate by its mean return; of equal ones the older, which was not chosen by luck. */
function bestOf(candidates: readonly CandidateStep[]): number {
  const scores = candidates.map(({ played }) => mean(played.returns));
  return scores.indexOf(scores.reduce((most, score) => Math.max(most, score), Number.NEGATIVE_INFINITY));
}

async function playHeldOut(state: SearchState, player: PromptPlayer, candidate: number): Promise<PlayedTasks> {
  const known = state.steps.find((step) => step.kind === 'held-out' && step.candidate === candidate);
  if (known?.kind === 'held-out') return known.played;
  const played = summarise(await player.play(state.candidates[candidate]!.prompt, state.plan.heldOut));
  state.add({ kind: 'held-out', candidate, played });
  return played;
}

/** Player of prompts: each task once, under the seed that all prompts share. */
class PromptPlayer {
  readonly #options: PromptSearchOptions;
  readonly #env: Env;
  /** Notices that were given: each run would repeat them. */
  readonly #noticed = new Set<string>();

  constructor(options: PromptSearchOptions, env: Env) {
    this.#options = options;
    this.#env = env;
  }

  /** Plays tasks. @returns their episodes, in the order of the tasks */
  async play(prompt: string, indices: readonly number[]): Promise<readonly Trajectory[]> {
    const { dir, config, state, interrupted } = this.#options;
    const { system: _, ...chat } = config.policy.chat;
    const tasks = indices.map((index): Task => ({ env: this.#env.id, index, seed: this.#env.tasks.evalSeed }));
    const finished = new Map<number, Trajectory>();
    const run = await startRun({
      config: {
        ...config,
        policy: { ...config.policy, chat: prompt === '' ? chat : { ...chat, system: prompt } },
        trace: { ...config.trace, everyGroups: 0 },
      },
      dir, // a base model may be kept beside it
      mode: 'async',
      envModule: worldUrl(config.env.id, config.env.options),
      learn: false,
      onNotice: (notice) => this.#notify(notice),
      onEpisodes: (trajectories) => {
        for (const one of trajectories) finished.set(one.task.index, one);
      },
    });
    try {
      const { horizon, seed } = state.plan;
      const playing = run.evaluate({
        name: 'prompt',
        tasks,
        episodes: 1,
        horizon,
        ...samplingOf(config, undefined),
        seed,
      });
      const record = await Promise.race([playing, interrupted]);
      if (typeof record === 'string') {
        playing.catch(() => {}); // given up: it fails when the run stops
        throw new LongplayError('ACTOR_STOPPED', `${record}: the search is stopped`);
      }
      requireFinished(record);
      await run.flush();
      const missing = tasks.length - finished.size;
      if (missing > 0) {
        const { cause, message } = record.failure!;
        throw new LongplayError(
          'REMOTE_FAILED',
          `${missing} of ${tasks.length} episodes failed (${cause}: ${message})`,
        );
      }
    } finally {
      await run.stop();
    }
    return indices.map((index) => finished.get(index)!);
  }

  #notify(notice: string): void {
    if (!this.#noticed.has(notice)) this.#options.onNotice(notice);
    this.#noticed.add(notice);
  }
}

function summarise(episodes: readonly Trajectory[]): PlayedTasks {
  return { returns: episodes.map(episodeReturn), successes: episodes.map(({ success }) => success) };
}

function resultOf({ returns, successes }: PlayedTasks): HeldOutResult {
  return { success: averageOverTasks(successes.map(Number), successes.length), score: mean(returns) };
}
