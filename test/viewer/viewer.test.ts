/** The viewer's server and its parts, without a browser. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { traceLine } from '../../src/storage/trace.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import type {
  Curves,
  EpisodePage,
  EpisodeRow,
  EpisodeView,
  GroupView,
  ReportData,
  RunInfo,
  SearchPage,
} from '../../src/viewer/api.ts';
import { buildDrawnLines, evaluationMarks, phasePlans, type RunCurves } from '../../src/viewer/client/curves.ts';
import { axisTexts } from '../../src/viewer/client/plot.ts';
import { reportSource } from '../../src/viewer/client/source.ts';
import { choiceBars } from '../../src/viewer/client/turn.ts';
import { CurveBuffer } from '../../src/viewer/curve-buffer.ts';
import { escapeJson, pageHtml } from '../../src/viewer/page.ts';
import { queryEpisodes, SORTABLE } from '../../src/viewer/query.ts';
import { reportHtml } from '../../src/viewer/report.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { cutAt, matchTurns, mayHold, needleOf } from '../../src/viewer/search.ts';
import { serveViewer, viewerApp } from '../../src/viewer/server.ts';
import { trajectoryOf } from '../support/traces.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-view-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const noWorlds = async () => ({});

function runWith(name: string, groups: number, config = 'seed: 1\nenv: { id: toy }\n') {
  const dir = join(root, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'config.yaml'), config);
  const traces = new TraceFiles({ dir: join(dir, 'traces'), config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
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

  it('answers only to its own names', async () => {
    const { dir } = runWith('guarded', 1);
    const server = await serveViewer([new RunSource(dir, 0, noWorlds)], 0);
    const status = (host: string) =>
      new Promise((resolve) => {
        request(`${server.url}api/runs`, { headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).end();
      });
    expect(await status('localhost:80')).toBe(200);
    expect(await status('evil.example')).toBe(403);
    expect(await status('127.0.0.1.evil.example')).toBe(403);
    await server.close();
  });

  it('answers what does not exist with 404, and lets no page frame it', async () => {
    const { dir } = runWith('bounded', 1);
    const app = viewerApp([new RunSource(dir, 0, noWorlds)]);
    const status = async (path: string) => (await app.request(path)).status;
    const page = await app.request('/');
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('content-security-policy')).toBe("frame-ancestors 'none'");
    expect(await status('/api/runs/7/curves')).toBe(404);
    expect(await status('/api/runs/0/episodes/77')).toBe(404);
    expect(await status('/api/runs/0/episodes/-1')).toBe(404);
    for (const at of ['77', '-1', '&0']) expect(await status(`/api/runs/0/episodes/${at}/group`)).toBe(404);
  });

  it('listens on loopback, and reports which port is taken', async () => {
    const { dir } = runWith('listening', 1);
    const sources = [new RunSource(dir, 0, noWorlds)];
    const server = await serveViewer(sources, 0);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect((await fetch(server.url)).status).toBe(200);
    await expect(serveViewer(sources, Number(new URL(server.url).port))).rejects.toThrow(/choose another --port/);
    await server.close();
  });

  it('names a folder that is no run', () => {
    expect(() => new RunSource(join(root, 'absent'), 0, noWorlds)).toThrow(/does not exist/);
    mkdirSync(join(root, 'empty'));
    expect(() => new RunSource(join(root, 'empty'), 0, noWorlds)).toThrow(/is no run/);
  });
});

it('draws an episode by the options of its own world', async () => {
  const two = `worlds:
  - { env: { id: toy, options: { size: 1 } } }
  - { name: large, env: { id: toy, options: { size: 2 } } }
`;
  const { dir, traces } = runWith('of-two-worlds', 0, two);
  for (const [group, env] of ['toy', 'large'].entries())
    traces.episodes([trajectoryOf({ env, group, episode: group })], 'train', 'easy');
  traces.close();
  const seen: unknown[] = [];
  const source = new RunSource(dir, 0, async () => ({
    draw: (task, _first, _seen, options) => {
      seen.push([task.env, options]);
      return null as never;
    },
    screenshot: (task, _observation, options) => void seen.push([task.env, options]),
  }));
  expect(source.info.env).toBe('toy, large');
  for (const at of source.rows.keys()) await source.episode(at);
  const texts = [...new Set(seen.map((one) => JSON.stringify(one)))].sort();
  expect(texts).toEqual(['["large",{"size":2}]', '["toy",{"size":1}]']);
});

describe('a search', () => {
  const { dir, traces } = runWith('searched', 5);
  const observation = 'You could NOT craft 1 “oak\tplank”';
  const response = { text: 'Thought: \\ perhaps a pickaxe', promptTokens: 1, completionTokens: 1 };
  const plain = trajectoryOf({ episode: 10, group: 5, actions: ['look', 'get 2 birch'], observation });
  traces.episodes([{ ...plain, turns: plain.turns.map((turn) => ({ ...turn, response })) }], 'train', 'easy');
  const source = () => new RunSource(dir, 0, noWorlds);
  const found = (text: string, filters = {}) =>
    source()
      .search(text, filters)
      .hits.map(({ row, match }) => [row.episode, match.turn, match.part, match.turns]);

  it('finds observations, answers, actions and ends, and names the first turn that has it', () => {
    expect(found('could not CRAFT')).toEqual([[10, 0, 'observation', 3]]);
    expect(found('“oak\tplank”')).toEqual([[10, 0, 'observation', 3]]);
    expect(found('\\ perhaps')).toEqual([[10, 0, 'answer', 2]]);
    expect(found('get 2 birch')).toEqual([[10, 1, 'action', 1]]);
    expect(found('the end').length).toBe(10);
    expect(found('observation 1 of 3')).toEqual([[3, 1, 'observation', 1]]);
    expect(found('hard').map(([episode, , part]) => [episode, part])).toEqual([7, 6, 3, 2].map((n) => [n, 'sub-task']));
    expect(found('hard', { outcome: 'solved' }).map(([episode]) => episode)).toEqual([6, 2]);
    expect(found('nowhere')).toEqual([]);
    expect(found('   ')).toEqual([]);
  });

  it('finds what stands in a text, whatever the text, and nothing else', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 8 });
    let compared = 0;
    fc.assert(
      fc.property(text, text, text, (before, needle, after) => {
        const wanted = needleOf(needle);
        fc.pre(wanted !== '' && `${before}${needle}${after}`.toLowerCase().includes(wanted));
        const episode = trajectoryOf({ observation: `${before}${needle}${after}` });
        const match = matchTurns(episode, wanted);
        expect(match?.turn).toBe(0);
        expect(match!.found.toLowerCase()).toBe(wanted);
        expect(mayHold(traceLine(episode, 'train'), wanted)).toBe(true);
        expect(cutAt(`${before}${needle}${after}`, wanted).join('')).toBe(`${before}${needle}${after}`);
        compared++;
      }),
    );
    expect(compared).toBeGreaterThan(20);
    expect(mayHold(traceLine(trajectoryOf(), 'train'), 'pickaxe')).toBe(false);
    expect(mayHold('{"observation":"\\u0070ickaxe"}', 'pickaxe')).toBe(true); // as another writer may escape it
  });

  it('reads a bounded piece at a time, which join to the whole', async () => {
    const { dir: long, traces: many } = runWith('searched-long', 0);
    const episode = trajectoryOf({ observation: 'x'.repeat(200_000) });
    for (let n = 0; n < 30; n++) many.episodes([{ ...episode, episode: n, group: n }], 'train', 'easy');
    many.close();
    const app = viewerApp([new RunSource(long, 0, noWorlds)]);
    const piece = async (query: string) => {
      const answer = await app.request(`http://127.0.0.1/api/runs/0/search?${query}`, {
        headers: { host: 'localhost' },
      });
      return (await answer.json()) as SearchPage;
    };
    const looked: number[] = [];
    const episodes: number[] = [];
    let below = '';
    for (;;) {
      const { hits, searched, next } = await piece(`text=xxx${below}`);
      looked.push(searched);
      episodes.push(...hits.map(({ row }) => row.episode));
      for (const { match } of hits) expect(match.before.length + match.after.length).toBeLessThan(200);
      if (next === null) break;
      below = `&below=${next}`;
    }
    expect(Math.max(...looked)).toBeLessThanOrEqual(15); // 8 MiB of episodes of 600 kB
    expect(episodes).toEqual(Array.from({ length: 30 }, (_, i) => 29 - i));
    expect(await piece('text=&below=7')).toEqual({ hits: [], searched: 0, next: null });
    expect(await piece(`text=${'y'.repeat(10_000)}&below=nonsense`)).toMatchObject({ hits: [] });
  });

  it('of a report covers the episodes that are in it', async () => {
    const html = await reportHtml([source()], { episodes: 3 });
    const data = JSON.parse(/id="report">(.*?)<\/script>/s.exec(html)![1]!) as ReportData;
    const { hits, next } = await reportSource(data).search(0, 'Get 2 Birch', {});
    expect(hits.map(({ row, match }) => [row.episode, match.turn])).toEqual([[10, 1]]);
    expect(next).toBeNull();
  });
});

describe('evaluations of a run', () => {
  it('are read from its folder, damaged lines left out, and again once they change', () => {
    const { dir } = runWith('evaluated', 1);
    const success = { value: 0.5, low: 0.25, high: null, n: 4 };
    const all = { label: 'all', tasks: 4, episodes: 4, success, score: 0.5, turns: null, passAtK: { 1: 0.5 } };
    const of = (name: string) => ({ name, horizon: 8, temperature: 1, all, labels: [all], failed: 0 });
    const line = (update: number) =>
      `${JSON.stringify({ format: 1, update, evaluation: of(`h8 sampled @${update}`) })}\n`;
    writeFileSync(join(dir, 'evaluations.jsonl'), `${line(5)}not json\n{"update":7,"evaluation":{}}\n`);
    const source = new RunSource(dir, 0, noWorlds);
    expect(source.curves.evaluations).toMatchObject([{ update: 5, name: 'h8 sampled', all }]);
    const ended = { why: 'updates', status: { version: 9 } };
    writeFileSync(join(dir, 'results.json'), JSON.stringify({ ended, evaluations: [of('h8 greedy'), 3] }));
    appendFileSync(join(dir, 'evaluations.jsonl'), line(8));
    expect(source.curves.evaluations.map(({ update, name }) => [update, name])).toEqual([
      [5, 'h8 sampled'],
      [8, 'h8 sampled'],
      [9, 'h8 greedy'],
    ]);
    writeFileSync(join(dir, 'results.json'), JSON.stringify({ summary: of('rollout') })); // as a rollout leaves it
    expect(source.curves.evaluations.at(-1)).toMatchObject({ update: null, name: 'rollout' });
  });

  it('are marked where training stood, on the axis that is shown', () => {
    const all = { label: 'all', tasks: 4, episodes: 4, score: 0.5, turns: 6, passAtK: {} };
    const success = { value: 0.5, low: 0.25, high: 0.75, n: 4 };
    const row = (update: number | null) => ({
      update,
      name: 'h8',
      horizon: 8,
      all: { ...all, success },
      labels: [],
      failed: 0,
    });
    const run = runCurves({ update: [1, 2, 3, 4], elapsed: [10, 20, 30, 40] }, { evaluations: [row(3), row(null)] });
    const places = (metric: string, x: 'update' | 'elapsed') =>
      evaluationMarks([run], metric, x).map(({ points }) => points.map((point) => [point.x, point.y, point.low]));
    expect(places('success', 'update')).toEqual([[[3, 0.5, 0.25]]]);
    expect(places('success', 'elapsed')).toEqual([[[30, 0.5, 0.25]]]);
    expect(places('turns', 'update')).toEqual([[[3, 6, undefined]]]);
    expect(places('loss', 'update')).toEqual([]);
  });
});

function runCurves(series: Curves['series'], over: Partial<Curves> = {}, id = 0, family = 'f'): RunCurves {
  const info: RunInfo = { id, name: `run ${id}`, env: 'toy', seed: id, family, episodes: 0, rows: 4, config: '' };
  return { info, curves: { rows: 4, stride: 1, series, evaluations: [], ...over } };
}

describe('charts', () => {
  it('label their axes so that neighbours differ and no label is long', () => {
    const step = fc.tuple(fc.constantFrom(1, 2, 2.5, 5), fc.integer({ min: -4, max: 9 })).map(([m, e]) => m * 10 ** e);
    fc.assert(
      fc.property(step, fc.integer({ min: -5, max: 5 }), fc.integer({ min: 2, max: 9 }), (by, from, count) => {
        const texts = axisTexts(Array.from({ length: count }, (_, i) => (from + i) * by));
        expect(new Set(texts).size).toBe(count);
        for (const text of texts) expect(text.length).toBeLessThanOrEqual(8);
      }),
    );
    expect(axisTexts([0, 500_000, 1_000_000])).toEqual(['0', '0.5M', '1.0M']);
    expect(axisTexts([0, 2.5, 5])).toEqual(['0', '2.5', '5.0']);
    expect(axisTexts([1_200, 1_250, 1_300])).toEqual(['1200', '1250', '1300']);
  });

  it('keep what was measured behind what is smoothed', () => {
    const line = { label: 'a', color: '#000', x: [1, 2, 3], y: [0, 1, 0] };
    expect(buildDrawnLines([line], 10)).toEqual([{ ...line, y: [0, 0.5, 1 / 3], raw: [0, 1, 0] }]);
    expect(buildDrawnLines([line], 1)).toEqual([{ ...line, raw: undefined }]);
    expect(
      buildDrawnLines(
        Array.from({ length: 5 }, () => line),
        10,
      ).every(({ raw }) => raw === undefined),
    ).toBe(true);
  });

  it('show the phases of each run, once where they are the same', () => {
    const run = (id: number, horizon: number[], family = 'f') =>
      runCurves({ update: [1, 2, 3, 4], elapsed: [10, 20, 30, 40 + id], horizon }, {}, id, family);
    const stretched = [8, 8, 16, 16];
    const own = phasePlans([run(0, stretched)], { x: 'update', bands: true });
    expect(own).toEqual([
      {
        color: undefined,
        phases: [
          { at: 1, turns: 8 },
          { at: 3, turns: 16 },
        ],
      },
    ]);
    expect(phasePlans([run(0, stretched), run(1, stretched)], { x: 'elapsed', bands: true }).length).toBe(1);
    const two = phasePlans([run(0, stretched), run(1, [24, 24, 24, 24], 'other')], { x: 'update', bands: true });
    expect(two.map(({ phases }) => phases.map(({ turns }) => turns))).toEqual([[8, 16], [24]]);
    expect(new Set(two.map(({ color }) => color)).size).toBe(2);
    const seeds = [run(0, stretched), run(1, [8, 16, 16, 16])];
    const colors = (bands: boolean) =>
      new Set(phasePlans(seeds, { x: 'update', bands }).map(({ color }) => color)).size;
    expect([colors(true), colors(false)]).toEqual([1, 2]); // as their lines are drawn
  });
});

describe('bars of a choice', () => {
  const listed = ['a', 'b', 'c', 'd'];

  it('are the likeliest actions, the one taken, and the rest together', () => {
    const shown = choiceBars({ choice: 2, logprob: Math.log(0.05), likeliest: [1, 7000, 0, 2000] }, listed);
    expect(shown.bars.map(({ name, share, taken }) => [name, Number(share.toFixed(3)), taken])).toEqual([
      ['b', 0.7, false],
      ['a', 0.2, false],
      ['c', 0.05, true],
    ]);
    expect(shown.others).toBe(1);
    expect(shown.rest).toBeCloseTo(0.05, 9);
  });

  it('are of the taken action alone where the trace has no others', () => {
    const { bars, others } = choiceBars({ choice: 1, logprob: Math.log(0.25) }, listed);
    expect(bars).toEqual([{ name: 'b', share: 0.25, taken: true }]);
    expect(others).toBe(3);
  });
});

describe('the page', () => {
  it('runs nothing but what its policy names, and loads nothing', () => {
    const html = pageHtml();
    expect(html).toMatch(/default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-/);
    expect(html.replace(`<link rel="icon" href="data:,">`, '')).not.toMatch(
      /<(script|link|img|iframe)[^>]+(src|href)=/,
    ); // no icon is requested
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
