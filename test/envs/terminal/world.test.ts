/** The terminal as a world: options, tables, tasks, tools, ends of episodes, and a missing package. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../envs/terminal/families/all.ts';
import { commandOf, listForms } from '../../../envs/terminal/forms.ts';
import { createEnv, createOracle, view } from '../../../envs/terminal/index.ts';
import { JUST_BASH } from '../../../envs/terminal/just-bash.ts';
import { commandLine } from '../../../envs/terminal/oracle.ts';
import { writeTask } from '../../../envs/terminal/tasks.ts';
import { FOLDERS, KEYS, NAMES, PEOPLE, WORDS } from '../../../envs/terminal/words.ts';
import { readAgentCall } from '../../../src/core/agent-call.ts';
import { valuesIn } from '../../../src/core/call-stages.ts';
import type { EnvOptions, EnvStep, Session, TimeStep } from '../../../src/core/env.ts';
import { Rng } from '../../../src/core/rng.ts';
import { reply } from './texts.ts';

const long = process.env.LONGPLAY_LONG === '1';
const COUNT = createEnv().tasks.count;
/** Every nth task: 500 and more in long runs, a tenth otherwise; each under another seed. */
const sample = Array.from({ length: Math.floor(COUNT / (long ? 5 : 61)) }, (_, i) => i * (long ? 5 : 61));
const open = (options: EnvOptions, index: number, seed = index): Promise<Session> =>
  createEnv(options).open({ env: 'terminal', index, seed });
const contentsOf = ({ observation }: TimeStep) => readAgentCall(observation).messages.map(({ content }) => content);
const indexOf = (label: string) => {
  const { tasks } = createEnv();
  return Array.from({ length: COUNT }, (_, i) => i).find((i) => tasks.label(i) === label)!;
};

describe('options', () => {
  it.each([
    [{ tool: 'forms' }, 'terminal has no option "tool"; it has: tools, heldOut'],
    [{ tools: 'form' }, 'tools must be "shell" or "forms", got "form"'],
    [{ heldOut: 'logs' }, 'heldOut must be a list of some of move, copy'],
    [{ heldOut: ['log'] }, 'heldOut must be a list of some of move, copy'],
    [{ heldOut: FAMILIES.map(({ id }) => id) }, 'heldOut must be a list of some of'],
    [{ maxLevel: 4 }, 'maxLevel must be an integer in [1, 3], got 4'],
    [{ maxCalls: 0 }, 'maxCalls must be an integer in [1, 1000], got 0'],
  ])('refuses %j', (options, message) => expect(() => createEnv(options as EnvOptions)).toThrow(message));
});

describe('the table', () => {
  it('holds the last eight numbers of each level out', () => {
    const { count, labels, split, sets } = createEnv().tasks;
    expect([count, labels.length, split('train').length, split('test').length, sets]).toEqual([
      FAMILIES.length * 192,
      FAMILIES.length * 3,
      FAMILIES.length * 168,
      FAMILIES.length * 24,
      undefined,
    ]);
  });
  it('puts families that are held out into a set of their own', () => {
    const { label, split, sets } = createEnv({ heldOut: ['logs', 'join'], maxLevel: 2 }).tasks;
    const familiesOf = (indices: readonly number[]) => new Set(indices.map((index) => label(index).split(' ')[0]));
    expect(familiesOf(sets!['held-out']!)).toEqual(new Set(['logs', 'join']));
    expect(sets!['held-out']).toHaveLength(2 * 128);
    for (const name of ['train', 'test'] as const) {
      expect(familiesOf(split(name)).size).toBe(FAMILIES.length - 2);
      expect(split(name).some((index) => label(index).endsWith('3'))).toBe(false);
    }
  });
});

