/** The horizon study: figures of its page by hand, its file, and that a cell goes on after an interruption. */
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import {
  appendRow,
  type Cell,
  type CellRow,
  commonHash,
  type Evaluated,
  isWithin,
  type Mark,
  playBaseline,
  playCell,
  playCells,
  readRows,
} from '../../experiments/cells.ts';
import { missingCells } from '../../experiments/horizon.ts';
import {
  curves,
  difference,
  findSharedTokens,
  hasCollapsed,
  rateAtTokens,
  rateOf,
  worldSection,
} from '../../experiments/horizon-report.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('cells');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const evaluation = { set: 'test', horizon: 24, kind: 'sampled', episodes: 10 } as const;
const evaluated = (share: number): Evaluated => ({ ...evaluation, wins: [10 * share, 10 * share] });
/** A row whose curve has the points `[tokens, success]`. */
function row(arm: string, seed: number, ...points: readonly (readonly [number, number])[]): CellRow {
  return {
    ...{ format: 1, world: 'textcraft', arm, seed, common: 'x', tasks: { test: [1, 2] }, minutes: 1 },
    curve: points.map(([tokens, share], k) => ({
      update: k,
      envSteps: 100 * (k + 1),
      tokens,
      evaluated: evaluated(share),
    })),
    final: [evaluated(points.at(-1)?.[1] ?? 0.2), { ...evaluated(0.5), kind: 'greedy' }],
  };
}

describe('figures of the horizon study', () => {
  it('count a task that could not be played nowhere', () => {
    expect(rateOf({ episodes: 4, wins: [4, null, 2] })).toBe(0.75);
  });

  it('read success at equal tokens between the points of a curve', () => {
    const one = row('a', 1, [100, 0.2], [300, 0.6]);
    expect(rateAtTokens(one, 200)).toBeCloseTo(0.4, 12);
    expect(rateAtTokens(one, 300)).toBeCloseTo(0.6, 12);
    expect([rateAtTokens(one, 301), rateAtTokens(one, 99)]).toEqual([undefined, undefined]);
    expect(findSharedTokens([one, row('b', 1, [50, 0.1], [250, 0.3])])).toBe(250);
  });

  it('call a cell collapsed that has lost half of what it had above random play', () => {
    expect(hasCollapsed(row('a', 1, [1, 0.6], [2, 0.41]), 0.2)).toBe(false);
    expect(hasCollapsed(row('a', 1, [1, 0.6], [2, 0.39]), 0.2)).toBe(true);
    expect(hasCollapsed(row('a', 1, [1, 0.28], [2, 0.2]), 0.2)).toBe(false); // it never had ten points
  });

  it('pair arms by seed, and give no result for a single pair', () => {
    const rows = [row('a', 1, [1, 0.5]), row('b', 1, [1, 0.4]), row('a', 2, [1, 0.7]), row('b', 2, [1, 0.5])];
    const last = ({ curve }: CellRow) => rateOf(curve.at(-1)!.evaluated);
    expect(difference([...rows, row('a', 3, [1, 0.9])], ['a', 'b'], last)).toMatchObject({ n: 2 });
    expect(difference(rows, ['a', 'b'], last)!.value).toBeCloseTo(0.15, 12); // 12.7062·0.0707/√2 = 0.635
    expect(difference(rows, ['a', 'b'], last)!.high).toBeCloseTo(0.15 + 0.6353, 3);
    expect(difference(rows.slice(0, 3), ['a', 'b'], last)).toBeUndefined();
  });

  it('stand on the page beside random play, the planner and the paper', () => {
    const world = {
      id: 'textcraft',
      title: 'TextCraft',
      arms: ['a', 'b'],
      pairs: [['a', 'b']],
      paper: 'The paper: 91.',
    } as const;
    const planner = {
      ...row('planner', 0),
      final: [{ ...evaluation, kind: 'planner', episodes: 1, wins: [1, 0] }] as const,
    };
    const table = { labels: ['near', 'none', 'far'], label: (index: number) => (index === 1 ? 'near' : 'far') };
    const rows = [1, 2, 3].flatMap((seed) => [
      row('a', seed, [1, 0.5 + 0.01 * seed], [2, 0.6 + 0.01 * seed]),
      row('b', seed, [1, 0.4], [2, 0.5 - 0.01 * seed]),
    ]);
    const page = worldSection(world, [...rows, row('random', 0), planner], table);
    expect(page).toMatch(/^a +3 +62\.0 +62\.0 \[59\.5, 64\.5\] +57\.0 \[54\.5, 59\.5\]/m);
    expect(page).toMatch(/^a − b +3 +\+14\.0 \[\+9\.0, \+19\.0\] +\+13\.0 \[\+9\.3, \+16\.7\]/m);
    expect(page).toMatch(/^random +20\.0$/m);
    expect(page).toMatch(/^scripted planner +50\.0$/m);
    expect(page).toMatch(/^sampled success .* near \(1\) +far \(1\)$/m);
    expect(page).toMatch(/^a +62\.0 +62\.0$/m);
    expect(page).toMatch(/^scripted planner +100\.0 +0\.0$/m);
    expect(page).toContain('- a is better than b by +14.0 [+9.0, +19.0] points at equal steps (3 seeds).');
    expect(page).toContain('The paper: 91.');
    expect(worldSection(world, [], table)).toContain('No cell is finished yet.');
    expect(curves(world, rows, 'envSteps').map(({ name, points }) => [name, points.map(({ x }) => x)])).toEqual([
      ['a', [100, 200]],
      ['b', [100, 200]],
    ]);
  });
});

