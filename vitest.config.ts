/**
 * Tests in three projects. Those of pure functions share their modules from file to file, which saves loading them some
 * seventy times. All others, and the long files of worlds, have a process of their own each.
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that start no thread, no server and no browser, and leave no state behind in a module. */
const PURE = ['algo', 'core', 'learning/evaluation', 'text/reading', 'learning/schedule', 'envs/*'].map(
  (folder) => `**/test/${folder}/*.test.ts`,
);

/** Files of worlds that do start one, or take minutes: each has a process of its own. */
const WORLDS_ALONE = [
  'babyai/env',
  'babyai/laws',
  'babyai/oracle',
  'babyai/parity',
  'babyai/paths',
  'babyai/pcg64',
  'babyai/view',
  'babyai/world',
  'sciworld/laws',
  'sciworld/oracle',
  'sciworld/parity',
  'sciworld/properties',
  'sciworld/world',
  'searchqa/hosts',
  'searchqa/laws',
  'searchqa/parity',
  'searchqa/view',
  'searchqa/wiki',
  'searchqa/world',
  'tau2/laws',
  'tau2/parity',
  'tau2/world',
  'terminal/harbor',
  'terminal/laws',
  'terminal/real-bash',
  'terminal/repeatable',
  'terminal/world',
  'textcraft/laws',
  'textcraft/parity',
  'textcraft/variants',
  'textcraft/view',
  'textcraft/world',
  'webarena/drivers',
  'webarena/evaluators',
  'webarena/hostile',
  'webarena/laws',
  'webarena/live',
  'webarena/parity',
  'webarena/screenshots',
  'webarena/tasks',
  'webarena/view',
].map((file) => `**/test/envs/${file}.test.ts`);

/** Files that take longest, in their order: begun first, so that none is left to run alone at the end. */
const SLOWEST = [
  'attack/hostile-worlds',
  'cluster/chaos',
  'actors/env/env-pool',
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
      { extends: true, test: { name: 'pure', include: PURE, exclude: WORLDS_ALONE, isolate: false } },
      {
        extends: true,
        test: { name: 'isolated', include: ['**/test/**/*.test.ts'], exclude: ['**/node_modules/**', ...PURE] },
      },
      {
        extends: true,
        test: { name: 'worlds', include: WORLDS_ALONE },
      },
    ],
  },
});