describe('words', () => {
  const lists = [NAMES, FOLDERS, WORDS, PEOPLE, KEYS].map((list) => list.split(' '));
  it('occur in one list each', () => expect(new Set(lists.flat()).size).toBe(lists.flat().length));
  it('are no parts of each other where a command would confuse them', () => {
    const [names, , words, people] = lists as [string[], string[], string[], string[]];
    const partsOf = (parts: string[], wholes: string[]) =>
      parts.filter((part) => wholes.some((whole) => whole !== part && whole.includes(part)));
    expect(partsOf(names, names)).toEqual([]);
    expect(partsOf(words, [...words, ...people])).toEqual([]);
    expect(partsOf(['sort', 'bin', 'bash', 'txt'], names)).toEqual([]);
    expect(partsOf(names, ['sort', 'bin', 'bash', 'txt'])).toEqual([]);
  });
});

describe('a task', () => {
  it('is the same for an index and a seed, and another for another seed', () => {
    for (const index of sample) {
      expect(writeTask(index, 7)).toEqual(writeTask(index, 7));
      expect(writeTask(index, 8)).not.toEqual(writeTask(index, 7));
    }
  });

  it('quotes what a choosing policy has to find, and lists it for the typed tools', () => {
    let quoted = 0;
    for (const index of sample) {
      const { text, choices, solution, toolbox, goal } = writeTask(index, index);
      const tools = listForms(toolbox, choices, goal.answer === undefined ? 'none' : 'text').map(({ name }) => name);
      for (const { name, args } of solution) {
        expect(commandOf(name, args, choices).error).toBeUndefined();
        expect(tools).toContain(name);
        expect(Object.keys(args).length).toBeLessThanOrEqual(3);
      }
      for (const [, value] of text.matchAll(/"([^"]+)"/g)) {
        expect(valuesIn(text)).toContain(value);
        quoted++;
      }
    }
    expect(quoted).toBeGreaterThan(sample.length);
  });

  it('is worded in words that the view knows, and no opening is cut', async () => {
    for (const index of sample) {
      const session = await open({ tools: 'forms' }, index);
      const { segments } = view.render(session.first, [], view.track!.begin(session.first));
      const said = contentsOf(session.first).at(-1)!.toLowerCase();
      const words = said
        .match(/[a-z]+\d?|\d+/g)!
        .flatMap((word) => (/^\d{3}$/.test(word) ? [word[0]!, String(Number(word.slice(1)))] : [word]));
      expect(segments.join('').split(' ')).toEqual(words);
    }
  });

  it('names its own choices apart', () => {
    for (const index of sample) {
      for (const values of Object.values(writeTask(index, index).choices))
        expect(new Set(values).size).toBe(values.length);
    }
  });
});

describe('the oracle', () => {
  it.each(['shell', 'forms'])(
    'solves every task of a sample through the tools of %s',
    async (tools) => {
      const failed: string[] = [];
      for (const index of sample) {
        const session = await open({ tools }, index);
        const next = createOracle({ tools })({ env: 'terminal', index, seed: index });
        let step: TimeStep = session.first;
        for (let action = next(step); action !== undefined; action = next(step)) step = await session.step(action);
        if (step.kind !== 'terminated' || !step.success) failed.push(`${index}: ${contentsOf(step).at(-1)}`);
      }
      expect(failed).toEqual([]);
      expect(sample.length).toBeGreaterThan(long ? 500 : 50);
    },
    600_000,
  );
});

