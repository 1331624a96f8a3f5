/** View of SciWorld for the local policy: the parts things have in the task, and what each turn and candidate shows. */
import { describe, expect, it } from 'vitest';
import { createEnv, type SciWorldSession, view } from '../../../envs/sciworld/index.ts';
import { begin, type Memory, updateMemory } from '../../../envs/sciworld/memory.ts';
import { BACK } from '../../../envs/sciworld/stages.ts';
import { LEXICON, WORDS } from '../../../envs/sciworld/vocabulary.ts';

const env = createEnv({ tasks: 'scienceworld', simplifications: ['teleportAction'] });
const open = (name: string, variation = 0) => {
  const index = Array.from({ length: env.tasks.count }, (_, i) => i).find((i) => {
    const at = env.tasks.at(i);
    return at.registered.task.name === name && at.variation === variation;
  })!;
  return env.open({ env: 'sciworld', index, seed: 0 }) as SciWorldSession;
};

/** Plays these actions. @returns the memory after them, and the text of the last turn */
function play(name: string, ...actions: readonly string[]) {
  const session = open(name);
  let memory: Memory = begin(session.first);
  let text = '';
  for (const action of actions) {
    const turn = { action, observation: session.step(action).observation };
    memory = updateMemory(memory, turn);
    text = view.turn(turn, memory);
  }
  return { memory, text, session };
}

const prompt = (name: string, variation = 0) => view.prompt(open(name, variation).first);
const text = (segments: readonly string[]) => segments.join('');

describe('the prompt', () => {
  it('shows goal, target, limit, places and what is seen', () => {
    const session = open('use-thermometer');
    const { segments } = view.prompt(session.first);
    expect(segments[0]).toBe('goal temperature');
    expect(text(segments)).toMatch(/ target .+ limit (?:minus )?\d+ place .+ boxes .+ here .+ see /);
  });

  it('writes a limit below 0 in words', () => {
    const variation = Array.from({ length: 60 }, (_, i) => i).find((i) =>
      open('use-thermometer', i).first.observation.includes('-50.0'),
    )!;
    expect(text(prompt('use-thermometer', variation).segments)).toContain(' limit minus 50');
  });

  it('leaves out what the task does not state', () => {
    expect(text(prompt('lifespan-longest-lived').segments)).not.toMatch(/ (?:target|limit|boxes) /);
  });

  it('mentions the segments that an action is about', () => {
    const rendered = prompt('use-thermometer');
    const { task } = begin(open('use-thermometer').first);
    const at = (key: string) => rendered.segments.findIndex((segment) => segment.startsWith(` ${key} `));
    expect(rendered.mentions!(`focus on ${task.target}`)).toContain(at('target'));
    expect(rendered.mentions!(`teleport to ${task.place}`)).toContain(at('place'));
    expect(rendered.mentions!(`move ${task.target} to ${task.boxes[0]!.name}`)).toContain(at('boxes'));
    expect(rendered.mentions!('wait')).toEqual([]);
  });
});

describe('a candidate', () => {
  const { memory } = play('use-thermometer', 'teleport to kitchen', 'pick up thermometer');
  const { task } = memory;
  const candidate = (action: string) => view.candidate!(action, memory);

  it('names what the task names by its part', () => {
    expect(candidate(`focus on ${task.target}`)).toBe('focus on target');
    expect(candidate(`focus on ${task.target} in bowl`)).toBe('focus on target in bowl');
    expect(candidate(`move ${task.target} to ${task.boxes[0]!.name}`)).toBe('move target box above');
    expect(candidate(`move ${task.target} to ${task.boxes[1]!.name}`)).toBe('move target box below');
  });

  it('marks whether a place is new, and whether the task names it', () => {
    expect(candidate('teleport to kitchen')).toMatch(/^teleport to kitchen (?:place )?(?:boxes )?visited$/);
    expect(candidate('go to foundry')).toBe('go to foundry new');
    expect(candidate('open door to foundry')).toBe('open foundry new');
    expect(candidate(`go to ${task.boxPlace}`)).toContain('boxes');
    expect(candidate(`go to ${task.place}`)).toContain('place');
  });

  it('marks what is held', () => {
    expect(candidate('put down thermometer')).toBe('put down thermometer held');
    expect(candidate('pick up soap')).toBe('pick up soap');
  });

  it('keeps the mark of a stage and the way back', () => {
    expect(candidate('use thermometer on ?')).toBe('use thermometer held ?');
    expect(candidate('open ?')).toBe('open ?');
    expect(candidate(BACK)).toBe(BACK);
  });

  it('shows the last reading beside the boxes', () => {
    const measured: Memory = { ...memory, degrees: 300, state: 'solid' };
    expect(view.candidate!(`move ${task.target} to ${task.boxes[0]!.name}`, measured)).toBe(
      'move target box above reads above solid',
    );
    const cold: Memory = { ...memory, degrees: -200, state: '' };
    expect(view.candidate!(`move ${task.target} to ${task.boxes[0]!.name}`, cold)).toBe(
      'move target box above reads below',
    );
  });

  it('shows the state of the circuit where the task is about it', () => {
    const circuits = play('test-conductivity').memory;
    const [yes] = circuits.task.boxes;
    expect(view.candidate!(`move foil to ${yes!.name}`, { ...circuits, power: 'on' })).toMatch(/box conductive on$/);
    expect(view.candidate!(`move foil to ${yes!.name}`, { ...memory, task: circuits.task, power: '' })).toMatch(
      /box conductive$/,
    );
  });

  it('marks what a recipe needs', () => {
    const { memory: cook } = play('chemistry-mix');
    expect(view.candidate!('pick up flour', { ...cook, needed: ['flour', 'water'] })).toBe('pick up flour needed');
  });
});

