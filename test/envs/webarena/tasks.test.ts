/** Tasks on WebArena's own sites: every oracle earns its reward, other oracles do not, and nothing else leads there. */
import { decodeHTML } from 'entities';
import { describe, expect, it } from 'vitest';
import { answerText } from '../../../envs/webarena/answers.ts';
import { EmbeddedWebArena } from '../../../envs/webarena/env.ts';
import { htmlOf } from '../../../envs/webarena/html.ts';
import { createEnv, createOracle } from '../../../envs/webarena/index.ts';
import { nodesOf } from '../../../envs/webarena/nodes.ts';
import { player } from '../../../envs/webarena/oracle.ts';
import { layoutOf, type Page } from '../../../envs/webarena/page.ts';
import { Episode } from '../../../envs/webarena/sites/episode.ts';
import { BASES } from '../../../envs/webarena/sites/site.ts';
import { type Drawn, drawTask, judge, tasks, templateOf, templates } from '../../../envs/webarena/tasks.ts';
import type { Instance, Template } from '../../../envs/webarena/templates/template.ts';
import { printTree } from '../../../envs/webarena/tree.ts';
import { slug } from '../../../envs/webarena/worlds/draw.ts';
import type { Session, TimeStep } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const env = createEnv();
const main = [...tasks.split('train'), ...tasks.split('test')];
/** Every seventh task of the table in a short run, other ones each time the table changes. */
const sampled = long ? main : main.filter((_, i) => i % 7 === 0);
const practice = tasks.sets!.practice!;

async function play(
  session: Session,
  next: (step: TimeStep) => string | undefined,
): Promise<{ success: boolean; turns: number }> {
  let step: TimeStep = session.first;
  let turns = 0;
  while (step.kind !== 'terminated') {
    const action = next(step);
    if (action === undefined || turns > 40) return { success: false, turns };
    step = await session.step(action);
    turns++;
  }
  return { success: step.success, turns };
}

/** All that an agent can make a page show: the whole page without addresses, and the options of its selects. */
function readableOf(page: Page, url: string): string {
  const layout = layoutOf(page);
  const nodes = nodesOf(layout, url, { values: new Map(), focused: -1 });
  const options = layout.cells.flatMap(({ cell }) => (cell.kind === 'select' ? cell.options : []));
  const printed = printTree(nodes, { fidelity: 'corrected', dialect: '2023', screen: [1280, 1e6] });
  return [printed.text, ...options].join('\n');
}

/** Draws of another template, at most, until one's end is not by chance the task's own. */
const REDRAWS = 20;

/** An instance of another template in the task's world that asks for another end, as the generator of tasks redraws. */
function drawOther(drawn: Drawn, other: Template, rng: Rng): Instance | undefined {
  for (let draws = 0; draws < REDRAWS; draws++) {
    const instance = other.draw(drawn.world, rng);
    if (!instance) continue;
    const answer = instance.answer ? answerText(instance.answer) : 'done';
    const url = new URL(instance.url ?? '/', BASES[other.sites[0]!]).href;
    if (!judge(drawn.instance, { answer, changes: instance.changes ?? {}, url }, 'corrected')) return instance;
  }
  return undefined;
}

/** Plays the oracle of another task's slots on this task. @returns whether it earned the reward */
async function earns(drawn: Drawn, other: Template, instance: Instance): Promise<boolean> {
  const corrected = new EmbeddedWebArena({ fidelity: 'corrected', dialect: '2023' });
  const session = await corrected.openDrawn({ ...drawn, template: { ...drawn.template, sites: other.sites } });
  const answer = instance.answer ? answerText(instance.answer) : 'done';
  return (await play(session, player([...instance.plan, { do: 'stop', answer }]))).success;
}

