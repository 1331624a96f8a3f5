/** Options of the world, checked: `env: { id: searchqa, options: { … } }`. */

import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { SETS } from './questions.ts';
import type { FormatWeights } from './scoring.ts';
import type { Dialect } from './text.ts';

/** Rules of a session. */
export interface Rules {
  /** `original` keeps the defects of AgentGym's server (README.md). Default `corrected`. */
  readonly fidelity: 'corrected' | 'original';
  /** Dialect. Default `agentgym`. */
  readonly dialect: Dialect;
  /** Passages a search answers with, 1 to 100. Default 3. */
  readonly topk: number;
  /** Answers an episode may give; 0 for any number. Default 1. */
  readonly answers: number;
  /** Tags inside closed `<think>` blocks are text. Default false. */
  readonly ignoreThink: boolean;
  /** Longest passage shown, in UTF-16 units. Default 1000. */
  readonly passageChars: number;
  /** Reward. Default `em`. */
  readonly reward: 'em' | 'sub-em' | 'f1';
  /** Weights of the conversation's form; without them only the answer counts. */
  readonly format: FormatWeights | undefined;
  /** Actions listed at most, 4 to 64. Default 64. */
  readonly candidates: number;
}

/** Sources of questions and passages. */
export interface Sources {
  /** Seed and size of the embedded world. */
  readonly world: { readonly seed: number; readonly entities: number };
  /** Sets whose training questions are trained on; undefined for all. */
  readonly train: readonly string[] | undefined;
  /** Question files instead of the embedded questions. */
  readonly data: DataFiles | undefined;
  /** A retriever instead of the embedded one. */
  readonly retriever: RetrieverOptions | undefined;
}

/** Files of questions, Parquet or JSONL; at least one. */
export interface DataFiles {
  readonly test: string | undefined;
  readonly train: string | undefined;
}

/** An index file of ours, or a server. */
export type RetrieverOptions =
  | { readonly kind: 'index'; readonly file: string; readonly corpus: string | undefined }
  | {
      readonly kind: 'server';
      readonly url: string;
      readonly protocol: 'search-r1' | 'elasticsearch';
      readonly timeoutMs: number;
      readonly retries: number;
      readonly batchMs: number;
      readonly maxBatch: number;
      readonly cache: number;
      /** Folder in which answers are kept, so that episodes can be played again. */
      readonly record: string | undefined;
    };

const KNOWN = [
  'fidelity',
  'dialect',
  'topk',
  'answers',
  'ignoreThink',
  'passageChars',
  'reward',
  'format',
  'candidates',
  'world',
  'train',
  'data',
  'retriever',
];

/**
 * Reads the options.
 * @throws {UserError} BAD_CONFIG for an option or a value that the world does not have
 */
export function readOptions(options: EnvOptions): Rules & Sources {
  const read = new Reader('', options, KNOWN);
  const original = read.oneOf('fidelity', ['corrected', 'original'] as const, 'corrected') === 'original';
  const rules: Rules = {
    fidelity: original ? 'original' : 'corrected',
    dialect: read.oneOf('dialect', ['agentgym', 'search-r1'] as const, 'agentgym'),
    topk: read.integer('topk', 3, 1, 100),
    answers: read.integer('answers', 1, 0, 1000),
    ignoreThink: read.boolean('ignoreThink', false),
    passageChars: read.integer('passageChars', 1000, 50, 100_000),
    reward: read.oneOf('reward', ['em', 'sub-em', 'f1'] as const, 'em'),
    format: formatOf(read.object('format')),
    candidates: read.integer('candidates', 64, 4, 64),
  };
  const world = new Reader('world.', read.object('world') ?? {}, ['seed', 'entities']);
  return {
    ...rules,
    world: { seed: world.integer('seed', 1, 0, 2 ** 32 - 1), entities: world.integer('entities', 3000, 600, 100_000) },
    train: setsOf(read.strings('train')),
    data: dataOf(read.object('data')),
    retriever: retrieverOf(read.object('retriever')),
  };
}

