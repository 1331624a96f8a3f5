/**
 * Parity with AgentGym's SearchQA and Search-R1: recorded strings, scores, rankings, and exchanges over HTTP, against
 * `fidelity: original`. Kinds of recording are distinguished by the fields of their rows.
 *
 * Not compared, because nothing here has them: verl's wording of passages, SkyRL's score, and the query that
 * Search-R1's demonstration script reads out of a text.
 */
import type { EnvStep } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Parity } from '../../src/core/parity.ts';
import { strip } from '../../src/core/python-text.ts';
import { ANALYZERS } from '../../src/retrieval/analyzer.ts';
import type { Bm25Index } from '../../src/retrieval/bm25-index.ts';
import type { Passage } from '../../src/retrieval/corpus.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import type { Retriever } from '../../src/retrieval/retriever.ts';
import { Comparison, type Json } from './comparison.ts';
import { SearchSession } from './env.ts';
import * as grammar from './grammar.ts';
import { readOptions } from './options.ts';
import { replayExchanges } from './parity-exchanges.ts';
import { AGENTGYM_RUNS, type Question, tableOf } from './questions.ts';
import * as scoring from './scoring.ts';
import * as text from './text.ts';

/** A file of any kind. */
export const parity: Parity = async (records, report, file, serve) => {
  const comparison = new Comparison(report);
  const rows = records as readonly Json[];
  const kind = kindOf(rows);
  if (kind === 'bm25') replayRankings(rows, comparison);
  else if (kind === 'world') comparison.episodes++;
  else if (kind === 'split') replaySplit(rows[0]!, comparison);
  else if (kind === 'retrieve' || kind === 'http' || kind === 'episodes') {
    await replayExchanges(kind, rows, file, serve, comparison);
  } else for (const [i, row] of rows.entries()) REPLAYS[kind](row, `${kind} ${i + 1}`, comparison);
  return comparison;
};

type Kind = keyof typeof REPLAYS | 'bm25' | 'world' | 'split' | 'retrieve' | 'http' | 'episodes';

function kindOf(rows: readonly Json[]): Kind {
  const has = (...fields: string[]) => rows.length > 0 && fields.every((field) => Object.hasOwn(rows[0]!, field));
  if (has('docs', 'tokens')) return 'bm25';
  if (has('docs', 'questions')) return 'world';
  if (has('input', 'normalized')) return 'normalize';
  if (has('input', 'truncated')) return 'action';
  if (has('input', 'valid')) return 'trajectory';
  if (has('prediction', 'golden')) return 'match';
  if (has('result', 'information_agentgym')) return 'passages';
  if (has('raw_question')) return 'prompt';
  if (has('retriever', 'method', 'path')) return 'retrieve';
  if (has('episode', 'exchanges')) return 'episodes';
  if (has('method', 'path')) return 'http';
  if (has('test')) return 'split';
  throw new UserError(
    'BAD_TRACE',
    'no recording of SearchQA: expected rows of action, normalize, match, trajectory, passages, prompt, bm25, http, episodes, retrieve or world',
  );
}

const REPLAYS = {
  normalize: (row: Json, where: string, to: Comparison) => {
    to.episodes++;
    to.check(where, 'normalized', scoring.normalize(row.input as string), row.normalized);
  },
  match: replayMatch,
  action: replayAction,
  trajectory: replayTrajectory,
  passages: replayPassages,
  prompt: replayPrompt,
};

function replayMatch(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const prediction = row.prediction as string;
  const golden = row.golden as scoring.Golden;
  to.check(where, 'em', +scoring.exactMatch(prediction, golden), row.em);
  to.check(where, 'sub_em', +scoring.subMatch(prediction, golden), row.sub_em);
  const { f1, precision, recall } = scoring.tokenOverlap(prediction, golden);
  to.check(where, 'overlap', [f1, precision, recall], [row.f1, row.precision, row.recall]);
}

function replayAction(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const input = row.input as string;
  const command = grammar.parse(input);
  to.check(where, 'action', [command?.type ?? null, command?.content ?? ''], [row.action, row.content]);
  to.check(where, 'truncated', grammar.cutAtAction(input), row.truncated);
  to.check(where, 'extract_agentgym', grammar.extractAnswer(input) ?? null, row.extract_agentgym);
  to.check(where, 'extract_search_r1', grammar.extractAnswer(input, 2) ?? null, row.extract_search_r1);
  const question = { question: '?', answers: row.target as string[] };
  const gym = createRecordingSession('agentgym', question, '"T"\nbody of text');
  const step = gym.session.step(input) as EnvStep;
  const done = step.kind === 'terminated';
  const { reward, observation } = step;
  to.check(
    where,
    'agentgym',
    { observation, reward, done, query: gym.queries.length > 0 ? gym.queries : null },
    row.agentgym,
  );
  const searchR1 = row.search_r1 as Json;
  const isSearch = command?.type === 'search';
  // The recording's search answers a bare text where ours answers passages.
  const answer = isSearch ? text.information('search-r1', 'RESULT') : command ? '' : text.invalid('search-r1');
  const flags = { done: +(command !== undefined && !isSearch), valid: +(command !== undefined), is_search: +isSearch };
  to.check(where, 'search_r1', { observation: answer, ...flags }, searchR1);
  if (grammar.cutAtAction(input) !== input) return; // recorded without the cut that comes before it
  const r1 = createRecordingSession('search-r1', question, 'RESULT').session.step(input) as EnvStep;
  to.check(where, 'search_r1 done', +(r1.kind === 'terminated'), searchR1.done);
  if (!isSearch) to.check(where, 'search_r1 observation', r1.observation, searchR1.observation);
}

