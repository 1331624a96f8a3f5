/**
 * Parity with AgentGym's TextCraft: recorded episodes, recorded HTTP exchanges and the recorded crafting tree, against
 * `fidelity: 'original'`. An episode starts from its recorded goal and commands, because the original draws commands in
 * Python's hash order.
 */

import { UserError } from '../../src/core/errors.ts';
import type { Difference, Parity, ParityCounts } from '../../src/core/parity.ts';
import { TextCraft, type TextCraftSession } from './env.ts';
import { type Ingredient, type Recipe, TREE } from './recipes.ts';
import { waysTo } from './start.ts';
import { readOpening, type Start } from './text.ts';

type Report = (difference: Difference) => void;

interface RecordedStep {
  readonly action: string;
  readonly observation: string;
  readonly reward: number;
  readonly done: boolean;
  readonly inventory: readonly (readonly [id: string, amount: number])[];
}
interface RecordedEpisode {
  readonly data_idx: number;
  readonly goal: string;
  readonly goal_depth: number;
  readonly commands: readonly string[];
  readonly initial_observation: string;
  readonly steps: readonly RecordedStep[];
}
interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly status: number;
  readonly response: unknown;
}

const env = new TextCraft({ fidelity: 'original' });

export const parity: Parity = (records, report) => {
  const [first] = records as readonly Record<string, unknown>[];
  if (first && 'goal_order' in first) return replayTree(first, report);
  if (first && 'steps' in first && 'commands' in first)
    return replayEpisodes(records as readonly RecordedEpisode[], report);
  if (first && 'method' in first) return replayHttp(records as readonly Exchange[], report);
  throw new UserError('BAD_TRACE', 'textcraft: expected episodes, HTTP exchanges or a crafting tree');
};

function replayEpisodes(episodes: readonly RecordedEpisode[], report: Report): ParityCounts {
  let steps = 0;
  for (const [n, episode] of episodes.entries()) {
    const where = `episode ${n} (data_idx ${episode.data_idx})`;
    const start: Start = { goal: plain(episode.goal), commands: episode.commands };
    const goal = goalAt(episode.data_idx);
    compare(report, where, 'goal and depth', [episode.goal, episode.goal_depth], [id(goal.item), goal.depth]);
    compare(report, where, 'recipes listed for the goal', [], missingFrom(start));
    const session = env.openFrom(start);
    compare(report, where, 'initial observation', episode.initial_observation, session.first.observation);
    for (const [i, step] of episode.steps.entries()) {
      steps++;
      const answer = session.step(step.action);
      const at = `${where}, step ${i}`;
      const after = `after ${JSON.stringify(step.action)}`;
      compare(report, at, `observation ${after}`, step.observation, answer.observation);
      compare(report, at, `reward ${after}`, step.reward, answer.reward);
      compare(report, at, `done ${after}`, step.done, answer.kind === 'terminated');
      compare(report, at, `inventory ${after}`, step.inventory, inventoryOf(session));
    }
  }
  return { episodes: episodes.length, steps };
}

/** Replays recorded exchanges as far as they are the world's: errors, status codes and validation are the server's. */
function replayHttp(exchanges: readonly Exchange[], report: Report): ParityCounts {
  const open = new Map<number, { session: TextCraftSession; last: Answer }>();
  let episodes = 0;
  let steps = 0;
  for (const [n, { method, path, body, status, response }] of exchanges.entries()) {
    const answer = response as Answer & { id?: number; error?: string };
    if (status !== 200 || answer?.error !== undefined) continue;
    const where = `exchange ${n} (${method} ${path})`;
    if (path === '/create' || path === '/reset') {
      episodes++;
      // A new environment opens the task of its own number, whatever goal the request names.
      const index = path === '/create' ? answer.id! : coerceInteger(body?.data_idx ?? 0);
      const start = startOf(answer.observation);
      if (!start) {
        report({ where, what: 'opening', expected: answer.observation, got: undefined });
        continue;
      }
      compare(report, where, 'goal', goalAt(index).item, start.goal);
      compare(report, where, 'recipes listed for the goal', [], missingFrom(start));
      const session = env.openFrom(start);
      const last = { observation: session.first.observation, reward: 0, done: false };
      compare(report, where, 'answer', pickAnswer(answer), last);
      open.set(answer.id!, { session, last });
    } else if (path === '/step') {
      steps++;
      const opened = open.get(coerceInteger(body?.id));
      const step = opened?.session.step(String(body?.action));
      const last = step && { observation: step.observation, reward: step.reward, done: step.kind === 'terminated' };
      compare(report, where, `answer to ${JSON.stringify(body?.action)}`, pickAnswer(answer), last);
      if (opened && last) opened.last = last;
    } else if (path.startsWith('/observation?id=') || path.startsWith('/detail?id=')) {
      const last = open.get(Number(path.split('=')[1]))?.last;
      if (path.startsWith('/observation')) compare(report, where, 'observation', response, last?.observation);
      else compare(report, where, 'last answer', pickAnswer(answer), last);
    } else if (path === '/close') {
      open.delete(coerceInteger(body?.id));
    }
  }
  return { episodes, steps };
}

