/** Tasks as their families write them, and what families draw them with. */
import { compareCodePoints } from '../../../src/core/python-text.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { type FormCall, type FormChoices, SCRATCH, type Toolbox } from '../forms.ts';
import type { Files } from '../shell.ts';
import { FOLDERS, KEYS, NAMES, PEOPLE, WORDS, wordsIn } from '../words.ts';

/** Difficulty: the number of calls that a short solution takes, before it is submitted. */
export type Level = 1 | 2 | 3;
export const LEVELS: readonly Level[] = [1, 2, 3];

/** End state that a task asks for. */
export interface Goal {
  /** Files as they must be; files of the start that are missing here must be gone. Other files do not matter. */
  readonly files: Readonly<Record<string, string>>;
  /** Permission bits that are asked for, by path. */
  readonly modes?: Readonly<Record<string, number>> | undefined;
  /** Folders that must be there. */
  readonly folders?: readonly string[] | undefined;
  /** Answer that must be submitted. */
  readonly answer?: string | undefined;
}

/** Task of a terminal. */
export interface TerminalTask {
  /** Request, in sentences that quote each name and value. */
  readonly text: string;
  readonly files: Files;
  readonly goal: Goal;
  /** Tools that the task is played with under `tools: forms`, and the values of their arguments. */
  readonly toolbox: Toolbox;
  readonly choices: FormChoices;
  /** Calls of a solution. The goal is not computed from them. */
  readonly solution: readonly FormCall[];
}

/** Family: tasks of one kind. */
export interface Family {
  readonly id: string;
  /** Writes a task. */
  write(rng: Rng, level: Level): TerminalTask;
}

const LISTS = { name: NAMES, folder: FOLDERS, word: WORDS, person: PEOPLE, key: KEYS };
const words = Object.fromEntries(Object.entries(LISTS).map(([kind, list]) => [kind, wordsIn(list)]));

/** Draws the parts of one task. Names and words of one kind are different from each other. */
export class Drawing {
  readonly rng: Rng;
  readonly #left = new Map<string, string[]>();

  constructor(rng: Rng) {
    this.rng = rng;
  }

  /** Whole number from `least` to `greatest`. */
  int(least: number, greatest: number): number {
    return least + this.rng.int(greatest - least + 1);
  }

  /** Draws a word of a kind that the task has not used. */
  take(kind: keyof typeof LISTS): string {
    let left = this.#left.get(kind);
    if (!left) this.#left.set(kind, (left = this.rng.shuffle(words[kind]!)));
    const taken = left.pop();
    if (taken === undefined) throw new RangeError(`a task takes more words of the kind ${kind} than there are`);
    return taken;
  }

  /** Draws several words. */
  takeMany(kind: keyof typeof LISTS, count: number): string[] {
    return Array.from({ length: count }, () => this.take(kind));
  }

  /** Draws the name of a file. */
  path(ending: string): string {
    return `${this.take('name')}.${ending}`;
  }

  /** Draws lines of `width` words of a small vocabulary, so that lines and words come again. */
  lines(count: number, vocabulary: readonly string[], width: number): string[] {
    return Array.from({ length: count }, () =>
      Array.from({ length: width }, () => this.rng.pick(vocabulary)).join(' '),
    );
  }

  /** Draws a file of plain lines that the task does not touch. */
  bystander(): string {
    return fileOf(this.lines(this.int(2, 5), this.takeMany('word', 4), 2));
  }
}

/** Files for results in between that a level needs. */
export function stepsOf(level: Level): readonly string[] {
  return SCRATCH.slice(0, level - 1);
}

/** Text of a file of lines. */
export function fileOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** Files of a start, all with the mode 644 unless named. */
export function filesOf(texts: Readonly<Record<string, string>>, modes: Readonly<Record<string, number>> = {}): Files {
  return Object.fromEntries(
    Object.entries(texts).map(([path, content]) => [path, { content, mode: modes[path] ?? 0o644 }]),
  );
}

/** Sorts lines as `LC_ALL=C sort` does. */
export function sortLines(lines: readonly string[]): string[] {
  return [...lines].sort(compareCodePoints);
}

/** Sorted lines, each once. */
export function uniqueLines(lines: readonly string[]): string[] {
  return [...new Set(sortLines(lines))];
}

/** Texts without some files. */
export function without(texts: Readonly<Record<string, string>>, paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([path]) => !paths.includes(path)));
}

/** Draws values until the condition holds. @throws {RangeError} after a thousand tries */
export function drawUntil<T>(draw: () => T, holds: (value: T) => boolean): T {
  for (let i = 0; i < 1000; i++) {
    const value = draw();
    if (holds(value)) return value;
  }
  throw new RangeError('no value of a thousand met the condition');
}
