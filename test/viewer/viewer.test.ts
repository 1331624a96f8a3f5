/** The viewer's server and its parts, without a browser. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { TraceFiles } from '../../src/record/trace-files.ts';
import type { EpisodePage, EpisodeRow, EpisodeView, GroupView, RunInfo } from '../../src/viewer/api.ts';
import { CurveBuffer } from '../../src/viewer/curve-buffer.ts';
import { escapeJson, pageHtml } from '../../src/viewer/page.ts';
import { queryEpisodes, SORTABLE } from '../../src/viewer/query.ts';
import { reportHtml } from '../../src/viewer/report.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { serveViewer, viewerApp } from '../../src/viewer/server.ts';
import { trajectoryOf } from '../support/traces.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-view-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const noWorlds = async () => ({});

function runWith(name: string, groups: number, config = 'seed: 1\nenv: { id: toy }\n') {
  const dir = join(root, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'config.yaml'), config);
  const traces = new TraceFiles({ dir: join(dir, 'traces'), config: {}, rotateBytes: 1e9, keepFiles: 9 });
  for (let g = 0; g < groups; g++) {
    traces.episodes(
      [
        trajectoryOf({ episode: 2 * g, group: g, success: true, index: g }),
        trajectoryOf({ episode: 2 * g + 1, group: g, index: g }),
      ],
      'train',
      g % 2 === 0 ? 'easy' : 'hard',
    );
  }
  return { dir, traces };
}

describe('the server', () => {
  it('answers runs, curves, episodes and groups, and follows a run that goes on', async () => {
    const { dir, traces } = runWith('served', 5);
    writeFileSync(join(dir, 'metrics.jsonl'), '{"update":1,"success":0.5}\n{"update":2,"succ');
    const app = viewerApp([new RunSource(dir, 0, noWorlds)]);
    const get = async <T>(path: string): Promise<T> =>
      (await (await app.request(`http://127.0.0.1/api/${path}`, { headers: { host: '127.0.0.1:1' } })).json()) as T;
    expect((await get<RunInfo[]>('runs'))[0]).toMatchObject({
      name: 'served',
      env: 'toy',
      seed: 1,
      episodes: 10,
      rows: 1,
    });
    const page = await get<EpisodePage>('runs/0/episodes?label=hard&outcome=solved&sort=episode&descending=true');
    expect(page).toMatchObject({ total: 10, matching: 2, labels: ['easy', 'hard'] });
    expect(page.rows.map(({ episode }) => episode)).toEqual([6, 2]);
    const view = await get<EpisodeView>('runs/0/episodes/3');
    expect(view.episode).toMatchObject({ episode: 3, group: 1, label: 'hard' });
    expect(view.episode.turns[0]!.actions).toEqual([0, 1]);
    expect((await get<GroupView>('runs/0/episodes/3/group')).members.map(({ at }) => at)).toEqual([2, 3]);

    appendFileSync(join(dir, 'metrics.jsonl'), 'ess":0.75}\n');
    traces.episodes([trajectoryOf({ episode: 99, group: 9 })], 'h8 greedy', 'easy');
    expect((await get<RunInfo[]>('runs'))[0]).toMatchObject({ episodes: 11, rows: 2 });
    expect(await get('runs/0/curves')).toMatchObject({ series: { success: [0.5, 0.75] } });
  });

  it('answers only to its own names, and what does not exist with 404', async () => {
    const { dir } = runWith('guarded', 1);
    const app = viewerApp([new RunSource(dir, 0, noWorlds)]);
    const status = async (path: string, host: string) => (await app.request(path, { headers: { host } })).status;
    expect(await status('/', 'localhost:80')).toBe(200);
    expect(await status('/api/runs', 'evil.example')).toBe(403);
    expect(await status('/api/runs', '127.0.0.1.evil.example')).toBe(403);
    const page = await app.request('/', { headers: { host: 'localhost' } });
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('content-security-policy')).toBe("frame-ancestors 'none'");
    expect(await status('/api/runs/7/curves', 'localhost')).toBe(404);
    expect(await status('/api/runs/0/episodes/77', 'localhost')).toBe(404);
    expect(await status('/api/runs/0/episodes/-1', 'localhost')).toBe(404);
  });

  it('listens on loopback, and says which port is taken', async () => {
    const { dir } = runWith('listening', 1);
    const sources = [new RunSource(dir, 0, noWorlds)];
    const server = await serveViewer(sources, 0);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect((await fetch(server.url)).status).toBe(200);
    await expect(serveViewer(sources, Number(new URL(server.url).port))).rejects.toThrow(/choose another --port/);
    await server.close();
  });

  it('names what is no run', () => {
    expect(() => new RunSource(join(root, 'absent'), 0, noWorlds)).toThrow(/does not exist/);
    mkdirSync(join(root, 'empty'));
    expect(() => new RunSource(join(root, 'empty'), 0, noWorlds)).toThrow(/is no run/);
  });
});

describe('the page', () => {
  it('runs nothing but what its policy names, and loads nothing', () => {
    const html = pageHtml();
    expect(html).toMatch(/default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-/);
    expect(html).not.toMatch(/<(script|link|img|iframe)[^>]+(src|href)=/);
    expect(html.match(/<script/g)!.length).toBe(html.match(/<\/script>/g)!.length);
  });

  it('carries hostile data as data', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
        const hostile = { text: `</script><script>alert(1)</script><!--${text}` };
        const json = escapeJson(hostile);
        expect(json).not.toMatch(/[<>&\u2028\u2029]/);
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(hostile)));
      }),
      { numRuns: 30 },
    );
  });

  it('as a report holds whole groups, newest first, up to a bound', async () => {
    const { dir } = runWith('reported', 5);
    const html = await reportHtml([new RunSource(dir, 0, noWorlds)], { episodes: 5 });
    const data = JSON.parse(/id="report">(.*?)<\/script>/s.exec(html)![1]!);
    expect(data.rows[0].length).toBe(10);
    expect(Object.keys(data.episodes[0])).toEqual(['6', '7', '8', '9']);
  });
});

describe('choosing episodes', () => {
  const row = (at: number, over: Partial<EpisodeRow> = {}): EpisodeRow => ({
    at,
    episode: at,
    group: Math.floor(at / 2),
    task: at % 7,
    seed: 1,
    label: `l${at % 3}`,
    purpose: 'train',
    horizon: 8,
    turns: at % 5,
    return: at % 2,
    success: at % 2 === 1,
    truncated: at % 4 === 0,
    version: 1,
    ...over,
  });
  const rows = Array.from({ length: 30 }, (_, at) => row(at));

  it('sorts by every column, both ways, and cuts pages that join to the whole', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SORTABLE),
        fc.boolean(),
        fc.integer({ min: 1, max: 12 }),
        (sort, descending, limit) => {
          const all = queryEpisodes(rows, { sort, descending, offset: 0, limit: 100 }).rows;
          const joined: EpisodeRow[] = [];
          for (let offset = 0; offset < 30; offset += limit) {
            joined.push(...queryEpisodes(rows, { sort, descending, offset, limit }).rows);
          }
          expect(joined).toEqual(all);
          for (let i = 1; i < all.length; i++) {
            const [a, b] = [all[i - 1]![sort], all[i]![sort]];
            expect(descending ? a >= b : a <= b).toBe(true);
          }
        },
      ),
    );
  });

  it('filters by label, outcome and text together', () => {
    const found = queryEpisodes(rows, { label: 'l1', outcome: 'solved', text: '7', offset: 0, limit: 9 });
    expect(found.rows.map(({ at }) => at)).toEqual([7]);
    expect(
      queryEpisodes(rows, { outcome: 'failed', offset: 0, limit: 99 }).rows.every(
        ({ success, truncated }) => !success && !truncated,
      ),
    ).toBe(true);
  });
});

describe('curves', () => {
  it('stay bounded and keep their means, the last of what counts up', () => {
    const buffer = new CurveBuffer(64);
    for (let i = 1; i <= 1000; i++) buffer.add({ update: i, success: i % 2, ...(i > 500 ? { loss: 2 } : {}) });
    const { series, stride } = buffer.curves;
    expect(stride).toBe(16);
    expect(series.update!.length).toBeLessThanOrEqual(64);
    expect(series.update!.map((u) => u! % stride)).toEqual(series.update!.map(() => 0));
    expect(series.success!.every((value) => value === 0.5)).toBe(true);
    expect(series.loss!.length).toBe(series.update!.length);
    expect(series.loss!.find((value) => value !== null)).toBe(2);
    expect(series.loss![0]).toBeNull();
  });
});
