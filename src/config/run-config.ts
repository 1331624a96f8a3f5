/**
 * Configuration of a run: YAML, checked by a schema, every key with a default where one makes sense. The horizon
 * schedule keeps the original's key names; everything else uses the vocabulary of ARCHITECTURE.md.
 */
import { z } from 'zod';
import { distillationSchema } from '../algo/distillation.ts';
import { estimatorSchema } from '../algo/estimators.ts';
import { offPolicySchema } from '../algo/off-policy.ts';
import { DEFAULT_CLIP, policyLossSchema } from '../algo/policy-loss.ts';
import { POLICY_KIND_NAMES } from './policy-kinds.ts';
import {
  count,
  countFrom0,
  depth,
  fileBytes,
  held,
  lag,
  mebibytes,
  members,
  milliseconds,
  minutes,
  positions,
  rate,
  rateFrom0,
  repeats,
  share,
  shareAbove0,
  threads,
  turns,
  width,
} from './ranges.ts';

/** Answer to a place of the envs that there is no more. */
const _NO_REMOTE_HOSTS =
  "expected process, thread or inline; environments of another machine are played through its server: 'longplay serve-env' there, rollout.envServer here";

const sampling = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('uniform'), balanced: z.boolean().exactOptional() }),
  z.strictObject({ type: z.literal('epoch') }),
  z.strictObject({
    /** `uniform`; `epoch`: every task once a round; `learnable`: in proportion to p(1 − p) + floor of a task's success rate p. */
    type: z.literal('learnable'),
    /** Share that tasks always or never solved keep. Default 0.03. */
    floor: rate.exactOptional(),
    /** Success assumed of a task that was not seen yet. Default 0.5. */
    prior: share.exactOptional(),
    /** Draw a label (sub-task) first, each as likely, then a task of it; `failing`: the likelier the less of it is solved; `learnable`: the likelier the nearer to half of it is. Default false. */
    balanced: z.union([z.boolean(), z.literal('failing'), z.literal('learnable')]).exactOptional(),
  }),
]);

const horizon = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('fixed'), rounds: turns }),
  z.strictObject({
    type: z.literal('scaling_inter_stepwise'),
    rounds: z.array(turns).min(1).max(1000),
    steps_scaling_inter: count,
  }),
  z.strictObject({
    type: z.literal('linear'),
    rounds: z.array(turns).min(1).max(1000),
    /** Updates of one phase. */
    steps_scaling_inter: count,
  }),
  z.strictObject({
    /** `fixed`; `scaling_inter_stepwise`: ScalingInter-RL; `linear`: the same without jumps; `adaptive`: up when the horizon binds, down on a collapse. */
    type: z.literal('adaptive'),
    /** Turns an episode may take: one number, or that of each phase; the last holds for ever. */
    rounds: z.array(turns).min(1).max(1000),
  }),
]);

const kl = z.strictObject({
  /** KL as a term of the loss, or taken off each reward. */
  in: z.enum(['loss', 'reward']),
  /** Estimator of the KL of single tokens. */
  estimator: z.enum(['k1', 'k2', 'k3']).default('k3'),
  control: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('fixed'), coefficient: rateFrom0 }),
      z.strictObject({
        /** `adaptive`: the coefficient is steered so that the KL comes to a target. */
        type: z.literal('adaptive'),
        /** Weight β of the KL; of an adaptive one the first. */
        coefficient: rate,
        /** KL (nats) per choice, or per token of a run, to steer to. */
        target: rate,
        /** Episodes over which an error is acted on in full. */
        window: z.number().positive().max(1e12),
      }),
    ])
    .default({ type: 'fixed', coefficient: 0.001 }),
});

const selfImitation = z.strictObject({
  /** Remembered episodes that an update trains on besides its groups. */
  episodes: held.default(8),
});

