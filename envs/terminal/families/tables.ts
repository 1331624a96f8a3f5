/** Families about tables: columns of CSV files, sums, joins, and logs of words. */
import { SCRATCH } from '../forms.ts';
import { Drawing, drawUntil, type Family, fileOf, filesOf, sortLines, stepsOf, uniqueLines } from './task.ts';

const [STEP, STEP_2] = SCRATCH;
type Row = readonly [person: string, word: string, amount: string];

/** Rows of a person, a word and an amount, without a header. */
function rowsOf(draw: Drawing, count: number, people: readonly string[], words: readonly string[]): Row[] {
  return Array.from({ length: count }, () => [draw.rng.pick(people), draw.rng.pick(words), String(draw.int(1, 60))]);
}

const csv = (rows: readonly Row[]) => fileOf(rows.map((row) => row.join(',')));
const COLUMNS = ['1', '2', '3'];

export const columns: Family = {
  id: 'columns',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('csv'), draw.path('csv'), draw.path('txt')];
    const [people, words] = [draw.takeMany('person', 6), draw.takeMany('word', 6)];
    const column = rng.int(2);
    const rows = drawUntil(
      () => rowsOf(draw, draw.int(10, 20), people, words),
      (drawn) => drawn.filter((row) => row[1] === words[0]).length > 2,
    );
    const texts = { [a]: csv(rows), [b]: csv(rowsOf(draw, 4, people, words)) };
    const word = words[0]!;
    const hits = rows.filter((row) => row[1] === word);
    const results = [
      rows.map((row) => row[column]!),
      uniqueLines(rows.map((row) => row[column]!)),
      uniqueLines(hits.map((row) => row[0])),
    ];
    const wanted = level === 3 ? 1 : column + 1;
    const sentences = [
      `Write column ${wanted} of the table "${a}" to "${out}".`,
      `Write the different values in column ${wanted} of the table "${a}" to "${out}", sorted.`,
      `Take the rows of the table "${a}" that contain "${word}". Write the different values in their column ${wanted} to "${out}", sorted.`,
    ];
    const extract = (path: string, to: string) =>
      ({ name: 'extract_column', args: { column: String(wanted), path, out: to } }) as const;
    const unique = (path: string) => ({ name: 'sort_unique', args: { path, out } }) as const;
    return {
      text: sentences[level - 1]!,
      files: filesOf(texts),
      goal: { files: { ...texts, [out]: fileOf(results[level - 1]!) } },
      toolbox: 'tables',
      choices: {
        path: [a, b, ...stepsOf(level)],
        out: [out, ...stepsOf(level)],
        column: COLUMNS,
        word: [word, words[1]!],
      },
      solution: [
        [extract(a, out)],
        [extract(a, STEP), unique(STEP)],
        [{ name: 'keep_lines', args: { word, path: a, out: STEP } } as const, extract(STEP, STEP_2), unique(STEP_2)],
      ][level - 1]!,
    };
  },
};

export const sum: Family = {
  id: 'sum',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b] = [draw.path(level === 1 ? 'txt' : 'csv'), draw.path('txt')];
    const [people, words] = [draw.takeMany('person', 6), draw.takeMany('word', 5)];
    const word = words[0]!;
    const rows = drawUntil(
      () => rowsOf(draw, draw.int(6, 16), people, words),
      (drawn) => drawn.filter((row) => row[1] === word).length > 1,
    );
    const numbers = (level === 3 ? rows.filter((row) => row[1] === word) : rows).map((row) => Number(row[2]));
    const texts = {
      [a]: level === 1 ? fileOf(rows.map((row) => row[2])) : csv(rows),
      [b]: fileOf(rows.map(() => String(draw.int(1, 60)))),
    };
    const questions = [
      `What is the sum of the numbers in the file "${a}"?`,
      `What is the sum of column 3 of the table "${a}"?`,
      `What is the sum of column 3 of those rows of the table "${a}" that contain "${word}"?`,
    ];
    const extract = (path: string, out: string) =>
      ({ name: 'extract_column', args: { column: '3', path, out } }) as const;
    const add = (path: string) => ({ name: 'sum_numbers', args: { path } }) as const;
    return {
      text: questions[level - 1]!,
      files: filesOf(texts),
      goal: { files: texts, answer: String(numbers.reduce((total, value) => total + value, 0)) },
      toolbox: 'tables',
      choices: { path: [a, b, ...stepsOf(level)], out: stepsOf(level), column: COLUMNS, word: [word, words[1]!] },
      solution: [
        [add(a)],
        [extract(a, STEP), add(STEP)],
        [{ name: 'keep_lines', args: { word, path: a, out: STEP } } as const, extract(STEP, STEP_2), add(STEP_2)],
      ][level - 1]!,
    };
  },
};

