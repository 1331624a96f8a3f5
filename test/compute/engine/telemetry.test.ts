/** The engine's telemetry is off in every process and thread that loads it: nothing is written, no socket is opened. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../../src/runtime/module-url.ts';
import { temporaryFolder } from '../../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const folder = temporaryFolder('telemetry');
const bin = join(root, 'dist/src/cli/main.js');
const library = JSON.stringify(new URL('dist/src/index.js', packageRoot).href);
const opening = JSON.stringify(new URL('dist/src/compute/engine/open.js', packageRoot).href);
const native = JSON.stringify(new URL('dist/src/compute/engine/onnxruntime-node.js', packageRoot).href);

const CONFIG = `
env: { id: textcraft }
tasks: { labels: [depth 1], sampling: { type: uniform } }
horizon: { type: fixed, rounds: 3 }
policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } }
rollout: { groupSize: 2, concurrentGroups: 2, maxBatch: 4 }
learner: { groupsPerUpdate: 2, maxTokens: 1000 }
engine: { learnerReplicas: 2 }
stop: { updates: 2 }
evaluation: { horizons: [3], episodesPerTask: 1, greedy: false, randomBaseline: false }
trace: { everyGroups: 0 }
`;
const TRAIN = `
const { train } = await import(${library});
const { parse } = await import('yaml');
await train({ config: parse(${JSON.stringify(CONFIG)}), dir: process.argv[2] }).done;
`;
/** Computes something: the reports begin with a session. */
const COMPUTE = `
const { openEngine } = await import(${opening});
const { tryDevice } = await import(${native});
await (await openEngine({ name: 'onnxruntime-node' })).dispose();
await tryDevice(await import('onnxruntime-node'), 'cpu');
await new Promise((resolve) => setTimeout(resolve, 500));
`;
const SCRIPTS: Readonly<Record<string, string>> = {
  'train.yaml': CONFIG,
  'library.mjs': TRAIN,
  'worker.mjs': `
import { Worker } from 'node:worker_threads';
const worker = new Worker(new URL('./compute.mjs', import.meta.url), { env: { HOME: process.env.HOME, TMPDIR: process.env.TMPDIR } });
worker.on('error', (error) => { throw error; });
`,
  'compute.mjs': COMPUTE,
  'bare.mjs': `
const { tryDevice } = await import(${native});
await tryDevice(await import('onnxruntime-node'), 'cpu');
await new Promise((resolve) => setTimeout(resolve, 500));
`,
};

beforeAll(() => {
  // Within the package, so that the scripts find its dependencies by their names.
  mkdirSync(join(root, 'dist', `telemetry-${process.pid}`));
  for (const [name, text] of Object.entries(SCRIPTS)) writeFileSync(script(name), text);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(join(root, 'dist', `telemetry-${process.pid}`), { recursive: true, force: true });
});

function script(name: string): string {
  return join(root, 'dist', `telemetry-${process.pid}`, name);
}

/** Under these the engine is silent by itself: a build server would test nothing. */
const OF_BUILD_SERVERS =
  /^(CI|TF_BUILD|GITHUB_ACTIONS|TRAVIS|CIRCLECI|APPVEYOR|GITLAB_CI|TEAMCITY_VERSION|JENKINS_URL|CODEBUILD_BUILD_ID|BUILDKITE|BITBUCKET_BUILD_NUMBER|ORT_RUNNING_UNIT_TESTS|ORT_DISABLE_TELEMETRY)$/;

/** Runs Node with an empty home and temporary folder. @returns what it left in them, and its output */
function leftBy(name: string, args: readonly string[], before: readonly string[] = [], value?: string) {
  const home = join(folder, name, 'home');
  const tmp = join(folder, name, 'tmp');
  for (const made of [home, tmp]) mkdirSync(made, { recursive: true });
  const rest = Object.fromEntries(Object.entries(process.env).filter(([key]) => !OF_BUILD_SERVERS.test(key)));
  const env = { ...rest, HOME: home, TMPDIR: tmp, ...(value === undefined ? {} : { ORT_DISABLE_TELEMETRY: value }) };
  const [command, ...first] = [...before, process.execPath];
  const { status, stdout, stderr } = spawnSync(command!, [...first, ...args], {
    cwd: join(folder, name),
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  const files = [home, tmp].flatMap((made) => readdirSync(made, { recursive: true, encoding: 'utf8' }));
  return { status, files: files.filter((file) => !file.startsWith('node-compile-cache')), output: stdout + stderr };
}

const CASES: Readonly<Record<string, () => string[]>> = {
  train: () => [bin, 'train', script('train.yaml'), '--name', 'small'],
  doctor: () => [bin, 'doctor'],
  library: () => [script('library.mjs'), 'library-run'],
  "a worker of the user's": () => [script('worker.mjs')],
};

describe("the engine's telemetry", () => {
  it.each(Object.entries(CASES))(
    '%s leaves nothing in an empty home and temporary folder',
    (name, args) => {
      const { status, files, output } = leftBy(name, args());
      expect(output).not.toMatch(/rror:/);
      expect({ status, files }).toEqual({ status: 0, files: [] });
    },
    90_000,
  );

  it('serve-policy leaves nothing there', () => {
    const run = join(folder, 'train', 'runs', 'small'); // of the case before
    const ending = ['timeout', '--preserve-status', '-s', 'INT', '8'];
    const { files, output } = leftBy('served', [bin, 'serve-policy', run, '--port', '0'], ending);
    expect(output).toMatch(/http:\/\/127\.0\.0\.1:\d+/);
    expect(files).toEqual([]);
  }, 90_000);

  it('is on without our doing, and where the user asked for it', () => {
    expect(leftBy('bare', [script('bare.mjs')]).files.join(' ')).toMatch(/mat-debug|onnxruntime/);
    expect(leftBy('asked', [script('compute.mjs')], [], '0').files.join(' ')).toMatch(/mat-debug|onnxruntime/);
  }, 90_000);

  const hasStrace = spawnSync('strace', ['-f', '-e', 'trace=connect', 'true']).status === 0;
  it.skipIf(!hasStrace)(
    'train opens no socket (skipped: strace is not here)',
    () => {
      const trace = join(folder, 'connects');
      const strace = ['strace', '-f', '-e', 'trace=connect', '-o', trace];
      const { status } = leftBy('traced', CASES.train!(), strace);
      expect(status).toBe(0);
      const lines = readFileSync(trace, 'utf8').split('\n');
      expect(lines.length).toBeGreaterThan(5);
      expect(lines.filter((line) => line.includes('AF_INET'))).toEqual([]);
    },
    120_000,
  );
});
