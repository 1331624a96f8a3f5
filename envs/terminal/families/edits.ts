/** Families about edits: words, JSON, settings, and scripts that do not work yet. */
import { Drawing, type Family, fileOf, filesOf, sortLines, without } from './task.ts';

export const replace: Family = {
  id: 'replace',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, to] = [draw.path('txt'), draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 4);
    const [from, into, other, another] = draw.takeMany('word', 4) as [string, string, string, string];
    const write = (word: string) => {
      const lines = draw.lines(draw.int(3, 6), vocabulary, 3);
      for (let i = 0; i < 2; i++) lines[rng.int(lines.length)] += ` ${word}`;
      return fileOf(lines);
    };
    // A word within another would be replaced too, by the reference and by `sed` alike.
    const texts = { [a]: write(from), [b]: write(level === 3 ? other : from) };
    const edited = { ...texts, [a]: texts[a]!.replaceAll(from, into) };
    const say = (word: string, by: string, path: string) => `Replace "${word}" by "${by}" in the file "${path}".`;
    const edit = (word: string, by: string, path: string) =>
      ({ name: 'replace_word', args: { from: word, to: by, path } }) as const;
    const tasks = [
      { text: say(from, into, a), goal: { files: edited }, solution: [edit(from, into, a)] },
      {
        text: `${say(from, into, a)} ${say(from, into, b)}`,
        goal: { files: { ...edited, [b]: texts[b]!.replaceAll(from, into) } },
        solution: [edit(from, into, a), edit(from, into, b)],
      },
      {
        text: `${say(from, into, a)} ${say(other, another, b)} Move the file "${a}" to "${to}".`,
        goal: { files: { [b]: texts[b]!.replaceAll(other, another), [to]: edited[a]! } },
        solution: [edit(from, into, a), edit(other, another, b), { name: 'move', args: { from: a, to } } as const],
      },
    ] as const;
    return {
      ...tasks[level - 1]!,
      files: filesOf(texts),
      toolbox: 'edits',
      choices: {
        path: [a, b],
        ...(level === 3 ? { out: [to] } : {}),
        word: [from, into, ...(level === 3 ? [other, another] : [vocabulary[0]!])],
      },
    };
  },
};

export const json: Family = {
  id: 'json',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b] = [draw.path('json'), draw.path('json')];
    const keys = draw.takeMany('key', 5);
    const [one, two, three] = keys as [string, string, string];
    const [value, other] = draw.takeMany('word', 2) as [string, string];
    const record = (): Record<string, string> => Object.fromEntries(keys.map((key) => [key, draw.take('word')]));
    const [facts, others] = [record(), record()];
    const print = (object: unknown) => `${JSON.stringify(object, null, 2)}\n`;
    const texts = { [a]: print(facts), [b]: print(others) };
    const set = (key: string, to: string) => ({ name: 'json_set', args: { key, value: to, path: a } }) as const;
    const edited = { ...facts, [one]: value, [two]: other };
    const tasks = [
      {
        text: `What is the value of "${one}" in the file "${a}"?`,
        goal: { files: texts, answer: facts[one]! },
        solution: [{ name: 'json_get', args: { key: one, path: a } } as const],
      },
      {
        text: `Set "${one}" to "${value}" in the file "${a}". Set "${two}" to "${other}" in the file "${a}".`,
        goal: { files: { ...texts, [a]: print(edited) } },
        solution: [set(one, value), set(two, other)],
      },
      {
        text: `Set "${one}" to "${value}" in the file "${a}". Set "${two}" to "${other}" in the file "${a}". Remove "${three}" from the file "${a}".`,
        goal: { files: { ...texts, [a]: print(without(edited, [three])) } },
        solution: [set(one, value), set(two, other), { name: 'json_remove', args: { key: three, path: a } } as const],
      },
    ];
    return {
      ...tasks[level - 1]!,
      files: filesOf(texts),
      toolbox: 'edits',
      choices: { path: [a, b], key: keys.slice(0, 4), ...(level === 1 ? {} : { value: [value, other] }) },
    };
  },
};

