/**
 * Schema of the state that a run's checkpoint keeps beside its tensors. Hashes prove that the bytes are those that were
 * written; this proves that they are the state of a run. A checkpoint that fails it is passed over like a damaged one.
 *
 * It holds for the plain JSON of `RunState` (run-state.ts). Its `rollout` part is the scheduler's
 * (`SchedulerState`), `horizon` the schedule's; both are `null` where weights were trained without a run (sft, dpo).
 */
import { z } from 'zod';
import { firstNotFinite } from '../../compute/finite.ts';
import { checkModelConfig, type ModelConfig } from '../../compute/model/config.ts';
import { parameterSpecs } from '../../compute/model/parameters.ts';
import { depth, positions, width } from '../../config/ranges.ts';
import { describeValue } from '../../core/describe-value.ts';
import { LongplayError, messageOf } from '../../core/errors.ts';
import { type Accounting, countUnaccounted, FAILURE_CAUSES, type FailureCause } from '../../core/failure.ts';
import type { CheckpointContent } from '../../storage/checkpoint.ts';
import { MAX_GROUP, ticketSchema } from '../../storage/ticket-schema.ts';
import { firstIssue, taskSchema, trajectorySchema, turnsSchema } from '../../storage/trajectory-schema.ts';
import { RUN_STATE_FORMAT } from './run-state.ts';

const count = z.int().min(0);
/** Numbers of groups and episodes travel as signed 32-bit integers; half of those are left for what the run goes on to. */
const number32 = z
  .int()
  .min(0)
  .max(2 ** 30);
const uint32 = z.int().min(0).max(0xffffffff);
const share = z.number().min(0).max(1);

const layerList = z.array(z.int().min(0).max(1024)).max(1024);

/** Sizes are bounded as in a configuration: a table is made of each before anything else can refuse it. */
const modelSchema = z.looseObject({
  vocabSize: z
    .int()
    .min(1)
    .max(2 ** 24),
  hiddenSize: width,
  layers: depth,
  heads: depth,
  kvHeads: depth,
  intermediateSize: z
    .int()
    .min(1)
    .max(2 ** 20),
  ropeTheta: z.number().positive(),
  rmsNormEps: z.number().positive(),
  qkvBias: z.boolean(),
  tieEmbeddings: z.boolean(),
  maxPositions: positions,
  prefixBidirectional: z.boolean(),
  tokenShift: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  focusBit: z.boolean(),
  sameTokenBias: z.number().optional(),
  sameLineBias: z.looseObject({ bias: z.number(), newline: z.int().min(0) }).optional(),
  embeddingScale: z.number(),
  choiceHead: z.boolean(),
  valueHead: z.boolean(),
  headDim: width.optional(),
  qkNorm: z.boolean().optional(),
  ropeFactors: z.array(z.number().positive()).max(4096).optional(),
  ropeScale: z.number().positive().optional(),
  rotaryWidth: width.optional(),
  unrotatedLayers: layerList.optional(),
  slidingLayers: layerList.optional(),
  slidingWindow: positions.optional(),
  localRopeTheta: z.number().positive().optional(),
  queryScale: z.number().positive().optional(),
  attentionCap: z.number().positive().optional(),
  logitCap: z.number().positive().optional(),
  centredGains: z.boolean().optional(),
  outputNorms: z.boolean().optional(),
  activation: z.literal('gelu').optional(),
  fusedProjections: z.boolean().optional(),
  base: z.looseObject({ hash: z.string(), weights: z.record(z.string(), z.unknown()) }).optional(),
  adapter: z
    .looseObject({
      rank: width,
      alpha: z.number().positive(),
      targets: z.array(z.string()).max(64),
      topLayers: width.optional(),
      rslora: z.boolean().optional(),
    })
    .optional(),
});

const identitySchema = z.looseObject({
  env: z.string(),
  view: z.string(),
  vocabulary: z.string(),
  decoder: z.enum(['choice', 'tokens']),
  model: modelSchema,
});

