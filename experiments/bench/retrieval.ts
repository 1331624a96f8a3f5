/**
 * Retrieval: requests per second of `serve-retriever` with 1, 4 and 32 clients over the default world, beside an empty
 * `node:http` server in the same run; and, with `--passages 1000000`, building, size, memory and searches of an index
 * of that many made-up passages of 100 words.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { makeKnowledge } from '../../envs/searchqa/wiki/knowledge.ts';
import { writePassages } from '../../envs/searchqa/wiki/passages.ts';
import { Rng } from '../../src/core/rng.ts';
import { columns } from '../../src/learning/evaluation/table.ts';
import { buildIndex } from '../../src/retrieval/build-index.ts';
import { indexOver, readIndex } from '../../src/retrieval/index-file.ts';
import type { BenchFlags } from './contract.ts';
import { type Client, load } from './http-load.ts';
import { median } from './median.ts';
import { zipfCorpus } from './searchqa-steps.ts';

const CLIENTS = [1, 4, 32] as const;
const EMPTY = `
import { createServer } from 'node:http';
const answer = JSON.stringify({ result: [] });
const server = createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer));
});
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));
`;

/** Runs the bench and prints its tables. */
export async function retrievalBench({ json, passages }: BenchFlags): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-retrieval-'));
  try {
    const served = await servers(folder);
    const large = passages === undefined ? undefined : await largeIndex(folder, passages);
    if (json) process.stdout.write(`${JSON.stringify({ servers: served, index: large })}\n`);
    else {
      const rows = served.map(({ clients, requests, empty, ratio, p99 }) => [
        `  serve-retriever, ${clients} ${clients === 1 ? 'client' : 'clients'}`,
        `${Math.round(requests)} requests/s`,
        `${ratio.toFixed(2)}x an empty node:http (${Math.round(empty)})`,
        `p99 ${p99.toFixed(2)} ms`,
      ]);
      process.stdout.write(`\nretrieval\n${columns(rows).join('\n')}\n`);
      if (large) for (const [name, value] of Object.entries(large)) process.stdout.write(`  ${name}: ${value}\n`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function servers(folder: string, { seconds = 0.5, rounds = 7 } = {}) {
  const knowledge = makeKnowledge(1, 3000);
  const corpus = join(folder, 'world.jsonl');
  writeFileSync(
    corpus,
    writePassages(knowledge)
      .map((passage) => JSON.stringify(passage))
      .join('\n'),
  );
  const rng = Rng.fromSeed(1);
  const bodies = Array.from({ length: 500 }, () =>
    JSON.stringify({ queries: [rng.pick(knowledge.things).name], topk: 3, return_scores: true }),
  );
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
  const limit = await startServer(['--input-type=module', '-e', EMPTY]);
  const ours = await startServer([main, 'serve-retriever', corpus, '--port', '0']);
  const clients = (count: number): Client[] =>
    Array.from({ length: count }, (_, c) => {
      let i = c;
      return () => ({ path: '/retrieve', body: bodies[i++ % bodies.length]! });
    });
  const rows = [];
  try {
    for (const { url } of [limit, ours]) await load(url, clients(32), { seconds: 1 });
    for (const count of CLIENTS) {
      const pairs = [];
      for (let round = 0; round < rounds; round++) {
        const empty = await load(limit.url, clients(count), { seconds });
        pairs.push({ empty, ours: await load(ours.url, clients(count), { seconds }) });
      }
      rows.push({
        clients: count,
        requests: median(pairs.map((pair) => pair.ours.requestsPerSecond)),
        empty: median(pairs.map((pair) => pair.empty.requestsPerSecond)),
        ratio: median(pairs.map((pair) => pair.ours.requestsPerSecond / pair.empty.requestsPerSecond)),
        p99: median(pairs.map((pair) => pair.ours.p99)),
      });
    }
  } finally {
    for (const { child } of [limit, ours]) child.kill('SIGKILL');
  }
  return rows;
}

/** A node program that prints its address; on its first line. */
async function startServer(args: readonly string[]): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /http:\/\/[\d.]+:\d+/.exec(line)?.[0];
    if (url) return { url, child };
  }
  throw new Error(`${args.at(-1)} ended before it listened`);
}

async function largeIndex(folder: string, passages: number): Promise<Record<string, string>> {
  const corpus = join(folder, 'large.jsonl');
  const made = zipfCorpus(passages, Rng.fromSeed(1));
  const out = createWriteStream(corpus);
  for (const row of made.rows()) {
    if (!out.write(`${JSON.stringify(row)}\n`))
      await new Promise<void>((resolve) => out.once('drain', () => resolve()));
  }
  await new Promise<void>((resolve) => out.end(() => resolve()));
  const file = join(folder, 'large.index');
  const mb = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 200);
  const began = performance.now();
  const header = await buildIndex(corpus, file);
  clearInterval(watch);
  const built = (performance.now() - began) / 1000;
  const opened = performance.now();
  const index = indexOver(readIndex(file));
  const readMs = performance.now() - opened;
  const queries = made.queries(2000);
  for (const query of queries.slice(0, 200)) index.search(query, 3);
  const times = queries.map((query) => {
    const start = performance.now();
    index.search(query, 3);
    return performance.now() - start;
  });
  times.sort((a, b) => a - b);
  const rate = (1000 * times.length) / times.reduce((sum, ms) => sum + ms, 0);
  return {
    passages: String(header.passages),
    'corpus / index': `${mb(statSync(corpus).size)} / ${mb(statSync(file).size)}`,
    'built in': `${built.toFixed(1)} s, ${mb(peak)} of memory at most`,
    'read in': `${(readMs / 1000).toFixed(1)} s`,
    searches: `${Math.round(rate)} a second, p50 ${times[1000]!.toFixed(2)} ms, p99 ${times[1980]!.toFixed(2)} ms`,
  };
}
