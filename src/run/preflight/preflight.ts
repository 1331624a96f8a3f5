/**
 * Preflight of a run: what to know before hours of a GPU are bought. It plays the configured world or agent at random, by trivial
 * rules, by its oracle, with a toy policy that trains, and with the configured model where that lies here. All of it within minutes.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Run } from '../../../actors/tree.ts';
import { parameterSpecs } from '../../compute/model/parameters.ts';
import { checkRunConfig } from '../../config/load.ts';
import { policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { mean } from '../../console/numbers.ts';
import { AGENT } from '../../core/agent-call.ts';
import type { Env } from '../../core/env.ts';
import { isUserMistake, messageOf } from '../../core/errors.ts';
import { append, largestOf } from '../../core/extremes.ts';
import { firstLineOf } from '../../core/first-line.ts';
import { isHubName } from '../../core/hub-name.ts';
import { seedFrom } from '../../core/rng.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import type { World } from '../../core/world.ts';
import { listTrainTasks } from '../../learning/evaluation/tasks.ts';
import type { RunStatus } from '../../metrics/run-status.ts';
import { readModelFacts } from '../../policy/pretrained/folder.ts';
import { locateInHubCache } from '../../policy/pretrained/hub-cache.ts';
import { countMemory, countNumbers } from '../../policy/pretrained/model-memory.ts';
import { isEndAction, RULES, type Rule } from '../../policy/rule-policy.ts';
import { setUpLocalPolicy } from '../../policy/setup.ts';
import { setUpReader } from '../../policy/setup-checkpoint.ts';
import { worldPrompt } from '../../text/prompts/world-prompt.ts';
import { replayTurns } from '../../text/reading/replay-turns.ts';
import { findWorld, worldUrl } from '../find-world.ts';
import { summariseSample } from '../play-sample.ts';
import { startRun } from '../start-run.ts';
import { type Play, type PlayFacts, summarisePlay } from './episodes.ts';
import { type Estimate, type EstimateInput, estimateRun, secondsOn } from './estimate.ts';
import { HARDWARE } from './hardware.ts';
import {
  brief,
  judgeAnswers,
  judgeEstimate,
  judgeHorizon,
  judgeMemory,
  judgeParts,
  judgePlay,
  judgeRules,
  judgeTokens,
  judgeToy,
  type Row,
  type RulePlay,
  type TokenFacts,
} from './verdicts.ts';

/** Options of a preflight. */
export interface PreflightOptions {
  readonly config: RunConfig;
  /** Bound of the whole, in minutes. */
  readonly minutes: number;
  /** Names in `HARDWARE` to compute the run's time for. */
  readonly hardware: readonly string[];
  /** Share of the hardware's peak that is reached, in (0, 1]. */
  readonly utilisation: number;
  /** Price of an hour of the hardware, in whatever currency. */
  readonly pricePerHour?: number | undefined;
  /** Ends it early: what is not found yet is left out. */
  readonly interrupt?: AbortSignal | undefined;
  /** Called with what is done now, a few times a second. @param secondsLeft of the bound */
  readonly onProgress?: ((what: string, secondsLeft: number) => void) | undefined;
}

/** Report of a preflight. */
export interface PreflightReport {
  readonly rows: readonly Row[];
  /** Facts of each play, by the policy: `random`, `oracle`, `rule first`, `toy`, `policy`. */
  readonly plays: Readonly<Record<string, PlayFacts & { readonly failures: Play['failed']; readonly seconds: number }>>;
  readonly tokens: TokenFacts | undefined;
  readonly estimate: Estimate | undefined;
  /** Times on named hardware: computed, not measured. */
  readonly hardware: readonly HardwareTime[];
  readonly seconds: number;
  /** True where it was interrupted. */
  readonly interrupted: boolean;
}

/** Time of the whole run on named hardware. */
export interface HardwareTime {
  readonly name: string;
  readonly seconds: number;
  readonly cost: number | undefined;
}