/** Start that an opening describes, or `undefined` where ours would not have written it. */
function startOf(observation: string): Start | undefined {
  try {
    return readOpening(observation);
  } catch {
    return undefined;
  }
}

interface Answer {
  readonly observation: string;
  readonly reward: number;
  readonly done: boolean;
}

/** Replays the recorded tree, as one episode of no steps. */
function replayTree(tree: Record<string, unknown>, report: Report): ParityCounts {
  const ours = convertToRecorded();
  for (const part of Object.keys(ours) as (keyof typeof ours)[]) {
    const [expected, got] = [tree[part], ours[part]] as [unknown, unknown];
    if (!Array.isArray(expected) || !Array.isArray(got)) {
      compare(report, 'tree', part, expected, got);
      continue;
    }
    for (let i = 0; i < Math.max(expected.length, got.length); i++) {
      compare(report, 'tree', `${part}[${i}]`, expected[i], got[i]);
    }
  }
  return { episodes: 1, steps: 0 };
}

/** Recorded form of our tree. */
function convertToRecorded() {
  const entry = ({ name, tag, count }: Ingredient) => {
    return { item: tag ? null : id(name), tag: tag ? id(name) : null, count };
  };
  const recipe = ({ output, tag, count, ingredients, command }: Recipe) => {
    return { out: { item: id(output), tag: tag ? id(tag) : null }, count, in: ingredients.map(entry), str: command };
  };
  return {
    recipes: Array.from(TREE.recipesOf, ([item, recipes]) => ({ key: id(item), recipes: recipes.map(recipe) })),
    tag_recipes: Object.fromEntries(
      Array.from(TREE.recipesOfTag, ([tag, recipes]) => [id(tag), recipes.map(({ command }) => command)]),
    ),
    items: TREE.items.map(id).sort(),
    tags: [...TREE.tags].map(id).sort(),
    item_to_tag: Object.fromEntries(Array.from(TREE.tagOf, ([item, tag]) => [id(item), id(tag)])),
    goal_order: TREE.goals.map(({ item, depth }) => [id(item), depth]),
  };
}

/** Recipes that the goal may need and the start does not list. */
function missingFrom({ goal, commands }: Start): readonly string[] {
  const needed = waysTo(TREE, goal).map(({ command }) => command);
  return needed.filter((command) => !commands.includes(command));
}

/** Goal at an index: the original takes any integer and wraps it as Python does. */
function goalAt(index: number) {
  const count = TREE.goals.length;
  return TREE.goals[((index % count) + count) % count]!;
}

/** Coerces an integer as the original's server does: a numeric string will do, a fraction is cut off. */
function coerceInteger(value: unknown): number {
  return Math.trunc(Number(value));
}

/** Inventory of a recording: amounts beyond 2⁵³ are JSON numbers there, so they compare as such. */
function inventoryOf(session: TextCraftSession): readonly (readonly [string, number])[] {
  return session.inventory.map(([name, amount]) => [id(name), Number(amount)]);
}

function pickAnswer({ observation, reward, done }: Answer): Answer {
  return { observation, reward, done };
}

function compare(report: Report, where: string, what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
}

function id(name: string): string {
  return `minecraft:${name}`;
}

function plain(text: string): string {
  return text.replace('minecraft:', '');
}
