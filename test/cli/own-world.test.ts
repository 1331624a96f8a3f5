/**
 * A world of the user's own, by its path: the README's whole environment keeps the laws and trains, and every command
 * takes it. An empty project beside the repository, with this package linked into it.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { findWorld, worldUrl } from '../../src/run/find-world.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { type Exchange, misbehavingServer } from '../support/misbehaving-server.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

vi.setConfig({ testTimeout: 120_000 });
const root = fileURLToPath(packageRoot);
const project = temporaryFolder('own-world');
const world = join(project, 'guess', 'env.mjs');

beforeAll(() => {
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  symlinkSync(root, join(project, 'node_modules/longplay'));
  mkdirSync(join(project, 'guess'));
  const readme = readFileSync(join(root, 'WORLDS.md'), 'utf8');
  const code = /```js\n([\s\S]*?export function createEnv[\s\S]*?)```/.exec(readme)![1]!;
  writeFileSync(world, code);
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), 'guess/env.mjs', '--allowJs', '--checkJs', '--noEmit'];
  const { stdout } = spawnSync(
    process.execPath,
    [...tsc, '--module', 'nodenext', '--strict', '--target', 'es2022', '--skipLibCheck', '--types', ''],
    {
      cwd: project,
      encoding: 'utf8',
    },
  );
  expect(stdout).toBe('');
  writeFileSync(join(project, 'guess', 'train.yaml'), CONFIG);
  writeFileSync(join(project, 'guess', 'served.mjs'), SERVED);
}, 60_000);
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** A world without rules. */
const SERVED = `
export const description = 'A world elsewhere.';
export const agentgym = { client: { idField: 'id', tasks: { count: 1 } } };
`;

const CONFIG = `
env: { id: ./env.mjs }
tasks: { sampling: { type: uniform } }
horizon: { type: fixed, rounds: 3 }
policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } }
rollout: { groupSize: 4, concurrentGroups: 2, maxBatch: 8, envThreads: 1 }
learner: { groupsPerUpdate: 2, epochs: 1 }
stop: { updates: 2 }
checkpoint: { everyUpdates: 1 }
evaluation: { horizons: [3], episodesPerTask: 1, greedy: false, randomBaseline: false }
trace: { maxShare: 1 }
`;

async function longplay(args: readonly string[], input = '') {
  const child = spawn(process.execPath, [join(root, 'dist/src/cli/main.js'), ...args], { cwd: project });
  child.stdin.end(input);
  const [out, err] = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const chunk of stream) text += chunk;
    return text;
  });
  const status = await new Promise((resolve) => child.on('close', resolve));
  return { status, out: await out!, err: await err! };
}

it("the README's environment keeps the laws, in 40 lines", async () => {
  expect(readFileSync(world, 'utf8').split('\n').length).toBeLessThan(40);
  const { status, out, err } = await longplay(['check-env', './guess/env.mjs', '--cases', '60', '--episodes', '200']);
  expect(err).toBe('');
  expect(out).not.toMatch(/broken/);
  expect(status).toBe(0);
});

it('trains by a path relative to the configuration, through the default view, and reports it', async () => {
  const { status, out, err } = await longplay(['train', 'guess/train.yaml', '--name', 'first']);
  expect(err + out).toMatch(/guess has no view of its own.*default/);
  // The engine is named when it starts, and at the end with the way to look at the run.
  const [, engine] = /^engine (\S+)/m.exec(err)!;
  expect(out).toContain(`run runs/first (engine ${engine}): longplay view runs/first`);
  expect(status).toBe(0);
  const recorded = readFileSync(join(project, 'runs/first/config.yaml'), 'utf8');
  expect(recorded).toContain(`id: ${world}`);
  expect(recorded).toMatch(/sha256: [0-9a-f]{64}/);
});

