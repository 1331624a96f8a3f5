/**
 * A person's first hour with the package: an empty project, a world of their own, its laws, training, a rollout by a
 * model's server with the world's own prompt, and a look at the observations, in one program of under sixty lines.
 *
 * With LONGPLAY_LONG=1 the project is installed from `npm pack` and the registry; otherwise the package is linked.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';

const long = process.env.LONGPLAY_LONG === '1';
const root = fileURLToPath(packageRoot);
const project = mkdtempSync(join(tmpdir(), 'throw-away-'));
const requests: string[] = [];
let server: Server;

/** A stand-in for a model's server: reads the range in the prompt and guesses its middle. */
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      if (request.method === 'GET') {
        response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }));
        return;
      }
      requests.push(body);
      const last = JSON.parse(body).messages.at(-1).content as string;
      const [low, high] = /from (\d+) to (\d+)/.exec(last)?.slice(1).map(Number) ?? [0, 0];
      const content = `Thought: the middle.\nAction: say ${Math.floor((low! + high!) / 2)}`;
      const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
      response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.close();
  rmSync(project, { recursive: true, force: true });
});

/** @returns why the package cannot be installed from the registry, or undefined once it is */
function install(): string | undefined {
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'throw-away', private: true, type: 'module' }));
  if (!long) {
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(root, join(project, 'node_modules', 'longplay'), 'dir');
    return undefined;
  }
  const npm = (...args: string[]) => spawnSync('npm', args, { cwd: project, encoding: 'utf8', timeout: 600_000 });
  if (npm('ping').status !== 0) return 'the registry cannot be reached';
  const packed = npm('pack', '--ignore-scripts', '--silent', root);
  expect(packed.status, packed.stderr).toBe(0);
  const installed = npm(
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    packed.stdout.trim().split('\n').at(-1)!,
  );
  expect(installed.status, installed.stderr).toBe(0);
  return undefined;
}

it('a world of one’s own is written, checked, trained, rolled out by a model and watched', async (context) => {
  const missing = install();
  if (missing !== undefined) {
    console.log(`skipped: ${missing}`);
    context.skip();
  }
  const sources = ['world.mjs', 'main.mjs'].map((name) => {
    const text = readFileSync(new URL(`test/fixtures/throw-away/${name}`, packageRoot), 'utf8');
    writeFileSync(join(project, name), text);
    return text;
  });
  expect(sources.join('').trim().split('\n').length).toBeLessThan(60);

  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const child = spawn(process.execPath, ['main.mjs', url], { cwd: project });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part) => {
      out += part;
    });
  }
  const status = await new Promise((resolve) => child.once('close', resolve));

  expect(status, out).toBe(0);
  const result = JSON.parse(out.trim().split('\n').at(-1)!);
  expect(result.trained).toMatchObject({ why: 'updates', updates: 3 });
  expect(result.observed).toBeGreaterThan(100);
  expect(result.rollout).toEqual({ episodes: 8, success: 1 }); // halving finds it in time
  expect(requests.length).toBeGreaterThanOrEqual(8);
  expect(requests.every((body) => body.includes('You look for a number that I have in mind.'))).toBe(true);
}, 900_000);
