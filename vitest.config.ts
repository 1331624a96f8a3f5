/**
 * Tests in two projects: those of pure functions share their modules from file to file, which saves loading them some
 * seventy times; all others have a process of their own each.
 */
import { defineConfig } from 'vitest/config';

/** Files that start no thread, no server and no browser, and leave no state behind in a module. */
const PURE = ['algo', 'core', 'evaluation', 'reading', 'schedule', 'envs/*'].map(
  (folder) => `**/test/${folder}/*.test.ts`,
);

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'pure', include: PURE, isolate: false } },
      {
        extends: true,
        test: { name: 'isolated', include: ['**/test/**/*.test.ts'], exclude: ['**/node_modules/**', ...PURE] },
      },
    ],
  },
});
