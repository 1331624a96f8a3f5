/**
 * WebArena's view: names of a world never reach the policy, and no plan is given away. A rule that reads the view's
 * fields and learns nothing must not do better, by more than five points, than players without a view.
 */
import { describe, expect, it } from 'vitest';
import { type Answer, accepts } from '../../../envs/webarena/answers.ts';
import { createEnv, createOracle, view } from '../../../envs/webarena/index.ts';
import { drawTask, templateOf, templates } from '../../../envs/webarena/tasks.ts';
import type { Session, TimeStep } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';

const track = view.track!;
const env = createEnv();
const HORIZON = 15;

/** Candidates to choose among, of those that are listed. */
type Rule = (candidates: readonly string[], actions: readonly string[], goal: ReadonlySet<string>) => readonly number[];

const keep = (texts: readonly string[], fits: (text: string) => boolean) =>
  texts.map((_, i) => i).filter((i) => fits(texts[i]!));
const most = (texts: readonly string[], points: (text: string) => number) => {
  const all = texts.map(points);
  return keep(texts, (text) => points(text) === Math.max(...all));
};
const wordsIn = (text: string, goal: ReadonlySet<string>) => text.split(' ').filter((word) => goal.has(word)).length;
const isNew = (text: string) => !text.includes(' again ');

const isNamed = (text: string) => / (?:named|q\d)\b/.test(text);

/** Rules on the view's fields: slots of the objective first, its words first, what it names first, also without doing a thing twice. */
const RULES: Readonly<Record<string, Rule>> = {
  'slots first': (texts) => keep(texts, (text) => / q\d/.test(text)),
  'slots first, never twice': (texts) => keep(texts, (text) => / q\d/.test(text) && isNew(text)),
  'most words of the objective': (texts, _, goal) => most(texts, (text) => wordsIn(text, goal)),
  'most words of the objective, never twice': (texts, _, goal) =>
    most(texts, (text) => (isNew(text) ? wordsIn(text, goal) : -1)),
  'what is named first': (texts) => keep(texts, isNamed),
  'what is named first, never twice': (texts) => keep(texts, (text) => isNamed(text) && isNew(text)),
  'what is named first, never twice, then an end': (texts) => {
    const named = keep(texts, (text) => isNamed(text) && isNew(text));
    return named.length > 0 ? named : keep(texts, (text) => /^(?:stop|answer)/.test(text));
  },
};

const random: Rule = (texts) => keep(texts, () => true);

async function player(index: number, seed: number, rng: Rng, rule: Rule): Promise<boolean> {
  const session: Session = await env.open({ env: env.id, index, seed });
  let memory = track.begin(session.first);
  const rendered = view.render(session.first, [], memory);
  const goal = new Set(rendered.focus.split(' '));
  for (let turn = 0; turn < HORIZON; ) {
    const actions = session.actions();
    const among = rule(
      actions.map((action) => view.candidate!(action, memory)),
      actions,
      goal,
    );
    const action = actions[among.length > 0 ? rng.pick(among) : rng.int(actions.length)]!;
    const step = await session.step(action);
    if (step.kind === 'terminated') return step.success;
    memory = track.reduce(memory, {
      action,
      observation: step.observation,
      ...(step.partial ? { partial: true } : {}),
    });
    if (!step.partial) turn++;
  }
  return false;
}

const long = process.env.LONGPLAY_LONG === '1';
const EPISODES = long ? 40 : 1;
/** Test tasks, a third of them in a short run. */
const TESTED = env.tasks.split('test').filter((_, i) => long || i % 3 === 0);

async function success(rule: Rule): Promise<{ all: number; bySite: ReadonlyMap<string, number> }> {
  const won = new Map<string, number>();
  const test = TESTED;
  for (const index of test) {
    const label = env.tasks.label(index);
    for (let n = 0; n < EPISODES; n++) {
      const rng = Rng.fromSeed(index * EPISODES + n);
      won.set(label, (won.get(label) ?? 0) + Number(await player(index, n, rng, rule)));
    }
  }
  const per = (count: number, tasks: number) => (100 * count) / (tasks * EPISODES);
  const sizeOf = (label: string) => test.filter((index) => env.tasks.label(index) === label).length;
  return {
    all: per(
      [...won.values()].reduce((sum, n) => sum + n, 0),
      test.length,
    ),
    bySite: new Map([...won].map(([label, n]) => [label, per(n, sizeOf(label))])),
  };
}

describe('a rule on the view’s fields, without learning', () => {
  it('is at most five points better than a random player, which solves no site', { timeout: 600_000 }, async () => {
    const blind = await success(random);
    const rules = new Map<string, number>();
    for (const [name, rule] of Object.entries(RULES)) rules.set(name, (await success(rule)).all);
    const line = (values: Iterable<readonly [string, number]>) =>
      Array.from(values, ([name, value]) => `${name} ${value.toFixed(1)}`).join(', ');
    console.log(`random ${blind.all.toFixed(1)} (${line(blind.bySite)}); on the view: ${line(rules)}`);
    expect(Math.max(...rules.values())).toBeLessThanOrEqual(blind.all + (long ? 5 : 12)); // an episode of the short run is six points
    if (long) expect(Math.max(...blind.bySite.values())).toBeLessThanOrEqual(5);
  });
});

/** True for an answer of the list that the task accepts. */
function isRight(text: string, answer: Answer): boolean {
  return text.startsWith('stop [') && accepts(answer, text.slice('stop ['.length, -1));
}