export const settings: Family = {
  id: 'settings',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b] = [draw.path('conf'), draw.path('conf')];
    const keys = draw.takeMany('key', 5);
    const [one, two, three] = keys as [string, string, string];
    const [value, other] = draw.takeMany('word', 2) as [string, string];
    const lines = keys.map((key) => `${key}=${draw.take('word')}`);
    const texts = { [a]: fileOf(rng.shuffle(lines)), [b]: fileOf(keys.map((key) => `${key}=${draw.take('word')}`)) };
    const edit = (text: string, key: string, to: string | undefined) =>
      fileOf(
        text
          .trimEnd()
          .split('\n')
          .flatMap((line) => (line.startsWith(`${key}=`) ? (to === undefined ? [] : [`${key}=${to}`]) : [line])),
      );
    const first = edit(texts[a]!, one, value);
    const second = edit(first, two, other);
    const set = (key: string, to: string) => ({ name: 'set_option', args: { key, value: to, path: a } }) as const;
    const say = (key: string, to: string) => `Set the option "${key}" to "${to}" in the file "${a}".`;
    const tasks = [
      { text: say(one, value), goal: { files: { ...texts, [a]: first } }, solution: [set(one, value)] },
      {
        text: `${say(one, value)} ${say(two, other)}`,
        goal: { files: { ...texts, [a]: second } },
        solution: [set(one, value), set(two, other)],
      },
      {
        text: `${say(one, value)} Remove the option "${three}" from the file "${a}". Set the permissions of "${a}" to "600".`,
        goal: { files: { ...texts, [a]: edit(first, three, undefined) }, modes: { [a]: 0o600 } },
        solution: [
          set(one, value),
          { name: 'remove_option', args: { key: three, path: a } } as const,
          { name: 'set_mode', args: { mode: '600', path: a } } as const,
        ],
      },
    ];
    return {
      ...tasks[level - 1]!,
      files: filesOf(texts),
      toolbox: 'edits',
      choices: {
        path: [a, b],
        key: keys.slice(0, 4),
        value: [value, other],
        ...(level === 3 ? { mode: ['600', '644', '755'] } : {}),
      },
    };
  },
};

export const scripts: Family = {
  id: 'scripts',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [script, input, out, spare] = [draw.path('sh'), draw.path('txt'), draw.path('txt'), draw.path('txt')];
    const wrong = draw.take('name');
    const right = input.split('.')[0]!;
    const lines = draw.lines(draw.int(5, 9), draw.takeMany('word', 8), 2);
    const write = (name: string) => `#!/bin/bash\nsort ${name}.txt > ${out}\n`;
    const broken = level === 1 ? write(right) : write(wrong);
    const texts = { [script]: broken, [input]: fileOf(lines), [spare]: draw.bystander() };
    const repair = { name: 'replace_word', args: { from: wrong, to: right, path: script } } as const;
    const run = { name: 'run_script', args: { path: script } } as const;
    const say = `Replace "${wrong}" by "${right}" in the script "${script}".`;
    return {
      text: [`Run the script "${script}".`, `${say} Run it.`, `${say} Set its permissions to "755". Run it.`][
        level - 1
      ]!,
      files: filesOf(texts),
      goal: {
        files: { ...texts, [script]: write(right), [out]: fileOf(sortLines(lines)) },
        ...(level === 3 ? { modes: { [script]: 0o755 } } : {}),
      },
      toolbox: 'edits',
      choices: {
        path: [script, input, spare],
        ...(level === 1 ? {} : { word: [wrong, right, spare.split('.')[0]!] }),
        ...(level === 3 ? { mode: ['600', '644', '755'] } : {}),
      },
      solution: [
        [run],
        [repair, run],
        [repair, { name: 'set_mode', args: { mode: '755', path: script } } as const, run],
      ][level - 1]!,
    };
  },
};