const control = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('fixed'), coefficient: z.number().min(0) }),
  z.looseObject({
    type: z.literal('adaptive'),
    coefficient: z.number().positive(),
    target: z.number().positive(),
    window: z.number().positive(),
  }),
]);

const teacherSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('run'), digest: z.string().regex(/^[\da-f]{64}$/), update: count }),
  z.looseObject({ type: z.literal('server'), model: z.string() }),
  z.looseObject({ type: z.literal('ema') }),
]);

const learnerSchema = z.looseObject({
  trainer: z.looseObject({
    rateScale: z.number().min(0).max(1),
    kl: z.looseObject({ control, coefficient: z.number().min(0) }).optional(),
    teacher: teacherSchema.optional(),
    memory: z
      .array(z.looseObject({ trajectory: trajectorySchema, priority: z.number().positive() }))
      .max(MAX_GROUP)
      .optional(),
  }),
  brokenInARow: count,
});

const samplerSchema = z.looseObject({
  format: z.literal(1),
  type: z.enum(['uniform', 'epoch', 'learnable']),
  draws: count,
  // Four zeros would stay four zeros.
  rng: z
    .tuple([uint32, uint32, uint32, uint32])
    .refine((words) => words.some((word) => word !== 0), 'no seed makes this'),
  fits: uint32,
  estimates: z.array(z.tuple([count, share])),
});

const savedGroupSchema = z.looseObject({
  group: count,
  task: taskSchema,
  horizon: count.min(1),
  finished: z.array(z.looseObject({ member: count, trajectory: trajectorySchema })),
  running: z.array(z.looseObject({ episode: count, member: count, attempt: count.min(1), turns: turnsSchema })),
});

const deliverySchema = z.looseObject({
  group: z.looseObject({
    group: count,
    task: taskSchema,
    horizon: count.min(1),
    trajectories: z.array(trajectorySchema).min(1),
  }),
  progress: share,
});

const turnsOfRound = count.min(1);
const horizonSchema = z.looseObject({
  format: z.literal(1),
  config: z.looseObject({ type: z.string(), rounds: z.union([turnsOfRound, z.array(turnsOfRound).min(1)]) }),
  updates: count,
  ladder: z
    .looseObject({
      rung: count,
      seen: count,
      success: share,
      truncation: share,
      best: z.array(share),
      sinceGain: count,
      ready: count,
      collapsed: count,
      regain: share,
    })
    .optional(),
});

const mixtureSchema = z.looseObject({
  draw: z.looseObject({
    credits: z.array(z.number().min(-64).max(64)).min(2).max(64),
    progress: z.array(z.looseObject({ groups: count, fast: share, slow: share })),
    rests: z.array(z.looseObject({ length: count.min(1), left: count, probing: z.boolean() }).nullable()),
  }),
  others: z
    .array(z.looseObject({ horizon: horizonSchema, sampler: samplerSchema, quarantined: z.array(count) }))
    .min(1)
    .max(63),
});

const schedulerSchema = z.looseObject({
  format: z.literal(2),
  sampler: samplerSchema,
  nextGroup: number32,
  nextEpisode: number32,
  envSteps: count,
  episodes: count,
  elapsedMs: z.number().min(0),
  accounting: z.looseObject({
    launched: count,
    trained: count,
    stale: count,
    filtered: count,
    failed: z.strictObject(
      Object.fromEntries(FAILURE_CAUSES.map((cause) => [cause, count.optional()])) as Record<
        FailureCause,
        z.ZodOptional<typeof count>
      >,
    ),
    inFlight: count,
  }),
  running: z.array(savedGroupSchema),
  tickets: z.array(ticketSchema).optional(),
  journal: count.optional(),
  delivered: z.array(deliverySchema),
  quarantined: z.array(count),
  mixture: mixtureSchema.optional(),
});

const runStateSchema = z.looseObject({
  format: z.literal(RUN_STATE_FORMAT),
  run: z
    .string()
    .regex(/^[\da-f]{32}$/)
    .optional(),
  identity: identitySchema,
  version: count,
  optimizerSteps: count,
  referenceVersion: count.optional(),
  learner: learnerSchema,
  rollout: schedulerSchema.nullable(),
  horizon: horizonSchema.nullable(),
});

