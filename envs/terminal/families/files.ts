/** Families about files as wholes: moving, copying, deleting, folders, permissions, and finding the right one. */
import { Drawing, type Family, fileOf, filesOf, without } from './task.ts';

const ENDINGS = ['txt', 'md', 'log'];

function textFile(draw: Drawing): [path: string, text: string] {
  return [draw.path(draw.rng.pick(ENDINGS)), draw.bystander()];
}

export const move: Family = {
  id: 'move',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [[a, textA], [b, textB], [c, textC]] = [textFile(draw), textFile(draw), textFile(draw)];
    const texts = { [a]: textA, [b]: textB, [c]: textC };
    const files = filesOf(texts);
    if (level < 3) {
      const to = draw.path(rng.pick(ENDINGS));
      const deletes = level === 2;
      const goal = { files: { ...without(texts, deletes ? [a, b] : [a]), [to]: textA } };
      return {
        text: `Move the file "${a}" to "${to}".${deletes ? ` Delete the file "${b}".` : ''}`,
        files,
        goal,
        toolbox: 'files',
        choices: { path: [a, b, c], out: [to] },
        solution: [
          { name: 'move', args: { from: a, to } },
          ...(deletes ? [{ name: 'delete' as const, args: { path: b } }] : []),
        ],
      };
    }
    const folder = draw.take('folder');
    const moved = { [`${folder}/${a}`]: textA, [`${folder}/${b}`]: textB };
    return {
      text: `Make the folder "${folder}". Move the file "${a}" to "${folder}/${a}". Move the file "${b}" to "${folder}/${b}".`,
      files,
      goal: { files: { [c]: textC, ...moved } },
      toolbox: 'files',
      choices: { path: [a, b, c], out: Object.keys(moved), folder: [folder] },
      solution: [
        { name: 'make_folder', args: { folder } },
        { name: 'move', args: { from: a, to: `${folder}/${a}` } },
        { name: 'move', args: { from: b, to: `${folder}/${b}` } },
      ],
    };
  },
};

export const copy: Family = {
  id: 'copy',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [[a, textA], [b, textB]] = [textFile(draw), textFile(draw)];
    const texts = { [a]: textA, [b]: textB };
    const files = filesOf(texts);
    if (level === 2) {
      const folder = draw.take('folder');
      const to = `${folder}/${a}`;
      return {
        text: `Make the folder "${folder}". Copy the file "${a}" to "${to}".`,
        files,
        goal: { files: { ...texts, [to]: textA } },
        toolbox: 'files',
        choices: { path: [a, b], out: [to], folder: [folder] },
        solution: [
          { name: 'make_folder', args: { folder } },
          { name: 'copy', args: { from: a, to } },
        ],
      };
    }
    const to = draw.path(rng.pick(ENDINGS));
    if (level === 1) {
      return {
        text: `Copy the file "${a}" to "${to}".`,
        files,
        goal: { files: { ...texts, [to]: textA } },
        toolbox: 'files',
        choices: { path: [a, b], out: [to] },
        solution: [{ name: 'copy', args: { from: a, to } }],
      };
    }
    return {
      text: `Copy the file "${a}" to "${to}". Append the lines of "${b}" to "${to}". Delete the file "${b}".`,
      files,
      goal: { files: { [a]: textA, [to]: textA + textB } },
      toolbox: 'files',
      choices: { path: [a, b, to], out: [to] },
      solution: [
        { name: 'copy', args: { from: a, to } },
        { name: 'append', args: { from: b, to } },
        { name: 'delete', args: { path: b } },
      ],
    };
  },
};

export const remove: Family = {
  id: 'delete',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [one, other] = rng.shuffle(['tmp', 'bak', 'old', 'part']) as [string, string];
    const kept = [textFile(draw), textFile(draw), textFile(draw)] as const;
    const [a, b] = [kept[0][0], kept[1][0]];
    const doomed = [one, one, other, other].map((ending) => [draw.path(ending), draw.bystander()] as const);
    const texts = Object.fromEntries([...kept, ...doomed]);
    const byKind = (...endings: string[]) => Object.keys(texts).filter((path) => endings.includes(path.split('.')[1]!));
    const gone = level === 1 ? [a] : level === 2 ? [...byKind(one), a] : [...byKind(one, other), b];
    const sentences = [
      [`Delete the file "${a}".`],
      [`Delete all files that end in ".${one}".`, `Delete the file "${a}".`],
      [
        `Delete all files that end in ".${one}".`,
        `Delete all files that end in ".${other}".`,
        `Delete the file "${b}".`,
      ],
    ];
    const kind = (ending: string) => ({ name: 'delete_kind', args: { ending } }) as const;
    const single = (path: string) => ({ name: 'delete', args: { path } }) as const;
    return {
      text: sentences[level - 1]!.join(' '),
      files: filesOf(texts),
      goal: { files: without(texts, gone) },
      toolbox: 'files',
      choices: { path: kept.map(([path]) => path), ending: [one, other] },
      solution: [[single(a)], [kind(one), single(a)], [kind(one), kind(other), single(b)]][level - 1]!,
    };
  },
};

