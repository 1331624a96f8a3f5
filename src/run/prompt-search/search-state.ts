/** State of a prompt search: a file of lines, one for each step that is finished, so that a search that stops goes on. */
import { statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { appendWhole } from '../../storage/atomic-file.ts';
import { wholeBytes, wholeLines } from '../../storage/lines.ts';
import { firstIssue } from '../../storage/trajectory-schema.ts';

const whole = z.int().min(0);
const indices = z.array(whole).min(1);
const numbers = z.array(z.number());

const planSchema = z.strictObject({
  kind: z.literal('plan'),
  format: z.literal(1),
  seed: whole,
  budget: whole.min(1),
  minibatch: whole.min(1),
  horizon: whole.min(1),
  /** Task indices: those that reflection learns from, those that select prompts, and those that decide. */
  feedback: indices,
  selection: indices,
  heldOut: indices,
  proposer: z.strictObject({ url: z.string(), model: z.string() }),
});

const played = z.strictObject({ returns: numbers, successes: z.array(z.boolean()) });

const stepSchema = z.discriminatedUnion('kind', [
  /** Candidate of the pool, with its episodes on the selection tasks; the first is the configuration's own prompt. */
  z.strictObject({
    kind: z.literal('candidate'),
    episodes: whole,
    parent: whole.nullable(),
    prompt: z.string(),
    played,
    /** Mean returns of parent and child on the minibatch; absent for the first. */
    minibatch: z.tuple([z.number(), z.number()]).optional(),
  }),
  /** Proposal that was no better on its minibatch. */
  z.strictObject({
    kind: z.literal('rejected'),
    episodes: whole,
    parent: whole,
    prompt: z.string(),
    minibatch: z.tuple([z.number(), z.number()]),
  }),
  /** Reply of the proposer without a new prompt in it. */
  z.strictObject({ kind: z.literal('unusable'), episodes: whole, parent: whole }),
  /** Candidate on the held-out tasks. */
  z.strictObject({ kind: z.literal('held-out'), candidate: whole, played }),
]);

/** Plan of a search; it does not change when the search goes on. */
export type SearchPlan = z.infer<typeof planSchema>;
/** Finished step of a search. `episodes` counts what it played against the budget. */
export type SearchStep = z.infer<typeof stepSchema>;
export type CandidateStep = Extract<SearchStep, { kind: 'candidate' }>;
/** Episodes of some tasks, in their order. */
export type PlayedTasks = z.infer<typeof played>;

/** File of a search's folder; its first line is the plan. */
export const STATE_FILE = 'search.jsonl';

/** Plan and steps of a search. */
export class SearchState {
  readonly plan: SearchPlan;
  readonly #path: string;
  readonly #steps: SearchStep[];

  private constructor(path: string, plan: SearchPlan, steps: SearchStep[]) {
    this.#path = path;
    this.plan = plan;
    this.#steps = steps;
  }

  /**
   * Opens the state of a search, for the process that holds the folder's lock. A last line that a kill cut off goes: its step is
   * made again.
   * @throws {UserError} BAD_CONFIG for a damaged file
   */
  static open(dir: string): SearchState {
    const path = join(dir, STATE_FILE);
    const bytes = wholeBytes(path);
    if (bytes < statSync(path).size) truncateSync(path, bytes);
    const lines = [...wholeLines(path)].map(({ text }) => text ?? '');
    const plan = readLine(planSchema, lines[0] ?? '', path, 1);
    return new SearchState(
      path,
      plan,
      lines.slice(1).map((line, i) => readLine(stepSchema, line, path, i + 2)),
    );
  }

  get steps(): readonly SearchStep[] {
    return this.#steps;
  }

  /** Candidates of the pool, in the order in which they came. */
  get candidates(): readonly CandidateStep[] {
    return this.#steps.filter((step) => step.kind === 'candidate');
  }

  /** Episodes of the budget that are spent. */
  get spent(): number {
    return this.#steps.reduce((sum, step) => sum + ('episodes' in step ? step.episodes : 0), 0);
  }

  /** Adds a step, on the disk first. */
  add(step: SearchStep): void {
    appendWhole(this.#path, `${JSON.stringify(step)}\n`);
    this.#steps.push(step);
  }
}

function readLine<T>(schema: z.ZodType<T>, line: string, path: string, number: number): T {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    value = undefined;
  }
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const fault = firstIssue(checked.error);
  throw new UserError('BAD_CONFIG', `${path}: line ${number} is no step of a search: ${fault}; the file is damaged`);
}