/** Way of a task's oracle through the lists. */
interface Way {
  /** Every action is listed, and read differently from the others. */
  readonly listed: boolean;
  readonly distinct: boolean;
  /** Texts of each list on the way, stages too. */
  readonly sizes: readonly number[];
}

/** Plays a task by its oracle through the lists alone: are its actions listed, and read differently from the others? */
async function throughLists(index: number): Promise<Way> {
  const task = { env: env.id, index, seed: 0 };
  const { answer } = drawTask(task).instance;
  const session = await env.open(task);
  const next = createOracle()(task);
  let memory = track.begin(session.first);
  let step: TimeStep = session.first;
  let distinct = true;
  const sizes: number[] = [];
  const stage = async (text: string): Promise<readonly string[]> => {
    sizes.push(session.actions().length);
    const { observation, kind, ...rest } = await session.step(text);
    expect([kind, rest]).toMatchObject(['mid', { partial: true }]);
    memory = track.reduce(memory, { action: text, observation, partial: true });
    return session.actions();
  };
  while (step.kind !== 'terminated') {
    const action = next(step)!;
    let listed = session.actions();
    let wanted: (text: string) => boolean = (text) => text === action;
    if (action.startsWith('stop') && answer) {
      if (!listed.includes('answer')) listed = await stage('more');
      if (listed.includes('answer')) listed = await stage('answer');
      wanted = (text) => isRight(text, answer);
    } else if (action.startsWith('stop')) wanted = (text) => text === 'stop []';
    else if (action.startsWith('goto')) wanted = (text) => text.startsWith('goto');
    else if (action.startsWith('type')) wanted = (text) => text.slice(0, -3) === action.slice(0, -3); // with Enter or without
    if (!listed.some(wanted) && listed.includes('rows')) {
      listed = await stage('rows');
      if (!listed.some(wanted)) {
        listed = await stage('cancel');
        sizes.length -= 2; // one who knows the way does not look there
      }
    }
    if (!listed.some(wanted) && listed.includes('more')) listed = await stage('more');
    const own = listed.filter(wanted);
    sizes.push(listed.length);
    if (own.length === 0) return { listed: false, distinct: false, sizes };
    const read = new Set(own.map((text) => view.candidate!(text, memory)));
    if (listed.some((text) => !own.includes(text) && read.has(view.candidate!(text, memory)))) distinct = false;
    step = await session.step(action);
    memory = track.reduce(memory, { action, observation: step.observation });
  }
  return { listed: true, distinct, sizes };
}

it('the lists hold a way through nearly all tasks, and the view distinguishes it from others', {
  timeout: 600_000,
}, async () => {
  const test = env.tasks.split('test');
  const train = env.tasks.split('train').filter((index) => long || index % 6 === 0);
  const count = async (indices: readonly number[]) => {
    const all = new Map<number, Way>();
    for (const index of indices) all.set(index, await throughLists(index));
    const ways = [...all.values()];
    const share = (key: 'listed' | 'distinct') => ways.filter((one) => one[key]).length / ways.length;
    for (const label of env.tasks.labels) {
      const own = indices.filter((index) => env.tasks.label(index) === label).map((index) => all.get(index)!.sizes);
      if (own.length === 0) continue; // a short run leaves the smallest column out
      const sizes = own.flat();
      const chance = own.flat().reduce((sum, size) => sum - Math.log10(size), 0) / own.length;
      const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
      console.log(
        `${label}: ${own.length} ways, ${mean.toFixed(1)} texts a list, chance of the way 10^${chance.toFixed(1)}`,
      );
    }
    return { listed: share('listed'), distinct: share('distinct') };
  };
  const [ofTest, ofTrain] = [await count(test), await count(train)];
  console.log(`ways through the lists: test ${JSON.stringify(ofTest)}, train ${JSON.stringify(ofTrain)}`);
  expect(Math.min(ofTest.listed, ofTest.distinct)).toBeGreaterThanOrEqual(0.96);
  expect(Math.min(ofTrain.listed, ofTrain.distinct)).toBeGreaterThanOrEqual(0.88);
});

describe('what the policy reads', () => {
  it('has words for every objective, and names nothing that it quotes', () => {
    const all = Array.from({ length: env.tasks.count }, (_, i) => i);
    for (const template of templates) {
      const index = all.find((i) => templateOf(i) === template);
      if (index === undefined) continue; // a template that the table has no room for
      const { intent } = drawTask({ index, seed: 0 }).instance;
      const text = `OBSERVATION:\n\nURL: x\nOBJECTIVE: ${intent}\nPREVIOUS ACTION: None`;
      const first = { kind: 'first', observation: text } as const;
      const words = view.render(first, [], track.begin(first)).focus.split(' ');
      expect([template.id, words]).toEqual([template.id, words.filter((word) => word !== 'other')]);
      for (const [, quoted] of intent.matchAll(/"([^"]+)"/g)) expect(words).not.toContain(quoted!.toLowerCase());
    }
  });

  it('remembers what an oracle did, in words of its own', async () => {
    const task = { env: env.id, index: 0, seed: 0 };
    const session = await env.open(task);
    const next = createOracle()(task);
    let memory = track.begin(session.first);
    let step: TimeStep = session.first;
    while (step.kind !== 'terminated') {
      const action = next(step)!;
      const read = view.candidate!(action, memory);
      expect(read).not.toMatch(/[A-Z]/);
      step = await session.step(action);
      memory = track.reduce(memory, { action, observation: step.observation });
      expect(view.render(session.first, [], memory).segments.join('')).toContain(`did ${read.split(' ')[0]}`);
    }
  });
});