/** Episodes of one play at most: success is known to 12 points then. */
const EPISODES = 64;
/** Episodes of the real policy at most. */
const MODEL_EPISODES = 8;
/** Shares of the bound: play at random, the oracle, all rules together, the configured model; the toy has the rest. */
const SHARES = { random: 0.12, oracle: 0.06, rules: 0.2, model: 0.2 } as const;
/** Turns that the oracle may take, as a multiple of the horizon, and at least. */
const ORACLE_HORIZON = { times: 4, least: 50 } as const;

/** State of a preflight under way. */
interface Session {
  readonly options: PreflightOptions;
  readonly env: Env;
  readonly world: World;
  readonly horizon: number;
  readonly dir: string;
  /** Time at which the bound is reached, by `performance.now()`. */
  readonly endsAt: number;
}

/**
 * Finds out what a run has to expect. Nothing is left behind: its files lie in a folder of the system's, which goes.
 * @throws {UserError} for a world, an option or a model that cannot be
 */
export async function preflight(options: PreflightOptions): Promise<PreflightReport> {
  const { config, minutes } = options;
  const began = performance.now();
  const { env, world } = await findWorld(config.env.id, config.env.options);
  listTrainTasks(env, config.tasks); // a label that is not there is the caller's mistake
  const dir = mkdtempSync(join(tmpdir(), 'longplay-preflight-'));
  const session: Session = {
    ...{ options, env, world, dir },
    horizon: largestOf([config.horizon.rounds].flat()),
    endsAt: began + minutes * 60_000,
  };
  try {
    return await investigate(session, began);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function investigate(session: Session, began: number): Promise<PreflightReport> {
  const { options, env, world, horizon } = session;
  const { config, minutes, interrupt } = options;
  const kind = policyKindOf(config);
  const slice = (share: number) => share * minutes * 60_000;
  const rows: Row[] = [];
  const plays = new Map<string, Play>();
  const keep = (name: string, play: Play) => {
    plays.set(name, play);
    return play;
  };

  const random = keep('random', await playRule(session, undefined, slice(SHARES.random)));
  append(rows, judgePlay(random, env.id));
  let oracle: Play | undefined;
  if (world.createOracle) {
    oracle = keep('oracle', await playOracle(session, slice(SHARES.oracle)));
    rows.push(judgeHorizon(oracle, horizon));
  }
  const canChoose = random.episodes.length > 0;
  const hasEnd = random.episodes.some(({ actionTable }) => actionTable.some(isEndAction));
  const rules = RULES.filter((rule) => (rule === 'end' ? hasEnd : canChoose || rule === 'empty' || rule === 'word'));
  const rulePlays: RulePlay[] = [];
  // Where nothing could be played there is nothing to audit.
  const isBroken = rows.some(({ verdict }) => verdict === 'stop') && !canChoose;
  for (const rule of isBroken ? [] : rules) {
    const play = await playRule(session, rule, slice(SHARES.rules) / rules.length);
    rulePlays.push({ rule, play: keep(`rule ${rule}`, play) });
  }
  // The model before the toy, which takes what time is left; its rows come after the toy's.
  const model = kind.isLanguageModel && !isBroken ? await tryModel(session, random, slice(SHARES.model)) : undefined;
  if (model?.play) keep('policy', model.play);
  const toy = canChoose ? await trainToy(session) : undefined;
  if (toy) keep('toy', toy.play);
  const best = [...(oracle ? [oracle] : []), ...(toy ? [lastTenth(toy.play)] : [])];
  append(rows, judgeRules(random, rulePlays, best));
  if (toy) {
    append(rows, judgeToy(toy.play, [random, ...rulePlays.map(({ play }) => play), ...(oracle ? [oracle] : [])]));
    append(rows, judgeParts([toy.play, random]));
  }
  append(rows, model?.rows ?? []);
  const input = kind.learns ? collectInput(session, random, toy, model) : undefined;
  const estimate = input && estimateRun(input);
  const hardware: HardwareTime[] = [];
  if (input && estimate) {
    rows.push(judgeEstimate(estimate, input));
    for (const name of options.hardware) {
      const { row, time } = judgeHardware(session, name, estimate, input, random);
      rows.push(row);
      if (time) hardware.push(time);
    }
  } else {
    const found = `policy.kind ${config.policy.kind} is not trained`;
    rows.push({ part: 'estimate', name: 'this machine', verdict: 'ok', found, advice: 'There is no run to estimate.' });
  }
  const facts = [...plays].map(
    ([name, play]) => [name, { ...summarisePlay(play), failures: play.failed, seconds: play.seconds }] as const,
  );
  return {
    ...{ rows, plays: Object.fromEntries(facts), tokens: model?.tokens, estimate, hardware },
    seconds: (performance.now() - began) / 1000,
    interrupted: interrupt?.aborted ?? false,
  };
}

/** Last tenth of a play: what the toy had become. */
function lastTenth(play: Play): Play {
  return { ...play, episodes: play.episodes.slice(-Math.ceil(play.episodes.length / 10)) };
}

/** Configuration of a play that trains nothing and keeps nothing. */
function playConfig({ options: { config } }: Session, policy: RunConfig['policy']): RunConfig {
  const { trace, evaluation, checkpoint } = config;
  return {
    ...config,
    policy,
    trace: { ...trace, everyGroups: 0 },
    evaluation: { ...evaluation, everyUpdates: 0 },
    checkpoint: { ...checkpoint, everyUpdates: Number.MAX_SAFE_INTEGER },
    warmStart: { ...config.warmStart, episodes: 0 },
  };
}

/** Configuration of defaults, for a kind of policy. */
function defaultConfig(kind: 'random' | 'oracle' | 'local'): RunConfig {
  const given = { env: { id: 'any' }, horizon: { type: 'fixed', rounds: 1 }, stop: { updates: 1 }, policy: { kind } };
  return checkRunConfig(given, 'preflight');
}

/** Plays at random, or by a rule. */
function playRule(session: Session, rule: Rule | undefined, ms: number): Promise<Play> {
  const config = playConfig(session, defaultConfig('random').policy);
  const what = rule === undefined ? 'random play' : `rule '${rule}'`;
  return play(session, { what, config, rule, horizon: session.horizon, episodes: EPISODES, ms });
}

/** Plays by the world's solver, with room beyond the horizon. */
function playOracle(session: Session, ms: number): Promise<Play> {
  const config = playConfig(session, defaultConfig('oracle').policy);
  const horizon = Math.max(ORACLE_HORIZON.least, ORACLE_HORIZON.times * session.horizon);
  return play(session, { what: 'oracle', config, horizon, episodes: EPISODES, ms });
}

interface PlayRequest {
  readonly what: string;
  readonly config: RunConfig;
  readonly rule?: Rule | undefined;
  readonly horizon: number;
  readonly episodes: number;
  readonly ms: number;
}

/** Plays training tasks, spread evenly, the same ones and under the same seeds for every policy. */
async function play(session: Session, request: PlayRequest): Promise<Play> {
  const { env, options } = session;
  const indices = listTrainTasks(env, options.config.tasks);
  const tasks = Array.from({ length: request.episodes }, (_, i) => ({
    env: env.id,
    index: indices[Math.floor((i * indices.length) / request.episodes) % indices.length]!,
    seed: seedFrom(options.config.seed, 'preflight', i),
  }));
  return withRun(session, { ...request, learn: false }, async (run) => {
    const { failure } = await run.evaluate({
      ...{ name: 'preflight', tasks, episodes: 1, horizon: request.horizon, temperature: 1 },
      seed: seedFrom(options.config.seed, 'preflight sampling'),
    });
    return failure?.message;
  });
}

/**
 * Starts a run, works with it until the work or its time is over, and stops it.
 * @param work returns the message of the last failure
 * @throws {UserError} for a mistake of the caller; any other error is the play's failure
 */
async function withRun(
  session: Session,
  { what, config, rule, ms, learn }: Omit<PlayRequest, 'horizon' | 'episodes'> & { readonly learn: boolean },
  work: (run: Run) => Promise<string | undefined>,
  onEnd: (status: RunStatus) => void = () => {},
): Promise<Play> {
  const { options, dir, endsAt } = session;
  const { interrupt, onProgress } = options;
  const episodes: Trajectory[] = [];
  const nothing = { episodes, failed: {}, seconds: 0, tokens: 0 };
  if (interrupt?.aborted) return nothing;
  const showLeft = () => onProgress?.(what, Math.max(0, (endsAt - performance.now()) / 1000));
  showLeft();
  const shown = setInterval(showLeft, 250);
  let end = () => {};
  const isOver = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined);
  });
  interrupt?.addEventListener('abort', () => end(), { once: true });
  let run: Run | undefined;
  let timer: NodeJS.Timeout | undefined;
  let seconds = 0;
  let began = performance.now();
  let status: RunStatus | undefined;
  let failure: string | undefined;
  try {
    run = await startRun({
      ...{ config, dir, mode: 'async', envModule: worldUrl(config.env.id, config.env.options), learn, rule },
      onEpisodes: (finished) => append(episodes, learn ? finished.map(omitDecisions) : finished),
      limits: { retry: { maxAttempts: 1 } },
    });
    began = performance.now();
    timer = setTimeout(() => end(), ms);
    const working = work(run);
    working.catch(() => {}); // given up where its time is over
    failure = await Promise.race([working, isOver]);
    status = await run.status();
    onEnd(status);
  } catch (thrown) {
    // A configuration that cannot be is the caller's; a world that breaks is what was to be found out.
    if (isUserMistake(thrown) && run === undefined) throw thrown;
    failure = messageOf(thrown);
  } finally {
    clearTimeout(timer);
    clearInterval(shown);
    seconds = (performance.now() - began) / 1000; // ending the run is no part of what was done
    await run?.stop();
  }
  return { episodes, failed: status?.accounting.failed ?? {}, failure, seconds, tokens: status?.tokens ?? 0 };
}

