/** The embedded world: its questions have one answer, its split leaks nothing, and its oracle is not luck. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createEnv, createOracle, draw, start } from '../../../envs/searchqa/index.ts';
import { normalize } from '../../../envs/searchqa/scoring.ts';
import { readPassages } from '../../../envs/searchqa/text.ts';
import { isHeldOut, makeKnowledge, nameOf } from '../../../envs/searchqa/wiki/knowledge.ts';
import { writePassages } from '../../../envs/searchqa/wiki/passages.ts';
import { readAlias, readFacts, readForm } from '../../../envs/searchqa/wiki/reader.ts';
import { bearers, solve } from '../../../envs/searchqa/wiki/solver.ts';
import { hopsOf, openWiki } from '../../../envs/searchqa/wiki/world.ts';
import type { ListPanel, TextPanel } from '../../../src/core/draw.ts';
import type { EnvOptions, EnvStep } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const knowledge = makeKnowledge(1, 3000);
const passages = writePassages(knowledge);
const wiki = openWiki({ seed: 1, entities: 3000 });
const resources = await start({}, { where: 'test' });
const env = createEnv({}, resources);
const { tasks } = env;
const test = tasks.split('test');
const trained = tasks.split('train').filter((_, i) => long || i % 20 === 0);

describe('the embedded world', () => {
  it('is the same for the same seed, byte for byte, and another for another', () => {
    const digest = (seed: number) => {
      const all = writePassages(makeKnowledge(seed, 3000));
      return createHash('sha256').update(JSON.stringify(all)).digest('hex').slice(0, 16);
    };
    expect(digest(1)).toBe(digest(1));
    expect(digest(2)).not.toBe(digest(1));
    expect([knowledge.things.length, passages.length]).toEqual([3575, 5255]);
  });

  it('states in its passages what it knows: a reader of the text alone gets the same facts', () => {
    const read = new Map<string, Set<string>>();
    for (const { contents } of passages) {
      const [title, body] = contents.split('\n') as [string, string];
      const name = title.slice(1, -1);
      const facts = read.get(name) ?? new Set();
      read.set(name, facts);
      const alias = readAlias(name, body);
      if (alias !== undefined) facts.add(`alias ${alias}`);
      for (const { relation, value } of readFacts(name, body)) facts.add(`${relation} ${value}`);
    }
    const known = new Map<string, Set<string>>();
    for (const thing of knowledge.things) {
      const facts = known.get(thing.name) ?? new Set();
      known.set(thing.name, facts);
      if (thing.alias !== undefined) facts.add(`alias ${thing.alias}`);
      for (const [relation, value] of thing.facts) facts.add(`${relation} ${nameOf(knowledge, value)}`);
    }
    const unlike = [...known].filter(([name, facts]) => {
      const found = read.get(name);
      return !found || found.size !== facts.size || [...facts].some((fact) => !found.has(fact));
    });
    expect(unlike.slice(0, 5).map(([name, facts]) => [name, [...facts], [...(read.get(name) ?? [])]])).toEqual([]);
  });

  it('names nothing alike once normalised, but for its namesakes', () => {
    const names = new Map<string, string>();
    for (const { name } of knowledge.things) {
      const other = names.get(normalize(name));
      expect(other === undefined || other === name, `${other} and ${name}`).toBe(true);
      names.set(normalize(name), name);
    }
  });
});

describe('every question', () => {
  it('records its form, which has one answer by the solver', () => {
    for (const index of [...test, ...trained]) {
      const { question, form, answers } = wiki.makeQuestion(index);
      const read = readForm(question);
      expect(read, question).toEqual(form);
      const solved = solve(knowledge, read!);
      expect([...solved.keys()], question).toEqual([normalize(answers[0]!)]);
    }
  });

  it('of the test occurs once, and has the set and the hops of its index', () => {
    expect(test.length).toBe(400);
    expect(new Set(test.map((index) => wiki.makeQuestion(index).question)).size).toBe(400);
    const counts: Record<string, number> = {};
    for (const index of test) counts[tasks.label(index)] = (counts[tasks.label(index)] ?? 0) + 1;
    expect(counts).toEqual({
      nq: 50,
      triviaqa: 50,
      popqa: 50,
      hotpotqa: 50,
      '2wikimultihopqa': 50,
      musique: 100,
      bamboogle: 50,
    });
    for (const index of [...test, ...trained]) {
      const { form } = wiki.makeQuestion(index);
      expect(hopsOf(index)).toBe(form.type === 'chain' ? form.path.length : 2 * form.path.length);
    }
    const byHops = [1, 2, 3, 4].flatMap((hops) => tasks.sets![`hops-${hops}`]!);
    expect(byHops.sort((a, b) => a - b)).toEqual(test);
  });

  it('of the set `composition`, and no other, joins relations that no training question joins', () => {
    const pairs = (index: number) => {
      const { path } = wiki.makeQuestion(index).form;
      return path.slice(1).map((relation, i) => `${path[i]} ${relation}`);
    };
    const known = new Set(trained.flatMap(pairs));
    const isNew = (index: number) => pairs(index).some((pair) => !known.has(pair));
    const { composition } = tasks.sets!;
    expect(composition!.length).toBe(40);
    for (const index of composition!) expect(isNew(index), wiki.makeQuestion(index).question).toBe(true);
    // Of all training questions, that is; a sample of them may miss a pair.
    if (long) for (const index of test) expect(isNew(index)).toBe(composition!.includes(index));
    const pairsOfTest = new Set(composition!.flatMap(pairs).filter((pair) => !known.has(pair)));
    console.log(`composition: 40 questions, ${pairsOfTest.size} pairs of relations that no training question joins`);
    expect(pairsOfTest.size).toBeGreaterThan(3);
  });

  it('for testing walks no component that one for training walks', () => {
    /** Components of every fact on the way, for every bearer of the start's name. */
    const walked = (index: number) => {
      const { form } = wiki.makeQuestion(index);
      const starts = form.type === 'chain' ? [form.start] : [form.a, form.b];
      const found = new Set<number>();
      for (const start of starts) {
        let things = bearers(knowledge, start);
        for (const relation of form.path) {
          for (const { component } of things) found.add(component);
          things = things.flatMap(({ facts }) => {
            const value = facts.get(relation);
            return value && 'thing' in value ? [knowledge.things[value.thing]!] : [];
          });
        }
      }
      return found;
    };
    for (const index of test) for (const component of walked(index)) expect(isHeldOut(component)).toBe(true);
    for (const index of trained) for (const component of walked(index)) expect(isHeldOut(component)).toBe(false);
    for (const { component, facts } of knowledge.things) {
      for (const value of facts.values()) {
        if ('thing' in value) expect(knowledge.things[value.thing]!.component).toBe(component);
      }
    }
  });
});

