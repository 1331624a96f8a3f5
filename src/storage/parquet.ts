/**
 * Parquet: traces compacted into one row per turn, with the episode's facts repeated (they compress to nothing).
 * Written in parts of bounded size, so that memory does not grow with the run.
 */
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { episodeReturn } from '../core/trajectory.ts';
import type { TraceLine, TraceTurn } from './trace.ts';

type Cell = number | string | boolean | null;

interface Column {
  readonly name: string;
  readonly type: 'INT32' | 'DOUBLE' | 'BOOLEAN' | 'STRING';
  readonly value: (episode: TraceLine, turn: TraceTurn, t: number) => Cell;
}

/** Columns of the file. Lists are JSON text, which every reader has; few have nested columns. */
const COLUMNS: readonly Column[] = [
  { name: 'episode', type: 'INT32', value: ({ episode }) => episode },
  { name: 'group', type: 'INT32', value: ({ group }) => group },
  { name: 'purpose', type: 'STRING', value: ({ purpose }) => purpose },
  { name: 'env', type: 'STRING', value: ({ task }) => task.env },
  { name: 'label', type: 'STRING', value: ({ label }) => label ?? '' },
  { name: 'task', type: 'INT32', value: ({ task }) => task.index },
  { name: 'seed', type: 'DOUBLE', value: ({ task }) => task.seed },
  { name: 'horizon', type: 'INT32', value: ({ horizon }) => horizon },
  { name: 'attempt', type: 'INT32', value: ({ attempt }) => attempt },
  { name: 'end', type: 'STRING', value: ({ end }) => end },
  { name: 'success', type: 'BOOLEAN', value: ({ success }) => success },
  { name: 'return', type: 'DOUBLE', value: (episode) => episodeReturn(episode) },
  { name: 'turns', type: 'INT32', value: ({ turns }) => turns.length },
  { name: 'turn', type: 'INT32', value: (_, __, t) => t },
  { name: 'observation', type: 'STRING', value: (_, { observation }) => observation },
  { name: 'action', type: 'STRING', value: (_, { action }) => action },
  {
    name: 'actions',
    type: 'STRING',
    value: ({ actionTable }, { actions }) => json([...actions].map((i) => actionTable[i])),
  },
  { name: 'system', type: 'STRING', value: (_, { response }) => response?.opening?.system ?? null },
  { name: 'instructions', type: 'STRING', value: (_, { response }) => response?.opening?.instructions ?? null },
  { name: 'answer', type: 'STRING', value: (_, { response }) => response?.text ?? null },
  { name: 'formatError', type: 'STRING', value: (_, { response }) => response?.formatError ?? null },
  { name: 'promptTokens', type: 'INT32', value: (_, { response }) => response?.promptTokens ?? null },
  { name: 'completionTokens', type: 'INT32', value: (_, { response }) => response?.completionTokens ?? null },
  { name: 'reward', type: 'DOUBLE', value: (_, { reward }) => reward },
  { name: 'version', type: 'INT32', value: (_, { decision }) => decision?.version ?? null },
  { name: 'value', type: 'DOUBLE', value: (_, { decision }) => decision?.value ?? null },
  { name: 'advantage', type: 'DOUBLE', value: (_, { advantage }) => advantage ?? null },
  { name: 'logprob', type: 'DOUBLE', value: (_, turn) => logprobOf(turn) ?? null },
  { name: 'choice', type: 'INT32', value: (_, { decision }) => (decision?.kind === 'choice' ? decision.choice : null) },
  {
    name: 'tokens',
    type: 'STRING',
    value: (_, { decision }) => (decision?.kind === 'tokens' ? json([...decision.tokens]) : null),
  },
  {
    name: 'logprobs',
    type: 'STRING',
    value: (_, { decision }) => (decision?.kind === 'tokens' ? json([...decision.logprobs]) : null),
  },
  { name: 'context', type: 'STRING', value: (_, { decision }) => (decision ? json([...decision.context]) : null) },
  { name: 'actMs', type: 'DOUBLE', value: (_, { actMs }) => actMs },
  { name: 'envMs', type: 'DOUBLE', value: (_, { envMs }) => envMs },
  { name: 'waitMs', type: 'DOUBLE', value: (_, { stages }) => stages?.waitMs ?? null },
  { name: 'prefillMs', type: 'DOUBLE', value: (_, { stages }) => stages?.prefillMs ?? null },
  { name: 'decodeMs', type: 'DOUBLE', value: (_, { stages }) => stages?.decodeMs ?? null },
];

const SCHEMA = [
  { name: 'root', num_children: COLUMNS.length },
  ...COLUMNS.map(({ name, type }) => {
    const optional = { name, repetition_type: 'OPTIONAL' } as const;
    return type === 'STRING'
      ? ({ ...optional, type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const)
      : ({ ...optional, type } as const);
  }),
];

/** Rows of one part. */
const PART_ROWS = 20_000;

/**
 * Writes a Parquet file.
 * @returns rows written
 */
export function writeParquet(path: string, episodes: Iterable<TraceLine>): number {
  const writer = new ParquetWriter({ writer: fileWriter(path), schema: [...SCHEMA] });
  let part: { episode: TraceLine; turn: TraceTurn; t: number }[] = [];
  let rows = 0;
  const flush = () => {
    if (part.length === 0) return;
    writer.write({
      columnData: COLUMNS.map(({ name, value }) => ({
        name,
        data: part.map(({ episode, turn, t }) => value(episode, turn, t)),
      })),
      rowGroupSize: PART_ROWS,
    });
    rows += part.length;
    part = [];
  };
  for (const episode of episodes) {
    for (const [t, turn] of episode.turns.entries()) part.push({ episode, turn, t });
    if (part.length >= PART_ROWS) flush();
  }
  flush();
  writer.finish();
  return rows;
}

/** Log-probability of a whole decision. */
export function logprobOf({ decision }: TraceTurn): number | undefined {
  if (!decision) return undefined;
  if (decision.kind === 'choice') return decision.logprob;
  let sum = 0;
  for (const logprob of decision.logprobs) sum += logprob;
  return sum;
}

function json(value: unknown): string {
  return JSON.stringify(value);
}