/** Episode without what its policy computed: a toy plays very many. */
function omitDecisions(one: Trajectory): Trajectory {
  return { ...one, turns: one.turns.map(({ decision: _, ...turn }) => turn) };
}

/** Toy that was trained. */
interface Toy {
  readonly play: Play;
  readonly updates: number;
  /** Seconds of training. */
  readonly seconds: number;
  readonly envSteps: number;
}

/**
 * Trains a small policy for the time that is left: the configuration's own where that is one, else the default one with the default
 * learner. It has the schedule's longest horizon from the start.
 */
async function trainToy(session: Session): Promise<Toy> {
  const { options, horizon, endsAt } = session;
  const { config } = options;
  const ms = Math.max(1000, endsAt - performance.now());
  const isOwn = config.policy.kind === 'local';
  const { policy, learner } = isOwn ? config : defaultConfig('local');
  const { ranking: _, ...unranked } = learner; // a judge elsewhere is asked for money
  const toyConfig: RunConfig = {
    ...playConfig(session, policy),
    horizon: { type: 'fixed', rounds: horizon },
    learner: unranked,
    stop: { minutes: ms / 60_000 },
  };
  let facts = { updates: 0, seconds: 0, envSteps: 0 };
  const play = await withRun(
    session,
    { what: 'toy policy', config: toyConfig, ms, learn: true },
    async (run) => {
      await run.train();
      return undefined;
    },
    ({ version: updates, elapsedMs, envSteps }) => {
      facts = { updates, seconds: elapsedMs / 1000, envSteps };
    },
  );
  return { play, ...facts };
}

