import { expect, it } from 'vitest';
import type { FormCall } from '../../../envs/terminal/forms.ts';
import { createEnv } from '../../../envs/terminal/index.ts';
import { writeTask } from '../../../envs/terminal/tasks.ts';
import { view } from '../../../envs/terminal/view.ts';
import type { SeenTurn } from '../../../src/core/view.ts';
import { reply } from './texts.ts';

const env = createEnv({ tools: 'forms' });
const { tasks } = env;
const indexOf = (label: string) =>
  Array.from({ length: tasks.count }, (_, i) => i).find((i) => tasks.label(i) === label)!;

/** Plays actions, and reads the episode as the local policy does. */
async function read(label: string, actions: readonly string[]) {
  const session = await env.open({ env: 'terminal', index: indexOf(label), seed: 3 });
  let state = view.track!.begin(session.first);
  const turns: SeenTurn[] = [];
  for (const action of actions) {
    session.actions();
    const step = await session.step(action);
    if (step.kind === 'terminated') break;
    const turn: SeenTurn = { action, observation: step.observation, ...(step.partial ? { partial: true } : {}) };
    turns.push(turn);
    state = view.track!.reduce(state, turn);
  }
  const rendered = view.render(session.first, turns, state);
  return { text: rendered.segments.join(''), rendered, candidate: (action: string) => view.candidate!(action, state) };
}

it('begins with the request in known words, and points at what it quotes', async () => {
  const { text, rendered } = await read('move 1', []);
  expect(text).toBe('move the file flights md to grades txt');
  const at = (action: string) => rendered.mentions(action).map((i) => rendered.segments[i]);
  expect([at('move'), at('submit')]).toEqual([['move'], []]);
});

it('shows the call that is being put together, and mentions its values', async () => {
  const { text, rendered } = await read('move 1', ['move']);
  expect(text).toMatch(/ txt \| call move$/);
  const at = (action: string) => rendered.mentions(action).map((i) => rendered.segments[i]);
  expect([at('flights.md'), at('grades.txt'), at('move')]).toEqual([[' flights md'], [' grades txt'], []]);
});

it('shows calls with their outputs, chosen and as JSON alike', async () => {
  const chosen = await read('count 1', ['count_lines', 'roles.txt']);
  expect(chosen.text).toMatch(/ \| count lines roles txt \d+$/);
  const typed = await read('count 1', [reply(['count_lines', { path: 'roles.txt' }])]);
  expect(typed.text).toBe(chosen.text);
});

it('mentions a value where an output shows it', async () => {
  const { choices, solution } = writeTask(indexOf('find 2'), 3);
  const [{ args: look }, { args: moved }] = solution as [FormCall, FormCall];
  const { rendered } = await read('find 2', ['find_text', look.word!, 'move']);
  const at = (path: string) => rendered.mentions(path).map((i) => rendered.segments[i]!.trim().replaceAll(' ', ''));
  expect(at(moved.from!)).toEqual([moved.from!.replaceAll(/[./]/g, '')]);
  const others = choices.path!.filter((path) => path !== moved.from);
  expect(others.length).toBeGreaterThan(3);
  expect(others.flatMap(at)).toEqual([]);
});

it('reads numbers in pieces of two digits, and unknown words as one', async () => {
  const { candidate } = await read('sum 1', []);
  expect(['7', '60', '107', '1234', '755', '🜂'].map(candidate)).toEqual(['7', '60', '1 7', '12 34', '7 55', 'other']);
});

it('names every value of a kind apart', async () => {
  const { candidate } = await read('settings 3', []);
  expect(candidate('step1.txt')).not.toBe(candidate('step2.txt'));
  expect(candidate('archive/report.txt')).toBe('archive report txt');
});