it('is found again by eval, --resume, replay --check and the report of a run', async () => {
  const evaluated = await longplay(['eval', 'runs/first', '--json']);
  expect(JSON.parse(evaluated.out)).toMatchObject({ split: 'test' });
  const checked = await longplay(['replay', 'runs/first', '--check']);
  expect(checked.out).toMatch(/^episodes \d+, steps \d+, differing 0$/m);
  expect(checked).toMatchObject({ status: 0, err: '' });
  const resumed = await longplay(['train', '--resume', 'runs/first', '--set', 'stop.updates=3']);
  expect(resumed.status).toBe(0);
  const report = await longplay(['view', 'runs/first', '--out', 'report.html']);
  expect(report.status).toBe(0);
});

it('is played by hand', async () => {
  const { out, status } = await longplay(['play', './guess/env.mjs', '--task', '5', '--horizon', '4'], '?\n9\n5\n');
  expect(out).toContain('Lower.');
  expect(out).toContain('solved after 2 turns');
  expect(status).toBe(0);
});

it('is served under its own id', async () => {
  const server = await startEnvServer([world]);
  try {
    expect(server.ids).toEqual(['guess']);
    const { env } = await findWorld(`openenv+${server.url}/openenv/guess`);
    const session = await env.open({ env: env.id, index: 5, seed: 0 });
    expect(session.first.observation).toBe('Guess a number between 0 and 15.');
    await session.close();
    const listed = await longplay(['envs', `openenv+${server.url}/openenv/guess`]);
    expect(listed.out).toMatch(/openenv\/guess +16 .*a server/);
  } finally {
    await server.close();
  }
});

it('is rolled out by a random policy and by a language model with a prompt of its own', async () => {
  const random = await longplay([
    'rollout',
    '--env',
    './guess/env.mjs',
    '--policy',
    'random',
    '--episodes',
    '4',
    '--horizon',
    '2',
    '--json',
  ]);
  expect(JSON.parse(random.out.trim().split('\n').at(-1)!)).toMatchObject({ finished: 4, run: 'runs/rollout-guess' });
  appendFileSync(
    world,
    "export const prompt = { role: 'You guess like a clown.', forms: [], hints: [], format: 'react' };\n",
  );
  const model = await misbehavingServer(
    async ({ path }: Exchange) =>
      path === '/v1/models'
        ? { status: 200, json: { data: [{ id: 'tiny' }] } }
        : { status: 200, json: { choices: [{ message: { content: 'Thought: twelve.\nAction: 12' } }] } },
    () => 'ok',
  );
  try {
    const { status, out } = await longplay([
      ...['rollout', '--env', './guess/env.mjs', '--policy', 'openai', '--base-url', `${model.url}/v1`],
      ...['--split', 'test', '--episodes', '4', '--horizon', '2', '--json', '--name', 'prompted'],
    ]);
    expect(status).toBe(0);
    const { summary } = JSON.parse(out.trim().split('\n').at(-1)!);
    expect(summary.all).toMatchObject({ episodes: 4, success: { value: 0.25 } }); // the held-out numbers are 12 to 15
    const { messages } = model.log.find(({ body }) => body)!.body as { messages: { content: string }[] };
    expect(messages[0]!.content).toContain('You guess like a clown.');
  } finally {
    await model.close();
  }
});

it('is meant by its folder and without its ending, too', async () => {
  for (const path of ['guess', 'guess/env', 'guess/env.mjs']) {
    expect(worldUrl(join(project, path)).href).toBe(pathToFileURL(world).href);
  }
  const { err, status } = await longplay(['play', 'guess']);
  expect(err).toMatch(/unknown env 'guess'; did you mean '\.\/guess'\?/);
  expect(status).toBe(2);
});