describe('the file of rows', () => {
  it('is appended to, keeps the first row of a cell, and names a line that is none', () => {
    const path = join(folder, 'rows.jsonl');
    expect(readRows(path)).toEqual([]);
    appendRow(path, row('a', 1, [1, 0.5]));
    writeFileSync(path, readFileSync(path, 'utf8').trimEnd()); // an editor that drops the last newline
    appendRow(path, row('a', 2, [1, 0.5]));
    appendRow(path, row('a', 1, [1, 0.9]));
    expect(readRows(path).map(({ arm, seed, curve }) => [arm, seed, rateOf(curve[0]!.evaluated)])).toEqual([
      ['a', 1, 0.5],
      ['a', 2, 0.5],
    ]);
    appendFileSync(path, '{"format": 1, "wor\n');
    expect(() => readRows(path)).toThrow(/rows\.jsonl, line 4: not a row: .*; repair or remove it/);
  });

  it('belongs to one configuration, whatever its comments, seed and horizon', () => {
    const hash = commonHash('seed: 1\nhorizon: { type: fixed }\nenv: { id: textcraft }\n');
    expect(commonHash('# other words\nenv: { id: textcraft }\nseed: 7\n')).toBe(hash);
    expect(commonHash('env: { id: babyai }\n')).not.toBe(hash);
  });

  it('are played in the requested number, besides the baselines', () => {
    const all = missingCells([]);
    expect(isWithin(all, 3).map(({ player }) => player ?? 'trained')).toEqual([
      ...['random', 'planner', 'random', 'planner'],
      ...['trained', 'trained', 'trained'],
    ]);
    expect(isWithin(all.slice(4), 1)).toEqual([all[4]]);
    expect(isWithin(all, 0)).toEqual([]);
    expect(isWithin(all, Number.POSITIVE_INFINITY)).toEqual(all);
  });

  it('leaves 80 cells and four baselines to play, the baselines first, then seed by seed', () => {
    const cells = missingCells([]);
    expect(cells).toHaveLength(84);
    expect(cells.slice(0, 4).map(({ player }) => player)).toEqual(['random', 'planner', 'random', 'planner']);
    expect(new Set(cells.slice(4, 12).map(({ seed }) => seed))).toEqual(new Set([1]));
    const { config, player, ...key } = cells[4]!;
    const done = { ...row('a', 1), ...key };
    expect(missingCells([done])).toHaveLength(83);
    expect(missingCells([{ ...done, common: 'another' }])).toHaveLength(84);
    expect(missingCells([{ ...done, view: 'another' }])).toHaveLength(84);
  });
});

describe('a study', () => {
  it('with no cell missing prints that and how to repeat one; with 0 cells it only writes its page', async () => {
    const error = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const session = { missing: [], path: 'rows.jsonl', folder, points: 1, onRow: () => expect.unreachable() };
    await playCells({ ...session, cells: 0 });
    expect(error).not.toHaveBeenCalled();
    await playCells(session);
    expect(error.mock.calls.flat()).toEqual([
      expect.stringMatching(/rows\.jsonl: none is left .* to play it again\n$/),
    ]);
    error.mockRestore();
  });
});

