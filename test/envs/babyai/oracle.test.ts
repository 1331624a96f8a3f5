import { describe, expect, it, vi } from 'vitest';
import { draw } from '../../../envs/babyai/draw.ts';
import { CorrectedSession, OriginalSession } from '../../../envs/babyai/env.ts';
import { DOOR, KEY, LOCKED } from '../../../envs/babyai/grid.ts';
import { generate, NUM_LEVELS } from '../../../envs/babyai/levels.ts';
import type { Memory } from '../../../envs/babyai/memory.ts';
import { createOracle, solve } from '../../../envs/babyai/oracle.ts';
import { indexOf, levelOf, seedOf, tasks } from '../../../envs/babyai/tasks.ts';
import { view } from '../../../envs/babyai/view.ts';
import { FIRST_OBJECT, type World } from '../../../envs/babyai/world.ts';
import type { First, TimeStep } from '../../../src/core/env.ts';
import type { SeenTurn } from '../../../src/core/view.ts';

vi.setConfig({ testTimeout: 120_000 });

const LONG = process.env.LONGPLAY_LONG === '1';
const SEEDS = LONG ? 50 : 8;

/** Whether the only keys of some locked door lie behind locked doors: then nothing ever opens it. */
function isKeyLockedIn(world: World): boolean {
  const seen = new Set<number>();
  const stack = [world.at(world.agentX, world.agentY)];
  for (let cell = stack.pop(); cell !== undefined; cell = stack.pop()) {
    const code = world.codes[world.cells[cell]!]!;
    if (seen.has(cell) || world.cells[cell] === 1 || ((code & 0xff) === DOOR && code >>> 16 === LOCKED)) continue;
    seen.add(cell);
    stack.push(cell + 1, cell - 1, cell + world.stride, cell - world.stride);
  }
  for (let door = FIRST_OBJECT; door < world.objectEnd; door++) {
    const code = world.codes[door]!;
    if ((code & 0xff) !== DOOR || code >>> 16 !== LOCKED) continue;
    let isOut = false;
    for (let id = FIRST_OBJECT; id < world.objectEnd; id++) {
      if (world.codes[id] === (KEY | (code & 0xff00)) && seen.has(world.places[id]!)) isOut = true;
    }
    if (!isOut) return true;
  }
  return false;
}

describe('the oracle', () => {
  it('solves every level within its step limit, unless the only key is locked in', () => {
    const unsolved: string[] = [];
    for (let level = 1; level <= NUM_LEVELS; level++) {
      for (let seed = 0; seed < SEEDS; seed++) {
        const index = indexOf(level, seed);
        const policy = createOracle()({ env: 'babyai', index, seed: 0 });
        const session = new CorrectedSession(index);
        let step: TimeStep = session.first;
        for (let action = policy(step); action !== undefined; action = policy(step)) {
          expect(session.actions()).toContain(action);
          step = session.step(action);
        }
        if (step.kind === 'terminated' && step.success) {
          expect(session.text.world.stepCount).toBeLessThanOrEqual(session.text.world.maxSteps);
          continue;
        }
        unsolved.push(`${level}:${seed}`);
        expect([7, 24]).toContain(level);
        expect(isKeyLockedIn(generate(level, seed, 2)), `level ${level} seed ${seed}`).toBe(true);
      }
    }
    expect(unsolved).toEqual(['7:6', '7:14', '7:35'].filter((name) => Number(name.split(':')[1]) < SEEDS));
  });

  it('solves the original’s text world too, on the paper’s test levels', () => {
    for (const index of tasks.split('test')) {
      const actions = solve(index, 'original');
      if (!actions) {
        expect(isKeyLockedIn(generate(levelOf(index), seedOf(index), 2))).toBe(true);
        continue;
      }
      const session = new OriginalSession(index);
      const last = actions.map((action) => session.step(action)).at(-1);
      expect(last).toMatchObject({ kind: 'terminated', success: true });
    }
  });

  it('does not mistake the world: where boxes cannot be opened, level 26 is not solved', () => {
    expect(solve(indexOf(26, 0), 'original')).toBeUndefined();
  });
});

/** The view's memory after the turns. */
function remember(first: First, turns: readonly SeenTurn[]): Memory {
  return turns.reduce((memory, turn) => view.track!.reduce(memory, turn), view.track!.begin(first));
}

