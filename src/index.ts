/** Public API: re-exports only. */

export type { EnvEvent, Failed, Observed as EnvObserved } from '../actors/env/protocol.ts';
export type { EvaluationPlan, EvaluationRecord, TrainEnded } from '../actors/scheduler/protocol.ts';
export { type Run, type RunOptions, startRun } from '../actors/tree.ts';
export { registry as environments } from '../envs/registry.ts';
export { type Estimate, type Extras, estimate, scores } from './algo/advantages.ts';
export type { AgentEvolConfig } from './algo/agent-evol.ts';
export type { Truncation } from './algo/estimator.ts';
export type { EstimatorConfig } from './algo/estimators.ts';
export type { GigpoConfig } from './algo/gigpo.ts';
export type { DrGrpoConfig, GrpoConfig } from './algo/grpo.ts';
export type { PpoConfig } from './algo/ppo.ts';
export type { ReinforcePlusPlusConfig } from './algo/reinforce-plus-plus.ts';
export type { RlooConfig } from './algo/rloo.ts';
export type { Engine, EngineOptions, HostTensor, Program } from './compute/engine/engine.ts';
export { openEngine } from './compute/engine/open.ts';
export { checkRunConfig, loadRunConfig } from './config/load.ts';
export type { RunConfig, RunConfigInput } from './config/run-config.ts';
export type * from './core/agentgym.ts';
export * from './core/clock.ts';
export * from './core/draw.ts';
export * from './core/env.ts';
export * from './core/errors.ts';
export * from './core/failure.ts';
export * from './core/horizon.ts';
export type * from './core/parity.ts';
export type * from './core/prompt.ts';
export * from './core/rng.ts';
export * from './core/task.ts';
export * from './core/trajectory.ts';
export * from './core/view.ts';
export type * from './core/world.ts';
export { summarise } from './learning/evaluation/summary.ts';
export * as horizonSchedule from './learning/schedule/horizon-schedule.ts';
export { type MetricsRow, metricTable } from './metrics/metric-table.ts';
export type { RunStatus } from './metrics/run-status.ts';
export type { MetricSink } from './metrics/sinks/sink.ts';
export type { Acted, ActRequest, Policy } from './policy/policy.ts';
export { LiveStream } from './run/live-stream.ts';
export { type RolloutOptions, type RolloutOutcome, type RunningRollout, rollout } from './run/rollout.ts';
export type { FinishedEpisode, RunStreams } from './run/run-streams.ts';
export {
  type PolicyServerSettings,
  type StartedPolicyServer,
  startPolicyServer,
} from './run/serve-trained-policy.ts';
export { type EnvServerSettings, startEnvServer } from './run/serve-worlds.ts';
export { type TrainingRun, type TrainOptions, type TrainOutcome, train } from './run/train.ts';
export { viewRuns } from './run/view-runs.ts';
export { loadNewest, saveCheckpoint } from './storage/checkpoint.ts';
export { readTrace, type TraceLine } from './storage/trace.ts';
export type { Codec } from './text/reading/codec.ts';
export { codecOf } from './text/reading/codec-of.ts';
export type { Observed, Prompt, Transcript } from './text/reading/transcript.ts';
export { ViewCodec } from './text/reading/view-codec.ts';
export { WordTokenizer } from './text/reading/word-tokenizer.ts';
export { type CheckOptions, checkLaw, checkLaws, envLaws, type LawResult } from './world/conformance/check.ts';
export { type Law, laws, type Subject } from './world/conformance/laws.ts';
export type { ActionTexts } from './world/conformance/script.ts';