/** Plays an episode. @returns success and whether every action was listed */
async function play(
  index: number,
  act: (step: { observation: string }, listed: readonly string[]) => string | undefined,
  turns = 12,
) {
  const one = env.open({ env: 'searchqa', index, seed: 0 });
  let step: { kind: string; observation: string; success?: boolean } = one.first;
  let listed = true;
  for (let turn = 0; turn < turns; turn++) {
    const actions = one.actions();
    const action = act(step, actions);
    if (action === undefined) break;
    listed &&= actions.includes(action);
    expect(actions.length).toBeLessThanOrEqual(64);
    step = (await one.step(action)) as EnvStep;
    if (step.kind === 'terminated') break;
  }
  return { success: step.success === true, listed };
}

describe('players', () => {
  it('that know the way answer everything, at least 99 of 100 of every set with listed actions alone', {
    timeout: 600_000,
  }, async () => {
    const oracle = createOracle();
    const counts = new Map<string, { questions: number; listed: number; right: number }>();
    for (const index of [...test, ...trained]) {
      const act = oracle({ env: 'searchqa', index, seed: 0 });
      const { success, listed } = await play(index, (step) => act(step as never));
      const count = counts.get(tasks.label(index)) ?? { questions: 0, listed: 0, right: 0 };
      counts.set(tasks.label(index), count);
      count.questions++;
      if (success) count.right++;
      if (success && listed) count.listed++;
    }
    for (const [set, { questions, listed, right }] of counts) {
      console.log(`oracle, ${set}: ${right} of ${questions}, ${listed} with listed actions alone`);
      expect(right).toBe(questions);
      expect(listed / questions).toBeGreaterThanOrEqual(0.99);
    }
  });

  it('that draw among the listed actions are right under 10 % at one hop, 2 % beyond, 12 % in comparisons', {
    timeout: 600_000,
  }, async () => {
    const rng = Rng.fromSeed(9);
    const rates = new Map<string, number[]>();
    for (const index of [...test, ...trained]) {
      const { form } = wiki.makeQuestion(index);
      const kind = form.type !== 'chain' ? 'comparison' : hopsOf(index) === 1 ? 'one hop' : 'chain';
      for (let i = 0; i < 5; i++) {
        const { success } = await play(index, (_, listed) => (listed.length > 0 ? rng.pick(listed) : undefined));
        rates.set(kind, [...(rates.get(kind) ?? []), success ? 1 : 0]);
      }
    }
    const rate = (kind: string) => {
      const all = rates.get(kind)!;
      const share = all.reduce((sum, n) => sum + n, 0) / all.length;
      console.log(`random, ${kind}: ${(100 * share).toFixed(1)} % of ${all.length} episodes`);
      return share;
    };
    expect(rate('one hop')).toBeLessThan(0.1);
    expect(rate('chain')).toBeLessThan(0.02);
    expect(rate('comparison')).toBeLessThan(0.12);
  });

  it('are offered as an answer only what a passage they read contains', async () => {
    const rng = Rng.fromSeed(10);
    for (const index of test.filter((_, i) => i % 8 === 0)) {
      let read = '';
      await play(index, ({ observation }, listed) => {
        read += readPassages(observation)
          .map(({ title, text }) => `${title} ${text}`)
          .join(' ');
        for (const action of listed) {
          const answer = /^<answer>(.*)<\/answer>$/.exec(action)?.[1];
          if (answer === undefined) continue;
          expect(read, action).not.toBe('');
          if (answer !== 'yes' && answer !== 'no') expect(read).toContain(answer);
        }
        return listed.length > 0 ? rng.pick(listed) : undefined;
      });
    }
  });
});

