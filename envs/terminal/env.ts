import type { Env, Session } from '../../src/core/env.ts';
import { type Task, type TaskTable, taskTable } from '../../src/core/task.ts';
import { openToolSession } from '../../src/core/tool-world.ts';
import { MAX_OBSERVATION_CHARS, TerminalEpisode } from './episode.ts';
import { listHarborTasks, readHarborTask } from './harbor.ts';
import type { TerminalOptions } from './options.ts';
import { Shell } from './shell.ts';
import { tableOf, writeTask } from './tasks.ts';
import { createWork, type Work } from './work.ts';

/** Tasks of a folder that are kept; one has at most 8 MiB of files. */
const REMEMBERED_TASKS = 32;

/**
 * Terminal: do a small piece of work on files by commands of bash, and submit it.
 *
 * Observation  a model call as JSON: instructions, tools and the request first, then outputs of commands.
 * Action       a reply as JSON: calls of `bash` and `submit`, or of commands as typed tools (`tools: forms`).
 * Reward       1 at the end if files and answer are as asked for, else 0.
 * Terminates   by `submit`, or after `maxCalls` calls.
 * Randomness   files and names from the task's index and seed; the clock and the random numbers of the machine from the seed.
 * Source       ours; the shell is just-bash 3.4.2
 */
export class Terminal implements Env {
  readonly id = 'terminal';
  readonly description = 'Do small pieces of work on files by commands of bash.';
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION_CHARS;
  readonly #options: TerminalOptions;
  /** Folders of the tasks, where an option names them; empty otherwise. */
  #folders: readonly string[] = [];
  /** Tasks of the folder that were read last, by their index; members of a group share one. */
  readonly #works = new Map<number, Promise<Work>>();
  #table: TaskTable | undefined;

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  get tasks(): TaskTable {
    this.#table ??= this.#options.folder === undefined ? tableOf(this.#options) : this.#folderTable();
    return this.#table;
  }

  /**
   * @throws {RangeError} for a task index outside the table
   * @throws {UserError} MISSING_ENGINE without just-bash; BAD_CONFIG for a task of a folder that needs what is not here
   */
  async open({ index, seed }: Task): Promise<Session> {
    this.tasks.label(index);
    const work = await this.#openWork(index, seed);
    const shell = await Shell.open(work.start, seed);
    return openToolSession(new TerminalEpisode(work, this.#options.maxCalls, shell));
  }

  #openWork(index: number, seed: number): Work | Promise<Work> {
    if (this.#folders.length === 0) return createWork(writeTask(index, seed), this.#options.tools);
    const known = this.#works.get(index);
    if (known) return known;
    const work = readHarborTask(this.#folders[index]!);
    const [oldest] = this.#works.keys();
    if (this.#works.size >= REMEMBERED_TASKS) this.#works.delete(oldest!);
    this.#works.set(index, work);
    work.catch(() => this.#works.delete(index)); // a folder may be mended meanwhile
    return work;
  }

  /** Table of the tasks of a folder: each is in both splits, since nobody says which are held out. */
  #folderTable(): TaskTable {
    this.#folders = listHarborTasks(this.#options.folder!);
    return { ...taskTable(this.#folders.length, [], 'task'), numbering: 'folder' };
  }
}