const ranking = z.strictObject({
  /** Root of the judge's OpenAI-compatible API. */
  url: z.url({ protocol: /^https?$/ }),
  /** Model that judges, as the server calls it. */
  model: z.string().min(1),
  /** Environment variable that holds the key; where absent, OPENAI_API_KEY if it is set. */
  apiKeyEnv: z.string().min(1).exactOptional(),
  /** Words about what is better, beside the task itself. */
  criterion: z.string().default(''),
  /** Votes on each group, odd; an episode gets the median. */
  votes: z
    .int()
    .min(1)
    .max(15)
    .refine((votes) => votes % 2 === 1, 'expected an odd number')
    .default(1),
  /** Characters of a group's episodes together; what is longer loses its middle. */
  maxChars: z.int().min(1000).max(10_000_000).default(60_000),
});

const otel = z.strictObject({
  /** Root of the receiver, OTLP over HTTP: `/v1/metrics` and `/v1/traces` lie below it. */
  url: z.url({ protocol: /^https?$/ }),
  /** Traces of the episodes that the run's own traces keep: none, names with times and counts, or what was read and written too. */
  traces: z.enum(['none', 'times', 'content']).default('times'),
  /** Environment variable with headers, as `name=value,name=value`; where absent, OTEL_EXPORTER_OTLP_HEADERS if it is set. */
  headersEnv: z.string().min(1).exactOptional(),
});

const mlflow = z.strictObject({
  /** Root of the tracking server. */
  url: z.url({ protocol: /^https?$/ }),
  /** Experiment that the run is put into; made where it is not there. */
  experiment: z.string().min(1).max(200).default('longplay'),
  /** Environment variable with a token; where absent, MLFLOW_TRACKING_TOKEN if it is set. */
  tokenEnv: z.string().min(1).exactOptional(),
});

/** Project of Weights & Biases, with its team or user before it. */
const wandb = z
  .string()
  .regex(/^(?:[\w.-]{1,128}\/)?[\w.-]{1,128}$/, "expected a project, or a team and a project: 'team/project'");

const history = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('full') }),
  z.strictObject({
    type: z.literal('window'),
    /** Turns kept, the newest. */
    turns: countFrom0,
  }),
  z.strictObject({
    type: z.literal('budget'),
    /** Tokens of the prompt at most. */
    promptTokens: count,
  }),
]);

/** Sub-objects default to what their own keys default to. */
function section<S extends z.ZodRawShape>(shape: S) {
  const object = z.strictObject(shape);
  return object.prefault({} as never);
}

const agent = z.union([
  z.string().min(1),
  z.strictObject({
    /** Path of a module whose default export is `async ({ task, model, signal }) => ({ reward })`. */
    module: z.string().min(1).exactOptional(),
    /** Command line in place of a module, one word an entry; it gets its task as JSON on its input. */
    command: z.array(z.string().min(1)).min(1).exactOptional(),
    /** URL of a service in place of a module: Eval Protocol's `POST /init` starts an episode there. */
    url: z.string().min(1).exactOptional(),
    /** Address of this machine that the program calls, where it runs on another one. Default 127.0.0.1. */
    host: z.string().min(1).exactOptional(),
    /** Let a process of the command play many episodes: a line of JSON in and one out for each. Default false: a process an episode. */
    reuse: z.boolean().exactOptional(),
    /** Number of tasks, the path of a JSONL file with one a line, or the list; by default the module's export `tasks`. */
    tasks: z.union([count, z.string().min(1), z.array(z.unknown()).min(1)]).exactOptional(),
    /** `exact`: a lost episode is restored by giving the program its recorded replies again; `never`: it is issued anew. Default never. */
    replay: z.enum(['never', 'exact']).exactOptional(),
    /** Reward that the program gives after the horizon has cut it: it counts, or is 0. Default keep. */
    rewardAtHorizon: z.enum(['keep', 'drop']).exactOptional(),
  }),
]);

const env = z.strictObject({
  /**
   * Id of a world, path of a module (relative to the configuration's file), an OpenEnv server: openenv+http://host:8000, or an
   * MCP server: mcp:./server.yaml.
   */
  id: z.string().min(1),
  /** Options of the world, as its README lists them. */
  options: z.record(z.string(), z.unknown()).default({}),
  /** Hash of a user's module, written when a run is made: a change since then is reported. */
  sha256: z.string().exactOptional(),
  /** Path of a user's module from the run's folder, written when a run is made: it is found there where both were moved. */
  fromRun: z.string().exactOptional(),
});