/** Findings about the configured model. */
interface ModelFindings {
  readonly rows: readonly Row[];
  readonly tokens?: TokenFacts;
  readonly play?: Play;
  readonly parameters?: number;
}

/** Tries the configured language model: its tokens, its answers, its memory. Nothing is downloaded. */
async function tryModel(session: Session, random: Play, ms: number): Promise<ModelFindings> {
  const { options, world, env } = session;
  const { config } = options;
  const row = { part: 'policy', name: 'model' } as const;
  const { path } = config.policy;
  if (path === undefined) {
    const advice = 'Name the model: policy.path.';
    return { rows: [{ ...row, verdict: 'stop', found: 'no model is configured', advice }] };
  }
  let here: RunConfig;
  try {
    here = { ...config, policy: { ...config.policy, path: isHubName(path) ? locateInHubCache(path) : path } };
    const facts = readModelFacts(here.policy.path!);
    const memory = memoryRow(here, facts.config);
    const prompt = worldPrompt(world, config.env.options, env.description);
    // Before anything is loaded: instructions that do not fit are refused here.
    const readTokens = countTokens(here, prompt, random.episodes, 'read');
    const rows: Row[] = [];
    let played: Play | undefined;
    // One behind a generation server is asked by the run alone: its adapters are the server's business.
    if (!policyKindOf(config).isServed && memory.row.verdict !== 'stop') {
      const request = { what: 'configured model', config: playConfig(session, here.policy), horizon: session.horizon };
      played = await play(session, { ...request, episodes: MODEL_EPISODES, ms });
      const sample = summariseSample(played.episodes);
      if (sample.turns > 0) {
        const isListing = played.episodes.some(({ actionTable }) => actionTable.length > 0) && !world.tools;
        rows.push(judgeAnswers(sample, isListing));
      } else {
        const why = played.failure === undefined ? `none within ${brief(ms / 1000)} s` : firstLineOf(played.failure);
        const advice = 'Give more --minutes, or try it alone: longplay doctor --model.';
        rows.push({
          part: 'policy',
          name: 'answers',
          verdict: 'look',
          found: `no episode was finished: ${why}`,
          advice,
        });
      }
    }
    const tokens = (played && countTokens(here, prompt, played.episodes, 'played')) ?? readTokens;
    const all = [...(tokens ? [judgeTokens(tokens)] : []), ...rows, memory.row];
    return {
      rows: all,
      ...(tokens ? { tokens } : {}),
      ...(played ? { play: played } : {}),
      parameters: memory.parameters,
    };
  } catch (thrown) {
    if (!isUserMistake(thrown)) throw thrown;
    const isMissing = isHubName(path);
    const advice = isMissing
      ? 'Nothing is downloaded here: fetch it by longplay models --model, then come back.'
      : 'Mend it: the run would be refused for the same reason.';
    return { rows: [{ ...row, verdict: isMissing ? 'look' : 'stop', found: firstLineOf(messageOf(thrown)), advice }] };
  }
}

