/**
 * Panels of console and viewer: the task with its goals, the agent's place, what it carries, and the house. The turns
 * are played again under the rules that give this opening; where none does (a server's episode), what the texts show is
 * drawn.
 */
import type { Draw, Drawing, ListPanel, TextPanel } from '../../src/core/draw.ts';
import type { EnvOptions, First } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import { type Rules, SciWorld, type SciWorldSession } from './env.ts';
import { begin, type Memory, updateMemory } from './memory.ts';
import { rulesOf } from './options.ts';
import { cursory } from './text.ts';
import type { Thing } from './thing.ts';

const MAX_LINES = 40;

export const draw: Draw = (task, first, turns, options = {}) => {
  const session = findSameOpening(task, first, options);
  if (!session) {
    let memory = begin(first);
    for (const turn of turns) memory = updateMemory(memory, turn);
    return drawFromMemory(first, memory);
  }
  for (const { action } of turns) session.step(action);
  const { simulator } = session;
  const { world, goals } = simulator;
  const place = world.agent.parent!;
  const filterVisible = (things: readonly Thing[]) =>
    things.filter(({ hidden, kind }) => !hidden && kind.id !== 'agent');
  return {
    panels: [
      taskPanel(simulator.description, [
        `focus  ${simulator.focus?.name ?? 'nothing'}`,
        `score  ${goals.score.toFixed(2)}${goals.failed ? ', failed' : ''}`,
        `time   ${simulator.moves}`,
      ]),
      goalsPanel(session),
      {
        kind: 'text',
        title: place.name,
        lines: boundLines(filterVisible(place.contents).map((one) => cursory(one, place))),
      },
      {
        kind: 'list',
        title: 'Inventory',
        items: filterVisible(world.inventory.contents).map(({ name }) => ({ name })),
      },
      housePanel(place),
    ],
  };
};

/** Rules of other runs, distinguished by their openings: an episode may be drawn without its options. */
const RULES: readonly Rules[] = (['agentgym', 'scienceworld'] as const).flatMap((tasks) =>
  ([[], ['easy']] as const).map((simplifications) => rulesOf({ tasks, simplifications })),
);

/** Session that opens in the same words: under the run's options, else under the rules that the words fit. */
function findSameOpening(task: Task, first: First, options: EnvOptions): SciWorldSession | undefined {
  for (const rules of [rulesOf(options), ...RULES]) {
    const env = new SciWorld(rules);
    if (task.index >= env.tasks.count) continue;
    const session = env.open(task);
    if (session.first.observation === first.observation) return session;
  }
  return undefined;
}

function taskPanel(description: string, lines: readonly string[]): TextPanel {
  return {
    kind: 'text',
    title: 'Task',
    lines: [...(description.match(/[^.]+\.?/g) ?? []).map((s) => s.trim()), ...lines],
  };
}

/** Ordered goals, then those of the optional ones that are met. */
function goalsPanel({ simulator }: SciWorldSession): ListPanel {
  const items = simulator.goals.states.map(({ description, kind, ordered, met }) => {
    const name = `${ordered ? '' : '+ '}${description === '' ? kind : description}`;
    return met ? { name, mark: 'good' as const } : ordered ? { name, mark: 'goal' as const } : { name };
  });
  return { kind: 'list', title: 'Goals (+ optional)', items: items.slice(0, MAX_LINES) };
}

function housePanel(place: Thing): TextPanel {
  const lines = place.portals.map((door) => cursory(door, place));
  return { kind: 'text', title: 'Ways', lines };
}

function drawFromMemory(first: First, { place, look, held, focus, doors }: Memory): Drawing {
  const description = first.observation.slice(0, first.observation.indexOf('\n'));
  return {
    panels: [
      taskPanel(description, [`focus  ${focus || 'nothing'}`]),
      {
        kind: 'text',
        title: place,
        lines: boundLines(
          look
            .split('\n')
            .slice(1)
            .filter((line) => line.trim() !== ''),
        ),
      },
      { kind: 'list', title: 'Inventory', items: held.map((name) => ({ name })) },
      { kind: 'text', title: 'Ways', lines: [...doors].map(([to, open]) => `${to}: ${open ? 'open' : 'closed'}`) },
    ],
  };
}

function boundLines(lines: readonly string[]): readonly string[] {
  return lines.length <= MAX_LINES
    ? lines
    : [...lines.slice(0, MAX_LINES - 1), `… ${lines.length - MAX_LINES + 1} more`];
}