const tasks = section({
  /** Named set of the world's tasks to train on, e.g. `fresh`; those of its training split where absent. */
  set: z.string().exactOptional(),
  /** Only tasks with these labels; all where absent. */
  labels: z.array(z.string()).min(1).exactOptional(),
  /** Choice of the next task. */
  sampling: sampling.default({ type: 'learnable' }),
});

/** Name of a world that is no path and no URL. */
export const WORLD_NAME = /^[a-z][a-z0-9-]{0,63}$/;

const worlds = z
  .array(
    z.strictObject({
      /** Name of the world in tasks, metrics and evaluations: lower-case letters, digits and dashes. Default: its id, where that is such a name. */
      name: z.string().regex(WORLD_NAME, 'expected lower-case letters, digits and dashes, e.g. mine-2').exactOptional(),
      /** World, as in a run of one. */
      env,
      /** Weight of its groups among those of all worlds. Default 1. */
      weight: rateFrom0.exactOptional(),
      /** Weights in place of one: each holds from an update on, until the next. The first is from update 0. */
      schedule: z
        .array(
          z.strictObject({
            /** Update from which the weight holds; 0 for the first, then ascending. */
            from: countFrom0,
            /** Weight of its groups from then on. */
            weight: rateFrom0,
          }),
        )
        .min(1)
        .max(1000)
        .exactOptional(),
      /** Horizon schedule of its episodes; its steps are the updates that consumed some of them. */
      horizon,
      /** Training tasks, as in a run of one. */
      tasks,
      /** Discount in its world, in place of learner.estimator.gamma. */
      gamma: share.exactOptional(),
      /** λ in its world, in place of learner.estimator.lambda. */
      lambda: share.exactOptional(),
      /** Evaluation in its world: each key stands in place of the run's own. */
      evaluation: z
        .strictObject({
          /** Tasks to evaluate on. */
          split: z.enum(['train', 'test']).exactOptional(),
          /** A named set of the world's tasks in place of the split, or a list of task indices. */
          tasks: z.union([z.string(), z.array(countFrom0).min(1)]).exactOptional(),
          /** Sampled episodes of each task. */
          episodesPerTask: held.exactOptional(),
          /** Horizons to evaluate under, each by itself. */
          horizons: z.array(turns).min(1).max(100).exactOptional(),
        })
        .exactOptional(),
    }),
  )
  .min(2, 'expected at least two worlds; one is given by env, tasks and horizon')
  .max(64);