/** Row of the memory that training takes, as `longplay models --memory` computes it. */
function memoryRow({ policy, learner }: RunConfig, model: ReturnType<typeof readModelFacts>['config']) {
  const { parameters, baseBytes, learner: learners } = countMemory(model);
  if (policy.full) {
    // Weights, gradients and AdamW's two moments, 4 bytes each.
    const what = `all ${brief(parameters / 1e6)} M weights, their gradients and moments`;
    return { parameters, row: judgeMemory(16 * parameters, totalmem(), what) };
  }
  const layers = policy.adapter.topLayers ?? Number.POSITIVE_INFINITY;
  const chosen = learners.find(({ topLayers }) => topLayers >= layers) ?? learners.at(-1)!;
  const kept = learner.recompute ? chosen.recomputedBytes : chosen.keptBytes;
  const what = `a base of ${brief(parameters / 1e6)} M weights (${policy.quantize}) and a learner of rank 16 in ${chosen.topLayers} layers`;
  return { parameters, row: judgeMemory(baseBytes[policy.quantize] + chosen.stateBytes + kept, totalmem(), what) };
}

/**
 * Counts tokens of episodes as the configured model reads them, by its tokenizer and prompt; undefined without a turn.
 * @param from `played`: the episodes hold the model's own tokens; `read`: their actions are text, read as its replies
 */
function countTokens(
  config: RunConfig,
  prompt: ReturnType<typeof worldPrompt>,
  episodes: readonly Trajectory[],
  from: TokenFacts['from'],
): TokenFacts | undefined {
  const { codec, chat } = setUpReader(config, prompt);
  const sums: number[] = [];
  let [turns, refused, longest] = [0, 0, 0];
  for (const episode of episodes) {
    let sum = 0;
    replayTurns(codec, episode, (transcript, turn) => {
      turns++;
      if (transcript.refusal) refused++;
      const { decision } = episode.turns[turn]!;
      sum += transcript.takeContext().length + (decision?.kind === 'tokens' ? decision.tokens.length : 0);
      longest = Math.max(longest, transcript.prompt.tokens.length + transcript.tokens.length + config.policy.maxTokens);
    });
    sums.push(sum);
  }
  if (turns === 0) return undefined;
  const perTurn = sums.reduce((a, b) => a + b, 0) / turns;
  const { contextTokens } = chat;
  return {
    ...{ from, episodes: episodes.length, perTurn, perEpisode: mean(sums), longest, contextTokens },
    refused: refused / turns,
  };
}

