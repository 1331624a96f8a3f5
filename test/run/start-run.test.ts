/** What a run is refused for is found before an engine starts, and before an actor does. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { train } from '../../src/run/train.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('start-run');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each<[string, Partial<RunConfigInput>, RegExp]>([
  ['a task label', { tasks: { labels: ['depth 9'] } }, /'depth 9' is no label of textcraft; it has depth 1/],
  ['a set of tasks', { tasks: { set: 'none' } }, /tasks\.set: textcraft has no set 'none'/],
  ['a policy that cannot learn', { policy: { kind: 'random' } }, /'random' cannot learn; use 'local'/],
  ['a set to evaluate', { evaluation: { tasks: 'none' } }, /evaluation\.tasks: textcraft has no set 'none'/],
])('refuses %s before an engine starts', async (name, overrides, message) => {
  const notices: string[] = [];
  const dir = join(folder, name.replaceAll(' ', '-'));
  const { done } = train({ config: smallConfig(overrides), dir, onNotice: (line) => notices.push(line) });
  await expect(done).rejects.toThrow(message);
  expect(notices).toEqual([]); // the engine is named where one is chosen
  expect(existsSync(dir)).toBe(false);
});
