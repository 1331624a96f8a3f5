/**
 * An exported GGUF file behind servers plays greedily what its run plays: behind `serve-policy`, and behind llama.cpp's
 * `llama-server` where that is on the PATH.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { Rng } from '../../src/core/rng.ts';
import { exportPolicy } from '../../src/run/export-policy.ts';
import { readRunConfig } from '../../src/run/run-folder.ts';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import type { TraceLine } from '../../src/storage/trace.ts';
import { playPlan } from '../support/play-plan.ts';
import { makePolicyRun } from '../support/policy-run.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const hasLlamaServer = spawnSync('llama-server', ['--version']).status === 0;
if (!hasLlamaServer) console.log('skipped: no llama-server on the PATH; exported files are served by us alone');
const models = process.env.LONGPLAY_MODELS ?? resolve(import.meta.dirname, '../../../shared/models');
const real = join(models, 'SmolLM2-135M-Instruct.Q4_1.gguf');
const hasReal = existsSync(real) && (hasLlamaServer || process.env.LONGPLAY_LONG !== undefined);
if (!hasReal)
  console.log(`skipped: the real model needs ${real} (LONGPLAY_MODELS), and llama-server or LONGPLAY_LONG=1`);

const dir = mkdtempSync(join(tmpdir(), 'longplay-exported-'));
const chat = 'policy.chat={format: action, contextTokens: 2048}';
const plan = { format: 1, episodes: 3, split: 'test', horizon: 3, temperature: 0, seed: 5 } as const;
/** Actions and whole answers, turn by turn. */
const answersOf = (lines: TraceLine[]) =>
  lines.map(({ turns }) => turns.map(({ action, response }) => [action, response?.text]));
const moveBy = (size: number) => (values: Readonly<Record<string, Float32Array>>) => {
  const rng = Rng.fromSeed(3);
  for (const data of Object.values(values)) for (let i = 0; i < data.length; i++) data[i]! += size * rng.normal();
};

/**
 * Makes a run of a model whose adapter has moved, exports it, and plays it here.
 * @param size of the moves
 * @param masked true where answers are listed actions
 */
async function prepare(name: string, model: string, size: number, masked: boolean) {
  const settings = (path: string) => [
    ...['policy.kind=checkpoint', `policy.path=${path}`, `policy.masked=${masked}`, 'policy.maxTokens=16', chat],
    'policy.adapter={rank: 4, alpha: 8, targets: [q_proj, v_proj, down_proj]}',
  ];
  const play = async (run: string) =>
    answersOf(await playPlan(`${run}-here`, 'textcraft', { ...plan, policyRun: run }, []));
  const run = join(dir, `${name}-run`);
  await makePolicyRun(run, 'textcraft', settings(model), moveBy(size));
  const file = join(dir, `${name}.gguf`);
  exportPolicy(run, readRunConfig(run), 'gguf', file, { type: 'f32' });
  // Adapters that have not moved: the base's own weights, and the file's.
  const [before, exported] = [join(dir, `${name}-before`), join(dir, `${name}-exported`)];
  await makePolicyRun(before, 'textcraft', settings(model));
  await makePolicyRun(exported, 'textcraft', settings(file));
  return { file, exported, played: await play(run), base: await play(before) };
}

/** Plays behind a server. @param more keys of `policy.openai` */
async function playBehind(name: string, baseUrl: string, more = 'guided: none') {
  const settings = ['policy.kind=openai', `policy.openai={baseUrl: "${baseUrl}", maxTokens: 16, ${more}}`, chat];
  return answersOf(await playPlan(join(dir, name), 'textcraft', plan, settings));
}

/** Starts llama.cpp's server over a file. @returns the root of its API */
async function startLlamaServer(file: string): Promise<{ readonly url: string; readonly process: ChildProcess }> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { readonly port: number };
  probe.close();
  const cache = ['--cache-type-k', 'f32', '--cache-type-v', 'f32', '--ctx-size', '2048', '--parallel', '1'];
  const args = ['--model', file, '--host', '127.0.0.1', '--port', `${port}`, '--jinja', ...cache];
  const child = spawn('llama-server', args, { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`llama-server ended with exit code ${child.exitCode}`);
    if (
      await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return { url: `${url}/v1`, process: child };
    await sleep(200);
  }
}

beforeAll(() => {
  vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
  writeTinyChatModel(join(dir, 'tiny'));
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

it('an exported file behind serve-policy chooses what its run chooses', async () => {
  const { exported, played, base } = await prepare('tiny', join(dir, 'tiny'), 0.3, true);
  expect(base).not.toEqual(played); // the adapter has moved what is played
  const server = await startPolicyServer(exported);
  try {
    expect(await playBehind('tiny-served', `${server.url}/v1`, 'guided: guided_choice')).toEqual(played);
  } finally {
    await server.close();
  }
});

it.skipIf(!hasReal)('a real one writes behind serve-policy, and behind llama-server, what its run writes', async () => {
  const { file, exported, played, base } = await prepare('real', real, 0.02, false);
  expect(base).not.toEqual(played);
  const server = await startPolicyServer(exported);
  try {
    expect(await playBehind('real-served', `${server.url}/v1`)).toEqual(played);
  } finally {
    await server.close();
  }
  if (!hasLlamaServer) return;
  const llama = await startLlamaServer(file);
  try {
    expect(await playBehind('real-llama', llama.url)).toEqual(played);
  } finally {
    llama.process.kill();
  }
});