describe('view and drawing', () => {
  /** Plays the oracle and hands every turn to `see`. */
  function watch(index: number, see: (session: CorrectedSession, turns: readonly SeenTurn[]) => void): void {
    const task = { env: 'babyai', index, seed: 0 };
    const session = new CorrectedSession(index);
    const policy = createOracle()(task);
    const turns: SeenTurn[] = [];
    let step: TimeStep = session.first;
    see(session, turns);
    for (let action = policy(step); action !== undefined; action = policy(step)) {
      step = session.step(action);
      turns.push({ action, observation: step.observation });
      if (step.kind === 'mid') see(session, turns);
    }
  }

  it('point every action on a thing at the words for that thing', () => {
    let words = 0;
    let renderings = 0;
    for (const index of tasks.split('test')) {
      watch(index, (session, turns) => {
        const rendered = view.render(session.first, turns, remember(session.first, turns));
        words += rendered.segments.join('').split(/\s+/).length;
        renderings++;
        const pointed = new Map<string, string>();
        for (const action of session.actions()) {
          const mentions = rendered.mentions(action);
          const name = /^(?:go to|pickup|go through|toggle and go through) (.*)$/.exec(action)?.[1];
          if (name) {
            // The numbers are left out; where the action points shows which of two alike things is meant.
            const [, words, number] = /^(.*) (\d+)$/.exec(name)!;
            expect(rendered.segments[mentions[0]!]).toMatch(
              new RegExp(`^ (open |closed |locked )?${words!.replace(/^(open|closed|locked) /, '')}`),
            );
            const earlier = pointed.get(`${words} at ${mentions[0]}`);
            expect(earlier ?? number).toBe(number);
            pointed.set(`${words} at ${mentions[0]}`, number!);
          }
          if (action === 'drop') expect(rendered.segments[mentions[0]!]).toMatch(/^ carrying /);
          expect(mentions.length).toBeLessThanOrEqual(1);
        }
      });
    }
    expect(words / renderings).toBeLessThan(45);
  });

  it('use no word the view does not name', () => {
    const known = new Set([...view.words, ...view.lexicon.flatMap((phrase) => phrase.split(' '))]);
    for (let level = 1; level <= NUM_LEVELS; level++) {
      watch(indexOf(level, 1), (session, turns) => {
        for (const word of view
          .render(session.first, turns, remember(session.first, turns))
          .segments.join('')
          .split(/\s+/))
          expect(known).toContain(word);
      });
    }
  });

  it('render goal first, the last three actions, then the scene, then what was seen before', () => {
    const first = { kind: 'first' as const, observation: new CorrectedSession(4).first.observation };
    const observation =
      'Your goal: go to a green key\nIn front of you in this room, you can see several objects: There is a green key 1 right in front of you 1 steps away.  There is a red box 1 2 steps in front of you and 2 steps to your left.  The room has walls around you. You are carrying a blue ball.\nAvailable actions: ["turn left"]';
    const turns = ['turn left', 'go to red box 1', 'Turn Right', 'move forward'].map((action) => ({
      action,
      observation,
    }));
    const all = [...turns, { action: 'jump', observation: 'Your goal: x\nNo.' }];
    const rendered = view.render(first, all, remember(first, all));
    expect(rendered.segments.join('')).toBe(
      'go to green key | turn right move forward refused refused see green key 1 ahead red box 2 left 2 clear carrying blue ball was yellow key 4 ago grey ball 4 ago purple key 4 ago',
    );
    expect(rendered.focus).toBe('green key');
    expect(rendered.mentions('toggle')).toEqual(rendered.mentions('go to green key 1'));
    expect(rendered.mentions('go to red ball 1')).toEqual([]);
  });

  it('draw the maze, the agent in it, and what it sees brighter', () => {
    const task = { env: 'babyai', index: indexOf(2, 0), seed: 0 };
    for (const session of [new CorrectedSession(task.index), new OriginalSession(task.index)]) {
      const turns = ['turn left', 'turn left'].map((action) => ({
        action,
        observation: session.step(action).observation,
      }));
      const { panels } = draw(task, session.first, turns);
      const grid = panels.find((panel) => panel.kind === 'grid')!;
      const { world } = session.text;
      expect(grid.rows.length).toBe(world.height);
      for (const row of grid.rows) expect(row.length).toBe(world.width);
      expect(grid.rows[world.agentY]![world.agentX]!.glyph).toBe('>v<^'[world.agentDir]);
      const cells = grid.rows.flat();
      expect(cells.filter((cell) => cell.name === 'red ball').map((cell) => cell.glyph)).toEqual(['o']);
      expect(cells.some((cell) => cell.dim) && cells.some((cell) => !cell.dim)).toBe(true);
    }
  });
});
