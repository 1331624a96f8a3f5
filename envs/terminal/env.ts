import type { Env, Session } from '../../src/core/env.ts';
import type { Task, TaskTable } from '../../src/core/task.ts';
import { openToolSession } from '../../src/core/tool-world.ts';
import { MAX_OBSERVATION_CHARS, TerminalEpisode } from './episode.ts';
import type { TerminalOptions } from './options.ts';
import { Shell } from './shell.ts';
import { tableOf, writeTask } from './tasks.ts';

/**
 * Terminal: do a small piece of work on files by commands of bash, and submit it.
 *
 * Observation  a model call as JSON: instructions, tools and the request first, then outputs of commands.
 * Action       a reply as JSON: calls of `bash` and `submit`, or of commands as typed tools (`tools: forms`).
 * Reward       1 at the end if files and answer are as asked for, else 0.
 * Terminates   by `submit`, or after `maxCalls` calls.
 * Randomness   the files, the names, the clock and the random numbers of the machine, from the task's index and seed.
 * Source       ours; the shell is just-bash 3.4.2
 */
export class Terminal implements Env {
  readonly id = 'terminal';
  readonly description = 'Do small pieces of work on files by commands of bash.';
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION_CHARS;
  readonly #options: TerminalOptions;
  #table: TaskTable | undefined;

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  get tasks(): TaskTable {
    this.#table ??= tableOf(this.#options);
    return this.#table;
  }

  /**
   * @throws {RangeError} for a task index outside the table
   * @throws {UserError} MISSING_ENGINE without just-bash
   */
  async open({ index, seed }: Task): Promise<Session> {
    const task = writeTask(index, seed);
    const shell = await Shell.open(task.files, seed);
    return openToolSession(new TerminalEpisode(task, this.#options, shell));
  }
}
