/**
 * Schema of episodes as plain JSON: whatever comes back from a disk, a trace or a checkpoint, is held to it before
 * anything else reads it. Keys that it does not know are kept.
 *
 * `null` stands where a policy's own number was not finite, which JSON cannot hold; such episodes are shown, and never
 * trained on (src/compute/finite.ts). A reward is always a number: an env's answer was checked when it came.
 */
import { z } from 'zod';

/** Largest number that the typed arrays of a trajectory hold. */
const MAX_INT32 = 2 ** 31 - 1;

const whole = z.int().min(0).max(MAX_INT32);
const measured = z.number().nullable();

/** A list checked in one plain loop: token ids come by the thousand. */
function listOf<T>(what: string, fits: (value: unknown) => boolean) {
  return z.custom<readonly T[]>((value) => Array.isArray(value) && value.every(fits), `expected a list of ${what}`);
}

const isWhole = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INT32;
const wholes = listOf<number>('whole numbers', isWhole);
const numbers = listOf<number | null>('numbers', (value) => value === null || Number.isFinite(value));
const texts = listOf<string>('texts', (value) => typeof value === 'string');

const decided = { version: whole, context: wholes.optional(), value: measured };

const decisionSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    kind: z.literal('choice'),
    ...decided,
    choice: whole,
    logprob: measured,
    likeliest: wholes.optional(),
  }),
  z.looseObject({
    kind: z.literal('tokens'),
    ...decided,
    tokens: wholes,
    logprobs: numbers,
    masked: z.boolean(),
    versions: wholes.optional(),
  }),
]);

const turnSchema = z.looseObject({
  observation: z.string(),
  actions: wholes.optional(),
  action: z.string(),
  decision: decisionSchema.optional(),
  untrained: z.literal(true).optional(),
  response: z
    .looseObject({
      text: z.string(),
      formatError: z.string().optional(),
      promptTokens: whole.nullable(),
      completionTokens: whole.nullable(),
      opening: z
        .looseObject({ system: z.string().optional(), instructions: z.string(), listed: z.boolean() })
        .optional(),
    })
    .optional(),
  reward: z.number(),
  partial: z.literal(true).optional(),
  actMs: z.number(),
  envMs: z.number(),
  stages: z.looseObject({ waitMs: z.number(), prefillMs: z.number(), decodeMs: z.number() }).optional(),
  advantage: measured.optional(),
});

/** `Task` of src/core/task.ts. */
export const taskSchema = z.looseObject({ env: z.string(), index: whole, seed: z.int().min(0).max(0xffffffff) });

/** Turns of an episode that may not be finished. */
export const turnsSchema = z.array(turnSchema).superRefine((turns, issues) => {
  for (const [t, turn] of turns.entries()) {
    const why = findInvalidDecision(turn);
    if (why !== undefined) issues.addIssue({ code: 'custom', path: [t, 'decision'], message: why });
  }
});

const trajectoryShape = {
  episode: whole,
  group: whole,
  task: taskSchema,
  horizon: whole.min(1),
  attempt: whole.min(1),
  actionTable: texts,
  turns: turnsSchema,
  finalObservation: z.string(),
  end: z.enum(['terminated', 'truncated']),
  success: z.boolean(),
  view: z.string().optional(),
};

/** `Trajectory` of src/core/trajectory.ts. */
export const trajectorySchema = z.looseObject(trajectoryShape).superRefine(refineTable);

/** A trace's line of an episode (`TraceLine`). */
export const episodeLineSchema = z
  .looseObject({
    ...trajectoryShape,
    purpose: z.string(),
    label: z.string().optional(),
    rescored: z
      .looseObject({
        verify: z.string(),
        sha256: z.string(),
        metrics: z.record(z.string(), z.number()),
        old: z.looseObject({ success: z.boolean(), rewards: z.array(z.number()) }),
      })
      .optional(),
    parent: z.looseObject({ episode: whole, turn: whole }).optional(),
  })
  .superRefine(refineTable);

/** A trace's line of advantages (`CreditLine`). */
export const creditLineSchema = z.looseObject({
  kind: z.literal('credit'),
  update: whole,
  groups: z.array(z.looseObject({ group: whole, advantages: z.array(numbers) })),
});

/** UTF-16 units of a place, which the file's author may name freely. */
const PLACE_CHARS = 120;

/** First thing wrong with a value, in a few words of one line: its place, what was expected, what came. */
export function firstIssue({ issues: [issue] }: z.ZodError): string {
  const formatKey = (key: PropertyKey) => (/^\w*$/.test(String(key)) ? String(key) : JSON.stringify(String(key)));
  const at = issue!.path.map(formatKey).join('.').slice(0, PLACE_CHARS);
  const what = issue!.message
    .replace(/^Invalid input: /, '')
    .replace(/^Invalid input$/, 'it is none of the known kinds');
  return at === '' ? what : `${at}: ${what}`;
}

interface WithTable {
  readonly actionTable: readonly string[];
  readonly turns: readonly { readonly actions?: readonly number[] | undefined }[];
}

function refineTable({ actionTable, turns }: WithTable, issues: z.RefinementCtx): void {
  const { length } = actionTable;
  for (const [t, { actions = [] }] of turns.entries()) {
    if (actions.every((index) => index < length)) continue;
    const message = `expected indices below ${length}, the length of the action table`;
    issues.addIssue({ code: 'custom', path: ['turns', t, 'actions'], message });
  }
}

/** The parts of a decision that do not fit each other, or its turn; undefined where all do. */
function findInvalidDecision({ decision, actions = [] }: z.infer<typeof turnSchema>): string | undefined {
  if (!decision) return undefined;
  if (decision.kind === 'choice') {
    const { choice, likeliest = [] } = decision;
    if (choice >= actions.length) return `choice ${choice} of ${actions.length} listed actions`;
    const stray = likeliest.length % 2 !== 0 || likeliest.some((at, i) => i % 2 === 0 && at >= actions.length);
    return stray ? `likeliest: expected pairs of one of ${actions.length} listed actions and its share` : undefined;
  }
  const { tokens, logprobs, versions } = decision;
  if (logprobs.length !== tokens.length) return `${logprobs.length} log-probabilities of ${tokens.length} tokens`;
  if (!versions) return undefined;
  const runs = versions.filter((_, i) => i % 2 === 1);
  const covered = versions.length % 2 === 0 && runs.every((length) => length > 0);
  const sum = runs.reduce((total, length) => total + length, 0);
  return covered && sum === tokens.length ? undefined : `versions of ${sum} tokens, there are ${tokens.length}`;
}