/** Creates a session of the original that records its queries; every search finds one passage. */
function createRecordingSession(dialect: text.Dialect, question: Question, contents: string) {
  const queries: string[] = [];
  const retriever: Retriever = {
    isRepeatable: true,
    search(query) {
      queries.push(query);
      return [{ document: { contents } }];
    },
    dispose() {},
  };
  return { session: new SearchSession(readOptions({ fidelity: 'original', dialect }), question, retriever), queries };
}

const WEIGHTS: readonly scoring.FormatWeights[] = [
  {},
  { structure: 0.2, final: 0.1 },
  { structure: 0.2, final: 0.1, retrieval: 0.1 },
  {}, // a format_score, which the original takes and never uses
];

function replayTrajectory(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const input = row.input as string;
  const target = row.target as scoring.Golden;
  const { valid, reason } = scoring.checkSequence(input);
  to.check(where, 'valid', [valid, reason], row.valid);
  to.check(where, 'information', grammar.contentsOf(input, 'information').map(strip), row.information);
  to.check(where, 'retrieval_correct', scoring.retrievalHolds(input, target, true), row.retrieval_correct);
  for (const [of, minAnswers] of [
    ['agentgym', 1],
    ['search_r1', 2],
  ] as const) {
    to.check(where, `extract_${of}`, grammar.extractAnswer(input, minAnswers) ?? null, row[`extract_${of}`]);
    const scores = (match: typeof scoring.exactMatch) =>
      [0, 0.1].map((formatScore) => scoring.outcomeScore(input, target, { minAnswers, formatScore, match }));
    to.check(where, `em_${of}`, scores(scoring.exactMatch), row[`em_${of}`]);
    to.check(where, `sub_em_${of}`, scores(scoring.subMatch), row[`sub_em_${of}`]);
    const forms = WEIGHTS.map((weights) => scoring.formatScore(input, target, weights, { minAnswers, original: true }));
    to.check(where, `format_${of}`, forms, row[`format_${of}`]);
  }
}

function replayPassages(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const contents = (row.result as { document: Passage }[]).map(({ document }) => document.contents);
  const list = text.listPassages(contents);
  to.check(where, 'string', list, row.string);
  to.check(where, 'information_agentgym', text.information('agentgym', list), row.information_agentgym);
  to.check(where, 'information_search_r1', text.information('search-r1', list), row.information_search_r1);
}

function replayPrompt(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const question = text.asQuestion(row.raw_question as string);
  to.check(where, 'question', question, row.question);
  to.check(where, 'agentgym', text.opening('agentgym', question), row.agentgym);
  to.check(where, 'search_r1', text.opening('search-r1', question), row.search_r1);
}

function replayRankings([corpus, ...queries]: readonly Json[], to: Comparison): void {
  to.episodes++;
  const passages = (corpus!.docs as string[]).map((contents) => ({ contents }));
  const tokens = corpus!.tokens as string[][];
  for (const [i, expected] of tokens.entries()) {
    to.check(`passage ${i}`, 'tokens', ANALYZERS.plain(passages[i]!.contents), expected);
  }
  const indexes = new Map<string, Bm25Index>();
  for (const [i, row] of queries.entries()) {
    to.episodes++;
    const where = `query ${i + 1} ${JSON.stringify(row.query)}`;
    to.check(where, 'tokens', ANALYZERS.plain(row.query as string), row.tokens);
    const { k1, b } = row as { k1: number; b: number };
    for (const [lengths, field] of [
      ['lucene', 'hits'],
      ['exact', 'hits_exact_lengths'],
    ] as const) {
      const key = `${k1} ${b} ${lengths}`;
      const index = indexes.get(key) ?? indexPassages(passages, { k1, b, lengths });
      indexes.set(key, index);
      for (const prune of [true, false]) {
        const hits = index.search(row.query as string, row.k as number, prune);
        const got = hits.map(({ passage, score }) => [passage, score]);
        to.check(where, `${field}${prune ? '' : ', not pruned'}`, got, row[field], 1e-5);
      }
    }
  }
}

/** Ids of AgentGym-RL's test file: `set_index`, each in its set's run. */
function replaySplit({ test }: Json, to: Comparison): void {
  to.episodes++;
  const tasks = tableOf(AGENTGYM_RUNS);
  const tests = new Set(tasks.split('test'));
  for (const id of test as string[]) {
    const index = Number(id.slice(id.lastIndexOf('_') + 1));
    to.check(id, 'set', tests.has(index) ? tasks.label(index) : undefined, id.slice(0, id.lastIndexOf('_')));
  }
}
