/**
 * Evaluations of a run as its folder keeps them: `evaluations.jsonl`, made while it trained, and `results.json`, made at its
 * end. Damaged lines are left out.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readText } from '../core/bounded-file.ts';
import { parseJson } from '../core/json-text.ts';
import type { EvaluationRow } from './api.ts';

/** Largest file that is read; evaluations are some kilobytes each. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Most evaluations that are shown; the newest are kept. */
const MAX_ROWS = 2000;

const number = z.number().nullable();

const tasksSchema = z.object({
  label: z.string(),
  tasks: z.number(),
  episodes: z.number(),
  success: z.object({ value: number, low: number, high: number, n: number }),
  score: number,
  turns: number,
  passAtK: z.record(z.string(), number),
});

const summarySchema = z.object({
  name: z.string(),
  horizon: z.number(),
  all: tasksSchema,
  labels: z.array(tasksSchema),
  unseen: tasksSchema.optional(),
  failed: z.number().default(0),
});

const lineSchema = z.object({ update: number.default(null), evaluation: summarySchema });

/** `results.json` of a training run, or of a rollout, which has one summary. */
const resultsSchema = z.object({
  ended: z.object({ status: z.object({ version: z.number() }) }).optional(),
  evaluations: z.array(z.unknown()).default([]),
  summary: z.unknown().optional(),
});

/** Reader of a folder's evaluations; reads a file again only when it has changed. */
export class EvaluationFiles {
  readonly #dir: string;
  readonly #seen = new Map<string, { readonly stamp: string; readonly rows: readonly EvaluationRow[] }>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Evaluations so far, those made while the run trained first. */
  rows(): readonly EvaluationRow[] {
    const during = this.#file('evaluations.jsonl', (text) => text.split('\n').flatMap(lineRows));
    const after = this.#file('results.json', resultRows);
    return [...during, ...after].slice(-MAX_ROWS);
  }

  #file(name: string, read: (text: string) => readonly EvaluationRow[]): readonly EvaluationRow[] {
    const path = join(this.#dir, name);
    if (!existsSync(path)) return [];
    const { size, mtimeMs } = statSync(path);
    const stamp = `${size} ${mtimeMs}`;
    const known = this.#seen.get(name);
    if (known?.stamp === stamp) return known.rows;
    const rows = size > MAX_BYTES ? [] : read(readText(path, MAX_BYTES));
    this.#seen.set(name, { stamp, rows });
    return rows;
  }
}

function lineRows(text: string): EvaluationRow[] {
  const line = lineSchema.safeParse(parse(text));
  if (!line.success) return [];
  const { update, evaluation } = line.data;
  // Traces name them by their update; here they are one evaluation over time.
  return [{ update, ...evaluation, name: evaluation.name.replace(/ @\d+$/, '') }];
}

function resultRows(text: string): EvaluationRow[] {
  const results = resultsSchema.safeParse(parse(text));
  if (!results.success) return [];
  const { ended, evaluations, summary } = results.data;
  return [...evaluations, summary].flatMap((one) => {
    const read = summarySchema.safeParse(one);
    return read.success ? [{ update: ended?.status.version ?? null, ...read.data }] : [];
  });
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