function formatOf(given: EnvOptions | undefined): FormatWeights | undefined {
  if (!given) return undefined;
  const read = new Reader('format.', given, ['structure', 'final', 'retrieval']);
  const weight = (name: string) => read.number(name, 0, 0, 1);
  return { structure: weight('structure'), final: weight('final'), retrieval: weight('retrieval') };
}

function setsOf(given: readonly string[] | undefined): readonly string[] | undefined {
  for (const set of given ?? []) {
    if (!(SETS as readonly string[]).includes(set)) refuse('train', `sets of ${SETS.join(', ')}`, set);
  }
  return given;
}

function dataOf(given: EnvOptions | undefined): DataFiles | undefined {
  if (!given) return undefined;
  const read = new Reader('data.', given, ['test', 'train']);
  const files = { test: read.text('test'), train: read.text('train') };
  if (files.test === undefined && files.train === undefined)
    refuse('data', 'a file of `test` or `train` questions', given);
  return files;
}

function retrieverOf(given: EnvOptions | undefined): RetrieverOptions | undefined {
  if (!given) return undefined;
  if (given.index !== undefined) {
    const read = new Reader('retriever.', given, ['index', 'corpus']);
    return { kind: 'index', file: read.text('index')!, corpus: read.text('corpus') };
  }
  const known = ['url', 'protocol', 'timeoutMs', 'retries', 'batchMs', 'maxBatch', 'cache', 'record'];
  const read = new Reader('retriever.', given, known);
  const url = read.text('url');
  if (url === undefined || !URL.canParse(url)) refuse('retriever.url', 'an address, or `index` with a file', given.url);
  return {
    kind: 'server',
    url,
    protocol: read.oneOf('protocol', ['search-r1', 'elasticsearch'] as const, 'search-r1'),
    timeoutMs: read.integer('timeoutMs', 30_000, 1, 3_600_000),
    retries: read.integer('retries', 3, 0, 100),
    batchMs: read.integer('batchMs', 2, 0, 1000),
    maxBatch: read.integer('maxBatch', 64, 1, 4096),
    cache: read.integer('cache', 10_000, 0, 10_000_000),
    record: read.text('record'),
  };
}

/** Reads the members of one object of options. */
class Reader {
  readonly #prefix: string;
  readonly #given: EnvOptions;

  constructor(prefix: string, given: EnvOptions, known: readonly string[]) {
    this.#prefix = prefix;
    this.#given = given;
    for (const key of Object.keys(given)) {
      if (known.includes(key)) continue;
      throw new UserError('BAD_CONFIG', `searchqa has no option "${prefix}${key}"; it has: ${known.join(', ')}`);
    }
  }

  oneOf<T extends string>(name: string, values: readonly T[], fallback: T): T {
    const value = this.#given[name] ?? fallback;
    return values.find((known) => known === value) ?? this.#refuse(name, values.join(' | '), value);
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.number(name, fallback, min, max);
    return Number.isInteger(value) ? value : this.#refuse(name, `an integer in [${min}, ${max}]`, value);
  }

  number(name: string, fallback: number, min: number, max: number): number {
    const value = this.#given[name] ?? fallback;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    return this.#refuse(name, `a number in [${min}, ${max}]`, value);
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.#given[name] ?? fallback;
    return typeof value === 'boolean' ? value : this.#refuse(name, 'true or false', value);
  }

  text(name: string): string | undefined {
    const value = this.#given[name];
    if (value === undefined || value === null) return undefined;
    return typeof value === 'string' && value !== '' ? value : this.#refuse(name, 'a text', value);
  }

  strings(name: string): readonly string[] | undefined {
    const value = this.#given[name];
    if (value === undefined || value === null) return undefined;
    const isList = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
    return isList ? (value as string[]) : this.#refuse(name, 'a list of texts', value);
  }

  object(name: string): EnvOptions | undefined {
    const value = this.#given[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'object' && !Array.isArray(value)) return value as EnvOptions;
    return this.#refuse(name, 'an object', value);
  }

  #refuse(name: string, expected: string, got: unknown): never {
    return refuse(this.#prefix + name, expected, got);
  }
}

function refuse(name: string, expected: string, got: unknown): never {
  throw new UserError('BAD_CONFIG', `searchqa: ${name}: expected ${expected}, got ${describeValue(got)}`);
}
