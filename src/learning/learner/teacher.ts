/**
 * Teachers of on-policy distillation (src/algo/distillation.ts): they score what the student decided. Weights score it here, in
 * a pass over the same batch: those of another run, of any size, or the moving average of the student's own. A server scores
 * tokens as a prompt (server-teacher.ts).
 */
import type { Engine, Program } from '../../compute/engine/engine.ts';
import { compileLogprobs } from '../../compute/model/compile.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import { checkParams, type ParamSet } from '../../compute/model/parameters.ts';
import { UserError } from '../../core/errors.ts';
import { measure } from './measure.ts';
import type { TrainerOptions } from './options.ts';
import { openServerTeacher, type TeacherServer } from './server-teacher.ts';
import type { TrainGroup } from './training-batch.ts';

/** Identity of a teacher; plain JSON, kept in checkpoints: a resumed run has to have the same. */
export type TeacherIdentity =
  | {
      readonly type: 'run';
      /** Digest of its weights, SHA-256. */
      readonly digest: string;
      /** Update of its checkpoint. */
      readonly update: number;
    }
  | { readonly type: 'server'; readonly model: string }
  | { readonly type: 'ema' };

/** Teacher as plain data, from which the learner opens it. */
export type TeacherSpec =
  | { readonly type: 'run'; readonly model: ModelConfig; readonly params: ParamSet; readonly identity: TeacherIdentity }
  | { readonly type: 'server'; readonly server: TeacherServer; readonly identity: TeacherIdentity }
  | {
      readonly type: 'ema';
      readonly decay: number;
      /** Average so far; absent in a fresh run, which begins with the student's own weights. */
      readonly params?: ParamSet | undefined;
      readonly identity: TeacherIdentity;
    };

/** Scores of decisions, in the order of `decisionsOf`. */
export interface TeacherScores {
  /** log π_T of what was chosen. */
  readonly logprobs: Float64Array;
  /** log π_T of all allowed actions of each choice; undefined for tokens. */
  readonly listed: readonly Float32Array[] | undefined;
}

export interface Teacher {
  readonly identity: TeacherIdentity;
  /** Average of the student's weights, where it is one. */
  readonly average: ParamSet | undefined;
  /**
   * Scores decisions.
   * @param parts passes to spread the work over, as for `measure`
   * @throws {LongplayError} REMOTE_FAILED where a server does not answer
   */
  score(units: readonly (readonly TrainGroup[])[], parts: number): Promise<TeacherScores>;
  /** Takes the student's weights after an update. */
  follow(student: ParamSet): void;
  dispose(): Promise<void>;
}

/**
 * Opens a teacher; its programs are compiled here.
 * @param student weights that an average begins with
 * @throws {UserError} BAD_WEIGHTS when weights do not fit their model
 */
export async function openTeacher(
  engine: Engine,
  options: TrainerOptions,
  spec: TeacherSpec,
  student: ParamSet,
): Promise<Teacher> {
  if (spec.type === 'server') return openServerTeacher(spec.server, spec.identity);
  const model = spec.type === 'run' ? spec.model : options.model;
  const params = spec.params ?? student;
  checkParams(model, params);
  const { decoder, masked } = options;
  const chunks = model.base ? options.chunks : 1;
  const program = await compileLogprobs(engine, model, { decoder, masked, chunks, listsAll: true });
  return new WeightsTeacher(options, spec, model, program, params);
}

class WeightsTeacher implements Teacher {
  readonly identity: TeacherIdentity;
  readonly #options: TrainerOptions;
  readonly #decay: number | undefined;
  readonly #model: ModelConfig;
  readonly #program: Program;
  #params: ParamSet;

  constructor(
    options: TrainerOptions,
    spec: Extract<TeacherSpec, { readonly type: 'run' | 'ema' }>,
    model: ModelConfig,
    program: Program,
    params: ParamSet,
  ) {
    this.#options = options;
    this.identity = spec.identity;
    this.#decay = spec.type === 'ema' ? spec.decay : undefined;
    this.#model = model;
    this.#program = program;
    this.#params = params;
  }

  get average(): ParamSet | undefined {
    return this.#decay === undefined ? undefined : this.#params;
  }

  async score(units: readonly (readonly TrainGroup[])[], parts: number): Promise<TeacherScores> {
    const { codec, decoder, masked, maxTokens } = this.#options;
    const measuring = { model: this.#model, codec, decoder, masked, maxTokens, program: this.#program };
    return measure(measuring, this.#params, units, parts);
  }

  follow(student: ParamSet): void {
    if (this.#decay !== undefined) this.#params = averageParams(this.#params, student, this.#decay);
  }

  dispose(): Promise<void> {
    return this.#program.dispose();
  }
}

/**
 * Moving average of weights, decay·average + (1 − decay)·student, under the student's version.
 * @see EMA-PG, 2026. https://arxiv.org/abs/2602.04417
 */
export function averageParams(average: ParamSet, student: ParamSet, decay: number): ParamSet {
  const values = Object.entries(student.values).map(([name, own]) => {
    const before = average.values[name]!;
    return [name, own.map((value, i) => decay * before[i]! + (1 - decay) * value)] as const;
  });
  return { version: student.version, values: Object.fromEntries(values) };
}

/**
 * Checks that a resumed run has the teacher that it began with.
 * @param saved of its checkpoint; absent where it had none yet
 * @throws {UserError} BAD_CHECKPOINT where it is another
 */
export function checkTeacher(saved: TeacherIdentity | undefined, now: TeacherIdentity): void {
  if (!saved) return;
  const print = (one: TeacherIdentity) => {
    if (one.type === 'run') return `update ${one.update} of a run, weights ${one.digest.slice(0, 16)}…`;
    return one.type === 'server' ? `model ${one.model} behind a server` : 'the average of its own weights';
  };
  if (print(saved) === print(now)) return;
  throw new UserError(
    'BAD_CHECKPOINT',
    `learner.distillation.teacher: this run began with ${print(saved)}; now it is ${print(now)}; give it its teacher back, or begin a new run from its weights (policy.init)`,
  );
}
