import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('..', import.meta.url).pathname;

/**
 * Layers of `src`, from the ground up. A file imports from its own folder and from lower layers only; folders of one
 * layer do not import each other. ARCHITECTURE.md shows the same list.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['core'],
  ['algo', 'http', 'runtime', 'text'],
  ['config', 'compute', 'storage'],
  ['chaos', 'gateway', 'learning', 'retrieval', 'world'],
  ['policy'],
  ['cluster'],
  ['metrics'],
  ['console', 'serve', 'viewer'],
  ['run'],
  ['cli'],
];

/** Layer of a file of `src`; the two modules that users import stand above all. */
function layerOf(file: string): number {
  const folder = file.split('/')[1]!;
  if (file === 'src/index.ts' || file === 'src/testing.ts') return LAYERS.length;
  return LAYERS.findIndex((folders) => folders.includes(folder));
}

/** True where a file of `src` may import another file of `src`. */
function isDownwards(from: string, to: string): boolean {
  return from.split('/')[1] === to.split('/')[1] || layerOf(to) < layerOf(from);
}

/** True where a file may import another. */
function allowed(from: string, to: string): boolean {
  if (from.startsWith('experiments/') || from.startsWith('test/')) return true;
  const top = to.split('/')[0];
  if (from.startsWith('src/') && top === 'src') return isDownwards(from, to);
  if (/^src\/(cli|run)\//.test(from) || from === 'src/index.ts') {
    return to === 'actors/tree.ts' || to === 'envs/registry.ts' || to.endsWith('/protocol.ts');
  }
  if (from.startsWith('envs/')) {
    const family = from.split('/')[1];
    return /^src\/(core|retrieval)\//.test(to) || to.startsWith(`envs/${family}/`);
  }
  const isBelowRun = top === 'src' && layerOf(to) < LAYERS.findIndex((folders) => folders.includes('run'));
  if (/^actors\/[^/]+$/.test(from)) return isBelowRun || top === 'actors';
  if (from.startsWith('actors/')) {
    const own = from.split('/').slice(0, 2).join('/');
    // What an actor starts with is picked from the options of a run, in its own folder.
    if (/\/(init|open-journal)\.ts$/.test(from) && to === 'actors/options.ts') return true;
    return isBelowRun || to.startsWith(`${own}/`) || (top === 'actors' && to.endsWith('/protocol.ts'));
  }
  return false;
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}

function imports(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g);
  return [...found].map(([, path]) => normalize(join(dirname(file), path!)));
}