export const folders: Family = {
  id: 'folders',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [[a, textA], [b, textB]] = [textFile(draw), textFile(draw)];
    const [first, second, third] = draw.takeMany('folder', 3) as [string, string, string];
    const inner = `${first}/${second}`;
    const made = [[first], [first, third], [inner]][level - 1]!;
    const texts = { [a]: textA, [b]: textB };
    const to = `${inner}/${a}`;
    const sentences = made.map((folder) => `Make the folder "${folder}".`);
    if (level === 3) sentences.push(`Move the file "${a}" to "${to}".`, `Delete the file "${b}".`);
    return {
      text: sentences.join(' '),
      files: filesOf(texts),
      goal: { files: level === 3 ? { [to]: textA } : texts, folders: made },
      toolbox: 'files',
      choices: { path: [a, b], out: [to], folder: [first, third, inner, `${third}/${second}`] },
      solution: [
        ...made.map((folder) => ({ name: 'make_folder', args: { folder } }) as const),
        ...(level === 3
          ? [{ name: 'move', args: { from: a, to } } as const, { name: 'delete', args: { path: b } } as const]
          : []),
      ],
    };
  },
};

/** The owner may always read and write, so that no later command of a user fails by them. */
const MODES = ['600', '640', '660', '664', '700', '750', '755', '775'];

export const permissions: Family = {
  id: 'permissions',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [[a, textA], [b, textB], [c, textC]] = [textFile(draw), textFile(draw), textFile(draw)];
    const texts = { [a]: textA, [b]: textB, [c]: textC };
    const copied = draw.path('txt');
    const [one, two, spare] = rng.shuffle(MODES) as [string, string, string];
    const bits = (mode: string) => Number.parseInt(mode, 8);
    const set = (mode: string, path: string) => ({ name: 'set_mode', args: { mode, path } }) as const;
    const say = (mode: string, path: string) => `Set the permissions of "${path}" to "${mode}".`;
    const parts = [
      { text: say(one, a), goal: { files: texts, modes: { [a]: bits(one) } }, solution: [set(one, a)] },
      {
        text: `${say(one, a)} ${say(two, b)}`,
        goal: { files: texts, modes: { [a]: bits(one), [b]: bits(two) } },
        solution: [set(one, a), set(two, b)],
      },
      {
        text: `Copy the file "${a}" to "${copied}". ${say(one, copied)} ${say(two, b)}`,
        goal: { files: { ...texts, [copied]: textA }, modes: { [copied]: bits(one), [b]: bits(two) } },
        solution: [{ name: 'copy', args: { from: a, to: copied } } as const, set(one, copied), set(two, b)],
      },
    ] as const;
    return {
      ...parts[level - 1]!,
      files: filesOf(texts),
      toolbox: 'files',
      choices: {
        path: [a, b, c, ...(level === 3 ? [copied] : [])],
        ...(level === 3 ? { out: [copied] } : {}),
        mode: [one, two, spare],
      },
    };
  },
};

export const find: Family = {
  id: 'find',
  write(rng, level) {
    const draw = new Drawing(rng);
    const [word, other] = draw.takeMany('word', 2) as [string, string];
    const [home, away] = draw.takeMany('folder', 2) as [string, string];
    const vocabulary = draw.takeMany('word', 8);
    const names = Array.from({ length: level === 1 ? 24 : 6 }, (_, i) => {
      const path = draw.path('txt');
      return i % 3 === 0 ? `${home}/${path}` : path;
    });
    const [hit, second] = rng.shuffle(names) as [string, string];
    const texts = Object.fromEntries(
      names.map((name) => {
        const lines = draw.lines(draw.int(2, 4), vocabulary, 3);
        const hidden = name === hit ? word : name === second && level === 3 ? other : undefined;
        if (hidden !== undefined) lines[rng.int(lines.length)] += ` ${hidden}`;
        return [name, fileOf(lines)];
      }),
    );
    const files = filesOf(texts);
    const look = (wanted: string) => ({ name: 'find_text', args: { word: wanted } }) as const;
    const to = `${away}/${draw.path('txt')}`;
    const shared = { files, toolbox: 'files' } as const;
    if (level === 1) {
      return {
        ...shared,
        text: `Which file contains the word "${word}"? Answer with its path.`,
        goal: { files: texts, answer: hit },
        choices: { path: names.slice(0, 4), word: [word, ...vocabulary.slice(0, 2)] },
        solution: [look(word)],
      };
    }
    if (level === 2) {
      const copied = draw.path('txt');
      return {
        ...shared,
        text: `Find the file that contains the word "${word}". Move it to "${copied}".`,
        goal: { files: { ...without(texts, [hit]), [copied]: texts[hit]! } },
        choices: { path: names, out: [copied], word: [word, vocabulary[0]!] },
        solution: [look(word), { name: 'move', args: { from: hit, to: copied } }],
      };
    }
    return {
      ...shared,
      text: `Find the file that contains the word "${word}". Make the folder "${away}". Move the file to "${to}". Delete the file that contains the word "${other}".`,
      goal: { files: { ...without(texts, [hit, second]), [to]: texts[hit]! } },
      choices: { path: names, out: [to], word: [word, other], folder: [away] },
      solution: [
        look(word),
        { name: 'make_folder', args: { folder: away } },
        { name: 'move', args: { from: hit, to } },
        look(other),
        { name: 'delete', args: { path: second } },
      ],
    };
  },
};
