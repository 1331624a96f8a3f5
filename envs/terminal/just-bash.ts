/**
 * just-bash, a bash interpreter in TypeScript, loaded so that its commands know no other time and no other random numbers than
 * those of the machine that runs: `date`, `$RANDOM`, `awk rand()`, `jq now`, modification times and sizes of steps are then the
 * same in every process. Nothing global is changed: the package's module is compiled as a function that takes `Date`, `Math` and `performance`.
 *
 * Texts are compared by code points, as `LC_ALL=C` has it, and not by the locale of this process (`SOURCE_EDITS`).
 */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { compileFunction } from 'node:vm';
import type { Bash, BashTransformPipeline, CommandCollectorPlugin } from 'just-bash';
import { MAX_DATA_BYTES, MAX_SETTINGS_BYTES, readBounded } from '../../src/core/bounded-file.ts';
import { UserError } from '../../src/core/errors.ts';
import { parseJson } from '../../src/core/json-text.ts';
import { compareCodePoints } from '../../src/core/python-text.ts';
import { isRecord } from '../../src/core/record.ts';
import type { Rng } from '../../src/core/rng.ts';
import { createDate } from './virtual-date.ts';

/** Version that this world plays; outputs of others differ. */
export const JUST_BASH = '3.4.2';

/** Clock and random numbers of one virtual machine. */
export interface Machine {
  /** Present time in ms since 1970. */
  now: number;
  readonly rng: Rng;
}

/** Exports of the package that are used. */
interface Exports {
  readonly Bash: typeof Bash;
  readonly BashTransformPipeline: typeof BashTransformPipeline;
  readonly CommandCollectorPlugin: typeof CommandCollectorPlugin;
}

/** Loaded package. */
export interface JustBash extends Pick<Exports, 'Bash'> {
  /** Class of the package's dates, whose present is that of the machine that runs. */
  readonly Date: DateConstructor;
  /** Lists the names of the commands that a script calls, but for functions of its own. @throws where it cannot be parsed */
  listCommands(script: string): readonly string[];
  /** Runs work of one machine while no other machine of this thread runs. */
  runAlone<T>(machine: Machine, work: () => MaybeAsync<T>): Promise<T>;
}

type MaybeAsync<T> = T | Promise<T>;

let loaded: JustBash | undefined;

/**
 * Loads the package when it is first wanted, once a thread.
 * @throws {UserError} MISSING_ENGINE where it is not installed, or in another version
 */
export function loadJustBash(): JustBash {
  loaded ??= load();
  return loaded;
}

/** Changes of the package's source: each pattern with what takes its place, and how often it is there. */
export const SOURCE_EDITS: readonly { readonly find: RegExp; readonly replace: string; readonly count: number }[] = [
  {
    // Receiver and opening of a comparison by the locale of the process.
    find: /((?:String\((?:[^()]|\([^()]*\))*\))|[\w$]+(?:\.[\w$]+|\[[\w$]+\])*)\.localeCompare\(/g,
    replace: 'compareTexts($1,',
    count: 18,
  },
  {
    // A redirection into a folder that is not there fails alone, and not the whole command line with it.
    find: /catch\((\w+)\)\{if\(!\w+\)throw \1;(return\{error:[^;]{0,60}cannot open redirect target)/g,
    replace: 'catch{$2',
    count: 1,
  },
  { find: /cannot open redirect target/g, replace: 'No such file or directory', count: 2 },
];

/** Applies the changes. @throws {Error} where one does not fit: another build of the package */
export function editSource(source: string): string {
  return SOURCE_EDITS.reduce((text, { find, replace, count }) => {
    const found = text.match(find)?.length ?? 0;
    if (found !== count) throw new Error(`just-bash: expected ${count} times ${find}, found ${found}`);
    return text.replace(find, replace);
  }, source);
}

function load(): JustBash {
  const path = findPackage();
  const source = editSource(readBounded(path, MAX_DATA_BYTES).toString('utf8'));
  let current: Machine | undefined;
  const names = [
    'exports',
    'require',
    'module',
    '__filename',
    '__dirname',
    'Date',
    'Math',
    'performance',
    'compareTexts',
  ];
  const module = { exports: {} as Exports };
  const run = compileFunction(source, names, { filename: path });
  const ownMath = Object.create(Math, { random: { value: () => current?.rng.float() ?? 0 } });
  const now = () => current?.now ?? 0;
  const ownDate = createDate(now);
  const ownPerformance = { timeOrigin: 0, now };
  run(module.exports, createRequire(path), module, path, dirname(path), ownDate, ownMath, ownPerformance, compareTexts);
  let last: Promise<unknown> = Promise.resolve();
  return {
    Bash: module.exports.Bash,
    Date: ownDate,
    listCommands(script) {
      const { BashTransformPipeline: Pipeline, CommandCollectorPlugin: Collector } = module.exports;
      const { commands } = new Pipeline().use(new Collector()).transform(script).metadata;
      const own = new Set([...script.matchAll(/^\s*(?:function\s+)?([\w-]+)\s*\(\)/gm)].map(([, name]) => name!));
      return commands.filter((name) => !own.has(name));
    },
    async runAlone(machine, work) {
      const before = last;
      let release = () => {};
      last = new Promise<void>((resolve) => {
        release = resolve;
      });
      await before;
      current = machine;
      try {
        return await work();
      } finally {
        current = undefined;
        release();
      }
    },
  };
}

function findPackage(): string {
  let path: string;
  try {
    path = createRequire(import.meta.url).resolve('just-bash');
  } catch {
    throw new UserError('MISSING_ENGINE', `terminal: needs the package just-bash: npm install just-bash@${JUST_BASH}`);
  }
  const facts = parseJson(readBounded(join(dirname(path), '../../package.json'), MAX_SETTINGS_BYTES).toString('utf8'));
  const version = isRecord(facts) ? facts.version : undefined;
  if (version === JUST_BASH) return path;
  const found = typeof version === 'string' ? version : 'an unknown version';
  throw new UserError(
    'MISSING_ENGINE',
    `terminal: expected just-bash ${JUST_BASH}, found ${found}: npm install just-bash@${JUST_BASH}`,
  );
}

function compareTexts(a: string, b: string): number {
  return compareCodePoints(String(a), String(b));
}