describe('the drawing', () => {
  const index = test[0]!;
  const task = { env: 'searchqa', index, seed: 0 };
  const { question, answers, searches } = wiki.makeQuestion(index);
  const drawn = async (last: string, options?: EnvOptions) => {
    const session = env.open(task);
    const turns: { action: string; observation: string }[] = [];
    for (const action of [`<search>${searches[0]}</search>`, last]) {
      turns.push({ action, observation: ((await session.step(action)) as EnvStep).observation });
    }
    const panels = draw(task, session.first, turns, options).panels;
    const [asking, read, given] = panels as [TextPanel, TextPanel, ListPanel];
    expect(asking.lines).toEqual([question]);
    return { read: read.lines, given: given.items };
  };

  it('shows queries with the passages found, words of the query marked, and the answer against the right ones', async () => {
    const gold = answers.map((name) => ({ name, mark: 'goal' }));
    const wrong = await drawn('<answer>nobody</answer>', {});
    expect(wrong.read[0]).toBe(`search: ${searches[0]}`);
    expect(wrong.read[1]).toContain(`*${searches[0]!.split(' ')[0]}*`);
    expect(wrong.given).toEqual([{ name: 'nobody', mark: 'bad' }, ...gold]);
    const right = await drawn(`<answer>${answers[0]}</answer>`, {});
    expect(right.given).toEqual([{ name: answers[0], mark: 'good' }, ...gold]);
  });

  it('shows no right answer before the end, of another world, or without the options', async () => {
    expect((await drawn('<search>x</search>', {})).given).toEqual([]);
    const bad = [{ name: 'nobody', mark: 'bad' }];
    for (const options of [undefined, { world: { seed: 2 } }, { url: 'http://x' }, { data: { test: 'nowhere' } }]) {
      expect((await drawn('<answer>nobody</answer>', options)).given).toEqual(bad);
    }
  });
});