/** First words of each docstring of a module, its tags (`@param`) left out. */
function firstWords(text: string): string[] {
  return [...text.matchAll(/\/\*\*(.*?)\*\//gs)]
    .map(([, body]) => body!.replace(/^\s*\*/gm, '').trim())
    .filter((doc) => doc !== '' && !doc.startsWith('@'))
    .map((doc) => doc.split(/\s+/).slice(0, 6).join(' '));
}

function violations(files: readonly string[], importsOf: (file: string) => readonly string[]): string[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((to) => !allowed(file, to))
      .map((to) => `${file} → ${to}`),
  );
}

describe('the architecture', () => {
  const files = ['src', 'actors', 'envs'].flatMap(sources);

  it('imports along the table only', () => {
    expect(violations(files, imports)).toEqual([]);
  });
  it('would notice an env that imports an actor, a core file that imports anything, an actor that imports another', () => {
    const planted: Record<string, string[]> = {
      'envs/textcraft/env.ts': ['actors/env/env-pool.ts'],
      'src/core/env.ts': ['src/policy/policy.ts'],
      'actors/rollout/rollout-actor.ts': ['actors/learner/learner-actor.ts'],
      'src/policy/policy.ts': ['envs/registry.ts'],
      'src/storage/journal.ts': ['src/learning/learner/run-state-schema.ts', 'src/config/ranges.ts'],
      'actors/tree.ts': ['src/run/train.ts'],
    };
    expect(violations(Object.keys(planted), (file) => planted[file]!)).toHaveLength(7);
  });
  it('has a layer for every folder of src', () => {
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).sort()).toEqual(LAYERS.flat().sort());
  });
  it('names no world in src and actors: a world is one folder', () => {
    const worlds = readdirSync(join(root, 'envs'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    // A world that is called by an everyday word is known by its path.
    const ids = worlds.map(({ name }) => (name === 'terminal' ? `envs/${name}\\b` : name));
    const names = new RegExp(`\\b(${ids.join('|')})`, 'i');
    expect(names.test('a line about TextCraft')).toBe(true);
    expect(names.test("'envs/terminal/index.ts'") && !names.test('writes to a terminal')).toBe(true);
    const naming = [...sources('src'), ...sources('actors')].filter((file) =>
      names.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(naming).toEqual([]);
  });
  it("makes folders by makeFolder: Node's recursive mkdir never returns under /proc", () => {
    const recursive = /mkdir(Sync)?\([^;]*recursive/;
    expect(recursive.test("mkdirSync(join(a, 'b'), { recursive: true })")).toBe(true);
    const making = [...sources('src'), ...sources('actors')].filter((file) =>
      recursive.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(making).toEqual([]);
  });
  it('opens and reads files in src/core/bounded-file.ts alone', () => {
    const reads =
      /\b(readFileSync|readFile|createReadStream|openAsBlob|cpSync|copyFileSync)\(|\bopenSync\((?![^;]*'(w|wx|w\+|ax)')|fs\/promises'/;
    const planted = [
      "readFileSync(path, 'utf8')",
      'await readFile(path)',
      'createReadStream(file)',
      "openSync(path, 'r')",
      "openSync(join(a, b), 'a')",
      'openSync(path)',
    ];
    for (const line of planted) expect(reads.test(line), line).toBe(true);
    expect(reads.test("openSync(draft, 'w')")).toBe(false);
    const exceptions: Readonly<Record<string, string>> = {
      'src/core/bounded-file.ts': 'it is the reader',
      'src/storage/atomic-file.ts': 'opens a folder, to sync it',
      'src/storage/journal.ts': 'appends to a file that it has just named',
      'src/retrieval/build-index.ts': 'opens a folder, to sync it, and its own rows',
      'src/policy/pretrained/merge.ts': 'copies what it has found to be a file',
      'src/policy/pretrained/hub.ts': 'copies a blob that it has just made, where there are no links',
      'src/metrics/sinks/tensorboard.ts': 'appends to a file that it names by process and time',
      'actors/env/host-child.ts': "the system's /proc",
      'actors/env/process-tree.ts': "the system's /proc",
      'actors/env/processor-wait.ts': "the system's /proc",
      'envs/webarena/screenshots.ts': 'writes and renames only',
    };
    const reading = files.filter(
      (file) => !file.includes('/data/') && reads.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(reading.filter((file) => !(file in exceptions))).toEqual([]);
    expect(Object.keys(exceptions).filter((file) => !reading.includes(file))).toEqual([]); // no exception that is none
  });
  it("reads others' JSON by parseJson, and shows others' values by describeValue, which bound them", () => {
    const parses = /\bJSON\.parse\((?!JSON\.stringify)/;
    const shows = /[a-z:(] \$\{[^}`]*\bJSON\.stringify\(/;
    expect(parses.test('JSON.parse(text)') && shows.test('`got $' + '{JSON.stringify(value)}`')).toBe(true);
    expect(parses.test('JSON.parse(JSON.stringify(a))') || shows.test('`$' + '{JSON.stringify(row)}`')).toBe(false);
    const exceptions: Readonly<Record<string, string>> = {
      'src/core/json-text.ts': 'it is parseJson',
      'src/policy/remote/answer-stream.ts': 'a character may be spread over two chunks; the answer is read whole',
      'src/viewer/client/source.ts': 'runs in a browser, on data of our own',
      'src/storage/journal.ts': 'values whose digests have been checked',
      'src/run/run-lock.ts': 'takes three plain values of a mark',
      'src/serve/policy-server.ts': 'events of a stream',
      'src/run/check-model.ts': 'the answer of 64 tokens',
      'src/gateway/call-tree.ts': 'texts that are compared, and read by nobody',
      'actors/scheduler/ledger.ts': 'counts of our own',
    };
    const ours = [...sources('src'), ...sources('actors')];
    const found = ours.filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return parses.test(text) || shows.test(text);
    });
    expect(found.filter((file) => !(file in exceptions))).toEqual([]);
    expect(Object.keys(exceptions).filter((file) => !found.includes(file))).toEqual([]);
  });
  it('renders and tokenises episodes in src/text/reading alone', () => {
    const reads = /\.mode\b.*'(append|window)'|\b(Append|Window)View\b|word-tokenizer|\.(prompt|render|turn)\(first/;
    expect(reads.test("view.mode === 'append' ? view.prompt(first) : []")).toBe(true);
    const elsewhere = [...sources('src'), ...sources('actors')]
      .filter((file) => !/^src\/(text\/reading\/|core\/view\.ts|index\.ts)/.test(file))
      .filter((file) => reads.test(readFileSync(join(root, file), 'utf8')));
    expect(elsewhere).toEqual([]);
  });
  it('writes to the terminal in src/console/terminal.ts alone', () => {
    const writes =
      /process\.(stdout|stderr)\b|\bconsole\.(log|error|warn|info|debug|dir|table|trace)\(|node:console|_rawDebug|(write|writeSync|appendFileSync|writeFileSync|createWriteStream)\((1|2|'\/dev\/(stdout|stderr|tty)')\b/;
    const planted = ['process.stdout.write(x)', 'const { stderr } = process;', 'console.log(1)', 'writeSync(1, text)'];
    const escapes = /\.screen\(|\\x1b|\\u001b|\\e\[/;
    const streams = /\{[^}]*\b(stdout|stderr)\b[^}]*\} = process\b/;
    for (const line of planted) expect(writes.test(line) || streams.test(line), line).toBe(true);
    expect(escapes.test("out.ask('\\x1b[2J')") && escapes.test('out.screen(codes)')).toBe(true);
    const ours = [...sources('src'), ...sources('actors')].filter((file) => !file.startsWith('src/view/client/'));
    const writing = ours.filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      if (file === 'src/console/terminal.ts') return false;
      return writes.test(text) || streams.test(text) || (escapes.test(text) && !file.startsWith('src/console/'));
    });
    expect(writing).toEqual([]);
  });
  it('names no file utils, common, misc, helpers or manager', () => {
    expect(files.filter((file) => /(^|[/-])(utils?|common|misc|helpers?|manager)\.ts$/.test(file))).toEqual([]);
  });
  it('begins every docstring with a word that a colleague would search for', () => {
    const riddle = new RegExp(
      `^(${[
        ...['Who', 'Whom', 'Whose', 'Whoever', 'What', 'Whatever', 'Where', 'When', 'Whenever', 'How', 'Why'],
        ...['Which', 'Whichever', 'Whether', 'Nobody', 'Somebody', 'Everybody', 'Something', 'Everything'],
        ...['It', 'Its', 'Told', 'Said', 'As', 'Of', 'By'],
      ].join('|')})\\b`,
    );
    expect(riddle.test(firstWords('/**\n * What a policy reads.\n */')[0]!)).toBe(true);
    const all = [...files, ...sources('experiments')]
      .filter((file) => !file.includes('/data/'))
      .flatMap((file) => firstWords(readFileSync(join(root, file), 'utf8')).map((words) => ({ file, words })));
    expect(all.length).toBeGreaterThan(4000);
    expect(all.filter(({ words }) => riddle.test(words)).map(({ file, words }) => `${file}: ${words} …`)).toEqual([]);
  });
  it('keeps every promise of the runtime by the test that is named beside it', () => {
    const page = readFileSync(join(root, 'src/runtime/README.md'), 'utf8').replaceAll(/\s+/g, ' ');
    const promises = [...page.matchAll(/`(test\/[^`]+)`: \*([^*]+)\*/g)].map(([, file, title]) => ({ file, title }));
    expect(promises.length).toBeGreaterThan(30);
    const broken = promises.filter(({ file, title }) => !readFileSync(join(root, file!), 'utf8').includes(title!));
    expect(broken).toEqual([]);
  });
  it('names only files that exist in ARCHITECTURE.md, CONTRIBUTING.md and the READMEs', () => {
    const named = [
      'ARCHITECTURE.md',
      'README.md',
      'CONTRIBUTING.md',
      'src/cluster/README.md',
      'src/policy/README.md',
      'src/policy/pretrained/README.md',
      'src/runtime/README.md',
    ].flatMap((page) =>
      [
        ...readFileSync(join(root, page), 'utf8').matchAll(/`((?:src|actors|envs|experiments|test)\/[\w./-]+\.\w+)`/g),
      ].map(([, path]) => path!),
    );
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
  it('documents what it exports', () => {
    const bare = files.filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return /^export /m.test(text) && !text.includes('/**');
    });
    expect(bare).toEqual([]);
  });
});