type RunStateJson = z.infer<typeof runStateSchema>;
type Scheduler = NonNullable<RunStateJson['rollout']>;

/**
 * Refuses content that no run has written.
 * @param update number under which it lies
 * @throws {LongplayError} BAD_CHECKPOINT naming the first thing that cannot be
 */
export function checkRunContent({ state, tensors }: CheckpointContent, update: number): void {
  const format = (state as { readonly format?: unknown } | null)?.format;
  if (format !== RUN_STATE_FORMAT) {
    throw createStateError(
      `expected run state format ${RUN_STATE_FORMAT}, got ${describeValue(format, 60)}; another version of longplay wrote it`,
    );
  }
  const checked = runStateSchema.safeParse(state);
  if (!checked.success) throw createStateError(firstIssue(checked.error));
  const run = state as unknown as RunStateJson; // as it is used, not the schema's copy, which lacks what it skipped
  const why =
    findInvalidVersion(run, update) ??
    findInvalidTensors(run, tensors) ??
    (run.rollout
      ? (findInvalidGroups(run.rollout) ?? findInvalidTokens(run.rollout, run.identity.model.vocabSize))
      : undefined);
  if (why !== undefined) throw createStateError(why);
}

/** Longest reason in characters: what it names is quoted from the file. */
const MAX_REASON = 300;

function createStateError(what: string): LongplayError {
  const line = what.slice(0, MAX_REASON).replace(/[\s\p{Cc}]+/gu, ' ');
  return new LongplayError('BAD_CHECKPOINT', `state.json: ${line}`);
}