describe('an episode', () => {
  const count = indexOf('count 1');
  it('opens with instructions and the request, and asks for calls', async () => {
    const { messages, tools, toolChoice } = readAgentCall((await open({}, count)).first.observation);
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(messages[1]!.content).toMatch(/^How many lines does the file "\w+\.txt" have\?$/);
    expect([tools!.map(({ name }) => name), toolChoice]).toEqual([['bash', 'submit'], 'required']);
  });

  it('shows output, errors and exit codes, and says that there is nothing', async () => {
    const session = await open({}, count);
    const step = await session.step(
      reply(
        ['bash', { command: 'echo out; echo err >&2; exit 3' }],
        ['bash', { command: 'true' }],
        ['bash', '{"command": '],
        ['bash', '[]'],
        ['bash', '{}'],
        ['move', '{}'],
      ),
    );
    expect(contentsOf(step)).toEqual([
      'out\nerr\n[exit code 3]',
      '[no output]',
      expect.stringMatching(/^the arguments are no JSON/),
      'the arguments must be a JSON object',
      'bash: command must be a text',
      'there is no tool "move"',
    ]);
  });

  it('cuts long output in the middle, and says how much is gone', async () => {
    const session = await open({}, count);
    const [text] = contentsOf(await session.step(reply(['bash', { command: 'seq 3000' }])));
    expect(text).toMatch(/^1\n2\n[\s\S]*\[9893 characters left out\][\s\S]*\n2999\n3000$/);
    expect(text!.length).toBeLessThan(4100);
  });

  it('makes eight calls of a reply, and none after the end', async () => {
    const session = await open({}, count);
    const step = await session.step(
      reply(...Array.from({ length: 10 }, () => ['bash', { command: 'echo x' }] as const)),
    );
    expect(contentsOf(step).map((text) => text.startsWith('not run'))).toEqual([...Array(8).fill(false), true, true]);
    const end = await session.step(reply(['submit', { answer: '0' }], ['bash', { command: 'echo x' }]));
    expect(contentsOf(end)).toEqual(['submitted', 'not run: the task has ended', 'Not solved: the answer is another.']);
    expect(end).toMatchObject({ kind: 'terminated', reward: 0, success: false });
  });

  it.each(['text', ' "text" ', './text', '`text`\n'])('takes an answer however it is quoted: %j', async (form) => {
    const { goal } = writeTask(count, count);
    const step = await (await open({}, count)).step(reply(['submit', { answer: form.replace('text', goal.answer!) }]));
    expect(step).toMatchObject({ kind: 'terminated', reward: 1, success: true });
  });

  it('ends when its calls are used up', async () => {
    const session = await open({ maxCalls: 3 }, count);
    await session.step(reply(['bash', { command: 'ls' }]));
    expect((await session.step('Let me think.')).kind).toBe('mid');
    expect(await session.step('Hm.')).toMatchObject({ kind: 'terminated', reward: 0 });
  });

  it('runs no call of a reply beyond those that are left', async () => {
    const session = await open({ maxCalls: 2 }, count);
    const step = await session.step(
      reply(['bash', { command: 'echo 1' }], ['bash', { command: 'echo 2' }], ['submit', { answer: 'x' }]),
    );
    expect(step).toMatchObject({ kind: 'terminated', reward: 0 });
    expect(contentsOf(step as TimeStep).slice(0, 3)).toEqual(['1', '2', 'not run: the calls are used up']);
  });

  it('lets other files be made, and JSON be written in any form', async () => {
    const index = indexOf('json 2');
    const { files, goal } = writeTask(index, 1);
    const [path, text] = Object.entries(goal.files).find(([name, wanted]) => files[name]!.content !== wanted)!;
    const session = await open({}, index, 1);
    await session.step(
      reply(['bash', { command: `echo x > other.txt; echo '${JSON.stringify(JSON.parse(text))}' > ${path}` }]),
    );
    expect(await session.step(reply(['submit', {}]))).toMatchObject({ success: true });
  });

  it('is not solved where another file was harmed', async () => {
    const index = indexOf('move 1');
    const { files, solution, choices } = writeTask(index, 1);
    const bystander = Object.keys(files).at(-1)!;
    for (const [harm, success] of [
      ['true', true],
      [`echo x >> ${bystander}`, false],
      [`rm ${bystander}`, false],
    ] as const) {
      const session = await open({}, index, 1);
      await session.step(reply(['bash', { command: `${commandLine(solution[0]!, choices)}; ${harm}` }]));
      expect(await session.step(reply(['submit', {}]))).toMatchObject({ success });
    }
  });

  it('refuses values that a typed tool does not list', async () => {
    const session = await open({ tools: 'forms' }, indexOf('move 1'), 1);
    const [text] = contentsOf(await session.step(reply(['delete', { path: '/etc/passwd' }])));
    expect(text).toMatch(/^delete: path must be one of \w+/);
    const index = indexOf('copy 3');
    const [path] = writeTask(index, 1).choices.path!;
    const self = await (await open({ tools: 'forms' }, index, 1)).step(reply(['append', { from: path, to: path }]));
    expect(contentsOf(self)).toEqual(['append: from and to must be different files']);
  });
});

