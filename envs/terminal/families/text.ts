/** Families about lines of text: counting, filtering, sorting, slicing, replacing. */
import { SCRATCH } from '../forms.ts';
import { Drawing, drawUntil, type Family, fileOf, filesOf, sortLines, stepsOf, uniqueLines } from './task.ts';

const [STEP] = SCRATCH;
const has = (word: string) => (line: string) => line.includes(word);
const hasNot = (word: string) => (line: string) => !line.includes(word);

export const count: Family = {
  id: 'count',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b] = [draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 9);
    const lines = drawUntil(
      () => draw.lines(draw.int(12, 60), level === 1 ? vocabulary : vocabulary.slice(0, 6), 2),
      (drawn) => new Set(drawn).size < drawn.length,
    );
    const others = draw.lines(draw.int(5, 20), vocabulary, 2);
    const texts = { [a]: fileOf(lines), [b]: fileOf(others) };
    const answers = [lines.length, new Set(lines).size, new Set([...lines, ...others]).size];
    const questions = [
      `How many lines does the file "${a}" have?`,
      `How many different lines does the file "${a}" have?`,
      `Append the lines of "${b}" to "${a}". How many different lines does "${a}" have then?`,
    ];
    const files = level === 3 ? { ...texts, [a]: fileOf([...lines, ...others]) } : texts;
    const distinct = [
      { name: 'sort_unique', args: { path: a, out: STEP } },
      { name: 'count_lines', args: { path: STEP } },
    ] as const;
    return {
      text: questions[level - 1]!,
      files: filesOf(texts),
      goal: { files, answer: String(answers[level - 1]) },
      toolbox: 'text',
      choices: { path: [a, b, ...(level === 1 ? [] : [STEP])], out: [STEP], word: vocabulary.slice(0, 2) },
      solution: [
        [{ name: 'count_lines', args: { path: a } } as const],
        distinct,
        [{ name: 'append', args: { from: b, to: a } } as const, ...distinct],
      ][level - 1]!,
    };
  },
};

export const matches: Family = {
  id: 'matches',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b] = [draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 6);
    const [one, two, three] = vocabulary as [string, string, string];
    const kept = (drawn: readonly string[]) =>
      [
        drawn.filter(has(one)),
        drawn.filter(has(one)).filter(has(two)),
        drawn.filter(has(one)).filter(hasNot(two)).filter(hasNot(three)),
      ][level - 1]!;
    const lines = drawUntil(
      () => draw.lines(draw.int(20, 70), vocabulary, 3),
      (drawn) => kept(drawn).length > 3,
    );
    const texts = { [a]: fileOf(lines), [b]: draw.bystander() };
    const questions = [
      `How many lines of the file "${a}" contain "${one}"?`,
      `How many lines of the file "${a}" contain "${one}" and also "${two}"?`,
      `How many lines of the file "${a}" contain "${one}", but not "${two}" and not "${three}"?`,
    ];
    const step = SCRATCH[1];
    return {
      text: questions[level - 1]!,
      files: filesOf(texts),
      goal: { files: texts, answer: String(kept(lines).length) },
      toolbox: 'text',
      choices: {
        path: [a, b, ...stepsOf(level)],
        out: level === 1 ? [STEP] : stepsOf(level),
        word: [one, two, three].slice(0, Math.max(level, 2)),
      },
      solution: [
        [{ name: 'count_matches', args: { word: one, path: a } } as const],
        [
          { name: 'keep_lines', args: { word: one, path: a, out: STEP } } as const,
          { name: 'count_matches', args: { word: two, path: STEP } } as const,
        ],
        [
          { name: 'keep_lines', args: { word: one, path: a, out: STEP } } as const,
          { name: 'drop_lines', args: { word: two, path: STEP, out: step } } as const,
          { name: 'drop_lines', args: { word: three, path: step, out: STEP } } as const,
          { name: 'count_lines', args: { path: STEP } } as const,
        ],
      ][level - 1]!,
    };
  },
};

