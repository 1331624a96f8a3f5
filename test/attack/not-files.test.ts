/**
 * Pipes and folders in the place of files: each reader says so in one line that names the file, and none waits for the
 * other end of a pipe. (A reader that waits makes this test hang: it is synchronous.)
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { MetricsFile } from '../../src/metrics/metrics-file.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { openText } from '../../src/text/templates/model-text.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { makePolicyRun } from '../support/policy-run.ts';
import { trajectoryOf } from '../support/traces.ts';
import { typed } from '../support/typed.ts';
import { expectMistake } from './campaign.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-not-files-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const quickstart = fileURLToPath(new URL('experiments/quickstart.yaml', packageRoot));
const serial = fileURLToPath(new URL('experiments/serial.yaml', packageRoot));

const KINDS: Readonly<Record<string, (path: string) => void>> = {
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
  'a folder': (path) => mkdirSync(path),
};

const run = join(dir, 'run');
const model = join(dir, 'model');
beforeAll(async () => {
  await makePolicyRun(run, 'textcraft', ['policy.model={hiddenSize: 16, layers: 1, heads: 2}']);
  const traces = new TraceFiles({ dir: join(run, 'traces'), config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
  traces.episodes([trajectoryOf()], 'train', 'toy');
  traces.close();
  mkdirSync(model);
  writeTinyChatModel(model);
});

let copies = 0;
/** Copy of a folder with something else in the place of one of its files. */
function copyWith(folder: string, file: string, put: (path: string) => void): string {
  const copy = join(dir, `copy-${copies++}`);
  cpSync(folder, copy, { recursive: true });
  rmSync(join(copy, file), { recursive: true, force: true });
  put(join(copy, file));
  return copy;
}

const source = (folder: string) => new RunSource(folder, 0, async () => ({}));

/** Files of a folder, each with what reads it. */
const FILES: readonly (readonly [folder: string, file: string, read: (folder: string) => unknown])[] = [
  [run, 'traces/00001.jsonl', (folder) => TraceStore.open(folder)],
  [run, 'traces/00001.index.jsonl', (folder) => TraceStore.open(folder)],
  [run, 'metrics.jsonl', source],
  [run, 'metrics.jsonl', (folder) => new MetricsFile(folder).append({})],
  [run, 'evaluations.jsonl', (folder) => source(folder).curves],
  [run, 'results.json', (folder) => source(folder).curves],
  [model, 'config.json', (folder) => openModel(folder)],
  [model, 'generation_config.json', (folder) => openModel(folder)],
  [model, 'model.safetensors', (folder) => openModel(folder)],
  [model, 'model.safetensors.index.json', (folder) => openModel(folder)],
  [model, 'tokenizer.json', (folder) => openText(folder)],
  [model, 'tokenizer_config.json', (folder) => openText(folder)],
  [model, 'chat_template.jinja', (folder) => openText(folder)],
];

/** Commands, each with the place where it is given a file. */
const COMMANDS: readonly ((path: string) => readonly string[])[] = [
  (path) => ['train', path],
  (path) => ['train', serial, '--replay-order', path],
  (path) => ['eval', quickstart, '--tasks', path],
  (path) => ['index', path],
  (path) => ['serve-retriever', `${path}.jsonl`],
  (path) => ['serve-retriever', path],
  (path) => ['sft', quickstart, '--data', `${path}.json`],
  (path) => ['dpo', quickstart, '--data', `${path}.jsonl`],
  (path) => ['replay', path],
  (path) => ['export', path, '--format', 'chatml', '--out', join(dir, 'out')],
  (path) => ['worker', 'nats://127.0.0.1:1', '--run', 'x', '--creds', path],
];

describe.each(Object.entries(KINDS))('%s', (kind, put) => {
  it.each(FILES)('as %#: %s/%s', (folder, file, read) => {
    const copy = copyWith(folder, file, put);
    let thrown: unknown;
    try {
      read(copy);
    } catch (error) {
      thrown = error;
    }
    expectMistake(thrown);
    expect((thrown as Error).message).toContain(`${join(copy, file)}: expected a file, found ${kind}`);
  });
  it.each(['config.yaml', 'rollout.json'])('as a run’s %s, resumed', async (file) => {
    const copy = copyWith(run, file, put);
    const { status, stderr } = await typed(file === 'rollout.json' ? 'rollout' : 'train', '--resume', copy);
    expect(stderr).toMatch(/expected a file, found/);
    expect(status).toBe(2);
  });
  it.each(COMMANDS)('given to a command: %#', async (command) => {
    const path = join(dir, `file-${copies++}`);
    const args = command(path);
    for (const name of [path, `${path}.json`, `${path}.jsonl`]) if (args.includes(name)) put(name);
    const { status, stderr } = await typed(...args);
    // A folder may be what is asked for: it is then an empty run.
    expect(stderr).toMatch(
      kind === 'a pipe' ? /expected a file, found a pipe/ : /expected a file|no trace here|no such|no file/,
    );
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2);
    expect(status).toBe(2);
  });
});
