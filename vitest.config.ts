/**
 * Tests in two projects: those of pure functions share their modules from file to file, which saves loading them some
 * seventy times; all others have a process of their own each.
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that start no thread, no server and no browser, and leave no state behind in a module. */
const PURE = ['algo', 'core', 'evaluation', 'reading', 'schedule', 'envs/*'].map(
  (folder) => `**/test/${folder}/*.test.ts`,
);

/** Files that take longest, in their order: begun first, so that none is left to run alone at the end. */
const SLOWEST = [
  'attack/hostile-worlds',
  'cluster/chaos',
  'actors/env-pool',
  'policy/chat-laws',
  'cli/own-world',
  ...['configurations', 'checkpoints', 'traces', 'kills'].map((file) => `attack/${file}`), // where they run whole
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => SLOWEST.findIndex((file) => moduleId.endsWith(`${file}.test.ts`));
    const sorted = await super.sort(files);
    const slow = sorted.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
    return [...slow, ...sorted.filter((file) => rank(file) < 0)];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    projects: [
      { extends: true, test: { name: 'pure', include: PURE, isolate: false } },
      {
        extends: true,
        test: { name: 'isolated', include: ['**/test/**/*.test.ts'], exclude: ['**/node_modules/**', ...PURE] },
      },
    ],
  },
});