export const sort: Family = {
  id: 'sort',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('txt'), draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 10);
    const [lines, others] = [draw.lines(draw.int(6, 14), vocabulary, 2), draw.lines(draw.int(4, 8), vocabulary, 2)];
    const texts = { [a]: fileOf(lines), [b]: fileOf(others) };
    const both = [...lines, ...others];
    const sentences = [
      `Write the lines of "${a}" in sorted order to "${out}".`,
      `Append the lines of "${b}" to "${a}". Write the lines of "${a}" in sorted order to "${out}".`,
      `Append the lines of "${b}" to "${a}". Write the lines of "${a}" in sorted order to "${out}". Write the same lines, each once, to "${b}".`,
    ];
    const goals = [
      { ...texts, [out]: fileOf(sortLines(lines)) },
      { ...texts, [a]: fileOf(both), [out]: fileOf(sortLines(both)) },
      { [a]: fileOf(both), [out]: fileOf(sortLines(both)), [b]: fileOf(uniqueLines(both)) },
    ];
    const append = { name: 'append', args: { from: b, to: a } } as const;
    const sorted = { name: 'sort_lines', args: { path: a, out } } as const;
    return {
      text: sentences[level - 1]!,
      files: filesOf(texts),
      goal: { files: goals[level - 1]! },
      toolbox: 'text',
      choices: { path: [a, b], out: level === 3 ? [out, b] : [out] },
      solution: [
        [sorted],
        [append, sorted],
        [append, sorted, { name: 'sort_unique', args: { path: a, out: b } } as const],
      ][level - 1]!,
    };
  },
};

export const filter: Family = {
  id: 'filter',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('txt'), draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 6);
    const [one, two] = vocabulary as [string, string];
    const results = (drawn: readonly string[]) => [
      drawn.filter(has(one)),
      sortLines(drawn.filter(has(one))),
      uniqueLines(drawn.filter(has(one)).filter(hasNot(two))),
    ];
    const lines = drawUntil(
      () => draw.lines(draw.int(10, 24), vocabulary, 3),
      (drawn) => results(drawn).every((kept) => kept.length > 1 && kept.length < drawn.length),
    );
    const texts = { [a]: fileOf(lines), [b]: draw.bystander() };
    const sentences = [
      `Write the lines of "${a}" that contain "${one}" to "${out}".`,
      `Write the lines of "${a}" that contain "${one}" to "${out}", sorted.`,
      `Write the lines of "${a}" that contain "${one}", but not "${two}", to "${out}", sorted and each once.`,
    ];
    const keep = (to: string) => ({ name: 'keep_lines', args: { word: one, path: a, out: to } }) as const;
    const step = SCRATCH[1];
    return {
      text: sentences[level - 1]!,
      files: filesOf(texts),
      goal: { files: { ...texts, [out]: fileOf(results(lines)[level - 1]!) } },
      toolbox: 'text',
      choices: { path: [a, b, ...stepsOf(level)], out: [out, ...stepsOf(level)], word: [one, two] },
      solution: [
        [keep(out)],
        [keep(STEP), { name: 'sort_lines', args: { path: STEP, out } } as const],
        [
          keep(STEP),
          { name: 'drop_lines', args: { word: two, path: STEP, out: step } } as const,
          { name: 'sort_unique', args: { path: step, out } } as const,
        ],
      ][level - 1]!,
    };
  },
};

export const slice: Family = {
  id: 'slice',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('txt'), draw.path('txt'), draw.path('txt')];
    const vocabulary = draw.takeMany('word', 7);
    const [word, other] = vocabulary as [string, string];
    const [taken, spare] = [draw.int(2, 5), draw.int(6, 9)];
    const lines = drawUntil(
      () => draw.lines(draw.int(12, 24), vocabulary, 3),
      (drawn) => drawn.filter(has(word)).length > taken && sortLines(drawn).join() !== drawn.join(),
    );
    const texts = { [a]: fileOf(lines), [b]: draw.bystander() };
    const fromEnd = rng.int(2) === 1;
    const side = fromEnd ? 'last' : 'first';
    const cut = (all: readonly string[]) => (fromEnd ? all.slice(-taken) : all.slice(0, taken));
    const results = [cut(lines), cut(sortLines(lines)), cut(sortLines(lines.filter(has(word))))];
    const sentences = [
      `Write the ${side} ${taken} lines of "${a}" to "${out}".`,
      `Sort the lines of "${a}". Write the ${side} ${taken} of them to "${out}".`,
      `Sort the lines of "${a}" that contain "${word}". Write the ${side} ${taken} of them to "${out}".`,
    ];
    const take = (path: string) =>
      ({ name: fromEnd ? 'last_lines' : 'first_lines', args: { count: String(taken), path, out } }) as const;
    const step = SCRATCH[1];
    return {
      text: sentences[level - 1]!,
      files: filesOf(texts),
      goal: { files: { ...texts, [out]: fileOf(results[level - 1]!) } },
      toolbox: 'text',
      choices: {
        path: [a, b, ...stepsOf(level)],
        out: [out, ...stepsOf(level)],
        count: [String(taken), String(spare)],
        word: [word, other],
      },
      solution: [
        [take(a)],
        [{ name: 'sort_lines', args: { path: a, out: STEP } } as const, take(STEP)],
        [
          { name: 'keep_lines', args: { word, path: a, out: STEP } } as const,
          { name: 'sort_lines', args: { path: STEP, out: step } } as const,
          take(step),
        ],
      ][level - 1]!,
    };
  },
};
