/** SearchQA as the framework loads it. */
import type { EnvOptions } from '../../src/core/env.ts';
import type { Resources, StartContext } from '../../src/core/world.ts';
import { checkCorpus, indexOver, readIndex, type SharedIndex } from '../../src/retrieval/index-file.ts';
import { IndexRetriever } from '../../src/retrieval/index-retriever.ts';
import { RecordedResults } from '../../src/retrieval/recorded-results.ts';
import { RemoteRetriever } from '../../src/retrieval/remote-retriever.ts';
import type { Retriever } from '../../src/retrieval/retriever.ts';
import { fileQuestions } from './data-files.ts';
import { SearchQA } from './env.ts';
import { type RetrieverOptions, readOptions, type Sources } from './options.ts';
import type { Questions } from './questions.ts';
import { openWiki, type Wiki, wikiQuestions } from './wiki/world.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { SearchQA, SearchSession } from './env.ts';
export { createOracle } from './oracle.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export { view } from './view.ts';

/** Questions and retriever that a host's sessions share. */
export interface SearchResources extends Resources {
  readonly questions: Questions;
  readonly retriever: Retriever;
}

/** @throws {UserError} for an option or a value that the world does not have, or files that cannot be read */
export function createEnv(options: EnvOptions = {}, resources?: SearchResources): SearchQA {
  const read = readOptions(options);
  return new SearchQA(read, resources?.questions ?? questionsOf(read, undefined), resources?.retriever);
}

/**
 * Makes the embedded world, or reads question files, and opens the retriever.
 * @throws {UserError} for files that cannot be read and unknown options
 */
export async function start(options: EnvOptions, { where, shared }: StartContext): Promise<SearchResources> {
  const read = readOptions(options);
  const wiki = read.data && read.retriever ? undefined : openWiki(read.world);
  const retriever = read.retriever
    ? await openRetriever(read.retriever, where, shared as SharedIndex | undefined)
    : wiki!.retriever;
  return { questions: questionsOf(read, wiki), retriever, dispose: () => retriever.dispose() };
}

function questionsOf({ data, train }: Sources, wiki: Wiki | undefined): Questions {
  return data ? fileQuestions(data, train) : wikiQuestions(wiki, train);
}

/** Reads an index file once for all threads. */
export async function share(options: EnvOptions): Promise<SharedIndex | undefined> {
  const { retriever } = readOptions(options);
  return retriever?.kind === 'index' ? openIndex(retriever) : undefined;
}

async function openIndex({ file, corpus }: RetrieverOptions & { kind: 'index' }): Promise<SharedIndex> {
  const shared = readIndex(file);
  if (corpus !== undefined) await checkCorpus(shared.header, file, corpus);
  return shared;
}

async function openRetriever(
  options: RetrieverOptions,
  where: string,
  shared: SharedIndex | undefined,
): Promise<Retriever> {
  if (options.kind === 'index') return new IndexRetriever(indexOver(shared ?? (await openIndex(options))));
  const { record, kind: _, ...remote } = options;
  if (record === undefined) return new RemoteRetriever(remote);
  return new RemoteRetriever({ ...remote, recorded: new RecordedResults(record, `${process.pid} ${where}`) });
}
