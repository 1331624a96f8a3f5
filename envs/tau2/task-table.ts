/** Task table of a domain: all tasks of its file, in order, with the published splits. */
import type { TaskTable } from '../../src/core/task.ts';
import type { Domain } from './domain.ts';
import type { Tau2Options } from './options.ts';
import type { TauTask } from './tasks.ts';

/** Labels by the number of gold actions that change a database. */
const WRITES = ['no write', '1 write', '2 writes', '3 writes or more'];

/**
 * Makes the table. `train` and `test` are the published ones. Under `split: full` all tasks that are not held out train; the domain
 * mock, which has no such split, holds its last three tasks out.
 */
export function tableOf({ domain, split }: Pick<Tau2Options, 'domain' | 'split'>): TaskTable {
  const tasks = domain.tasks();
  const indexOf = new Map(tasks.map(({ id }, index) => [id, index]));
  const named = domain.splits();
  const indices = (ids: readonly string[]) => ids.flatMap((id) => indexOf.get(id) ?? []).sort((a, b) => a - b);
  const all = tasks.map((_, index) => index);
  const test = named.test ? indices(named.test) : all.slice(-3);
  const isTest = new Set(test);
  const others = all.filter((index) => !isTest.has(index));
  const train = named.train && split === 'published' ? indices(named.train) : others;
  const sets = Object.entries(named).filter(([name]) => name !== 'train' && name !== 'test');
  const { all: labels, of } = domain.labels ?? { all: WRITES, of: (task) => labelByWrites(domain, task) };
  return {
    count: tasks.length,
    numbering: domain.id,
    labels,
    label(index) {
      const task = tasks[index];
      if (!task) throw new RangeError(`tau2: task index must be an integer in [0, ${tasks.length}), got ${index}`);
      return of(task);
    },
    split: (name) => (name === 'test' ? test : train),
    sets: Object.fromEntries(sets.map(([name, ids]) => [name, indices(ids)])),
    evalSeed: 0,
  };
}

function labelByWrites(domain: Domain, { criteria }: TauTask): string {
  const writes = new Set(
    [...domain.tools('assistant'), ...domain.tools('user')]
      .filter(({ mutates }) => mutates)
      .map(({ tool }) => tool.name),
  );
  const count = (criteria?.actions ?? []).filter(({ name }) => writes.has(name)).length;
  return WRITES[Math.min(count, WRITES.length - 1)]!;
}
