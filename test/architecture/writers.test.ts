/**
 * Files that write to a disk, each with its reason: looking must never harm, so whatever changes a file is known by name, and
 * a reader that begins to write is noticed here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** Calls of `node:fs` that change what is on a disk. */
const WRITES =
  /\b(?:appendFile|writeFile|write|writev|truncate|ftruncate|rename|rm|rmdir|unlink|mkdir|mkdtemp|link|symlink|copyFile|cp|chmod|utimes|createWriteStream)(?:Sync)?\b/;

/** Functions of `src/storage/atomic-file.ts` that do. */
const HELPERS = /\b(?:writeFileAtomic|writeWhole|writeAll|appendWhole|makeFolder)\b/;

/** Files that write, by what they write. */
const WRITERS: Readonly<Record<string, readonly string[]>> = {
  'the run that a process holds the lock of': [
    'src/run/run-folder.ts',
    'src/run/run-lock.ts',
    'src/storage/atomic-file.ts',
    'src/storage/journal.ts',
    'src/storage/trace-cut.ts',
    'src/storage/trace-files.ts',
    'src/metrics/metrics-file.ts',
    'src/metrics/sinks/outbox.ts',
    'src/metrics/sinks/tensorboard.ts',
    'src/metrics/sinks/wandb.ts',
    'src/policy/served-adapters.ts',
    'src/learning/learner/quarantine.ts',
    'src/run/play-evaluation.ts',
    'src/run/prompt-search/search-state.ts',
    'src/cli/commands/optimize-prompt.ts',
    'src/run/rollout.ts',
    'src/run/train.ts',
    'src/run/train-evaluations.ts',
    'actors/recorder/recorder-actor.ts',
  ],
  'a file that its user names': [
    'src/storage/order-file.ts',
    'src/cli/commands/compare.ts',
    'src/cli/commands/export.ts',
    'src/run/rescore/rescore.ts',
    'src/run/import/import-traces.ts',
    'src/cli/commands/preflight.ts',
    'src/serve/call-record.ts',
    'src/retrieval/recorded-results.ts',
    'src/cli/commands/new-files.ts',
    'src/cli/commands/view.ts',
    'src/cluster/init.ts',
    'src/policy/pretrained/adapter.ts',
    'src/policy/pretrained/gguf/export.ts',
    'src/policy/pretrained/merge.ts',
    'src/retrieval/build-index.ts',
    'src/retrieval/index-writer.ts',
    'src/retrieval/segment-file.ts',
  ],
  'the cache of its user, or of the hub': [
    'src/policy/pretrained/gguf/convert.ts',
    'src/policy/pretrained/hub.ts',
    'src/policy/pretrained/model-cache.ts',
  ],
  'less of an engine that is installed': ['src/run/prune-engines.ts'],
  'a base beside the runs': ['src/policy/pretrained/quantize.ts'],
  'a folder of its own that goes': [
    'src/run/check-model.ts',
    'src/run/play-sample.ts',
    'src/run/preflight/preflight.ts',
    'src/world/mcp/episode-folder.ts',
    'actors/env/beacon.ts',
  ],
};

it('are those that are listed', () => {
  const sources = ['src', 'actors'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  expect(sources.length).toBeGreaterThan(300);
  const writing = sources.filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const imports = [...text.matchAll(/import ([^;]*?) from '(?:node:fs(?:\/promises)?|[./\w-]*atomic-file\.ts)'/g)];
    return imports.some(([, names]) => names!.includes('* as') || WRITES.test(names!) || HELPERS.test(names!));
  });
  expect(writing.sort()).toEqual(Object.values(WRITERS).flat().sort());
});