describe('a turn', () => {
  it('shows what was done, how it went and where one is', () => {
    const { text } = play('boil', 'teleport to kitchen');
    expect(text).toBe(' teleport to kitchen ok at kitchen');
  });

  it('shows that something failed', () => {
    const { text } = play('boil', 'teleport to kitchen', 'eat stove');
    expect(text).toBe(' eat stove fail at kitchen');
  });

  it('shows what is held, newest last, at most four', () => {
    const takes = ['soap', 'stopwatch', 'lighter', 'thermometer', 'glass jar'].map((name) => `pick up ${name}`);
    const { text, memory } = play('boil', 'teleport to kitchen', ...takes);
    expect(memory.held).toHaveLength(5);
    expect(text).toContain(' held stopwatch lighter thermometer glass jar');
    expect(text).not.toContain('soap');
  });

  it('repeats what a look shows, without agent and air', () => {
    const { text } = play('use-thermometer', 'teleport to kitchen', 'look around');
    const seen = text.split(' see ')[1]!.split(' ');
    expect(seen.slice(-2)).toEqual(['at', 'kitchen']);
    expect(seen).toEqual(expect.arrayContaining(['chair', 'stove', 'soap']));
    for (const left of ['agent', 'air']) expect(seen).not.toContain(left);
  });

  it('shows what was measured of the thing of the task', () => {
    const first = begin(open('use-thermometer').first);
    const { text, memory } = play(
      'use-thermometer',
      'teleport to kitchen',
      'pick up thermometer',
      `teleport to ${first.task.place}`,
      `use thermometer on ${first.task.target}`,
    );
    expect(memory.degrees).not.toBeNull();
    const side = memory.degrees! > memory.task.limit! ? 'above' : 'below';
    expect(text).toMatch(new RegExp(`^ use thermometer target ok reads ${side}`));
  });

  it('shows the focus', () => {
    expect(play('use-thermometer', 'teleport to kitchen', 'focus on thermometer').text).toContain(' focus thermometer');
  });
});

describe('words', () => {
  it('cover every name and every form of this world, several words as one token', () => {
    expect(LEXICON).toEqual(expect.arrayContaining(['glass cup', 'red light bulb', 'focus on', 'giant tortoise']));
    for (const phrase of LEXICON) expect([phrase, phrase.includes(' ')]).toEqual([phrase, true]);
    for (const phrase of LEXICON)
      for (const word of phrase.split(' ')) if (/^[a-z]/.test(word)) expect(WORDS).toContain(word);
  });

  it('are each there once, in small letters', () => {
    expect(new Set(WORDS).size).toBe(WORDS.length);
    expect(WORDS.filter((word) => word !== word.toLowerCase())).toEqual([]);
  });

  it('are all that prompts, turns and candidates use', () => {
    const known = new Set([...view.words, ...LEXICON.flatMap((phrase) => phrase.split(' '))]);
    const unknown = new Set<string>();
    const check = (text: string) => {
      for (const word of text.split(/\s+/))
        if (word !== '' && !known.has(word) && !/^\d{1,3}$/.test(word)) unknown.add(word);
    };
    for (const name of ['boil', 'find-plant', 'test-conductivity', 'mendelian-genetics-known-plant']) {
      const session = open(name);
      let memory = begin(session.first);
      check(text(view.prompt(session.first).segments));
      for (const action of [
        'teleport to art studio',
        'look around',
        'teleport to greenhouse',
        'look around',
        'inventory',
      ]) {
        for (const listed of session.actions()) check(view.candidate!(listed, memory));
        const turn = { action, observation: session.step(action).observation };
        memory = updateMemory(memory, turn);
        check(view.turn(turn, memory));
      }
    }
    expect([...unknown]).toEqual([]);
  });
});