it('is found by its runs after both were moved, and by a path where it alone was', async () => {
  mkdirSync(join(project, 'old/guess'), { recursive: true });
  for (const name of ['env.mjs', 'train.yaml']) {
    copyFileSync(join(project, 'guess', name), join(project, 'old/guess', name));
  }
  const trained = await longplay(['train', 'old/guess/train.yaml', '--runs', 'old/runs', '--set', 'stop.updates=1']);
  expect(trained.status).toBe(0);
  renameSync(join(project, 'old'), join(project, 'new'));
  const run = join(project, 'new/runs/train');
  expect(await typed('replay', `${run}/traces/00001.jsonl`, '--check')).toMatchObject({ status: 0, stderr: '' });
  expect(await longplay(['train', '--resume', run, '--set', 'stop.updates=2'])).toMatchObject({ status: 0 });

  const elsewhere = join(project, 'elsewhere.mjs');
  renameSync(join(project, 'new/guess/env.mjs'), elsewhere);
  const lost = await typed('eval', run);
  expect(lost.stderr).toMatch(/env\.mjs, is gone; .*--set env\.id=<path>/);
  expect(lost.status).toBe(2);
  expect(await typed('replay', run, '--check', '--env', elsewhere)).toMatchObject({ status: 0, stderr: '' });
  const found = [
    ['train', '--resume', run, '--set', 'stop.updates=3', '--set', 'env.id=elsewhere.mjs'],
    ['rollout', '--policy', run, '--env', './elsewhere.mjs', '--episodes', '1', '--horizon', '1'],
  ];
  for (const args of found) expect(await longplay(args), args.join(' ')).toMatchObject({ status: 0 });
}, 240_000);

it('is drawn by the viewer of its runs', () => {
  appendFileSync(
    world,
    "export const draw = () => ({ panels: [{ kind: 'text', title: 'Picture', lines: ['a hat'] }] });\n",
  );
  // In a process of its own: this one has loaded the world as it was.
  const runs = JSON.stringify(new URL('dist/src/run/view-runs.js', packageRoot).href);
  const folder = JSON.stringify(join(project, 'runs/first'));
  const script = `const { runSources } = await import(${runs});
    const { drawings } = await runSources([${folder}])[0].episode(0);
    console.log(JSON.stringify(drawings[0]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  expect(stdout, stderr).toContain('a hat');
});

it('a change of the module since the run was made is reported, of one of several worlds too', async () => {
  const trace = join(project, 'runs/first/traces/00001.jsonl');
  const [header, ...lines] = readFileSync(trace, 'utf8').split('\n');
  const { config, ...facts } = JSON.parse(header!);
  const worlds = [{ name: JSON.parse(lines[0]!).task.env, env: config.env }];
  const mixed = [JSON.stringify({ ...facts, config: { worlds } }), ...lines].join('\n');
  mkdirSync(join(project, 'runs/mixed/traces'), { recursive: true });
  writeFileSync(join(project, 'runs/mixed/traces/00001.jsonl'), mixed);
  for (const args of [
    ['replay', trace, '--check'],
    ['replay', 'runs/mixed', '--check'],
    ['rollout', '--policy', 'runs/first', '--episodes', '1', '--horizon', '1'],
  ]) {
    const { err } = await longplay(args);
    expect(err, args.join(' ')).toMatch(/env\.mjs has changed since the run was made/);
  }
});

it.each([
  [['train', 'guess/nowhere.yaml'], /cannot read/],
  [['rollout', '--env', './nowhere.mjs', '--policy', 'random'], /no module at .*nowhere\.mjs.*new-env/],
  [['play', './guess/train.yaml'], /cannot be loaded|expected a module/],
  [['rollout', '--env', './guess/served.mjs', '--policy', 'random'], /played through an AgentGym server/],
  [['play', 'gess'], /unknown env 'gess'.*path of a module/],
])('%j is one helpful line', async (args, message) => {
  const { status, err } = await longplay(args);
  expect(err).toMatch(message);
  expect(err.trim().split('\n')).toHaveLength(1);
  expect(status).toBe(2);
  expect(existsSync(join(project, 'runs/rollout-nowhere'))).toBe(false);
});
