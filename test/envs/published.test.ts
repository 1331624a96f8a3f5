/** Published episodes (AgentTraj-L) played again: what they become, what is left out, and that all of theirs replay. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import * as babyai from '../../envs/babyai/index.ts';
import * as textcraft from '../../envs/textcraft/index.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { convertAgentTraj, type Demonstration } from '../../src/run/offline/demonstrations.ts';
import { playAgain } from '../../src/run/offline/published.ts';
import { type PublishedItem, publishedItem, reply } from '../support/published-episodes.ts';

type World = typeof textcraft | typeof babyai;

async function again(world: World, options: EnvOptions, items: readonly unknown[], onlyListed = true) {
  const notices: string[] = [];
  const onNotice = (line: string) => notices.push(line);
  const published = world.agentgym.openPublished!(options);
  const kept = await playAgain(convertAgentTraj(items, 'file'), published, { onlyListed, onNotice });
  return { kept, notices };
}

const instructed = (observation: string) => `Instruction:\n${observation}`;
const authors = { order: 'agenttraj' };
const theirs = textcraft.createEnv(authors);
/** The first train task of a depth on the authors' machine, as published. */
const [trainTask] = theirs.tasks.split('train') as [number];
const item = (before: readonly string[] = []) =>
  publishedItem(theirs, textcraft.createOracle(authors), trainTask, instructed, before);
const actionsOf = ({ turns }: Demonstration) => turns.map(({ action }) => action);

describe('a published episode of TextCraft', () => {
  it('gets lists, the world’s own observations and its score', async () => {
    const { kept, notices } = await again(textcraft, authors, [await item()]);
    const [one] = kept as [Demonstration];
    expect(one).toMatchObject({ index: trainTask, score: 1, task: `textcraft_${trainTask}` });
    expect(one.turns[0]!.observation).toMatch(/^Crafting commands:\n/);
    expect(one.turns.length).toBeGreaterThan(1);
    for (const { action, actions, untrained } of one.turns) {
      expect(actions).toContain(action);
      expect(untrained).toBeUndefined();
    }
    expect(one.finalObservation).toMatch(/^Crafted /);
    expect(notices).toEqual(['1 of 1 published episodes played again, 0 left out']);
  });

  it('keeps a reply that is not listed as context, unless the policy may answer anything', async () => {
    const tried = await item(['get 1 crafting table', 'inventory']);
    const { kept, notices } = await again(textcraft, { ...authors, listInventory: false }, [tried]);
    expect(kept[0]!.turns.map(({ untrained }) => untrained === true)).toEqual([
      true,
      true,
      ...Array(kept[0]!.turns.length - 2).fill(false),
    ]);
    expect(notices[1]).toBe(
      `2 of their ${kept[0]!.turns.length} replies are not among the listed actions: context, not learnt`,
    );
    const free = await again(textcraft, authors, [tried], false);
    expect(free.kept[0]!.turns.every(({ untrained }) => untrained === undefined)).toBe(true);
  });

  it('is of the task that has its goal in the configured world, whatever its id', async () => {
    const sorted = textcraft.createEnv();
    const goal = theirs.treeUnder(0).goals[trainTask]!.item;
    const { kept } = await again(textcraft, {}, [await item()]);
    expect(sorted.treeUnder(0).goals[kept[0]!.index!]!.item).toBe(goal);
  });

  it('is left out by name where it does not go as published, or is none; replies after its end are cut off', async () => {
    const good = await item();
    const last = good.conversations.at(-2)!;
    const other = { ...good, conversations: good.conversations.with(-2, { ...last, value: `${last.value}!` }) };
    const longer = { ...good, conversations: [...good.conversations, last, reply('inventory')] };
    const none = { ...good, conversations: good.conversations.with(2, { ...last, value: 'Instruction:\nHello.' }) };
    const { kept, notices } = await again(textcraft, authors, [other, longer, good, none]);
    const whole = actionsOf(convertAgentTraj([good], 'file')[0]!);
    expect(kept.map(actionsOf)).toEqual([whole, whole]);
    expect(notices).toEqual([
      expect.stringMatching(/^file, textcraft_\d+: left out: observation \d+ was "Instruction:.*; the world answers "/),
      expect.stringMatching(/: left out: textcraft: not an opening observation: "Hello."$/),
      '2 of 4 published episodes played again, 2 left out',
    ]);
  });
});

describe('a published episode of BabyAI', () => {
  const original: EnvOptions = { fidelity: 'original' };
  const env = babyai.createEnv(original);
  const older = (observation: string) => observation.replace(/\nAvailable actions: .*$/s, '');
  const [task] = env.tasks.split('train') as [number];

  it('gets lists under the corrected rules too', async () => {
    const published = await publishedItem(env, babyai.createOracle(original), task, older);
    for (const options of [original, {}]) {
      const { kept, notices } = await again(babyai, options, [published]);
      expect(notices).toEqual(['1 of 1 published episodes played again, 0 left out']);
      expect(kept[0]!.index).toBe(task);
      expect(kept[0]!.score).toBeGreaterThan(0.5);
      for (const { action, actions } of kept[0]!.turns) expect(actions).toContain(action);
    }
  });

  it('is left out where its id names another level, or none', async () => {
    const published = await publishedItem(env, babyai.createOracle(original), task, older);
    const { kept, notices } = await again(babyai, {}, [
      { ...published, item_id: `babyai_${task + 3}` },
      { ...published, item_id: 'somewhere' },
    ]);
    expect(kept).toEqual([]);
    expect(notices[0]).toMatch(/left out: task \d+ has the goal '.+', not '.+'$/);
    expect(notices[1]).toBe('file, somewhere: left out: its name holds no task');
  });
});

const golden = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'agenttraj');
const absent = !existsSync(golden);
if (absent) console.log(`skipped: no published episodes (${golden}); set LONGPLAY_GOLDEN`);
const read = (name: string) => JSON.parse(String(gunzipSync(readFileSync(join(golden, name))))) as PublishedItem[];

describe.skipIf(absent)('the episodes that AgentGym’s authors published', () => {
  it('all replay in TextCraft under their order, but for the one written by hand', async () => {
    const { kept, notices } = await again(textcraft, authors, read('textcraft_train.json.gz'));
    console.log(notices.join('\n'));
    const leftOut = notices.filter((line) => line.includes(': left out: '));
    expect(leftOut).toEqual([expect.stringContaining('textcraft_210: left out')]);
    expect(kept.every(({ score }) => score === 1)).toBe(true);
    const train = new Set(theirs.tasks.split('train'));
    expect(kept.every(({ index }) => train.has(index!))).toBe(true);
  });

  it('all replay in BabyAI, but for one that goes another way under the corrected rules', async () => {
    const { kept, notices } = await again(babyai, {}, read('babyai_train.json.gz'));
    console.log(notices.slice(-8).join('\n'));
    const shares = kept.map(({ turns, score }) => [
      score > 0,
      turns.every(({ actions, action }) => actions!.includes(action)),
    ]);
    expect(shares.filter(([solved]) => !solved)).toEqual([]);
    expect(notices.filter((line) => line.includes(': left out: '))).toEqual([expect.stringContaining('babyai_2869')]);
  });
});
