/** Server of the viewer: the page and its data, on the loopback address alone. */
import { type Context, Hono } from 'hono';
import { MAX_SETTINGS_BYTES, readBounded } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import type { HttpApp, HttpEnv } from '../http/app.ts';
import { type HttpLimits, listen } from '../http/server.ts';
import { AnswerCache } from './answer-cache.ts';
import { pageHtml } from './page.ts';
import { type EpisodeQuery, queryEpisodes } from './query.ts';
import type { RunSource } from './run-source.ts';

/** Connections at once: a person's browsers have six each. */
const MAX_CONNECTIONS = 256;
/** Episodes of one request at most. */
const MAX_LIMIT = 500;

/** Makes the app that answers from runs. */
export function viewerApp(sources: readonly RunSource[]): HttpApp {
  const app = new Hono<HttpEnv>();
  app.use(async (c, next) => {
    await next();
    c.header('cache-control', 'no-store');
    c.header('x-content-type-options', 'nosniff');
    c.header('referrer-policy', 'no-referrer');
    c.header('content-security-policy', "frame-ancestors 'none'"); // a page's own policy cannot set this
    c.header('x-frame-options', 'DENY');
  });
  app.onError((error, c) =>
    c.text(messageOf(error), error instanceof RangeError ? 404 : error instanceof UserError ? 409 : 500),
  );
  const sourceOf = (id: string): RunSource => {
    const source = sources[Number(id)];
    if (!source) throw new RangeError(`no run ${id}`);
    return source;
  };
  const cache = new AnswerCache();
  const answer = async (c: Context<HttpEnv>, make: (source: RunSource) => unknown) => {
    const source = sourceOf(c.req.param('run') ?? '');
    const text = await cache.get(c.req.url, source.stamp, () => make(source));
    return c.body(text, 200, { 'content-type': 'application/json' });
  };
  app.get('/', (c) => c.html(pageHtml()));
  app.get('/api/runs', (c) => {
    for (const source of sources) source.refresh();
    return c.json(sources.map(({ info }) => info));
  });
  app.get('/api/runs/:run/curves', (c) => c.json(sourceOf(c.req.param('run')).curves));
  app.get('/api/runs/:run/episodes', (c) => answer(c, (source) => queryEpisodes(source.rows, queryOf(c.req.query()))));
  app.get('/api/runs/:run/search', (c) => {
    const { text = '', below, ...filters } = c.req.query();
    return c.json(sourceOf(c.req.param('run')).search(text, filters, readCount(below, Number.MAX_SAFE_INTEGER)));
  });
  app.get('/api/runs/:run/episodes/:at', (c) => answer(c, (source) => source.episode(Number(c.req.param('at')))));
  app.get('/api/runs/:run/episodes/:at/screenshots/:state', async (c) => {
    const { run, at, state } = c.req.param();
    const jpeg = readBounded(await sourceOf(run).screenshot(Number(at), Number(state)), MAX_SETTINGS_BYTES);
    return c.body(new Uint8Array(jpeg), 200, { 'content-type': 'image/jpeg' });
  });
  app.get('/api/runs/:run/episodes/:at/group', (c) => answer(c, (source) => source.group(Number(c.req.param('at')))));
  return app;
}

function queryOf(q: Readonly<Record<string, string>>): EpisodeQuery {
  return {
    ...(q.purpose ? { purpose: q.purpose } : {}),
    ...(q.label ? { label: q.label } : {}),
    ...(q.outcome ? { outcome: q.outcome } : {}),
    ...(q.text ? { text: q.text } : {}),
    ...(q.sort ? { sort: q.sort } : {}),
    descending: q.descending === 'true',
    offset: readCount(q.offset, 0),
    limit: Math.min(MAX_LIMIT, readCount(q.limit, 50)),
  };
}

function readCount(text: string | undefined, otherwise: number): number {
  const n = Number(text ?? otherwise);
  return Number.isSafeInteger(n) && n >= 0 ? n : otherwise;
}

/** Viewer that is being served. */
export interface ViewerServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves the viewer.
 * @param port 0 picks a free one @throws {UserError} BAD_ARGUMENT when the port is taken
 */
export async function serveViewer(
  sources: readonly RunSource[],
  port: number,
  limits: HttpLimits = {},
): Promise<ViewerServer> {
  try {
    const server = await listen(viewerApp(sources), { maxConnections: MAX_CONNECTIONS, ...limits, port });
    return { url: `${server.url}/`, close: () => server.close() };
  } catch (thrown) {
    throw thrown instanceof UserError
      ? new UserError('BAD_ARGUMENT', `${thrown.message}; choose another --port`, { cause: thrown })
      : thrown;
  }
}
