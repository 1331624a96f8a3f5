/** What others import from this package. */
export { type CheckOptions, checkLaw, checkLaws, envLaws, type LawResult } from './conformance/check.ts';
export { type Law, laws, type Subject } from './conformance/laws.ts';
export type { ActionTexts } from './conformance/script.ts';
export type {
  Env,
  EnvModule,
  EnvOptions,
  EnvStep,
  First,
  Mid,
  Oracle,
  Session,
  Terminated,
  TimeStep,
} from './core/env.ts';
export { mid, terminated } from './core/env.ts';
export { LongplayError, UserError } from './core/errors.ts';
export { Rng, seedFrom } from './core/rng.ts';
export type { Split, Task, TaskTable } from './core/task.ts';
export type { AppendView, Rendered, SeenTurn, View, WindowView } from './core/view.ts';