export const join: Family = {
  id: 'join',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('csv'), draw.path('csv'), draw.path('txt')];
    const people = sortLines(draw.takeMany('person', 9));
    const words = draw.takeMany('word', 4);
    const likes = people.filter((_, i) => i !== 2 && i !== 5).map((person) => `${person},${rng.pick(words)}`);
    const amounts = people.filter((_, i) => i !== 7).map((person) => `${person},${draw.int(1, 60)}`);
    const first =
      level === 1
        ? likes
        : drawUntil(
            () => rng.shuffle(likes),
            (drawn) => sortLines(drawn).join() !== drawn.join(),
          );
    const amountOf = new Map(amounts.map((line) => line.split(',') as [string, string]));
    const joined = likes.flatMap((line) => {
      const amount = amountOf.get(line.split(',')[0]!);
      return amount === undefined ? [] : [`${line},${amount}`];
    });
    const texts = { [a]: fileOf(first), [b]: fileOf(amounts) };
    const sentences = [
      `Join the tables "${a}" and "${b}" by their column 1, and write the result to "${out}".`,
      `Sort the table "${a}", join it with "${b}" by column 1, and write the result to "${out}".`,
      `Sort the table "${a}", join it with "${b}" by column 1, and write column 2 of the result to "${out}".`,
    ];
    const sorted = { name: 'sort_lines', args: { path: a, out: STEP } } as const;
    const link = (path: string, to: string) => ({ name: 'join_files', args: { path, other: b, out: to } }) as const;
    const result = level === 3 ? joined.map((line) => line.split(',')[1]!) : joined;
    return {
      text: sentences[level - 1]!,
      files: filesOf(texts),
      goal: { files: { ...texts, [out]: fileOf(result) } },
      toolbox: 'tables',
      choices: { path: [a, b, ...stepsOf(level)], out: [out, ...stepsOf(level)], column: COLUMNS },
      solution: [
        [link(a, out)],
        [sorted, link(STEP, out)],
        [sorted, link(STEP, STEP_2), { name: 'extract_column', args: { column: '2', path: STEP_2, out } } as const],
      ][level - 1]!,
    };
  },
};

const KINDS = ['ERROR', 'WARNING', 'INFO'];

export const logs: Family = {
  id: 'logs',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [a, b, out] = [draw.path('log'), draw.path('log'), draw.path('txt')];
    const [people, words] = [draw.takeMany('person', 5), draw.takeMany('word', 6)];
    const kind = rng.pick(KINDS);
    const taken = draw.int(2, 4);
    const write = (count: number) => {
      let minute = draw.int(0, 59);
      return Array.from({ length: count }, () => {
        minute += draw.int(0, 3);
        const time = `${String(8 + Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
        return `${time} ${rng.pick(KINDS)} ${rng.pick(people)} ${rng.pick(words)}`;
      });
    };
    const lines = drawUntil(
      () => write(draw.int(18, 60)),
      (drawn) => drawn.filter((line) => line.includes(kind)).length > taken,
    );
    const hits = lines.filter((line) => line.includes(kind));
    const texts = { [a]: fileOf(lines), [b]: fileOf(write(3)) };
    const names = uniqueLines(hits.map((line) => line.split(' ')[2]!));
    const tasks = [
      {
        text: `How many lines of the log "${a}" are of the kind "${kind}"?`,
        goal: { files: texts, answer: String(hits.length) },
      },
      {
        text: `Write the last ${taken} lines of the log "${a}" of the kind "${kind}" to "${out}".`,
        goal: { files: { ...texts, [out]: fileOf(hits.slice(-taken)) } },
      },
      {
        text: `Word 3 of each line of the log "${a}" is a name. Write the names in lines of the kind "${kind}" to "${out}", sorted and each once.`,
        goal: { files: { ...texts, [out]: fileOf(names) } },
      },
    ];
    const keep = { name: 'keep_lines', args: { word: kind, path: a, out: STEP } } as const;
    return {
      ...tasks[level - 1]!,
      files: filesOf(texts),
      toolbox: 'tables',
      choices: {
        path: [a, b, ...stepsOf(level)],
        out: level === 1 ? [] : [out, ...stepsOf(level)],
        word: KINDS,
        ...(level === 2 ? { count: [String(taken), '6'] } : {}),
        column: ['1', '2', '3', '4'],
      },
      solution: [
        [{ name: 'count_matches', args: { word: kind, path: a } } as const],
        [keep, { name: 'last_lines', args: { count: String(taken), path: STEP, out } } as const],
        [
          keep,
          { name: 'extract_word', args: { column: '3', path: STEP, out: STEP_2 } } as const,
          { name: 'sort_unique', args: { path: STEP_2, out } } as const,
        ],
      ][level - 1]!,
    };
  },
};
