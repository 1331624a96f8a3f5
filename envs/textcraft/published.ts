/**
 * Published episodes of TextCraft (AgentTraj-L). They follow the rule book of their authors' machine (`order:
 * 'agenttraj'`), list commands that Python's hash order drew, and put `Instruction:` before every observation.
 */
import type { PublishedEpisodes } from '../../src/core/agentgym.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { DEFAULTS, TextCraft, type TextCraftOptions } from './env.ts';
import { treeOf } from './order.ts';
import { readOpening } from './text.ts';

const HEAD = 'Instruction:\n';

/**
 * Plays them under the configured options, the order of recipe files aside. An episode's task is the one that has its
 * goal in the configured world, whatever its id: under `order: 'sorted'` 65 of the paper's 100 test ids name goals
 * that train ids demonstrate.
 * @param options checked ones of the world
 */
export function openPublished(options: EnvOptions): PublishedEpisodes {
  const configured: Partial<TextCraftOptions> = options;
  const world = new TextCraft({ ...configured, order: 'agenttraj' });
  const { goals } = treeOf(configured.order ?? DEFAULTS.order);
  const indexOf = new Map(goals.map(({ item }, index) => [item, index]));
  return {
    options: { order: 'agenttraj' },
    open(_, opening) {
      const start = readOpening(plain(opening));
      return {
        session: world.openFrom(start),
        index: indexOf.get(start.goal),
        action: (reply) => reply,
        agrees: (ours, text) => ours.trimEnd() === plain(text).trimEnd(), // the published lists lack their last blank
      };
    },
  };
}

function plain(text: string): string {
  return text.startsWith(HEAD) ? text.slice(HEAD.length) : text;
}