function findInvalidVersion({ version, horizon, rollout }: RunStateJson, update: number): string | undefined {
  if (version !== update) return `version: expected ${update}, the number of the checkpoint, got ${version}`;
  if (!horizon !== !rollout) return 'rollout and horizon: expected both or neither';
  if (!horizon) return undefined;
  const mixture = rollout?.mixture;
  if (!mixture) return findInvalidHorizon(horizon, version, version);
  const { draw, others } = mixture;
  if ([draw.credits, draw.progress, draw.rests].some(({ length }) => length !== 1 + others.length)) {
    return `rollout.mixture: ${1 + others.length} worlds, and ${draw.credits.length} to draw`;
  }
  // A world advances by the updates that consumed episodes of it.
  for (const one of [horizon, ...others.map((world) => world.horizon)]) {
    const why = findInvalidHorizon(one, 0, version);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Horizon schedule whose updates are not in [`from`, `to`], or whose ladder does not fit it. */
function findInvalidHorizon(
  { updates, ladder, config }: NonNullable<RunStateJson['horizon']>,
  from: number,
  to: number,
): string | undefined {
  if (updates < from || updates > to) {
    return `horizon.updates: expected ${from === to ? to : `${from} … ${to}`}, got ${updates}`;
  }
  if (!ladder) return undefined;
  const rungs = Array.isArray(config.rounds) ? config.rounds.length : 0;
  const fits = ladder.rung < rungs && ladder.best.length === rungs;
  return fits ? undefined : `horizon.ladder: rung ${ladder.rung} of ${rungs} rounds`;
}

/** Tensors that the model does not have or that do not fit it, or hold what is not finite. */
function findInvalidTensors(
  { identity, referenceVersion, learner }: RunStateJson,
  tensors: CheckpointContent['tensors'],
): string | undefined {
  const model = identity.model as ModelConfig;
  let specs: ReturnType<typeof parameterSpecs>;
  try {
    checkModelConfig(model);
    specs = parameterSpecs(model);
  } catch (thrown) {
    return `identity: ${messageOf(thrown)}`;
  }
  const averages = learner.trainer.teacher?.type === 'ema' ? ['average/'] : [];
  const prefixes = ['', 'm/', 'v/', ...(referenceVersion === undefined ? [] : ['reference/']), ...averages];
  for (const { name, shape } of specs) {
    for (const prefix of prefixes) {
      const tensor = tensors[`${prefix}${name}`];
      if (!tensor) return `tensor '${prefix}${name}' of its model is missing`;
      if (tensor.shape.join() !== shape.join() || !(tensor.data instanceof Float32Array)) {
        return `tensor '${prefix}${name}': expected shape [${shape.join(', ')}], got [${tensor.shape.join(', ')}]`;
      }
      if (firstNotFinite(tensor.data) >= 0) return `tensor '${prefix}${name}' holds what is no finite number`;
    }
  }
  return undefined;
}

/** Groups and episodes counted twice, of no known number, or missing from the account. */
function findInvalidGroups(scheduler: Scheduler): string | undefined {
  const { running, delivered, nextGroup, nextEpisode, accounting, quarantined, tickets = [] } = scheduler;
  const groups = [...running, ...tickets].map(({ group }) => group);
  for (const { group } of delivered) groups.push(group.group);
  if (new Set(groups).size !== groups.length) return 'rollout: a group is there twice';
  if (groups.some((group) => group >= nextGroup)) return `rollout: a group of number ${nextGroup} or more`;
  if (new Set(quarantined).size !== quarantined.length) return 'rollout.quarantined: a task is there twice';
  // Those that run and those that have finished are numbered apart where workers play too.
  const episodes: number[] = [];
  const done: number[] = [];
  let inFlight = 0;
  for (const saved of running) {
    const { finished, running: open, task, horizon, group } = saved;
    const members = [...finished, ...open].map(({ member }) => member);
    if (open.length === 0 || [...members].sort((a, b) => a - b).some((member, i) => member !== i)) {
      return `rollout.running: group ${group} has members ${members.join(', ').slice(0, 60)}`;
    }
    const own = finished.map(({ trajectory }) => trajectory);
    if (own.some((one) => !isOf(one, { group, task, horizon })))
      return `rollout.running: group ${group} holds another's episode`;
    for (const { episode } of [...own, ...open]) episodes.push(episode);
    inFlight += members.length;
  }
  for (const { size } of tickets) inFlight += size;
  for (const { group } of delivered) {
    if (group.trajectories.some((one) => !isOf(one, group)))
      return `rollout.delivered: group ${group.group} holds another's episode`;
    for (const { episode } of group.trajectories) done.push(episode);
    inFlight += group.trajectories.length;
  }
  for (const numbers of [episodes, done]) {
    if (new Set(numbers).size !== numbers.length) return 'rollout: an episode is there twice';
    if (numbers.some((number) => number >= nextEpisode)) return `rollout: an episode of number ${nextEpisode} or more`;
  }
  const lost = countUnaccounted(accounting as Accounting);
  if (lost !== 0) return `rollout.accounting: ${lost} episodes are unaccounted for`;
  return inFlight === accounting.inFlight
    ? undefined
    : `rollout.accounting: ${accounting.inFlight} episodes in flight, ${inFlight} are there`;
}

interface OfGroup {
  readonly group: number;
  readonly horizon: number;
  readonly task: { readonly env: string; readonly index: number; readonly seed: number };
}

function isOf(one: OfGroup, { group, horizon, task }: OfGroup): boolean {
  const sameTask = one.task.env === task.env && one.task.index === task.index && one.task.seed === task.seed;
  return sameTask && one.group === group && one.horizon === horizon;
}

/** Token ids beyond the vocabulary: an engine would read past the end of the embeddings. */
function findInvalidTokens({ running, delivered }: Scheduler, vocabSize: number): string | undefined {
  const turns = [
    ...running.flatMap((group) => [...group.finished.map(({ trajectory }) => trajectory), ...group.running]),
    ...delivered.flatMap(({ group }) => group.trajectories),
  ].flatMap((episode) => episode.turns);
  for (const { decision } of turns) {
    if (!decision) continue;
    const ids = [...(decision.context ?? []), ...(decision.kind === 'tokens' ? decision.tokens : [])];
    const invalid = ids.find((id) => id >= vocabSize);
    if (invalid !== undefined) return `rollout: token ${invalid} of a vocabulary of ${vocabSize}`;
  }
  return undefined;
}
