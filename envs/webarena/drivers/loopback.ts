/** Sites of our own as HTML over HTTP on 127.0.0.1, an episode by an unguessable header. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { htmlOf } from '../html.ts';
import type { Episode } from '../sites/episode.ts';
import { renderNotFound } from '../sites/site.ts';

/** Header that names the episode a request belongs to. */
export const EPISODE_HEADER = 'x-longplay-episode';
const MAX_BODY = 65_536;

/** HTTP server of the sites of our own, for the episodes of one host. */
export interface Loopback {
  readonly port: number;
  /** Serves an episode. @returns its name, for the header */
  add(episode: Episode): string;
  remove(name: string): void;
  /** Episodes that are served. */
  readonly size: number;
  close(): Promise<void>;
}

/** Starts the server on a free port of 127.0.0.1. */
export async function startLoopback(): Promise<Loopback> {
  const episodes = new Map<string, Episode>();
  const server = createServer((request, response) => {
    answer(episodes, request, response).catch(() => {
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(0, '127.0.0.1', listening);
  });
  return {
    port: (server.address() as AddressInfo).port,
    add(episode) {
      const name = randomBytes(16).toString('hex');
      episodes.set(name, episode);
      return name;
    },
    remove: (name) => void episodes.delete(name),
    get size() {
      return episodes.size;
    },
    close: () => closeServer(server),
  };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });
}

async function answer(
  episodes: ReadonlyMap<string, Episode>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const episode = episodes.get(String(request.headers[EPISODE_HEADER]));
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
  if (!episode) {
    response.writeHead(403).end();
    return;
  }
  const url = `http://${request.headers.host}${request.url}`;
  if (request.method === 'POST') {
    const body = await bodyOf(request);
    if (body === undefined) response.writeHead(413).end();
    else response.writeHead(303, { location: episode.post(url, new URLSearchParams(body)) }).end();
    return;
  }
  const page = URL.canParse(url) ? episode.get(url) : renderNotFound();
  response.writeHead(page.status, headers).end(htmlOf(page));
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