describe('policies that know nothing', () => {
  it('solve nothing by submitting at once', async () => {
    for (const index of sample) {
      const step: EnvStep = await (await open({}, index)).step(reply(['submit', {}]));
      expect([index, step]).toMatchObject([index, { kind: 'terminated', reward: 0 }]);
    }
  });

  it('solve few questions by the answer that is right most often', () => {
    const counts = new Map<string, number>();
    let questions = 0;
    for (let index = 0; index < COUNT; index++) {
      const { answer } = writeTask(index, index).goal;
      if (answer === undefined) continue;
      questions++;
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
    const best = Math.max(...counts.values());
    console.log(`the best constant answer: ${best} of ${questions} questions, ${COUNT} tasks`);
    expect(questions).toBeGreaterThan(500);
    expect(best / questions).toBeLessThan(0.06);
  });

  it('solve few tasks by choosing at random among typed tools, in twelve calls', async () => {
    const rng = Rng.fromSeed(1);
    const solved = new Map<string, number>();
    const played = sample.flatMap((index) => (long ? [index, index, index, index] : [index, index]));
    for (const [n, index] of played.entries()) {
      const session = await open({ tools: 'forms', maxCalls: 12 }, index, n);
      let step: TimeStep = session.first;
      while (step.kind !== 'terminated') step = await session.step(rng.pick(session.actions()));
      const level = createEnv().tasks.label(index).at(-1)!;
      if (step.success) solved.set(level, (solved.get(level) ?? 0) + 1);
    }
    const total = [...solved.values()].reduce((sum, one) => sum + one, 0);
    console.log(`random choice: ${total} of ${played.length}; by level ${JSON.stringify([...solved].sort())}`);
    expect(total / played.length).toBeLessThan(0.06);
  });
});

describe('without the package', () => {
  const index = fileURLToPath(new URL('../../../dist/envs/terminal/index.js', import.meta.url));
  /** What a process prints that finds the package elsewhere, or nowhere. */
  const startWith = (resolved: string) => {
    const program = `import { Module } from 'node:module';
      const resolve = Module._resolveFilename;
      Module._resolveFilename = function (name, ...rest) { return name === 'just-bash' ? ${resolved} : resolve.call(this, name, ...rest); };
      const { start, createEnv } = await import(${JSON.stringify(index)});
      console.log(createEnv().tasks.count);
      try { start(); } catch (thrown) { console.log(thrown.code, thrown.message); }`;
    return spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n');
  };
  it('names the command that installs it', () => {
    expect(startWith("(() => { throw new Error('no'); })()")).toEqual([
      String(COUNT),
      `MISSING_ENGINE terminal: needs the package just-bash: npm install just-bash@${JUST_BASH}`,
    ]);
  });
  it('names another version', () => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-just-bash-'));
    mkdirSync(join(folder, 'dist/bundle'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"version": "3.4.1"}');
    const [, line] = startWith(JSON.stringify(join(folder, 'dist/bundle/index.cjs')));
    rmSync(folder, { recursive: true });
    expect(line).toBe(
      `MISSING_ENGINE terminal: expected just-bash ${JUST_BASH}, found 3.4.1: npm install just-bash@${JUST_BASH}`,
    );
  });
});
