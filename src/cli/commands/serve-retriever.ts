/** Command `longplay serve-retriever`. */
import type { Command } from 'commander';
import { whole } from '../../console/numbers.ts';
import { out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { readApiKey } from '../../http/api-key.ts';
import { appOf } from '../../http/app.ts';
import { listen } from '../../http/server.ts';
import type { Bm25Index } from '../../retrieval/bm25-index.ts';
import { readLines, readPassage } from '../../retrieval/corpus.ts';
import { checkCorpus, indexOver, readIndex } from '../../retrieval/index-file.ts';
import { IndexRetriever } from '../../retrieval/index-retriever.ts';
import { indexPassages } from '../../retrieval/memory-index.ts';
import { retrieveHandler } from '../../retrieval/retrieve-server.ts';
import { runCommand } from '../fail.ts';
import { MOST, port as portNumber, wholeNumber } from '../flags.ts';
import { awaitSignal } from '../interrupt.ts';

interface ServeFlags {
  readonly corpus?: string;
  readonly host: string;
  readonly port: number;
  readonly topk: number;
  readonly maxBody: number;
}

/** Adds the command. */
export function serveRetriever(program: Command): void {
  program
    .command('serve-retriever')
    .description('answer Search-R1’s retrieval protocol (POST /retrieve) from an index')
    .argument('<index>', 'index file of `longplay index`, or a small corpus (.jsonl, .jsonl.gz) to index in memory')
    .option('--corpus <file>', 'refuse an index that was built from another corpus')
    .option('--host <address>', 'address to listen on; other than loopback needs LONGPLAY_SERVER_TOKEN', '127.0.0.1')
    .option('--port <n>', 'port; 0 picks a free one', portNumber, 8000)
    .option('--topk <n>', 'passages a query where the request names no number', wholeNumber(1, MOST.held), 3)
    .option('--max-body <bytes>', 'largest request body', wholeNumber(1, MOST.bytes), 16 * 1024 * 1024)
    .action((file: string, { corpus, host, port, topk, maxBody }: ServeFlags) =>
      runCommand(async () => {
        const index = await openIndex(file, corpus);
        const handler = retrieveHandler(new IndexRetriever(index), { topk });
        const token = readApiKey('LONGPLAY_SERVER_TOKEN');
        const server = await listen(appOf(handler), { host, port, token, maxBodyBytes: maxBody });
        out.line(`serving ${whole(index.size)} passages on ${server.url}/retrieve`);
        await awaitSignal();
        await server.close();
      }),
    );
}

async function openIndex(file: string, corpus: string | undefined): Promise<Bm25Index> {
  if (/\.jsonl(\.gz)?$/.test(file) && corpus !== undefined) {
    throw new UserError('BAD_ARGUMENT', `serve-retriever: --corpus checks an index; ${file} is a corpus itself`);
  }
  if (!/\.jsonl(\.gz)?$/.test(file)) {
    const shared = readIndex(file);
    if (corpus !== undefined) await checkCorpus(shared.header, file, corpus);
    return indexOver(shared);
  }
  const passages = [];
  for await (const { row, bytes } of readLines(file)) passages.push(readPassage(bytes, `${file}: line ${row + 1}`));
  return indexPassages(passages);
}
