/** SearchQA as the framework loads it. */
import type { EnvOptions } from '../../src/core/env.ts';
import type { Resources, StartContext } from '../../src/core/world.ts';
import { checkCorpus, indexOver, readIndex } from '../../src/retrieval/index-file.ts';
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

/** What a host's sessions share. */
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
 * @throws {UserError} for files that cannot be read and options that are none
 */
export async function start(options: EnvOptions, { where }: StartContext): Promise<SearchResources> {
  const read = readOptions(options);
  const wiki = read.data && read.retriever ? undefined : openWiki(read.world);
  const retriever = read.retriever ? await openRetriever(read.retriever, where) : wiki!.retriever;
  return { questions: questionsOf(read, wiki), retriever, dispose: () => retriever.dispose() };
}

function questionsOf({ data, train }: Sources, wiki: Wiki | undefined): Questions {
  return data ? fileQuestions(data, train) : wikiQuestions(wiki, train);
}

async function openRetriever(options: RetrieverOptions, where: string): Promise<Retriever> {
  if (options.kind === 'index') {
    const shared = readIndex(options.file);
    if (options.corpus !== undefined) await checkCorpus(shared.header, options.file, options.corpus);
    return new IndexRetriever(indexOver(shared));
  }
  const { record, kind: _, ...remote } = options;
  if (record === undefined) return new RemoteRetriever(remote);
  return new RemoteRetriever({ ...remote, recorded: new RecordedResults(record, `${process.pid} ${where}`) });
}
