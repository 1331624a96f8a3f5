/** Panels that console and viewer draw of SciWorld: of our own episodes, and of those that a server plays. */
import { describe, expect, it } from 'vitest';
import { createEnv, draw } from '../../../envs/sciworld/index.ts';
import type { Drawing, ListPanel, TextPanel } from '../../../src/core/draw.ts';
import type { EnvOptions } from '../../../src/core/env.ts';

const task = { env: 'sciworld', index: 2936, seed: 0 };

/** Draws task 2936 after these actions. */
function drawn(...actions: readonly string[]): Drawing {
  const session = createEnv().open(task);
  const turns = actions.map((action) => ({ action, ...session.step(action) }));
  return draw(task, session.first, turns as never) as Drawing;
}

const panel = <P extends TextPanel | ListPanel>({ panels }: Drawing, title: string | RegExp) =>
  panels.find(
    (one) => 'title' in one && (typeof title === 'string' ? one.title === title : title.test(one.title!)),
  ) as P;

describe('an episode of ours', () => {
  it('shows the task sentence by sentence, with focus, score and time', () => {
    const { lines } = panel<TextPanel>(drawn(), 'Task');
    expect(lines[0]).toBe('Your task is to find a(n) living thing.');
    expect(lines.slice(-3)).toEqual(['focus  nothing', 'score  0.00', 'time   0']);
  });

  it('shows what was focused on, and a failure', () => {
    const { lines } = panel<TextPanel>(drawn('focus on agent'), 'Task');
    expect(lines.slice(-3)).toEqual(['focus  agent', 'score  -1.00, failed', 'time   1']);
  });

  it('marks goals that are met', () => {
    const before = panel<ListPanel>(drawn(), /^Goals/).items;
    expect(before.map(({ mark }) => mark)).toEqual(['goal', 'goal', undefined, undefined, undefined, undefined]);
    const after = panel<ListPanel>(drawn('open door to kitchen', 'go to kitchen'), /^Goals/).items;
    expect(after.filter(({ mark }) => mark === 'good').map(({ name }) => name)).toEqual([
      '+ Be in a room with an open door',
      '+ Move to a new location',
      '+ Move to the location of the answer box',
    ]);
  });

  it('shows the place, what is carried and the ways', () => {
    const drawing = drawn('open door to kitchen', 'go to kitchen');
    expect(panel<TextPanel>(drawing, 'kitchen').lines.length).toBeGreaterThan(5);
    expect(panel<ListPanel>(drawing, 'Inventory').items).toEqual([{ name: 'orange' }]);
    expect(panel<TextPanel>(drawing, 'Ways').lines).toContain('A door to the outside (that is closed)');
  });
});

describe("an episode under the run's options", () => {
  it('is drawn by its rules, even where its opening does not show them', () => {
    const session = createEnv().open(task);
    const teleported = [{ action: 'teleport to kitchen', kind: 'mid', observation: '', reward: 0 }] as never;
    const at = (given: EnvOptions) => (draw(task, session.first, teleported, given) as Drawing).panels[2]!.title;
    expect([at({}), at({ simplifications: ['teleportAction'] })]).toEqual([
      expect.not.stringMatching('kitchen'),
      'kitchen',
    ]);
  });
});

describe("an episode of a server's", () => {
  const first = {
    kind: 'first' as const,
    observation:
      'Your task is to sing.\nThis room is called the hall. In it, you see: \n\ta harp\nYou also see:\n\tA door to the yard (that is open)\n',
  };

  it('is drawn from its texts', () => {
    const drawing = draw(task, first, [
      { action: 'pick up harp', kind: 'mid', observation: 'You move the harp to the inventory.', reward: 0 },
    ] as never) as Drawing;
    expect(panel<TextPanel>(drawing, 'Task').lines).toEqual(['Your task is to sing.', 'focus  nothing']);
    expect(panel<TextPanel>(drawing, 'hall').lines).toEqual(['\ta harp']);
    expect(panel<ListPanel>(drawing, 'Inventory').items).toEqual([{ name: 'harp' }]);
    expect(panel<TextPanel>(drawing, 'Ways').lines).toEqual(['yard: open']);
  });

  it('of a very full room shows forty lines and the number of further ones', () => {
    const many = Array.from({ length: 60 }, (_, i) => `\ta thing ${i}`).join('\n');
    const crowded = {
      ...first,
      observation: `Your task is to sing.\nThis room is called the hall. In it, you see: \n${many}\nYou also see:\n`,
    };
    const { lines } = panel<TextPanel>(draw(task, crowded, []) as Drawing, 'hall');
    expect(lines).toHaveLength(40);
    expect(lines.at(-1)).toBe('… 21 more');
  });
});
