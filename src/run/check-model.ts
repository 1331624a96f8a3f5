/**
 * Checks of a pretrained model on this machine, and of a generation server beside it: `longplay doctor --model` runs
 * them where no test of ours can. Everything is done once, small, with the code that a run uses.
 */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineOptions } from '../compute/engine/engine.ts';
import { openEngine } from '../compute/engine/open.ts';
import { compileLogprobs } from '../compute/model/compile.ts';
import { ALL_PROJECTIONS, type LoraConfig, type ModelConfig } from '../compute/model/config.ts';
import { defaultAdamW } from '../compute/model/optimizer.ts';
import { drawParameters, type ParamSet, parameterSpecs } from '../compute/model/parameters.ts';
import { messageOf } from '../core/errors.ts';
import { largestOf } from '../core/extremes.ts';
import { firstLineOf } from '../core/first-line.ts';
import type { Decision, Group } from '../core/trajectory.ts';
import { measure } from '../learning/learner/measure.ts';
import { Trainer } from '../learning/learner/trainer.ts';
import { trainUnits } from '../learning/learner/training-batch.ts';
import { CachedPolicy } from '../policy/cached-policy.ts';
import { type GenerationOptions, openGenerationClient } from '../policy/generation/generation-client.ts';
import { writeAdapter } from '../policy/pretrained/adapter.ts';
import { openModel, type PretrainedModel } from '../policy/pretrained/folder.ts';
import { freezeAs, type Quantize } from '../policy/pretrained/quantize.ts';
import { type ChatCodec, openChatCodec } from '../text/reading/chat-codec.ts';

/** Check: one line of the table. */
export interface Check {
  /** Name of the check. */
  readonly what: string;
  readonly ok: boolean;
  /** Finding, with the expectation beside it where there is a number; seconds in brackets. */
  readonly found: string;
}

/** Tokens of the answer: enough to see that rates and log-probabilities hold beyond the first, in seconds on a small machine. */
const ANSWER = 64;
const LORA: LoraConfig = { rank: 16, alpha: 32, targets: ALL_PROJECTIONS };
const NONE = new Int32Array(0);

/**
 * Loads a model, lets it write an answer, scores the answer again as the learner does, and makes one LoRA step.
 * @param server a vLLM or SGLang over the same base: gets an adapter with a known effect, and is asked under it
 * @returns what was found, in order; the first check that fails ends it
 */