export const runConfigSchema = z.strictObject({
  /** Seed, uint32; everything random in the run follows from it (async runs also depend on timing). */
  seed: z.int().min(0).max(0xffffffff).default(1),
  env,
  /** Program of yours that calls a model, in place of `env`: the path of a module (relative to the configuration's file), or its options. */
  agent: agent.exactOptional(),
  tasks,
  /** Horizon schedule: turns that an episode may take, as training goes on. */
  horizon,
  /**
   * Several worlds in one run, in place of `env`, `tasks` and `horizon`: each entry has those keys of its own. One policy is trained
   * for all, and a group's episodes are of one world.
   */
  worlds: worlds.exactOptional(),
  /** Draw of the next group's world: by the weights, or by them times the gain that is measured in each. Default fixed. */
  mixture: z.enum(['fixed', 'progress']).exactOptional(),
  /** Whiten advantages over the batch's episodes of each world, and not over the whole batch. Default true. */
  normalizePerWorld: z.boolean().exactOptional(),
  policy: section({
    /**
     * Kind of policy. `local`: trained here from random weights; `checkpoint`: a pretrained language model from a
     * folder, a GGUF file or the hub; `openai`: a model behind a server; `server`: a vLLM or SGLang that generates under the
     * adapters that the learner here trains; `random`: uniform over the listed actions; `oracle`: the world's own solver.
     */
    kind: z.enum(POLICY_KIND_NAMES).default('local'),
    /**
     * Model, with `kind: checkpoint` or `server`: its folder (config.json, safetensors, tokenizer.json), a GGUF file, or
     * a name on the hub (`hf:owner/name[@revision][/file.gguf]`).
     */
    path: z.string().exactOptional(),
    /** Bits of the frozen base: as it is stored, or quantised at load. */
    quantize: z.enum(['none', 'int8', 'int4']).default('none'),
    /** Trains every weight instead of an adapter when true. */
    full: z.boolean().default(false),
    /** Adapter (low-rank) that is trained. */
    adapter: section({
      /** Rank of the added matrices. */
      rank: width.default(16),
      /** Scale α: the adapter counts α/rank. */
      alpha: rate.default(32),
      /** Projections that get an adapter, e.g. `[q_proj, v_proj]`. */
      targets: z.union([z.literal('all'), z.array(z.string()).min(1)]).default('all'),
      /** Layers that get adapters: as many of the top ones; all where absent. Fewer cost less: no gradient goes below them. */
      topLayers: depth.exactOptional(),
      /** Folder of an adapter in peft's form to start from; its rank, alpha and targets then hold. */
      init: z.string().exactOptional(),
    }),
    /** Server that generates, with `kind: server`. */
    server: section({
      /** Protocol of the server. */
      api: z.enum(['vllm', 'sglang']).default('vllm'),
      /** Root of the server. */
      url: z.url().default('http://127.0.0.1:8000'),
      /** Base model as the server calls it; the folder's path where absent. */
      model: z.string().exactOptional(),
      /** Folder for adapters that the server sees under the same path; beside the run where absent. */
      adapters: z.string().exactOptional(),
    }),
    /** Environment variable that holds the key of a server, with `kind: openai` or `server`; none is sent where it is unset. */
    apiKeyEnv: z.string().default('OPENAI_API_KEY'),
    /** Conversations of a language model, here or behind a server. */
    chat: section({
      /** Shape of an answer; `world`: as the original asks for in that world. */
      format: z.enum(['world', 'action', 'react', 'think', 'function-calling', 'code', 'fenced']).default('world'),
      /** Instructions of the world: in full, as long as the original's, or `short`, in 120 tokens or less. */
      instructions: z.enum(['full', 'short']).default('full'),
      /** Tell the model the available actions in every turn. */
      listActions: z.boolean().default(false),
      /** System message before everything else. */
      system: z.string().exactOptional(),
      /** Longest sequence in tokens; past it the conversation is rendered anew without its oldest turns. Not for `kind: openai`. */
      contextTokens: count.default(8192),
    }),
    /** `choice`: the policy scores each listed action as a whole; `tokens`: it writes text. */
    decoder: z.enum(['choice', 'tokens']).default('choice'),
    /** With `decoder: tokens`: sample only spellings of listed actions, and only what an agent's call asks for (a tool, JSON). */
    masked: z.boolean().default(true),
    /** Longest run of tokens of one turn. */
    maxTokens: positions.default(32),
    /**
     * Memory that keys and values of running episodes may take, MiB, as if each grew as long as the model reads; fewer groups
     * run at a time where `concurrentGroups` would take more. Unlimited where absent.
     */
    cacheMb: mebibytes.exactOptional(),
    /** Effect of a weight update on the cache of running episodes. */
    cacheOnUpdate: z.enum(['keep', 'recompute']).default('keep'),
    /** Folder of a run whose newest weights training starts from; random ones where absent. */
    init: z.string().exactOptional(),
    model: section({
      /** Width of the local policy. Default 64. */
      hiddenSize: width.exactOptional(),
      /** Layers of the local policy. Default 3. */
      layers: depth.exactOptional(),
      /** Attention heads; they divide the width. Default 2. */
      heads: depth.exactOptional(),
      /** Tokens that the policy reads at most, prompt included; longer episodes are rendered anew. Default 1024. */
      maxPositions: positions.exactOptional(),
      /** Bias with which the first attention head looks from a token to equal ones, up to 20. Default: none. */
      sameTokenBias: z.number().min(0).max(20).exactOptional(),
      /** Bias with which the last attention head looks within a line of the prompt, up to 20. Default: none. */
      sameLineBias: z.number().min(0).max(20).exactOptional(),
    }),
    /** With `kind: openai`: a model behind an OpenAI-compatible server. */
    openai: section({
      /** Root of the API. */
      baseUrl: z.string().default('http://127.0.0.1:8000/v1'),
      /** Model as the server calls it; empty: the one model it has. */
      model: z.string().default(''),
      /** The API to ask: chat completions, or plain ones. */
      api: z.enum(['chat', 'completions']).default('chat'),
      /** `tokens`: token ids of the world's view, for our own policies behind `serve-policy` (with `api: completions`). */
      prompt: z.enum(['text', 'tokens']).default('text'),
      /** The form in which a conversation becomes text, with `api: completions`. */
      template: z.enum(['plain', 'chatml', 'llama3']).default('plain'),
      /** Let the server choose among the available actions only, by the parameter it knows. */
      guided: z.enum(['none', 'guided_choice', 'structured_outputs']).default('none'),
      /** Turns of the conversation that are sent again: all, the newest, or as many as a number of tokens allows. */
      history: history.default({ type: 'full' }),
      /** Longest answer, in tokens. */
      maxTokens: positions.default(1024),
      /** Requests in flight at most. */
      concurrency: held.default(64),
      /** Ask for log-probabilities, so that others can train on the traces. */
      logprobs: z.boolean().default(false),
      /** Ask for token ids (vLLM), for the same. */
      tokenIds: z.boolean().default(false),
      /** Merged into every request, e.g. `{ top_p: 0.95, top_k: 20 }`. */
      body: z.record(z.string(), z.unknown()).default({}),
      /** Keys left out of every request because the server refuses them, e.g. `[seed, max_tokens]`. */
      omit: z.array(z.string().min(1)).default([]),
    }),
  }),
  rollout: section({
    /** Episodes of one task that are compared with each other. */
    groupSize: members.default(8),
    /** Groups in flight at most. */
    concurrentGroups: held.default(16),
    /** Threads (or processes) that run environments. */
    envThreads: threads.default(1),
    /** Place of the envs. `process` survives everything an env can do; `thread` is faster; `inline` is for light ones. */
    isolation: z.enum(['process', 'thread', 'inline']).default('thread'),
    /** Play the episodes on another machine's `longplay serve-env`, over OpenEnv's protocol, e.g. http://10.0.0.2:36001. */
    envServer: z.url().exactOptional(),
    /** Turns per engine call at most. */
    maxBatch: held.default(64),
    /** Milliseconds that one action may take, from the call of the env. What its host waits for a processor is left out: up to ten times as long. */
    stepDeadlineMs: milliseconds.default(10_000),
    /** Milliseconds that opening an episode may take; each action of a replay adds `stepDeadlineMs`. */
    openDeadlineMs: milliseconds.default(30_000),
    /** V8 heap of an env host, MiB. */
    heapMb: mebibytes.default(512),
    /**
     * Environment variables that env hosts get although they look like secrets (…_KEY, …_TOKEN, …SECRET…, …PASSWORD…, URLs
     * with a password), which they do not inherit otherwise.
     */
    hostVariables: z.array(z.string().min(1)).max(100).default([]),
  }),
  learner: section({
    /** Advantage estimator. */
    estimator: estimatorSchema.prefault({ algorithm: 'grpo' }),
    /** Groups that one update consumes. */
    groupsPerUpdate: held.default(8),
    /** Passes over an update's groups. */
    epochs: repeats.default(2),
    /** Optimiser steps of one pass. */
    minibatches: repeats.default(1),
    /** Learner versions that a trained decision may be behind; 0 is synchronous. */
    maxLag: lag.default(2),
    /** Learning rate of AdamW. */
    learningRate: rate.default(2e-3),
    /** Optimiser steps over which the learning rate rises from 0. */
    warmupSteps: countFrom0.default(20),
    /** Course of the learning rate after that. */
    decay: z.enum(['none', 'linear', 'cosine']).default('linear'),
    /** Share of the learning rate left at the end. */
    finalRate: share.default(1),
    /** Norm that gradients are clipped to. */
    maxGradNorm: rate.default(1),
    /** Clip of the surrogate's ratio below 1. */
    clipLow: rate.default(DEFAULT_CLIP),
    /** Clip of the surrogate's ratio above 1. */
    clipHigh: rate.default(DEFAULT_CLIP),
    /** Weight of the entropy bonus. */
    entropyCoef: rateFrom0.default(0.003),
    /** Tokens of one pass, padding included; larger minibatches are summed up over several. All at once where absent. */
    maxTokens: count.exactOptional(),
    /** Compute a layer's activations again in the backward pass instead of keeping them. */
    recompute: z.boolean().default(false),
    /** Weight of the critic's loss; 0: no critic is trained. */
    valueCoef: rateFrom0.default(0),
    /** Leave out groups whose members all scored the same, where the estimator only compares trajectories. */
    filterGroups: z.boolean().default(true),
    /**
     * DAPO's dynamic sampling: others are sampled in the place of groups left out, until an update has
     * `groupsPerUpdate` to train on or has consumed this many times as many. At 1 nothing is replaced.
     */
    oversampling: repeats.default(1),
    /** Policy loss; `ppo_clip` where absent, which reads `clipLow` and `clipHigh` above (src/algo/policy-loss.ts). */
    policyLoss: policyLossSchema.exactOptional(),
    /** Correction of decisions that older weights made (src/algo/off-policy.ts). */
    offPolicy: offPolicySchema.prefault({ type: 'ratio' }),
    /** KL to the weights the run started from; none where absent. */
    kl: kl.exactOptional(),
    /** On-policy distillation: the reverse KL to a teacher; none where absent (src/algo/distillation.ts). */
    distillation: distillationSchema.exactOptional(),
    /** Weight of the loss on the world's tokens (ECHO), of language models that write freely; none where absent. */
    observationCoef: rate.exactOptional(),
    /** Self-imitation: remembered episodes that earned more than the critic expected are trained on again; none where absent. */
    selfImitation: selfImitation.exactOptional(),
    /** Rewards of a judge that compares the episodes of a group, in place of the world's (REWARDS.md); none where absent. */
    ranking: ranking.exactOptional(),
  }),
  engine: section({
    /** Engine: `auto` is onnxruntime-node, and onnxruntime-web where that is absent. */
    name: z.enum(['auto', 'onnxruntime-node', 'onnxruntime-web', 'tfjs', 'reference']).default('auto'),
    /** Device of onnxruntime-node. */
    device: z.enum(['cpu', 'webgpu', 'cuda']).default('cpu'),
    /** Threads of the engine that plays. */
    inferenceThreads: threads.default(1),
    /** Threads of the engine that learns. */
    learnerThreads: threads.default(1),
    /**
     * Engines that learn at once, each in a thread with a copy of the weights, sharing the passes of a minibatch (`learner.maxTokens`). What is
     * learnt is the same to the bit for any number of them.
     */
    learnerReplicas: threads.default(1),
    /**
     * Packing of frozen weights: each engine of onnxruntime-node keeps a copy of them in the order that it reads them, and decodes up to half as
     * fast again. False where several engines over one base would not fit in memory.
     */
    packing: z.boolean().default(true),
  }),
  /** Imitation of the world's own solver before reinforcement begins. */
  warmStart: section({
    /** Episodes of the solver, on training tasks; those that it solves are imitated. 0: no warm start. */
    episodes: countFrom0.default(0),
    /** Passes over them. */
    epochs: repeats.default(1),
    /** Episodes of one optimiser step. */
    batch: repeats.default(8),
    /** Learning rate of the imitation. */
    learningRate: rate.default(1e-3),
  }),
  /** The run ends at the first of these. */
  stop: section({
    /** Updates. */
    updates: count.exactOptional(),
    /** Minutes by the clock; not for serial runs. */
    minutes: minutes.exactOptional(),
    /** Actions that environments have answered. */
    envSteps: count.exactOptional(),
  }),
  checkpoint: section({
    /** Updates from one checkpoint to the next. */
    everyUpdates: count.default(50),
    /** Checkpoints kept, the newest. */
    keep: repeats.default(3),
  }),
  evaluation: section({
    /** Tasks to evaluate on. */
    split: z.enum(['train', 'test']).default('test'),
    /** A named set of the world's tasks to evaluate instead of the split, e.g. `held-out`, or a list of task indices. */
    tasks: z.union([z.string(), z.array(countFrom0).min(1)]).exactOptional(),
    /**
     * Evaluate every so many updates while training, which goes on meanwhile: the weights are that update's, and those
     * after it for turns that come later. 0: only at the end.
     */
    everyUpdates: countFrom0.default(0),
    /** Sampled episodes of each task. */
    episodesPerTask: held.default(8),
    /** Horizons to evaluate under, each by itself. */
    horizons: z.array(turns).min(1).max(100).default([24]),
    /** Evaluates with the best action, besides a sampled one. */
    greedy: z.boolean().default(true),
    /**
     * Sampling of a language model that is computed here, in evaluations alone: training draws from the whole distribution at
     * temperature 1, which the learner computes again. Applied in this order; an absent key changes nothing.
     */
    sampling: z
      .strictObject({
        /** Penalty of tokens in the prompt or the answer; 1 is none. */
        repetitionPenalty: z.number().min(0.01).max(100).exactOptional(),
        /** Penalty of tokens in the answer. */
        presencePenalty: z.number().min(-2).max(2).exactOptional(),
        /** Penalty of tokens in the answer, as often as they are in it. */
        frequencyPenalty: z.number().min(-2).max(2).exactOptional(),
        /** Temperature of sampled evaluations. Default 1. */
        temperature: z.number().gt(0).max(100).exactOptional(),
        /** Draws among as many of the likeliest tokens. */
        topK: count.exactOptional(),
        /** Draws among the likeliest tokens that hold this share of the probability. */
        topP: z.number().gt(0).max(1).exactOptional(),
        /** Draws among tokens with at least this share of the likeliest one's probability. */
        minP: z.number().min(0).max(1).exactOptional(),
        /** Texts that end an answer before them. */
        stop: z.array(z.string().min(1)).min(1).max(16).exactOptional(),
      })
      .exactOptional(),
    /** Evaluates a uniform random policy over the same lists too. */
    randomBaseline: z.boolean().default(true),
  }),
  trace: section({
    /** Write every n-th group; 0: none. */
    everyGroups: countFrom0.default(1),
    /** Start a new file after this many bytes. */
    rotateBytes: fileBytes.default(64 * 1024 * 1024),
    /**
     * Bytes kept of training episodes, and as many of evaluations; the oldest file goes first. At least
     * trace.rotateBytes.
     */
    keepBytes: fileBytes.default(256 * 1024 * 1024),
    /** Share of the time that writing traces may take; past it, whole groups are left out. */
    maxShare: shareAbove0.default(0.02),
  }),
  metrics: section({
    /** Write TensorBoard event files into the run's folder. */
    tensorboard: z.boolean().default(true),
    /** Serve the newest row to Prometheus on this port of the loopback address; 0 picks one. */
    prometheusPort: z.int().min(0).max(65535).exactOptional(),
    /** Send rows, and traces of episodes, to an OpenTelemetry receiver; none where absent. */
    otel: otel.exactOptional(),
    /** Send rows to an MLflow server; none where absent. */
    mlflow: mlflow.exactOptional(),
    /** Project, or `team/project`, of Weights & Biases: the run is written into its folder in the client's offline form, for `wandb beta sync`; none where absent. */
    wandb: wandb.exactOptional(),
  }),
});

/** Configuration of a run with all its defaults. */
export type RunConfig = z.infer<typeof runConfigSchema>;
/** World of a run of several, as its configuration has it. */
export type WorldConfig = NonNullable<RunConfig['worlds']>[number];
/** Configuration of a model behind an OpenAI-compatible server, `policy.openai`. */
export type OpenAIConfig = RunConfig['policy']['openai'];
/** Configuration as it is written: keys left out get their defaults. */
export type RunConfigInput = z.input<typeof runConfigSchema>;
/** Configuration as it is written for an agent, in place of a world. */
export type AgentConfigInput = Omit<RunConfigInput, 'env' | 'agent'> &
  Required<Pick<RunConfigInput, 'agent'>> & { readonly env?: undefined };
