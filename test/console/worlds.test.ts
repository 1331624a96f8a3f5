/** Several worlds on the console: a line each, and no number over all of them that does not say so. */
import { describe, expect, it } from 'vitest';
import { frame } from '../../src/console/frame.ts';
import { plainLine } from '../../src/console/plain.ts';
import { type ConsoleEvent, type ConsoleState, reduce, startState } from '../../src/console/state.ts';
import { lineWidth } from '../../src/console/text.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { points } from '../../src/metrics/metrics.ts';
import { scene, sceneConfig } from '../support/console-scene.ts';

const byWorld: MetricsRow = {
  horizonByWorld: { rooms: 20, 'crafting-hard': 8 },
  shareByWorld: { rooms: 0.75, 'crafting-hard': 0.25 },
  downByWorld: { rooms: 0, 'crafting-hard': 1 },
  episodesByWorld: { rooms: 30 },
  successByWorld: { rooms: 0.64 },
  returnByWorld: { rooms: 0.5 },
  turnsByWorld: { rooms: 6.25 },
  truncatedByWorld: { rooms: 0.36 },
};
const worlds = [
  { name: 'rooms', horizon: 20, share: 0.75, isUp: true },
  { name: 'crafting-hard', horizon: 8, share: 0.25, isUp: false },
];

/** Event of a run of one world, as one of several would send it. */
function severalOf(event: ConsoleEvent): ConsoleEvent {
  if (event.type === 'row') return { ...event, row: { ...event.row, ...byWorld } };
  return event.type === 'progress' ? { ...event, progress: { ...event.progress, worlds } } : event;
}

function screen(width: number, height: number, changed = (event: ConsoleEvent) => event): string[] {
  let state: ConsoleState = startState({ ...sceneConfig, horizon: { type: 'fixed', rounds: 1 } }, 'mixed');
  for (const event of scene(12)) state = reduce(state, changed(severalOf(event)));
  const lines = frame(state, { width, height, cores: 2 });
  for (const line of lines) expect(lineWidth(line)).toBeLessThanOrEqual(width);
  expect(lines.length).toBeLessThanOrEqual(height);
  return lines.map((line) => line.map(({ text }) => text).join(''));
}

describe('several worlds on the console', () => {
  it('have a line each in the place of the horizon’s', () => {
    const lines = screen(100, 30);
    expect(lines.filter((line) => /share/.test(line))).toEqual([
      'rooms          horizon  20  share  75 %  success  64 %  return  0.500  turns  6.25',
      'crafting-hard  horizon   8  share  25 %  success     –  return      –  turns     –  does not answer',
    ]);
    expect(lines.join('\n')).toContain('all worlds as drawn');
    expect(screen(60, 24)[1]).toMatch(/^rooms +horizon +20 +share +75 %/);
  });

  it('average their outcomes over the episodes of the newest updates', () => {
    let last = 0;
    const [line] = screen(100, 30, (event) => {
      if (event.type !== 'row') return event;
      last = event.row.update!;
      const first = last === 12;
      return {
        ...event,
        row: { ...event.row, successByWorld: { rooms: first ? 1 : 0 }, episodesByWorld: { rooms: first ? 27 : 1 } },
      };
    }).filter((one) => one.startsWith('rooms'));
    expect(last).toBe(12);
    expect(line).toContain('success  75 %'); // 27 of the 36 episodes of ten updates
  });

  it('are eight lines at most', () => {
    const many = Array.from({ length: 12 }, (_, i) => ({ name: `w${i}`, horizon: 3, share: 1 / 12, isUp: true }));
    const lines = screen(100, 40, (event) =>
      event.type === 'progress' ? { ...event, progress: { ...event.progress, worlds: many } } : event,
    );
    expect(lines.filter((line) => /^w\d+ /.test(line))).toHaveLength(7);
    expect(lines).toContain('and 5 more');
  });

  it('are named in a plain line, which has no outcome of all of them', () => {
    const line = plainLine({
      update: 3,
      horizon: 20,
      success: 0.5,
      return: 0.5,
      turns: 6,
      truncated: 0.1,
      successByLabel: { 'rooms: go': 1 },
      ...byWorld,
    });
    expect(line).toBe(
      'update=3 horizon[rooms]=20 success[rooms]=0.64 return[rooms]=0.5 turns[rooms]=6.25 truncated[rooms]=0.36 horizon[crafting-hard]=8 down[crafting-hard]=1',
    );
  });

  it('one world has the line it had', () => {
    const line = plainLine({ update: 3, horizon: 20, success: 0.5, successByLabel: { go: 1 } });
    expect(line).toBe('update=3 horizon=20 success=0.5 success[go]=1');
  });

  it('have a tag each for TensorBoard and Prometheus', () => {
    const tags = [...points(byWorld)].map((point) => JSON.stringify(point));
    expect(tags.filter((tag) => tag.includes('rooms'))).toHaveLength(8);
    expect(tags.some((tag) => tag.includes('successByWorld') && tag.includes('0.64'))).toBe(true);
  });
});