export async function checkModel(
  folder: string,
  quantize: Quantize,
  engineOptions: EngineOptions,
  server?: GenerationOptions,
): Promise<readonly Check[]> {
  const checks: Check[] = [];
  const scratch = mkdtempSync(join(tmpdir(), 'longplay-doctor-'));
  const measureMs = async <T>(
    what: string,
    work: () => Promise<{ readonly found: string; readonly ok?: boolean; readonly value: T }>,
  ) => {
    const start = performance.now();
    try {
      const { found, ok = true, value } = await work();
      checks.push({ what, ok, found: `${found} (${((performance.now() - start) / 1000).toFixed(1)} s)` });
      return value;
    } catch (thrown) {
      checks.push({ what, ok: false, found: firstLineOf(messageOf(thrown)) });
      return undefined;
    }
  };
  // Out of the table: without an engine there is nothing to find out, and its error names what to do.
  const engine = await openEngine(engineOptions);
  try {
    const opened = await measureMs('folder', async () => open(folder, quantize, scratch));
    if (!opened) return checks;
    const { model, config, codec } = opened;
    const zero = paramsOf(config, 0);
    const answer = await measureMs('64 tokens', async () => {
      const options = { config, codec, decoder: 'tokens', masked: false, maxTokens: ANSWER, maxBatch: 1 } as const;
      const policy = await CachedPolicy.create(engine, { ...options, cacheOnUpdate: 'keep' }, zero);
      const decision = await write(policy);
      await policy.dispose();
      return {
        found: `${decision.tokens.length} sampled: ${JSON.stringify(codec.decode(decision.tokens)).slice(0, 60)}`,
        value: decision,
      };
    });
    if (!answer) return checks;
    const group = groupOf(codec, answer);
    // The rollout's decoding and the learner's forward pass are different programs over the same kernels. Where they disagree
    // by more than float32 noise, importance ratios would be wrong from the first update on.
    await measureMs('scored again as the learner does', async () => {
      const worst = largestOf(
        (await scoreDecisions(engine, config, codec, zero, group)).map((x, i) => Math.abs(x - answer.logprobs[i]!)),
      );
      return {
        found: `largest |difference| ${worst.toExponential(1)} nats, expected at most 1e-3`,
        ok: worst <= 1e-3,
        value: worst,
      };
    });
    // Imitates the one answer: what it takes in memory and time is what a training step of that length takes.
    await measureMs('one LoRA step', async () => {
      const trainer = await Trainer.create(engine, { ...imitation, model: config, codec }, { params: zero });
      const { broken, stats } = await trainer.update([group], 0);
      await trainer.dispose();
      return {
        found: broken?.message ?? `loss ${stats.nll!.toFixed(3)}, gradient norm ${stats.gradNorm!.toExponential(1)}`,
        ok: !broken,
        value: 0,
      };
    });
    if (server) await checkServer(server, { model, config, codec, scratch, group }, engine, measureMs);
    return checks;
  } finally {
    await engine.dispose();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Speed of a model on this machine, in tokens a second by the clock. */
export interface ModelSpeed {
  /** Prompt of some 400 tokens. */
  readonly prefill: number;
  /** Answers one at a time, and eight at a time. */
  readonly decode1: number;
  readonly decode8: number;
  /** Resident memory of this process afterwards, in bytes; without a learner. */
  readonly residentBytes: number;
}

/** Measures how fast a model reads and writes here. @throws {UserError} for one that cannot be opened */
export async function measureSpeed(
  folder: string,
  quantize: Quantize,
  engineOptions: EngineOptions,
): Promise<ModelSpeed> {
  const scratch = mkdtempSync(join(tmpdir(), 'longplay-speed-'));
  const engine = await openEngine(engineOptions);
  try {
    const { config, codec } = (await open(folder, quantize, scratch)).value;
    const options = { config, codec, decoder: 'tokens', masked: false, maxTokens: ANSWER, maxBatch: 8 } as const;
    const policy = await CachedPolicy.create(engine, { ...options, cacheOnUpdate: 'keep' }, paramsOf(config, 0));
    await timeAnswers(policy, 1, 0); // the engine's first call of a shape takes longer
    const one = await timeAnswers(policy, 1, 1);
    const eight = await timeAnswers(policy, 8, 2);
    await policy.dispose();
    const residentBytes = process.memoryUsage.rss();
    return { prefill: one.prefill, decode1: one.decode, decode8: eight.decode, residentBytes };
  } finally {
    await engine.dispose();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Times a group of answers to one prompt. @returns tokens a second in the first call, and in the others */
async function timeAnswers(policy: CachedPolicy, members: number, group: number) {
  // Each group's prompt is another from its beginning: what prompts have in common is read once.
  const observation = `${group} ${QUESTION.repeat(80)}`;
  const turn = { observation, actions: NONE, newActions: [], samplingSeed: 5, temperature: 1 };
  const episodes = Array.from({ length: members }, (_, member) => 8 * group + member);
  const unanswered = policy.submit(
    episodes.map((episode, member) => ({ ...turn, episode, group, member, groupSize: members, turn: 0 })),
  );
  if (unanswered.length > 0) throw new Error(unanswered[0]!.message);
  const measureCalls = async (isDone: () => boolean) => {
    const [start, before] = [performance.now(), policy.tokens];
    do await policy.step();
    while (!isDone());
    return ((policy.tokens - before) * 1000) / (performance.now() - start);
  };
  const prefill = await measureCalls(() => true);
  const decode = policy.waiting > 0 ? await measureCalls(() => policy.waiting === 0) : 0;
  policy.release(episodes);
  return { prefill, decode };
}

/** Opens the model as a run would, with an adapter and a chat codec, and describes it. */
async function open(folder: string, quantize: Quantize, scratch: string) {
  const model = openModel(folder, 4096);
  const config = { ...freezeAs(model, quantize, join(scratch, 'quantised')), adapter: LORA };
  const codec = openChatCodec({
    folder: model.folder,
    vocabSize: model.config.vocabSize,
    endTokens: model.endTokens,
    world: { role: 'You answer in a sentence.', forms: [], hints: [], format: 'action' },
    format: 'world',
    listActions: false,
    contextTokens: model.config.maxPositions,
    answerTokens: ANSWER,
  });
  const { layers, hiddenSize, vocabSize } = model.config;
  const template = codec.rendersAnew ? 'rendered anew every turn' : 'appended to';
  const found = `${layers} layers of ${hiddenSize}, ${vocabSize} tokens, base ${quantize}; conversations are ${template}`;
  return { found, value: { model, config, codec } };
}

/** Parameters of an adapter: B all zero changes nothing, B of this size changes log-probabilities visibly. */
function paramsOf(config: ModelConfig, size: number): ParamSet {
  const specs = parameterSpecs(config).map((spec) =>
    spec.name.includes('.lora_B.') ? { ...spec, init: { kind: 'uniform', bound: size } as const } : spec,
  );
  return { version: 0, values: drawParameters(specs, 7) };
}

/** Lets the policy write one answer, call by call. */
async function write(policy: CachedPolicy): Promise<Decision & { readonly kind: 'tokens' }> {
  const place = { episode: 0, group: 0, member: 0, groupSize: 1, turn: 0 };
  const turn = { observation: QUESTION, actions: NONE, newActions: [], samplingSeed: 5, temperature: 1 };
  // One turn of one episode; a fixed seed, so that two runs of the doctor can be compared.
  const [refused] = policy.submit([{ ...place, ...turn }]);
  if (refused) throw new Error(refused.message);
  while (policy.waiting > 0) {
    const [acted] = await policy.step();
    if (acted?.decision?.kind === 'tokens') return acted.decision;
  }
  throw new Error('the model wrote no answer');
}

const QUESTION = 'What is a tree?';

/** Group of one finished episode with one decision, as the learner would get it. */
function groupOf(codec: ChatCodec, decision: Decision): Group {
  const task = { env: 'doctor', index: 0, seed: 0 };
  const turn = { observation: QUESTION, actions: NONE, action: '', decision, reward: 1, actMs: 0, envMs: 0 };
  const trajectory = {
    ...{ episode: 0, group: 0, task, horizon: 1, attempt: 1, actionTable: [], turns: [turn], finalObservation: '' },
    ...{ end: 'terminated' as const, success: true, view: codec.id },
  };
  return { group: 0, task, horizon: 1, trajectories: [trajectory] };
}

/** Options of one supervised step: the answer's likelihood alone, without entropy, value or off-policy terms. */
const imitation = {
  decoder: 'tokens',
  masked: false,
  recompute: true,
  maxTokens: 4096,
  chunks: 4,
  estimator: {
    algorithm: 'agent_evol',
    threshold: Number.NEGATIVE_INFINITY,
    gamma: 1,
    truncation: 'terminal',
    aggregation: { type: 'token-mean' },
  },
  epochs: 1,
  minibatches: 1,
  coefficients: { clipLow: 0, clipHigh: 0, entropyCoef: 0, valueCoef: 0, valueClip: 1 },
  offPolicy: { type: 'ratio' },
  learningRate: { peak: 1e-4, warmupSteps: 0, decay: 'none', final: 1 },
  maxGradNorm: 1,
  adamW: defaultAdamW,
  filterGroups: false,
  seed: 1,
} as const;

/** Log-probabilities of a group's decisions by the learner's own forward pass. */
async function scoreDecisions(
  engine: Awaited<ReturnType<typeof openEngine>>,
  model: ModelConfig,
  codec: ChatCodec,
  params: ParamSet,
  group: Group,
): Promise<number[]> {
  const program = await compileLogprobs(engine, model, { decoder: 'tokens', masked: false, chunks: 4 });
  const units = trainUnits(codec, group.trajectories, 0);
  const { logprobs } = await measure({ model, codec, decoder: 'tokens', masked: false, program }, params, units);
  await program.dispose();
  return [...logprobs];
}

type Timed = <T>(
  what: string,
  work: () => Promise<{ found: string; ok?: boolean; value: T }>,
) => Promise<T | undefined>;

/** Checks the server under an adapter that changes something: its log-probabilities must be those computed here. */
async function checkServer(
  server: GenerationOptions,
  {
    model,
    config,
    codec,
    scratch,
    group,
  }: {
    readonly model: PretrainedModel;
    readonly config: ModelConfig & { readonly adapter: LoraConfig };
    readonly codec: ChatCodec;
    readonly scratch: string;
    readonly group: Group;
  },
  engine: Awaited<ReturnType<typeof openEngine>>,
  timed: Timed,
): Promise<void> {
  const client = openGenerationClient(server);
  const name = `lp-doctor-${randomUUID().slice(0, 8)}`;
  const params = paramsOf(config, 0.02);
  const loaded = await timed(`${server.api}: adapter loaded`, async () => {
    writeAdapter(join(scratch, name), config, params.values, model.folder);
    await client.load(name, join(scratch, name));
    return { found: name, value: true };
  });
  if (!loaded) return;
  await timed(`${server.api}: generates under it`, async () => {
    const context = group.trajectories[0]!.turns[0]!.decision!.context;
    const request = { ids: [...context], maxTokens: ANSWER, temperature: 1, seed: 5, endTokens: [codec.end] };
    const answer = await client.generate({ ...request, adapter: name });
    if (answer.kind !== 'done') return { found: answer.kind, ok: false, value: 0 };
    const decision: Decision = {
      ...{ kind: 'tokens', version: 0, context, value: 0, masked: false },
      tokens: Int32Array.from(answer.tokens),
      logprobs: Float32Array.from(answer.logprobs),
    };
    const own = groupOf(codec, decision);
    const gap = (here: readonly number[]) =>
      here.reduce((sum, x, i) => sum + Math.abs(x - answer.logprobs[i]!), 0) / here.length;
    // Under the adapter the two must agree; without it they must not: a server that ignored it would pass the first alone.
    // 16-bit kernels are off by some hundredths of a nat a token, so a tenth is the bound.
    const under = gap(await scoreDecisions(engine, config, codec, params, own));
    const without = gap(await scoreDecisions(engine, config, codec, paramsOf(config, 0), own));
    const found = `mean |difference| ${under.toFixed(3)} nats under the adapter, ${without.toFixed(3)} without; expected at most 0.1, and less than without`;
    return { found, ok: under <= 0.1 && under < without, value: under };
  });
  await timed(`${server.api}: adapter unloaded`, async () => {
    await client.unload(name);
    return { found: name, value: true };
  });
}