describe('tasks', () => {
  it('are 372 to train on and 50 to test with, in the paper’s columns', () => {
    expect(tasks.split('train')).toHaveLength(372);
    const columns = tasks.split('test').map((index) => tasks.label(index));
    expect(tasks.labels.map((label) => columns.filter((one) => one === label).length)).toEqual([15, 15, 10, 5, 5]);
    const trained = new Set(tasks.split('train').map((index) => templateOf(index).id));
    expect(templates.filter(({ unseen, id }) => unseen && trained.has(id))).toEqual([]);
    expect(templates.length).toBeGreaterThanOrEqual(49);
    expect(new Set(templates.map(({ id }) => id)).size).toBe(templates.length);
    for (const label of tasks.labels)
      expect(templates.filter((one) => one.label === label && one.unseen).length).toBeGreaterThanOrEqual(2);
  });

  it('to practise with are of the training worlds, and of templates that no test has', () => {
    const tested = new Set(main.slice(372).map((index) => templateOf(index).id));
    const worlds = new Set(sampled.slice(0, sampled.length - 8).map((index) => drawTask({ index, seed: 0 }).world));
    for (const index of practice) {
      const { template, world } = drawTask({ index, seed: 0 });
      expect([template.id, tested.has(template.id), worlds.has(world)]).toEqual([template.id, false, true]);
    }
    expect(new Set(practice.map((index) => tasks.label(index))).size).toBe(tasks.labels.length);
  });

  it('are solved by their oracle', { timeout: 3_600_000 }, async () => {
    const failed: number[] = [];
    const seeds = long ? Array.from({ length: 21 }, (_, seed) => seed) : [0, 7];
    for (const seed of seeds) {
      for (const index of [...sampled, ...practice]) {
        const task = { env: 'webarena', index, seed };
        const { success } = await play(await env.open(task), createOracle()(task));
        if (!success) failed.push(index);
      }
    }
    expect(failed).toEqual([]);
  });

  it('of the test table take five turns in the middle, and eight for a third of them', {
    timeout: 3_600_000,
  }, async () => {
    const lengths: number[] = [];
    for (const index of tasks.split('test')) {
      const task = { env: 'webarena', index, seed: tasks.evalSeed };
      lengths.push((await play(await env.open(task), createOracle()(task))).turns);
    }
    lengths.sort((a, b) => a - b);
    expect(lengths[Math.floor(lengths.length / 2)]).toBeGreaterThanOrEqual(5);
    expect(lengths.filter((length) => length >= 8).length).toBeGreaterThanOrEqual(lengths.length / 3);
    expect(lengths.at(-1)).toBeLessThanOrEqual(15);
  });

  it('are not solved by the oracle of another task of the same world', { timeout: 3_600_000 }, async () => {
    const passed: string[] = [];
    let pairs = 0;
    for (const index of sampled) {
      const drawn = drawTask({ index, seed: 1 });
      const rng = Rng.fromSeed(index);
      const others = rng.shuffle(
        templates.filter(({ label, id }) => label === drawn.template.label && id !== drawn.template.id),
      );
      for (const other of long ? others : others.slice(0, 2)) {
        const instance = drawOther(drawn, other, rng);
        if (!instance) continue;
        pairs++;
        if (await earns(drawn, other, instance)) passed.push(`${index} by ${other.id}`);
      }
    }
    expect(pairs).toBeGreaterThan(sampled.length);
    expect(passed).toEqual([]);
  });

  it('that cannot be done are not done by answering so without a look, unless judged as the original does', async () => {
    const unachievable = main.filter((one) => drawTask({ index: one, seed: 0 }).instance.answer?.type === 'none');
    expect(unachievable.length).toBeGreaterThan(5);
    expect(unachievable.length / main.length).toBeLessThanOrEqual(0.06);
    for (const index of unachievable) {
      for (const fidelity of ['corrected', 'original'] as const) {
        const sites = new EmbeddedWebArena({ fidelity, dialect: '2023' });
        for (const [answer, success] of [
          ['N/A', fidelity === 'original'],
          ['42', false],
        ] as const) {
          const session = await sites.open({ env: 'webarena', index, seed: 0 });
          expect(await session.step(`stop [${answer}]`), `${index} ${fidelity}`).toMatchObject({ success });
        }
      }
    }
  });

  it('begin anew: what one episode wrote is in no other', async () => {
    const { world } = drawTask({ index: 0, seed: 0 });
    const template = templates.find(({ id }) => id === 'reddit/bio')!;
    const drawn = { template, world, instance: template.draw(world, Rng.fromSeed(0))! };
    for (const fidelity of ['corrected', 'original'] as const) {
      const sites = new EmbeddedWebArena({ fidelity, dialect: '2023' });
      const plan = [...drawn.instance.plan, { do: 'stop', answer: 'done' }] as const;
      expect((await play(await sites.openDrawn(drawn), player(plan))).success).toBe(true);
      expect(await (await sites.openDrawn(drawn)).step('stop [done]')).toMatchObject({ success: false });
    }
  });

  it('are the same under the same index and seed, and others under another seed', () => {
    const intents = (seed: number) => sampled.map((index) => drawTask({ index, seed }).instance.intent);
    expect(intents(3)).toEqual(intents(3));
    expect(intents(3)).not.toEqual(intents(4));
  });

  it('keep training and held-out worlds apart', () => {
    const worlds = (indices: readonly number[]) =>
      new Set(indices.flatMap((index) => [0, 1].map((seed) => drawTask({ index, seed }).world.seed)));
    const held = worlds(tasks.split('test'));
    expect([...worlds(sampled.filter((index) => index < 372))].filter((seed) => held.has(seed))).toEqual([]);
  });

  it('show no answer in source, attribute or address that the agent cannot read', { timeout: 3_600_000 }, async () => {
    const corrected = new EmbeddedWebArena({ fidelity: 'corrected', dialect: '2023' });
    const leaks: string[] = [];
    let answered = 0;
    for (const index of sampled) {
      const drawn = drawTask({ index, seed: 0 });
      const { answer } = drawn.instance;
      const right = answer && 'value' in answer ? answerText(answer) : '';
      if (right.length <= 4) continue; // a short number stands anywhere by chance
      answered++;
      const session = await corrected.openDrawn(drawn);
      const next = createOracle()({ env: 'webarena', index, seed: 0 });
      const pages = new Set([session.url]);
      await play(session, (step) => {
        pages.add(session.url);
        return next(step);
      });
      const episode = new Episode(drawn.world);
      for (const url of pages) {
        const page = episode.get(url);
        const readable = `${readableOf(page, url)}\n${url}`.toLowerCase();
        if (readable.includes(right.toLowerCase())) continue;
        const source = decodeURIComponent(
          decodeHTML(htmlOf(page).replace(/<(style|script)>.*?<\/\1>/gs, ''))
            .replaceAll('+', ' ')
            .replace(/%(?![0-9a-f]{2})/gi, '%25'),
        );
        if ([right, slug(right)].some((text) => source.toLowerCase().includes(text.toLowerCase())))
          leaks.push(`${drawn.template.id} ${index}: ${right} at ${url}`);
      }
    }
    expect(answered).toBeGreaterThan(10);
    expect(leaks).toEqual([]);
  });

  it('fail where something else was changed too, unless judged as the original does', async () => {
    const { world } = drawTask({ index: 0, seed: 0 });
    const template = templates.find(({ id }) => id === 'reddit/bio')!;
    const drawn = { template, world, instance: template.draw(world, Rng.fromSeed(0))! };
    for (const [fidelity, success] of [
      ['corrected', false],
      ['original', true],
    ] as const) {
      const session = await new EmbeddedWebArena({ fidelity, dialect: '2023' }).openDrawn(drawn);
      const extra = { do: 'click', role: 'button', name: 'Subscribe', nth: 0 } as const;
      const plan = [
        { do: 'click', role: 'link', name: 'Forums', nth: 0 },
        { do: 'click', role: 'link', name: 'books', nth: 0 },
        extra,
      ] as const;
      expect(
        (await play(session, player([...plan, ...drawn.instance.plan, { do: 'stop', answer: 'done' }]))).success,
      ).toBe(success);
    }
  });
});