describe('a cell', { timeout: 120_000 }, () => {
  const config = smallConfig({
    stop: { envSteps: 300 },
  });
  const list = { set: 'selection', horizon: 4 } as const;
  const cell: Cell = {
    ...{ world: 'textcraft', arm: 'fixed 4', seed: 1, config, common: 'x', view: 'textcraft/compact@4' },
    evaluations: [
      { ...list, kind: 'sampled', episodes: 2 },
      { ...list, kind: 'greedy', episodes: 1 },
    ],
  };
  const print = () => {};

  it('goes on from its checkpoint after an interruption, and is trained to its end once', async () => {
    const options = { folder, points: 2, print };
    const first = new AbortController();
    const began = setTimeout(() => first.abort(), 400);
    const broken = await playCell(cell, { ...options, interrupt: first.signal });
    clearTimeout(began);
    const whole = broken ?? (await playCell(cell, { ...options, interrupt: new AbortController().signal }));
    expect(whole!.curve).toHaveLength(2);
    const steps = whole!.curve.map(({ envSteps }) => envSteps);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    expect(steps[1]).toBeGreaterThanOrEqual(300);
    expect(steps[1]).toBeLessThan(600);
    expect(whole!.curve[1]!.tokens).toBeGreaterThan(whole!.curve[0]!.tokens);
    expect(whole!.final.map(({ kind, episodes, wins }) => [kind, episodes, wins.length])).toEqual([
      ['sampled', 2, 75],
      ['greedy', 1, 75],
    ]);
    expect(whole!.tasks).toMatchObject({ selection: expect.arrayContaining([31]) });
  });

  it('begins anew where the one broken off had another configuration', async () => {
    const options = { folder, points: 2, print };
    const first = new AbortController();
    const began = setTimeout(() => first.abort(), 400);
    const old = smallConfig({ stop: { envSteps: 100_000 }, tasks: { sampling: { type: 'epoch' } } });
    expect(await playCell({ ...cell, seed: 2, config: old }, { ...options, interrupt: first.signal })).toBeUndefined();
    clearTimeout(began);
    const anew = { ...cell, seed: 2, common: 'y' };
    expect(await playCell(anew, { ...options, interrupt: new AbortController().signal })).toMatchObject({
      common: 'y',
    });
  });

  it('that was interrupted while it started is not trained to its end first', async () => {
    const long = smallConfig({ stop: { envSteps: 20_000 } });
    const broken = { ...cell, seed: 3, config: long };
    expect(await playCell(broken, { folder, points: 2, print, interrupt: AbortSignal.abort() })).toBeUndefined();
    const [run] = readdirSync(folder).filter((name) => name.startsWith('textcraft-fixed-4-3'));
    const { finished } = JSON.parse(readFileSync(join(folder, run!, 'progress.json'), 'utf8')) as { finished: boolean };
    expect(finished).toBe(false);
  });

  it('keeps the weights of its curve however often it is interrupted', async () => {
    const often = { ...cell, seed: 4, config: smallConfig({ stop: { envSteps: 8_000 } }) };
    const dir = () => join(folder, readdirSync(folder).find((name) => name.startsWith('textcraft-fixed-4-4'))!);
    const updates = () => readFileSync(join(dir(), 'metrics.jsonl'), 'utf8').split('\n').length - 1;
    const marks = () => (JSON.parse(readFileSync(join(dir(), 'progress.json'), 'utf8')) as { marks: Mark[] }).marks;
    /** Plays on until `due`, and interrupts. */
    const until = async (due: () => boolean) => {
      const stop = new AbortController();
      const played = playCell(often, { folder, points: 4, print, interrupt: stop.signal });
      await vi.waitUntil(
        () => {
          try {
            return due();
          } catch {
            return false; // the file is not there yet, or half written
          }
        },
        { timeout: 30_000, interval: 5 },
      );
      stop.abort();
      expect(await played).toBeUndefined();
    };
    await until(() => marks().length > 0);
    for (let times = 0; times < 6; times++) {
      const before = updates();
      await until(() => updates() > before);
    }
    const kept = readdirSync(join(dir(), 'checkpoints'));
    for (const { update } of marks()) expect(kept).toContain(String(update));
    expect(kept.length).toBeGreaterThan(marks().length);
  });

  it('of a player that is not trained is played too', async () => {
    const [random, planner] = [await playBaseline(cell, 'random', folder), await playBaseline(cell, 'planner', folder)];
    expect(random.final).toEqual([expect.objectContaining({ kind: 'sampled', episodes: 2 })]);
    expect(planner.final).toEqual([expect.objectContaining({ kind: 'planner', episodes: 1 })]);
    expect(rateOf(planner.final[0]!)).toBeGreaterThan(rateOf(random.final[0]!));
  });
});