/** Collects the input of the estimate of a policy that is trained. */
function collectInput(
  { options: { config }, world }: Session,
  random: Play,
  toy: Toy | undefined,
  model: ModelFindings | undefined,
): EstimateInput {
  const { stop, learner, rollout } = config;
  const size = { groupsPerUpdate: learner.groupsPerUpdate, groupSize: rollout.groupSize, epochs: learner.epochs };
  const shared = { stop, ...size };
  if (policyKindOf(config).isLanguageModel) {
    const { tokens, play: played, parameters } = model ?? {};
    const turns = summarisePlay(played && played.episodes.length > 0 ? played : random).turns;
    const rate = played && played.episodes.length > 0 ? played.tokens / played.seconds : Number.NaN;
    const update = rate > 0 ? ({ from: 'tokens', tokensPerSecond: rate } as const) : undefined;
    return { ...shared, turns, tokens: tokens?.perEpisode ?? Number.NaN, parameters, update };
  }
  const { model: small } = setUpLocalPolicy(config, world.view, undefined);
  const parameters = countNumbers(parameterSpecs(small));
  const turns = summarisePlay(toy && toy.play.episodes.length > 0 ? toy.play : random).turns;
  const perStep = toy ? toy.play.tokens / toy.envSteps : Number.NaN;
  const update =
    toy && toy.updates > 0 ? ({ from: 'updates', seconds: toy.seconds / toy.updates } as const) : undefined;
  return { ...shared, turns, tokens: perStep * turns, parameters, update };
}

/** Judges the time and the cost on named hardware; no time where the tokens of the run are not known. */
function judgeHardware(
  { options: { utilisation, pricePerHour, config } }: Session,
  name: string,
  estimate: Estimate,
  input: EstimateInput,
  random: Play,
): { readonly row: Row; readonly time?: HardwareTime } {
  const row = { part: 'estimate', name } as const;
  const one = HARDWARE[name]!;
  const seconds = secondsOn(estimate, input, one, utilisation);
  if (seconds === undefined) {
    const advice = 'Give more --minutes: without counted tokens there is nothing to compute from.';
    return { row: { ...row, verdict: 'look', found: 'tokens of the run are not known', advice } };
  }
  const cost = pricePerHour === undefined ? undefined : (seconds / 3600) * pricePerHour;
  const price = cost === undefined ? '' : `, cost ${brief(cost)} at ${brief(pricePerHour!)} an hour`;
  const formula = `(2 + 6 × ${input.epochs} epochs) × ${brief(input.parameters!)} parameters × ${brief(estimate.tokens!)} tokens / (${brief(one.peak / 1e12)}e12 × ${brief(utilisation)})`;
  const steps = (estimate.episodes ?? Number.NaN) * input.turns;
  const { groupSize, concurrentGroups, envThreads, envServer } = config.rollout;
  // Agents and servers wait for others; a world of this process computes, on one thread at a time.
  const isElsewhere = config.env.id === AGENT || envServer !== undefined;
  const slots = isElsewhere ? groupSize * concurrentGroups : envThreads;
  const envSeconds = (steps * summarisePlay(random).secondsPerStep) / slots;
  const envs = Number.isFinite(envSeconds)
    ? `; beside it ${describeTime(envSeconds)} of env steps, ${slots} at once`
    : '';
  const found = `${describeTime(seconds)}${price}, computed, not measured: ${formula}; ${one.source}${envs}`;
  const isSlowEnv = envSeconds > Math.max(60, seconds);
  const advice = isSlowEnv ? 'The env takes longer than the policy: a faster GPU will wait for it.' : 'Nothing to do.';
  return { row: { ...row, verdict: isSlowEnv ? 'look' : 'ok', found, advice }, time: { name, seconds, cost } };
}

/** Describes seconds of any size, in three digits. */
function describeTime(seconds: number): string {
  return seconds >= 3600 ? `${brief(seconds / 3600)} h` : `${brief(seconds)} s`;
}
