/**
 * Public API: re-exports only. Values are what somebody needs who trains, plays, serves, writes a world or reads what
 * was recorded; types are those that the values mention. Checks of a world are in `longplay/testing`.
 */
export type { EnvEvent, Failed, Observed } from '../actors/env/protocol.ts';
export type { EvaluationPlan, EvaluationRecord, TrainEnded } from '../actors/scheduler/protocol.ts';
export type { Run } from '../actors/tree.ts';
export { registry as environments } from '../envs/registry.ts';
export type { ChaosReport } from './chaos/chaos-ledger.ts';
export type { ChaosSpec } from './chaos/spec.ts';
export { checkRunConfig, loadRunConfig } from './config/load.ts';
export type { AgentConfigInput, RunConfig, RunConfigInput } from './config/run-config.ts';
export type { AgentReply, EpisodeReport } from './core/agent-call.ts';
export type * from './core/agentgym.ts';
export type { ChatModel, ChatModelOptions, ChatRequest, OpenChatModel } from './core/chat-model.ts';
export type * from './core/draw.ts';
export {
  ACTION_LIMITS,
  ACTIONS_PER_STAGE,
  type Env,
  type EnvOptions,
  type EnvStep,
  type First,
  MAX_PARTIAL_STEPS,
  type MaybePromise,
  type Mid,
  mid,
  type Oracle,
  type Session,
  type Terminated,
  type TimeStep,
  type Truncated,
  terminated,
} from './core/env.ts';
export { type ErrorCode, isUserMistake, LongplayError, UserError } from './core/errors.ts';
export type { Accounting, Failure, FailureCause } from './core/failure.ts';
export type { EpisodeEnd } from './core/horizon.ts';
export { Judge, type JudgeOptions } from './core/judge.ts';
export type {
  AssistantMessage,
  ConversationMessage,
  JsonSchema,
  ReplyFinish,
  Tool,
  ToolCall,
  ToolChoice,
} from './core/model-call.ts';
export type * from './core/parity.ts';
export type * from './core/prompt.ts';
export { Rng, type RngState, seedFrom } from './core/rng.ts';
export { type RewardPart, Rubric, type RubricScore } from './core/rubric.ts';
export type * from './core/screenshot.ts';
export { type Split, type Task, type TaskTable, taskName, taskTable } from './core/task.ts';
export type { ToolCounts } from './core/tool-counts.ts';
export { openToolSession, type ToolAnswer, type ToolEpisode, type ToolResult } from './core/tool-world.ts';
export {
  type ChoiceDecision,
  type ConversationOpening,
  type Decision,
  episodeReturn,
  type ModelResponse,
  type TokensDecision,
  type Trajectory,
  type Turn,
  type TurnStages,
  turnsUsed,
  type VersionRun,
  versionRuns,
} from './core/trajectory.ts';
export type { VerifyFacts } from './core/verify.ts';
export type * from './core/view.ts';
export type * from './core/world.ts';
export type { Difference, DifferenceMethod } from './learning/evaluation/compare.ts';
export type { EvaluationSummary, LabelSummary, TaskCounts } from './learning/evaluation/summary.ts';
export { type MetricsRow, metricTable } from './metrics/metric-table.ts';
export type { RunStatus } from './metrics/run-status.ts';
export type { MetricSink } from './metrics/sinks/sink.ts';
export { openChatModel } from './policy/remote/chat-model.ts';
export type { RemoteUsage } from './policy/remote/usage.ts';
export {
  type ComparedEvaluation,
  type ComparedLabel,
  compareRuns,
  type RunComparison,
  type RunGroup,
} from './run/compare-runs.ts';
export type { LiveStream } from './run/live-stream.ts';
export type { RescoreRequest, ScoredTurn } from './run/rescore/rescore-request.ts';
export { type RolloutOptions, type RolloutOutcome, type RunningRollout, rollout } from './run/rollout.ts';
export type { FinishedEpisode, RunStreams } from './run/run-streams.ts';
export {
  type PolicyServerSettings,
  type StartedPolicyServer,
  startPolicyServer,
} from './run/serve-trained-policy.ts';
export { type EnvServerSettings, startEnvServer } from './run/serve-worlds.ts';
export { type TrainCluster, type TrainingRun, type TrainOptions, type TrainOutcome, train } from './run/train.ts';
export { viewRuns } from './run/view-runs.ts';
export type { EnvServer } from './serve/env-server.ts';
export { type LoadedCheckpoint, loadNewest } from './storage/checkpoint.ts';
export { readTrace, type TraceHeader, type TraceLine, type TraceTurn } from './storage/trace.ts';
export type { ViewerServer } from './viewer/server.ts';
