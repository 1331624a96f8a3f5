/** Our retrieval server and our client, each other's and other people's. */

import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { appOf } from '../../src/http/app.ts';
import { listen } from '../../src/http/server.ts';
import { IndexRetriever } from '../../src/retrieval/index-retriever.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import { RecordedResults } from '../../src/retrieval/recorded-results.ts';
import { RemoteRetriever } from '../../src/retrieval/remote-retriever.ts';
import { retrieveHandler } from '../../src/retrieval/retrieve-server.ts';
import type { Hit } from '../../src/retrieval/retriever.ts';
import { temporaryFolder } from '../support/small-run.ts';

const passages = Array.from({ length: 50 }, (_, i) => ({
  id: `p${i}`,
  contents: `"T${i}"\ntown${i % 7} river${i % 3}`,
}));
const retriever = new IndexRetriever(indexPassages(passages));
const folder = temporaryFolder('retrieval');
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true, force: true });
});

async function ours(): Promise<string> {
  const server = await listen(appOf(retrieveHandler(retriever)), { port: 0 });
  closing.push(() => server.close());
  return server.url;
}

/** Starts a foreign server with given answers. @returns its address and the bodies it was sent */
async function theirs(answer: (body: string, n: number, response: ServerResponse) => void) {
  const bodies: string[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => answer(body, bodies.push(body), response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies };
}

function client(url: string, more: Partial<ConstructorParameters<typeof RemoteRetriever>[0]> = {}) {
  const made = new RemoteRetriever({ url, protocol: 'search-r1', retries: 1, ...more });
  closing.push(() => made.dispose());
  return made;
}

const result = (lists: unknown) => JSON.stringify({ result: lists });

describe('Search-R1’s protocol', () => {
  it('brings through server and client what the index finds', async () => {
    const remote = client(await ours());
    for (const query of ['town3', 'river1 town2', '', 'nothing', 'T7 "quotes" \u2028 é']) {
      expect(await remote.search(query, 4)).toEqual(retriever.search(query, 4));
    }
  });

  it('sends queries that arrive together in one request, a topk each, and remembers the answers', async () => {
    const { url, bodies } = await theirs((body, _, response) => {
      const { queries } = JSON.parse(body) as { queries: string[] };
      response.end(result(queries.map((query) => [{ document: { contents: `for ${query}` } }])));
    });
    const remote = client(url, { batchMs: 20 });
    const first = await Promise.all(
      ['a', 'b', 'a'].map((query) => remote.search(query, 3)).concat(remote.search('c', 1)),
    );
    expect(first.map((hits) => hits[0]!.document.contents)).toEqual(['for a', 'for b', 'for a', 'for c']);
    expect(bodies.map((body) => JSON.parse(body))).toEqual([
      { queries: ['a', 'b'], topk: 3, return_scores: true },
      { queries: ['c'], topk: 1, return_scores: true },
    ]);
    await remote.search('b', 3);
    expect(bodies.length).toBe(2);
  });

  it('accepts missing scores and ids, bare documents, numbers for ids, fewer and more passages than requested', async () => {
    const items = [
      { contents: 'bare', id: 7 },
      { document: { contents: 'b' } },
      { document: { contents: 'c' }, score: 1 },
    ];
    const { url } = await theirs((_, __, response) => response.end(result([items])));
    const hits = await client(url).search('x', 2);
    expect(hits).toEqual([{ document: { contents: 'bare', id: '7' } }, { document: { contents: 'b' } }]);
  });

  it.each([
    ['too few lists', result([]), /expected 1 lists of passages under `result`, got 0; it begins: \{"result":\[\]\}/],
    ['no contents', result([[{ document: { text: 'x' } }]]), /no text `contents`/],
    ['a page', '<html>\u001b[31mhello', /the answer is not JSON; it begins: <html> ?\[31mhello/],
  ])('fails, quoting the answer, where it has %s', async (_, body, message) => {
    const { url } = await theirs((__, ___, response) => response.end(body));
    await expect(client(url, { retries: 0 }).search('x', 3)).rejects.toThrow(message);
  });

  it('is retried after 5xx and never after 4xx, and a failure is not cached', async () => {
    const { url, bodies } = await theirs((_, n, response) => {
      response.statusCode = n === 1 ? 503 : 200;
      response.end(result([[]]));
    });
    expect(await client(url).search('x', 3)).toEqual([]);
    expect(bodies.length).toBe(2);
    const bad = await theirs((_, n, response) => {
      response.statusCode = n === 1 ? 422 : 200;
      response.end(result([[]]));
    });
    const remote = client(bad.url);
    await expect(remote.search('x', 3)).rejects.toThrow(/HTTP 422/);
    expect(bad.bodies.length).toBe(1);
    expect(await remote.search('x', 3)).toEqual([]);
  });

  it('fails with the server’s name where nothing listens or nothing answers in time', async () => {
    await expect(client('http://127.0.0.1:9', { retries: 0 }).search('x', 3)).rejects.toThrow(
      /retriever http:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/,
    );
    const { url } = await theirs(() => {});
    await expect(client(url, { retries: 0, timeoutMs: 50 }).search('x', 3)).rejects.toThrow(
      /no whole answer within 50 ms/,
    );
  });
});

describe('Elasticsearch’s protocol', () => {
  it('asks with _msearch over `contents` and reads sources and scores', async () => {
    const hits = [{ _id: '9', _score: 2.5, _source: { contents: 'found' } }];
    const { url, bodies } = await theirs((_, __, response) =>
      response.end(JSON.stringify({ responses: [{ hits: { hits } }] })),
    );
    const found = await client(`${url}/wiki`, { protocol: 'elasticsearch' }).search('a "b"', 3);
    expect(found).toEqual([{ document: { id: '9', contents: 'found' }, score: 2.5 }]);
    expect(bodies).toEqual(['{}\n{"size":3,"query":{"match":{"contents":"a \\"b\\""}}}\n']);
  });
  it('fails where a response holds an error', async () => {
    const { url } = await theirs((_, __, response) =>
      response.end(JSON.stringify({ responses: [{ error: 'no index' }] })),
    );
    await expect(client(url, { protocol: 'elasticsearch', retries: 0 }).search('x', 3)).rejects.toThrow(
      /no `hits\.hits`.*no index/,
    );
  });
});

describe('recorded results', () => {
  it('are what a query finds from then on, for every host that shares them', async () => {
    let n = 0;
    const { url } = await theirs((_, __, response) =>
      response.end(result([[{ document: { contents: `answer ${n++}` } }]])),
    );
    const place = join(folder, 'recorded');
    const host = (name: string) => client(url, { recorded: new RecordedResults(place, name), cache: 0 });
    const contents = (hits: readonly Hit[]) => hits[0]!.document.contents;
    const [a, b] = [host('a'), host('b')];
    expect(a.isRepeatable).toBe(true);
    expect(client(url).isRepeatable).toBe(false);
    expect(contents(await a.search('x', 3))).toBe('answer 0');
    expect(contents(await b.search('x', 3))).toBe('answer 0');
    // Both ask at once: the first answer is right for both.
    const [one, two] = await Promise.all([a.search('y', 3), b.search('y', 3)]);
    expect(contents(one)).toBe(contents(two));
    expect(contents(await host('c').search('y', 3))).toBe(contents(one));
  });
});
